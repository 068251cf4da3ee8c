package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/doctor/probe"
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
	// SettingsFile is the user's file of settings, empty if there is none.
	SettingsFile string
	// Check says what is wrong with the settings that the environment and the file make, nil for nothing.
	Check func() error
}

// System is how the machine is looked at. This machine is [ThisMachine].
type System struct {
	Environ  []string // as os.Environ
	ReadFile func(path string) ([]byte, error)
	Glob     func(pattern string) ([]string, error)
	Stat     func(path string) (fs.FileInfo, error)
	// Folders are the places for a runtime folder, best first.
	Folders func() []session.Place
	// Preloaded is what a library in LD_PRELOAD has to do with OpenCL.
	Preloaded func(library string) session.PreloadKind
	// Probe runs the preload library's probe (shim/entry/probe.c) in a process of its own and returns what it wrote, also
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

// envVariable returns a variable of the environment, "" when it is not there.
func (s *System) envVariable(name string) string {
	for _, entry := range s.Environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// readSmallFile reads a small file, "" when it cannot be read.
func (s *System) readSmallFile(path string) string {
	b, err := s.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// ThisMachine is this machine.
func ThisMachine() *System {
	kernel := rights.ThisSystem()
	return &System{
		Environ: os.Environ(), ReadFile: os.ReadFile, Glob: filepath.Glob, Stat: os.Stat,
		Folders: session.FolderPlaces, Preloaded: session.PreloadKindOf, Probe: runProbeProgram, Memfd: tryCreateMemfd,
		OpenFiles: kernel.OpenFiles, Release: kernel.Release,
		Rights: kernel.ExamineSystem, Root: os.Geteuid() == 0, Terminal: terminalSize,
	}
}

// probeTime is how long a driver may take to answer.
const probeTime = 20 * time.Second

func runProbeProgram(what string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), probeTime, fmt.Errorf("no answer within %v", probeTime))
	defer cancel()
	out, err := probe.RunWithPreload(ctx, []string{wire.ProbeEnv + "=" + what})
	return string(out), err
}

func tryCreateMemfd() error {
	fd, err := unix.MemfdCreate("gpumemtop-doctor", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func terminalSize() (cols, rows int, ok bool) {
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
