// Package payload holds the two libraries that gpumemtop puts into a target, so that the command is one file: the
// preload library (C) and the caching allocator's core (Go, c-shared). make builds them and copies them to lib/;
// without that the package still compiles, for editors and vet, and returns ErrNotBuilt.
package payload

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

//go:embed lib
var files embed.FS

// ErrNotBuilt says that this binary was built without make and carries no libraries.
var ErrNotBuilt = errors.New("this gpumemtop was built without its libraries: build it with make")

// OpenShim returns the preload library. The error is ErrNotBuilt when it was not there at build time.
func OpenShim() (io.Reader, error) { return openEmbedded(files, "libgpumemtop.so") }

// OpenCore returns the Go core that the preload library loads for pooling policies. The error is ErrNotBuilt when it was
// not there at build time.
func OpenCore() (io.Reader, error) { return openEmbedded(files, "libgpumemtop-core.so") }

// openEmbedded returns a reader that needs no closing: these files are in memory, and a copy of all would cost a short run a
// millisecond.
func openEmbedded(from fs.FS, name string) (io.Reader, error) {
	file, err := from.Open("lib/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotBuilt
	}
	if err != nil {
		return nil, fmt.Errorf("open embedded %s: %w", name, err)
	}
	return file, nil
}
