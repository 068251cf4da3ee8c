package export

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func content(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// folder makes a folder with what WriteFileAtomically may meet.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"old": "old", "linked": "old"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": "linked", "dangling": "nothing"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// list returns the names in a folder, in order.
func list(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

func TestWriteFile(t *testing.T) {
	broken := func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("half", 1<<20))
		return errors.Join(err, errors.New("broken off"))
	}
	for name, test := range map[string]struct {
		path  string
		force bool
		fn    func(io.Writer) error
		err   string // part of the error, "" for none
		see   string // file that holds content
		want  string
	}{
		"new":             {path: "new", fn: content("new"), see: "new", want: "new"},
		"exists":          {path: "old", fn: content("new"), err: "old exists: use -f to overwrite it or name another file", see: "old", want: "old"},
		"forced":          {path: "old", force: true, fn: content("new"), see: "old", want: "new"},
		"breaks off":      {path: "new", fn: broken, err: "broken off", see: "old", want: "old"},
		"forced breaks":   {path: "old", force: true, fn: broken, err: "broken off", see: "old", want: "old"},
		"directory":       {path: "dir", force: true, fn: content("new"), err: "is a directory", see: "old", want: "old"},
		"no folder":       {path: "none/new", fn: content("new"), err: "no such file", see: "old", want: "old"},
		"file as folder":  {path: "old/new", fn: content("new"), err: "not a directory", see: "old", want: "old"},
		"link":            {path: "link", fn: content("new"), err: "link exists", see: "linked", want: "old"},
		"link, forced":    {path: "link", force: true, fn: content("new"), see: "linked", want: "new"},
		"link to nothing": {path: "dangling", force: true, fn: content("new"), err: "link to nothing", see: "old", want: "old"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			before := list(t, dir)
			err := WriteFileAtomically(filepath.Join(dir, test.path), test.force, test.fn)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			got, err := os.ReadFile(filepath.Join(dir, test.see))
			if err != nil || string(got) != test.want {
				t.Errorf("%s holds %.20q (%v), want %q", test.see, got, err, test.want)
			}
			if after := list(t, dir); test.err != "" && after != before {
				t.Errorf("left %s, was %s", after, before)
			}
			if info, err := os.Lstat(filepath.Join(dir, "link")); err != nil || info.Mode().Type() != os.ModeSymlink {
				t.Errorf("it is no longer a link: %v", err)
			}
			if strings.Contains(list(t, dir), ".tmp") {
				t.Errorf("left a temporary file: %s", list(t, dir))
			}
		})
	}
}

func TestWriteFileAppearsMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new")
	err := WriteFileAtomically(path, false, func(io.Writer) error { return os.WriteFile(path, []byte("other"), 0o600) })
	if !errors.Is(err, ErrExists) {
		t.Errorf("error %v, want %v", err, ErrExists)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "other" {
		t.Errorf("holds %q (%v)", got, err)
	}
}

func TestWriteFileGzip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new.gz")
	if err := WriteFileAtomically(path, false, content("text")); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "text" {
		t.Errorf("holds %q (%v)", got, err)
	}
}

// Files in memory are files.
func TestWriteFileInMemory(t *testing.T) {
	t.Setenv("TMPDIR", "/dev/shm")
	path := filepath.Join(t.TempDir(), "new")
	if err := WriteFileAtomically(path, false, content("text")); err != nil {
		t.Fatal(err)
	}
	if err := WriteFileAtomically(path, false, content("other")); !errors.Is(err, ErrExists) {
		t.Errorf("error %v, want %v", err, ErrExists)
	}
}

func TestWriteFileThrough(t *testing.T) {
	if err := WriteFileAtomically("/dev/null", false, content("text")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode().IsRegular() {
		t.Fatalf("/dev/null was replaced: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if err := WriteFileAtomically(pipe, false, content("text")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != "text" {
		t.Errorf("the pipe gave %q (%v)", got, err)
	}
}
