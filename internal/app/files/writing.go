package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/edit"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/tempfile"
	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Output is where a result goes.
type Output struct {
	Path  string // empty or "-": standard output
	Force bool   // overwrite a file
	// Again reports whether a file that begins like this is an earlier result, which a new one replaces without Force.
	Again func(head []byte) bool
}

// mayReplaceFile is the one rule on files that exist: a result replaces what Force or Again permit.
func (o Output) mayReplaceFile() bool {
	if o.Force || o.Again == nil {
		return o.Force
	}
	file, err := untrusted.OpenRegular(o.Path, 0) // a pipe would wait for a writer
	if err != nil {
		return false
	}
	head, err := io.ReadAll(io.LimitReader(file, 256))
	return errors.Join(err, file.Close()) == nil && o.Again(head)
}

// Write writes a result. A file appears when it is complete.
func (o Output) Write(stdout io.Writer, write func(io.Writer) error) error {
	if o.Path == "" || o.Path == "-" {
		return write(stdout)
	}
	return export.WriteFileAtomically(o.Path, o.mayReplaceFile(), write)
}

// FormatOfFile returns the format for a file. --format decides, and without it the file's extension. If an extension stands for several
// formats, the first is the default. FormatOfFile refuses a format that contradicts the extension.
func FormatOfFile(path, format string, given bool, extensions map[string][]string) (string, error) {
	extension := strings.ToLower(filepath.Ext(path))
	formats := extensions[extension]
	switch {
	case len(formats) == 0 || slices.Contains(formats, format):
		return format, nil
	case given:
		return "", fmt.Errorf("--format %s contradicts the extension of -o %s: leave --format out for %s, or name another file", format, path, formats[0])
	}
	return formats[0], nil
}

// RequireOtherFile demands a file other than the inputs.
func (o Output) RequireOtherFile(inputs ...string) error {
	if o.Path == "" {
		return errors.New("no file to write: name one with -o")
	}
	return o.RefuseInputs(inputs...)
}

// RefuseInputs refuses to overwrite an input.
func (o Output) RefuseInputs(inputs ...string) error {
	for _, input := range inputs {
		if sameFile(o.Path, input) {
			return fmt.Errorf("%s is an input: name another file to write", o.Path)
		}
	}
	return nil
}

// CheckWritable refuses a file that cannot be written, or would be overwritten, before hours of work. The flag names it.
func (o Output) CheckWritable(flag string) error {
	if o.Path == "" || o.Path == "-" {
		return nil
	}
	info, err := os.Stat(o.Path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("--%s %s: it is a folder: name a file", flag, o.Path)
	case errors.Is(err, fs.ErrNotExist):
		err = unix.Access(filepath.Dir(o.Path), unix.W_OK)
	case err == nil && info.Mode().IsRegular() && !o.mayReplaceFile():
		return fmt.Errorf("%s exists: use -f to overwrite it or --%s to name another", o.Path, flag)
	case err == nil:
		err = unix.Access(o.Path, unix.W_OK)
	}
	if err != nil {
		return fmt.Errorf("--%s %s: %w", flag, o.Path, err)
	}
	return nil
}

// WriteRecording makes a recording, with summaries of its blocks, which appears when it is complete. fill writes the
// records and returns the footer.
func (o Output) WriteRecording(header recording.Header, fill func(edit.Sink) (recording.Footer, error)) error {
	if o.Path == "-" {
		return o.writeToStdoutByTempFile(header, fill)
	}
	return export.CreateFileAtomically(o.Path, o.Force, func(beside string) error {
		w, err := recording.Create(beside, header, false)
		if err != nil {
			return err
		}
		s := summarized{w, stats.New(stats.Options{Started: header.ClockNS})}
		w.SetSummarizer(s.model.SummarizeSinceLastCall)
		footer, err := fill(s)
		return errors.Join(err, w.Close(footer))
	})
}

// writeToStdoutByTempFile writes a recording to standard output, through a file.
func (o Output) writeToStdoutByTempFile(header recording.Header, fill func(edit.Sink) (recording.Footer, error)) error {
	folder, err := os.MkdirTemp("", ".gpumemtop-")
	if err != nil {
		return fmt.Errorf("create recording: %w", err)
	}
	tempfile.NoteUnfinished(folder)
	o.Path = filepath.Join(folder, "recording")
	if err = o.WriteRecording(header, fill); err == nil {
		err = copyToStdout(o.Path)
	}
	return errors.Join(err, tempfile.FinishWith(folder, func() error { return os.RemoveAll(folder) }))
}

func copyToStdout(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, file)
	return errors.Join(err, file.Close())
}

// summarized writes records and counts them for the summaries of blocks.
type summarized struct {
	writer *recording.Writer
	model  *stats.Model
}

// Append implements edit.Sink.
func (s summarized) Append(r *wire.Record) error {
	s.model.Apply(r)
	return s.writer.Append(r)
}

// LeadToSameFile reports whether two names lead to the same file, which need not exist yet.
func LeadToSameFile(a, b string) bool { return sameFile(a, b) || resolveLinks(a) == resolveLinks(b) }

func sameFile(a, b string) bool {
	of, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(of, other)
}

// resolveLinks returns a name without links, as far as its folder exists.
func resolveLinks(path string) string {
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		folder = filepath.Dir(path)
	}
	if full, err := filepath.Abs(folder); err == nil {
		folder = full
	}
	return filepath.Join(folder, filepath.Base(path))
}
