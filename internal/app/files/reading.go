// Package files opens what commands read and makes what they write: recordings, parts of them, and names of files.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ProgressEvery is how many records are read between two updates of the progress line.
const ProgressEvery = 4096

// Tracked is a recording that shows in the progress line how far it has been read. A reader must reach the end, or write a
// message, before anything else goes to the terminal: both remove the line.
type Tracked struct {
	*recording.Reader
	label string
	pass  int
	n     int // records in this pass
}

// TrackReading shows how far a recording has been read.
func TrackReading(reader *recording.Reader, path string) *Tracked {
	return &Tracked{Reader: reader, label: "reading " + filepath.Base(path), pass: 1}
}

// Next implements recording.Source.
func (t *Tracked) Next(r *wire.Record) error {
	if t.n%ProgressEvery == 0 {
		label := t.label
		if t.pass > 1 {
			label = fmt.Sprintf("%s, pass %d", label, t.pass)
		}
		console.Meter().ShowProgress(label, t.Offset(), t.Size())
	}
	t.n++
	err := t.Reader.Next(r)
	if err != nil {
		console.Meter().Clear()
	}
	return err
}

// Rewind implements recording.Source.
func (t *Tracked) Rewind() error {
	if t.n > 0 {
		t.pass++
	}
	t.n = 0
	return t.Reader.Rewind()
}

// ReadRecording opens a recording and lets read read it. Damage is a warning, not an error.
func ReadRecording(path string, read func(*Tracked) error) error {
	reader, err := recording.Open(path)
	if err != nil {
		return err
	}
	err = read(TrackReading(reader, path))
	if err == nil {
		WarnDamage(path, reader)
	}
	return errors.Join(err, reader.Close())
}

// WarnDamage warns about what of a recording could not be read.
func WarnDamage(path string, reader *recording.Reader) {
	if damage := reader.Damage(); damage != "" {
		console.SayLine("%s is not whole: %s", path, damage)
	}
}

// ReadBoundedFile reads a regular file of at most limit bytes, or what this process has open already, as a pipe of the shell.
func ReadBoundedFile(path string, limit int64) ([]byte, error) {
	f, err := untrusted.OpenRegular(path, 0)
	if errors.Is(err, untrusted.ErrNotRegular) && isOpenDescriptor(path) {
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return text, errors.Join(err, f.Close())
}

func isOpenDescriptor(path string) bool {
	return path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// OpenForeignLog opens what a program of others wrote: a regular file, a pipe, which waits for its writer, or what this process has open
// already. Devices and files of the kernel end nowhere, or wait for what happens.
func OpenForeignLog(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeDir) == 0 && !isOpenDescriptor(path) {
		err = untrusted.CheckRegular(int(file.Fd()))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), file.Close())
	}
	return file, nil
}

// CheckDifferentFiles refuses to read one file twice.
func CheckDifferentFiles(paths []string) error {
	type file struct{ device, inode uint64 }
	seen := map[file]bool{}
	for _, path := range paths {
		var info unix.Stat_t
		if unix.Stat(path, &info) != nil {
			continue // opening it reports why
		}
		this := file{uint64(info.Dev), info.Ino} //nolint:unconvert // narrower on some machines
		if seen[this] {
			return fmt.Errorf("%s is given twice: each recording counts once", path)
		}
		seen[this] = true
	}
	return nil
}
