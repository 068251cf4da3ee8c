package payload

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/fstest"
)

func TestReadSaysWhenNotBuilt(t *testing.T) {
	built := fstest.MapFS{"lib/libgpumemtop.so": {Data: []byte("\x7fELF")}}
	file, err := openEmbedded(built, "libgpumemtop.so")
	if err != nil {
		t.Fatalf("a file that is there: %v", err)
	}
	if data, err := io.ReadAll(file); err != nil || string(data) != "\x7fELF" {
		t.Errorf("read of a file that is there: %q, %v", data, err)
	}
	if _, err := openEmbedded(fstest.MapFS{}, "libgpumemtop.so"); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("read of a file that is not there: %v, want ErrNotBuilt", err)
	}
}

// Whatever this build carries, it is a library or an explanation.
func TestEmbeddedLibraries(t *testing.T) {
	for name, get := range map[string]func() (io.Reader, error){"Shim": OpenShim, "Core": OpenCore} {
		library, err := get()
		if errors.Is(err, ErrNotBuilt) {
			t.Logf("%s: not built", name)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		data, err := io.ReadAll(library)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.HasPrefix(data, []byte("\x7fELF")) {
			t.Errorf("%s: %d bytes that are no ELF file", name, len(data))
		}
	}
}
