package export

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"

	"codeberg.org/gpumemtop/gpumemtop/internal/disk"
	"codeberg.org/gpumemtop/gpumemtop/internal/tempfile"
)

// ErrExists reports a file that exists and must not be overwritten.
var ErrExists = errors.New("exists: use -f to overwrite it or name another file")

// WriteFileAtomically has fn write a file, which appears under its name only when it is complete: until then, and if anything
// fails, an existing file stays as it is. An existing file is replaced only with force, and a directory never; links
// are followed. A name that ends in .gz makes a gzip file. Devices, pipes, and everything under /proc and /dev except
// /dev/shm, such as /dev/stdout, are written to directly.
func WriteFileAtomically(path string, force bool, fn func(io.Writer) error) error {
	target, direct, err := resolveTarget(path, force)
	switch {
	case err != nil:
		return err
	case direct:
		return writeDirect(path, fn)
	}
	return writeByTemporaryFile(target, path, force, fn)
}

// resolveTarget returns the file that path leads to. direct: write to it rather than replace it.
func resolveTarget(path string, force bool) (target string, direct bool, err error) {
	if full, err := filepath.Abs(path); err == nil && isKernelProvided(full) {
		return "", true, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil {
			return "", false, fmt.Errorf("%s is a link to nothing: remove it or name another file", path)
		}
		return path, false, nil
	case err != nil:
		return "", false, fmt.Errorf("write file: %w", err)
	case info.IsDir():
		return "", false, fmt.Errorf("%s is a directory: name a file in it", path)
	case !info.Mode().IsRegular():
		return "", true, nil
	case !force:
		return "", false, fmt.Errorf("%s %w", path, ErrExists)
	}
	target, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", false, fmt.Errorf("write file: %w", err)
	}
	return target, false, nil
}

// isKernelProvided reports whether the kernel provides what is at a path. /dev/shm holds ordinary files.
func isKernelProvided(path string) bool {
	return strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/dev/shm/")
}

// writeDirect writes to a device, pipe or the like, which cannot be replaced. It uses standard streams as they are open, so
// that earlier output stays.
func writeDirect(path string, fn func(io.Writer) error) error {
	switch filepath.Clean(path) {
	case "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
		return writeContent(os.Stdout, path, fn)
	case "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2":
		return writeContent(os.Stderr, path, fn)
	}
	return disk.AwaitWrite(path, func() error {
		file, err := os.OpenFile(path, os.O_WRONLY, 0) // a pipe waits for a reader
		if err != nil {
			return fmt.Errorf("write file: %w", err)
		}
		return errors.Join(writeContent(file, path, fn), file.Close())
	})
}

// CreateFileAtomically is WriteFileAtomically for an fn that creates the file itself, under the temporary name that it gets. It
// refuses devices and pipes.
func CreateFileAtomically(path string, force bool, fn func(beside string) error) error {
	target, direct, err := resolveTarget(path, force)
	switch {
	case err != nil:
		return err
	case direct:
		return fmt.Errorf("%s is no regular file: use -o to name another", path)
	}
	return createAndRename(target, path, force, fn)
}

// writeByTemporaryFile writes a temporary file and gives it its name at the end.
func writeByTemporaryFile(target, name string, force bool, fn func(io.Writer) error) error {
	return createAndRename(target, name, force, func(beside string) error {
		file, err := createTemporary(beside, name)
		if err != nil {
			return err
		}
		return errors.Join(writeContent(file, name, fn), file.Close())
	})
}

// createAndRename has fn create a file in the folder of target, and renames it to target at the end.
func createAndRename(target, name string, force bool, fn func(beside string) error) error {
	beside := temporaryNameBeside(target)
	tempfile.NoteUnfinished(beside)
	err := fn(beside)
	return tempfile.FinishWith(beside, func() error {
		if err == nil {
			err = giveFinalName(beside, target, name, force)
		}
		if err != nil {
			// A file that cannot be removed either is not worth a second error.
			_ = os.Remove(beside)
		}
		return err
	})
}

// temporaryNameBeside names a temporary file in the folder of target.
func temporaryNameBeside(target string) string {
	return filepath.Join(filepath.Dir(target), fmt.Sprintf(".gpumemtop-%016x.tmp", rand.Uint64()))
}

// createTemporary creates a temporary file; name is its final name, for errors.
func createTemporary(beside, name string) (*os.File, error) {
	file, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return file, nil
}

// giveFinalName gives the finished file its name. Without force it must not replace a file that has appeared meanwhile, which
// only a hard link guarantees; file systems without hard links get a rename.
func giveFinalName(beside, target, name string, force bool) error {
	if !force {
		err := os.Link(beside, target)
		if err == nil {
			return os.Remove(beside)
		}
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s %w", name, ErrExists)
		}
	}
	if err := os.Rename(beside, target); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// writeContent writes the content, as gzip if the name ends in .gz.
func writeContent(file *os.File, name string, fn func(io.Writer) error) error {
	buffer := bufio.NewWriterSize(file, 64<<10)
	var err error
	if strings.HasSuffix(name, ".gz") {
		packer := gzip.NewWriter(buffer)
		err = errors.Join(fn(packer), packer.Close())
	} else {
		err = fn(buffer)
	}
	if err != nil {
		return err
	}
	if err := buffer.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
