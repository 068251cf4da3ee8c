package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/payload"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/rights"
)

// Options are what the command knows of itself.
type Options struct {
	Version  string
	Policies []string
	// Settings are the variables that set something, with their flags.
	Settings map[string]string
	// Check says what is wrong with the settings that the environment makes, nil for nothing.
	Check func() error
}

// System is how the machine is looked at. This machine is [Here].
type System struct {
	Environ  []string // as os.Environ
	ReadFile func(path string) ([]byte, error)
	Glob     func(pattern string) ([]string, error)
	Stat     func(path string) (fs.FileInfo, error)
	// Folders are the places for a runtime folder, best first.
	Folders func() []session.Place
	// Probe runs the preload library's probe (shim/probe.c) in a process of its own and returns what it wrote, also
	// with an error: that the process was killed, crashed or hung.
	Probe func(what string) (string, error)
	// Memfd says whether memory can be shared by memfd_create(2), with an error.
	Memfd func() error
	// OpenFiles is how many files a process may have open.
	OpenFiles func() uint64
	Release   func() string // of the kernel
	// Rights says whether programs that run already can be watched.
	Rights func() *rights.Report
	Root   bool
	// Terminal is the size of the controlling terminal, false when there is none.
	Terminal func() (cols, rows int, ok bool)
}

// variable returns a variable of the environment, "" when it is not there.
func (s *System) variable(name string) string {
	for _, entry := range s.Environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// text reads a small file, "" when it cannot be read.
func (s *System) text(path string) string {
	b, err := s.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Here is this machine.
func Here() *System {
	return &System{
		Environ: os.Environ(), ReadFile: os.ReadFile, Glob: filepath.Glob, Stat: os.Stat,
		Folders: session.Places, Probe: probe, Memfd: memfd, OpenFiles: openFiles, Release: release,
		Rights: rights.Examine, Root: os.Geteuid() == 0, Terminal: terminal,
	}
}

// probeTime is how long a driver may take to answer.
const probeTime = 20 * time.Second

// carriers are programs that do nothing; the first that is there carries the probe.
var carriers = []string{"/bin/true", "/usr/bin/true", "/bin/sh"}

// probe writes the preload library to where it can be loaded, and runs a program with it.
func probe(what string) (string, error) {
	library, err := payload.Shim()
	if err != nil {
		return "", err
	}
	place, err := session.FirstPlace()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(place, "gpumemtop-doctor-")
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, wire.ShimName)
	if err := os.WriteFile(path, library, 0o600); err != nil {
		return "", fmt.Errorf("write the preload library: %w", err)
	}
	return carry(carriers, path, what, probeTime)
}

// carry runs the first of the carriers that is there, with the library preloaded, and returns what it wrote.
func carry(carriers []string, library, what string, patience time.Duration) (string, error) {
	carrier := ""
	for _, path := range carriers {
		if _, err := os.Stat(path); err == nil && session.Obstacle(path) == "" {
			carrier = path
			break
		}
	}
	if carrier == "" {
		return "", fmt.Errorf("none of %s is there and dynamically linked", strings.Join(carriers, ", "))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, carrier)
	cmd.Env = append(probeEnvironment(os.Environ()), "LD_PRELOAD="+library, wire.ProbeEnv+"="+what)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	// Whatever it started goes with it, and cannot hold the pipe open.
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("no answer within %v", patience)
	case err != nil && stderr.Len() > 0:
		err = fmt.Errorf("%w: %s", err, lastLine(stderr.String()))
	case strings.Contains(stderr.String(), "cannot be preloaded"):
		err = errors.New(lastLine(stderr.String()))
	}
	return stdout.String(), err
}

// probeEnvironment returns the environment without what would load other libraries, or lead to a session.
func probeEnvironment(base []string) []string {
	var env []string
	for _, entry := range base {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case "LD_PRELOAD", "OPENCL_LAYERS", wire.SessionEnv, wire.ProbeEnv:
		default:
			env = append(env, entry)
		}
	}
	return env
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

func memfd() error {
	fd, err := unix.MemfdCreate("gpumemtop-doctor", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func openFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Cur
}

func release() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

func terminal() (cols, rows int, ok bool) {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return 0, 0, false
	}
	defer tty.Close() //nolint:errcheck // only asked for its size
	size, err := unix.IoctlGetWinsize(int(tty.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(size.Col), int(size.Row), true
}
