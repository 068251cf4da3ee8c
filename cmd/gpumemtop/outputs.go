package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// checkFiles refuses files that cannot be written.
func (j *job) checkFiles() error {
	if err := writable("summary", j.config.summary, j.config.force); err != nil {
		return err
	}
	if err := j.checkNames(); err != nil {
		return err
	}
	return j.checkDistinct()
}

// checkNames refuses names that cannot be recorded into.
func (j *job) checkNames() error {
	now := time.Now()
	if j.config.output != "" {
		var err error
		if j.recording, err = expand(j.config.output, j.name, now); err != nil {
			return err
		}
		if err := j.recording.check(); err != nil {
			return err
		}
	}
	if j.config.json == "" {
		return nil
	}
	name, err := expand(j.config.json, j.name, now)
	if err != nil {
		return err
	}
	j.trace = name.String()
	switch {
	case !name.single():
		return errors.New("--json writes one trace for all processes: leave %p out of its name")
	case strings.HasSuffix(j.trace, ".gz"):
		return fmt.Errorf("%s: a packed trace that breaks off has lost its end: leave .gz out and pack it afterwards", j.trace)
	}
	return writable("json", j.trace, j.config.force)
}

// checkDistinct refuses one name for two files, however it is written: the later one would take the other's place.
func (j *job) checkDistinct() error {
	files := []struct{ flag, path string }{{"--json", j.trace}, {"--summary", j.config.summary}}
	if j.recording.single() {
		files = append(files, struct{ flag, path string }{"-o", j.recording.String()})
	}
	for i, file := range files {
		for _, other := range files[i+1:] {
			if file.path != "" && other.path != "" && samePlace(file.path, other.path) {
				return fmt.Errorf("%s and %s name the same file %s: name another", file.flag, other.flag, file.path)
			}
		}
	}
	return nil
}

// samePlace reports whether two names lead to the same file, which need not exist yet.
func samePlace(a, b string) bool { return sameFile(a, b) || resolved(a) == resolved(b) }

// resolved returns a name without links, as far as its folder exists.
func resolved(path string) string {
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		folder = filepath.Dir(path)
	}
	if full, err := filepath.Abs(folder); err == nil {
		folder = full
	}
	return filepath.Join(folder, filepath.Base(path))
}

// writable refuses a file that cannot be written or would be overwritten, before the program runs for hours. flag names
// it.
func writable(flag, path string, force bool) error {
	if path == "" {
		return nil
	}
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = unix.Access(filepath.Dir(path), unix.W_OK)
	case err == nil && !force:
		return fmt.Errorf("%s exists: use -f to overwrite it or --%s to name another", path, flag)
	case err == nil:
		err = unix.Access(path, unix.W_OK)
	}
	if err != nil {
		return fmt.Errorf("--%s %s: %w", flag, path, err)
	}
	return nil
}
