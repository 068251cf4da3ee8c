package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
)

// A plan, settings or rules come from a regular file, or a pipe that the shell has opened. A FIFO is not waited for.
func TestReadBounded(t *testing.T) {
	folder := t.TempDir()
	fifo, plain := filepath.Join(folder, "fifo"), filepath.Join(folder, "plain")
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.WriteFile(plain, []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, "/dev/zero", "/proc/self/environ", folder} {
		if text, err := ReadBoundedFile(path, 1000); !errors.Is(err, untrusted.ErrNotRegular) {
			t.Errorf("%s: %d bytes, %v", path, len(text), err)
		}
	}
	if text, err := ReadBoundedFile(plain, 4); string(text) != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := ReadBoundedFile(plain, 3); err == nil {
		t.Error("a file that is too long was read")
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // the test ends
	_, _ = in.WriteString("piped")
	_ = in.Close()
	if text, err := ReadBoundedFile(fmt.Sprintf("/dev/fd/%d", out.Fd()), 100); string(text) != "piped" || err != nil {
		t.Errorf("a pipe of the shell: %q, %v", text, err)
	}
}

// A log comes from a regular file or a pipe. Files of the kernel, which wait, and devices, which never end, are refused.
func TestOpenLog(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	out, in, err := os.Pipe()
	if err = errors.Join(err, os.WriteFile(plain, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(out.Close(), in.Close()) }()
	for path, ok := range map[string]bool{plain: true, fmt.Sprintf("/dev/fd/%d", out.Fd()): true, "/proc/version": false, "/dev/zero": false} {
		file, err := OpenForeignLog(path)
		if (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			_ = file.Close()
		}
	}
}
