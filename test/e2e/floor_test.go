package e2e

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// movedIntoLibc are functions that other libraries had before glibc 2.34. Linkers before 2.30 look for them there alone: where libc was
// named, a program without threads, such as /bin/sh, ended at its start.
var movedIntoLibc = map[string]string{
	"dladdr": "libdl.so.2", "dlclose": "libdl.so.2", "dlerror": "libdl.so.2", "dlopen": "libdl.so.2", "dlsym": "libdl.so.2", "dlvsym": "libdl.so.2",
	"__pthread_key_create": "libpthread.so.0", "pthread_atfork": "libpthread.so.0", "pthread_create": "libpthread.so.0",
	"pthread_getattr_np": "libpthread.so.0", "pthread_join": "libpthread.so.0", "pthread_key_create": "libpthread.so.0",
	"pthread_mutex_trylock": "libpthread.so.0", "pthread_once": "libpthread.so.0", "pthread_setspecific": "libpthread.so.0",
	"pthread_sigmask": "libpthread.so.0", "sem_post": "libpthread.so.0", "sem_wait": "libpthread.so.0",
}

// TestGlibcFloor: the program and what it puts into others start with glibc 2.28, which most clusters have at least. Threads and
// dlopen were in libraries of their own then, which all three must name.
func TestGlibcFloor(t *testing.T) {
	const floor = 28
	for _, path := range []string{"bin/gpumemtop", "build/libgpumemtop.so", "build/libgpumemtop-core.so"} {
		file, err := elf.Open(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		symbols, err := file.ImportedSymbols()
		if err != nil {
			t.Fatal(err)
		}
		versions := 0
		for _, symbol := range symbols {
			var minor int
			if n, _ := fmt.Sscanf(symbol.Version, "GLIBC_2.%d", &minor); n == 1 {
				versions++
			}
			if minor > floor {
				t.Errorf("%s needs %s of %s", path, symbol.Name, symbol.Version)
			}
			if home, moved := movedIntoLibc[symbol.Name]; moved && symbol.Library != home {
				t.Errorf("%s needs %s of %s, want %s", path, symbol.Name, symbol.Library, home)
			}
		}
		libraries, err := file.ImportedLibraries()
		if all := strings.Join(libraries, " "); err != nil || versions < 20 || !strings.Contains(all, "libpthread.so.0 libdl.so.2") {
			t.Errorf("%s: %d symbols of glibc, libraries %s, %v", path, versions, all, err)
		}
	}
}
