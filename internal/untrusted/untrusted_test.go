package untrusted

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOpen(t *testing.T) {
	folder := t.TempDir()
	file, pipe, link := filepath.Join(folder, "file"), filepath.Join(folder, "pipe"), filepath.Join(folder, "link")
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o600), unix.Mkfifo(pipe, 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{
		file: true, link: true, pipe: false, folder: false, "/dev/null": false, "/dev/zero": false, "/proc/self/mem": false, "/proc/kmsg": false,
		"/proc/version": false, "/sys/kernel/notes": false, "/sys/kernel/tracing/trace_pipe": false, filepath.Join(folder, "none"): false,
		"/proc/self/exe": true, "": false, "a\x00b": false,
	} {
		f, err := OpenRegular(path, 0)
		if (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
		if err == nil {
			_ = f.Close()
		}
	}
	if f, err := OpenRegular(link, unix.O_NOFOLLOW); err == nil {
		t.Errorf("%s was opened through a link", f.Name())
	}
	f, err := OpenRegular(file, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	if text, err := io.ReadAll(f); string(text) != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// A file system that does not answer holds no caller up for long, and others in the same folder not at all.
func TestWithin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	answer := make(chan struct{})
	if CallWithPatience(path, time.Millisecond, func() { <-answer }) {
		t.Fatal("it has answered")
	}
	if CallWithPatience(path+"b", time.Hour, func() {}) {
		t.Error("another in the folder was tried")
	}
	close(answer)
	for !CallWithPatience(path, time.Hour, func() {}) { // the folder answers again
		time.Sleep(time.Millisecond)
	}
}

func TestELF(t *testing.T) {
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadELF(bytes.NewReader(text)); err != nil {
		t.Errorf("this program: %v", err)
	}
	class32 := bytes.Clone(text)
	class32[4] = 1
	manySections := bytes.Clone(text)
	manySections[60], manySections[61] = 0xff, 0xff
	for name, b := range map[string][]byte{"empty": nil, "text": []byte(strings.Repeat("x", 100)), "32 bits": class32, "sections that are not there": manySections} {
		if f, err := ReadELF(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: %v", name, f.FileHeader)
		}
	}
}
