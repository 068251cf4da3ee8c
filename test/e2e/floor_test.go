package e2e

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

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
		}
		libraries, err := file.ImportedLibraries()
		if all := strings.Join(libraries, " "); err != nil || versions < 20 || !strings.Contains(all, "libpthread.so.0 libdl.so.2") {
			t.Errorf("%s: %d symbols of glibc, libraries %s, %v", path, versions, all, err)
		}
	}
}
