package session

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Errors of Find and Start that decide the exit status, as env(1) and timeout(1) have it: 127 and 126.
var (
	ErrNotFound      = errors.New("program not found")
	ErrNotExecutable = errors.New("program cannot be executed")
)

// Find returns the path of a program like a shell would: through PATH unless the name holds a slash. The error wraps
// ErrNotFound or ErrNotExecutable.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil || errors.Is(err, exec.ErrDot) {
		return path, nil
	}
	if strings.Contains(name, "/") {
		if _, statErr := os.Stat(name); statErr == nil {
			return "", fmt.Errorf("%w: %s: %s", ErrNotExecutable, name, whyNotExecutable(name))
		}
		return "", fmt.Errorf("%w: %s: check the path", ErrNotFound, name)
	}
	if found := inPath(name); found != "" {
		return "", fmt.Errorf("%w: %s: %s", ErrNotExecutable, found, whyNotExecutable(found))
	}
	return "", fmt.Errorf("%w: %s: check the spelling, or give its path, like ./%s", ErrNotFound, name, name)
}

func whyNotExecutable(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "it is a folder"
	}
	return "chmod +x it first"
}

// inPath finds a file that LookPath passed over because it is not executable.
func inPath(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// startError gives the error of execve a name and a remedy.
func startError(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT):
		// The file is there: its interpreter is not.
		return fmt.Errorf("%w: %s: its interpreter or dynamic linker is missing", ErrNotFound, path)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: %s: not a program for this machine; a script needs a first line like #!/bin/sh", ErrNotExecutable, path)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ETXTBSY):
		return fmt.Errorf("%w: %s: %w", ErrNotExecutable, path, errors.Unwrap(err))
	}
	return fmt.Errorf("start %s: %w", path, err)
}

// Obstacle says why a program would not load a preload library (ld.so(8)), "" when nothing speaks against it.
func Obstacle(path string) string {
	if why := privileged(path); why != "" {
		return why
	}
	f, err := elf.Open(path)
	if err != nil {
		return "" // a script: its interpreter is what counts
	}
	defer f.Close() //nolint:errcheck // only read
	if f.Class != elf.ELFCLASS64 || f.Machine != ourMachine() {
		return "it is built for another kind of processor (" + machineName(&f.FileHeader) + ")"
	}
	interpreted := slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	if !interpreted {
		return "it is linked statically"
	}
	return ""
}

// NeedsOpenCL reports whether a program is linked against libOpenCL, so that it cannot even start without it.
func NeedsOpenCL(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	libraries, err := f.ImportedLibraries()
	return err == nil && slices.ContainsFunc(libraries, func(name string) bool { return strings.HasPrefix(name, "libOpenCL.so") })
}

// privileged says whether the kernel would give the program rights that the caller lacks, which makes the dynamic
// linker ignore preload libraries with a path.
func privileged(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return ""
	case info.Mode()&os.ModeSetuid != 0 && int(owner.Uid) != os.Geteuid():
		return "it is setuid"
	case info.Mode()&os.ModeSetgid != 0 && int(owner.Gid) != os.Getegid():
		return "it is setgid"
	}
	if n, err := unix.Getxattr(path, "security.capability", nil); err == nil && n > 0 && os.Geteuid() != 0 {
		return "it has file capabilities"
	}
	return ""
}

func ourMachine() elf.Machine {
	switch runtime.GOARCH {
	case "arm64":
		return elf.EM_AARCH64
	case "riscv64":
		return elf.EM_RISCV
	case "ppc64le":
		return elf.EM_PPC64
	}
	return elf.EM_X86_64
}

func machineName(h *elf.FileHeader) string {
	bits := "64-bit"
	if h.Class == elf.ELFCLASS32 {
		bits = "32-bit"
	}
	return bits + " " + strings.TrimPrefix(h.Machine.String(), "EM_")
}

// environment returns the target's environment: ours, with the shim in front of what is preloaded already and
// without the shim of a session around this one.
func environment(base []string, dir string) []string {
	preload := filepath.Join(dir, wire.ShimName)
	env := make([]string, 0, len(base)+2)
	for _, entry := range base {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case "LD_PRELOAD":
			for _, library := range strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ':' }) {
				if filepath.Base(library) != wire.ShimName {
					preload += ":" + library
				}
			}
		case wire.SessionEnv:
		default:
			env = append(env, entry)
		}
	}
	return append(env, "LD_PRELOAD="+preload, wire.SessionEnv+"="+dir)
}
