package session

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// PreloadKind is the relation of a library that the user preloads to OpenCL.
type PreloadKind int

const (
	// PreloadOther comes after our library: it has no functions of OpenCL, or it is a driver, which our library then calls.
	PreloadOther PreloadKind = iota
	// PreloadWrapper has functions of OpenCL and calls the next ones, which it finds with dlsym. It comes before our library: it gets the
	// program's calls, as without us, and we get its calls.
	PreloadWrapper
	// PreloadLoader looks like a loader. It comes after our library, and the loader that it opens may pass our calls by it.
	PreloadLoader
)

// PreloadKindOf returns the kind of a library in LD_PRELOAD: a path, or a name that it looks up as the dynamic linker does. A
// library that it does not find is PreloadOther.
func PreloadKindOf(library string) PreloadKind {
	f, err := openLibrary(library)
	if err != nil {
		return PreloadOther
	}
	defer f.Close() //nolint:errcheck // only read
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return PreloadOther
	}
	defines := func(is func(name string) bool) bool {
		return slices.ContainsFunc(symbols, func(s elf.Symbol) bool {
			return s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC && is(s.Name)
		})
	}
	goesOn := slices.ContainsFunc(symbols, func(s elf.Symbol) bool {
		return s.Section == elf.SHN_UNDEF && (s.Name == "dlsym" || s.Name == "dlvsym")
	})
	switch {
	case !goesOn || !defines(mayBeOpenCLName):
		return PreloadOther
	case strings.HasPrefix(filepath.Base(library), "libOpenCL"), defines(func(name string) bool { return name == "clIcdGetPlatformIDsKHR" }):
		return PreloadLoader
	}
	return PreloadWrapper
}

// mayBeOpenCLName reports whether a function may be one of OpenCL: clCreateBuffer, but not clock.
func mayBeOpenCLName(name string) bool {
	return len(name) > 2 && strings.HasPrefix(name, "cl") && name[2] >= 'A' && name[2] <= 'Z'
}

// openLibrary opens a library where the dynamic linker finds it (ld.so(8)).
func openLibrary(name string) (*elf.File, error) {
	if strings.Contains(name, "/") {
		return elf.Open(name)
	}
	folders := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	for _, pattern := range []string{"/usr/local/lib", "/lib/*-linux-gnu", "/usr/lib/*-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"} {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		folders = append(folders, found...)
	}
	for _, folder := range folders {
		if f, err := elf.Open(filepath.Join(folder, name)); err == nil {
			return f, nil
		}
	}
	return nil, os.ErrNotExist
}

// warnOfUncalledPreloads names preloaded libraries that may get no calls now, although they get the program's calls without us.
func (s *Session) warnOfUncalledPreloads() {
	for _, library := range listWithoutShims(os.Getenv("LD_PRELOAD"), " :") {
		if PreloadKindOf(library) == PreloadLoader {
			s.options.Warn(library + " in LD_PRELOAD may get none of the program's calls: it looks like an OpenCL loader, and the one that it opens calls our layer")
		}
	}
}
