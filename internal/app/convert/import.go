package convert

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/edit"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/importer"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ImportFormats are the names of the formats that Import reads.
func ImportFormats() []string { return importer.FormatNames() }

// ImportHelp describes the formats.
func ImportHelp() string {
	texts := make([]string, len(importer.Formats))
	for i, f := range importer.Formats {
		texts[i] = f.Name + " (" + f.Help + ")"
	}
	return strings.Join(texts, ", ")
}

// Import makes a recording from another tool's file. An empty format is detected.
func Import(path, format string, output files.Output) (err error) {
	if format != "" {
		if err := read.CheckFormat(format, importer.FormatNames()); err != nil {
			return err
		}
	}
	if err := output.RequireOtherFile(path); err != nil {
		return err
	}
	file, err := files.OpenForeignLog(path)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a folder: name a file in it", path)
	}
	source, err := importer.OpenLog(format, trackFileProgress(file, info), importer.Facts{Name: filepath.Base(path), Modified: info.ModTime()})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	err = output.WriteRecording(source.Header(), func(w edit.Sink) (recording.Footer, error) {
		var r wire.Record
		for {
			err := source.Next(&r)
			if errors.Is(err, io.EOF) {
				return source.Footer(), nil
			}
			if err != nil {
				return recording.Footer{}, fmt.Errorf("%s: %w", path, err)
			}
			if err := w.Append(&r); err != nil {
				return recording.Footer{}, err
			}
		}
	})
	if remarks := source.Remarks(); err == nil && len(remarks) > 0 {
		console.SayLine("%s: %s", path, strings.Join(remarks, "; "))
	}
	return err
}

// trackedFile shows in the progress line how far a file has been read. Its end removes the line.
type trackedFile struct {
	file        io.Reader
	label       string
	done, total int64
}

// trackFileProgress shows how far a file has been read if its size is known.
func trackFileProgress(file *os.File, info fs.FileInfo) io.Reader {
	if !info.Mode().IsRegular() {
		return file
	}
	return &trackedFile{file: file, label: "reading " + info.Name(), total: info.Size()}
}

// Read implements io.Reader.
func (t *trackedFile) Read(b []byte) (int, error) {
	n, err := t.file.Read(b)
	t.done += int64(n)
	console.Meter().ShowProgress(t.label, t.done, t.total)
	if err != nil {
		console.Meter().Clear()
	}
	return n, err
}
