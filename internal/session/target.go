package session

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Errors of FindProgram and Start that decide the exit status, as env(1) and timeout(1) have it: 127 and 126.
var (
	ErrNotFound      = errors.New("program not found")
	ErrNotExecutable = errors.New("program cannot be executed")
)

// FindProgram returns the path of a program like a shell would: through PATH unless the name holds a slash. The error wraps
// ErrNotFound or ErrNotExecutable.
func FindProgram(name string) (string, error) {
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
	if found := nonExecutableInPath(name); found != "" {
		return "", fmt.Errorf("%w: %s: %s", ErrNotExecutable, found, whyNotExecutable(found))
	}
	if isRecording(name) {
		return "", fmt.Errorf("%w: %s: %s", ErrNotExecutable, name, whyNotExecutable(name))
	}
	return "", fmt.Errorf("%w: %s: check the spelling, or give its path, like ./%s", ErrNotFound, name, name)
}

func whyNotExecutable(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "it is a folder"
	}
	if isRecording(path) {
		return "it is a recording: gpumemtop report " + path
	}
	return "chmod +x it first"
}

func isRecording(path string) bool {
	reader, err := recording.Open(path)
	if err != nil {
		return false
	}
	_ = reader.Close() // nothing was written
	return true
}

// nonExecutableInPath finds a file that LookPath passed over because it is not executable.
func nonExecutableInPath(name string) string {
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

// launchers start a program in a way that shuts our library out.
var launchers = map[string]string{
	"sudo": "a clean environment", "doas": "a clean environment", "pkexec": "a clean environment",
	"oclgrind": "an OpenCL library that comes before ours",
}

// PreloadObstacle says why a program would not load a preload library (ld.so(8)), "" when nothing speaks against it.
func PreloadObstacle(path string) string {
	name := filepath.Base(path)
	if gives := launchers[name]; gives != "" {
		return "it gives its program " + gives + "; put gpumemtop behind it, as in " + name + " gpumemtop ./app"
	}
	if why := whyRunsPrivileged(path); why != "" {
		return why
	}
	f, err := openProgram(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only read
	switch why := whyLinkerCannotLoad(f); {
	case why != "":
		return "it " + why
	case dynamicLinkerOf(f) == "":
		return "it is linked statically"
	}
	return ""
}

// openProgram opens a program, or for a script that of its first line, as far as the kernel follows those.
func openProgram(path string) (*elf.File, error) {
	for range 5 {
		f, err := elf.Open(path)
		if err == nil {
			return f, nil
		}
		line, readErr := firstLineOfScript(path)
		words := strings.Fields(strings.TrimPrefix(line, "#!"))
		if readErr != nil || len(words) == 0 || !strings.HasPrefix(line, "#!") {
			return nil, err
		}
		path = words[0]
	}
	return nil, syscall.ELOOP
}

// firstLineOfScript returns what the kernel reads of a script's first line.
func firstLineOfScript(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	text := make([]byte, 256)
	n, err := io.ReadFull(f, text)
	if n == 0 {
		return "", err
	}
	line, _, _ := strings.Cut(string(text[:n]), "\n")
	return line, nil
}

// dynamicLinkerOf returns the dynamic linker that a program names, "" without one.
func dynamicLinkerOf(f *elf.File) string {
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name := make([]byte, min(p.Filesz, 4096))
			n, _ := p.ReadAt(name, 0)
			return strings.TrimRight(string(name[:n]), "\x00")
		}
	}
	return ""
}

// whyLinkerCannotLoad says why a program's dynamic linker cannot load our library, "" if it can. glibc's complains, and musl's ends the
// program.
func whyLinkerCannotLoad(f *elf.File) string {
	switch {
	case f.Class != elf.ELFCLASS64 || f.Machine != ownELFMachine():
		return "is built for another kind of processor (" + machineName(&f.FileHeader) + ")"
	case strings.HasPrefix(filepath.Base(dynamicLinkerOf(f)), "ld-musl-"):
		return "uses another C library (musl)"
	}
	return ""
}

// linkerRefuses reports whether a program's dynamic linker cannot load our library.
func linkerRefuses(path string) bool {
	f, err := openProgram(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	return whyLinkerCannotLoad(f) != ""
}

// NeedsOpenCL reports whether a program is linked against libOpenCL, so that it cannot even start without it.
func NeedsOpenCL(path string) bool { return needsLibrary(path, "libOpenCL.so") }

// needsLibrary reports whether a program is linked against a library whose name begins like that.
func needsLibrary(path, library string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	libraries, err := f.ImportedLibraries()
	return err == nil && slices.ContainsFunc(libraries, func(name string) bool { return strings.HasPrefix(name, library) })
}

// hasOwnLeakChecker reports whether a program has a leak checker linked into it that libraries cannot ask to look away.
func hasOwnLeakChecker(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()                  //nolint:errcheck // only read
	symbols, _ := f.DynamicSymbols() // the others may be very many
	has := func(name string) bool {
		return slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == name })
	}
	return has("__lsan_is_turned_off") && !has("__lsan_disable") // a checker in a program defines the first and not the second
}

// whyRunsPrivileged says whether the kernel would give the program rights that the caller lacks, which makes the dynamic
// linker ignore preload libraries with a path.
func whyRunsPrivileged(path string) string {
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

func ownELFMachine() elf.Machine {
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

// layersEnv lists the layers that ICD loaders load, the outermost last.
const layersEnv = "OPENCL_LAYERS"

// targetEnvironment returns the target's environment: ours, with the shim before all preloaded libraries except wrappers of
// OpenCL, and after the loader layers that the user wants, and without the shim of an outer session. The shim has the same
// path as a preloaded library and as a layer, so that a loader finds the library that is already loaded.
func targetEnvironment(base []string, dir string) []string {
	shim := filepath.Join(dir, wire.ShimName)
	preload, layers := []string{shim}, []string{}
	env := make([]string, 0, len(base)+3)
	for _, entry := range base {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case "LD_PRELOAD":
			var wrappers, rest []string
			for _, library := range listWithoutShims(value, " :") {
				if PreloadKindOf(library) == PreloadWrapper {
					wrappers = append(wrappers, library)
				} else {
					rest = append(rest, library)
				}
			}
			preload = slices.Concat(wrappers, preload, rest)
		case layersEnv:
			layers = append(layers, listWithoutShims(value, ":")...)
		case wire.SessionEnv:
		default:
			env = append(env, entry)
		}
	}
	layers = append(layers, shim)
	return append(env, "LD_PRELOAD="+strings.Join(preload, ":"), layersEnv+"="+strings.Join(layers, ":"), wire.SessionEnv+"="+dir)
}

// environmentForSanitizer lets a program that is linked against an address sanitizer start: the sanitizer demands to be the first
// library, and a preload library comes before it. The sanitizer misses nothing: the functions of ours that come before its own
// call those of the C library.
func environmentForSanitizer(env []string) []string {
	const variable, option = "ASAN_OPTIONS=", "verify_asan_link_order=0"
	for i, entry := range env {
		if value, found := strings.CutPrefix(entry, variable); found {
			env[i] = variable + strings.TrimPrefix(value+":"+option, ":")
			return env
		}
	}
	return append(env, variable+option)
}

// listWithoutShims splits a list of libraries at any of the separators and leaves shims out.
func listWithoutShims(list, separators string) []string {
	libraries := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(separators, r) })
	return slices.DeleteFunc(libraries, func(library string) bool { return filepath.Base(library) == wire.ShimName })
}
