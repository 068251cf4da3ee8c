package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
)

// isRemote reports whether a path is on one of Beam's file systems, such as gs://, rather than in a folder.
func isRemote(path string) bool { return strings.Contains(path, "://") }

// digestOf returns a name for a result that depends on the parts alone.
func digestOf(parts ...any) string {
	text, err := json.Marshal(parts)
	if err != nil {
		panic(err) // never: the parts are plain data
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// store is the folder of intermediate and final results. All workers see it. Files appear in it complete.
type store string

// readJSON fills value from a JSON file, and reports whether it could read it.
func (s store) readJSON(ctx context.Context, name string, value any) bool {
	text, err := readFile(ctx, s.pathOf(name))
	return err == nil && json.Unmarshal(text, value) == nil
}

// readExistingJSON fills value from a file that a worker has written.
func (s store) readExistingJSON(ctx context.Context, name string, value any) error {
	if !s.readJSON(ctx, name, value) {
		return errors.New(s.pathOf(name) + " cannot be read: --state must name a folder that all workers see")
	}
	return nil
}

// writeJSON writes a value as JSON. It replaces an older file.
func (s store) writeJSON(ctx context.Context, name string, value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		err = writeFile(ctx, s.pathOf(name), text)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", s.pathOf(name), err)
	}
	return nil
}

// removeFolderAndFiles removes a folder, and the files in the folders within, unless the file system cannot remove.
func (s store) removeFolderAndFiles(ctx context.Context, folder string, within ...string) error {
	if !isRemote(string(s)) {
		return os.RemoveAll(s.pathOf(folder))
	}
	system, err := filesystem.New(ctx, s.pathOf(folder))
	if err != nil {
		return err
	}
	remover, ok := system.(filesystem.Remover)
	for i := 0; ok && i < len(within) && err == nil; i++ {
		var names []string
		names, err = s.listFiles(ctx, folder+"/"+within[i])
		for _, name := range names {
			err = errors.Join(err, remover.Remove(ctx, s.pathOf(name)))
		}
	}
	return errors.Join(err, system.Close())
}

func (s store) pathOf(name string) string { return strings.TrimSuffix(string(s), "/") + "/" + name }

// listFiles returns the names of the files in a folder.
func (s store) listFiles(ctx context.Context, folder string) ([]string, error) {
	pattern := s.pathOf(folder) + "/*.json"
	var paths []string
	var err error
	if isRemote(pattern) {
		paths, err = globRemote(ctx, pattern)
	} else {
		paths, err = filepath.Glob(pattern)
	}
	for i := range paths {
		paths[i] = folder + "/" + paths[i][strings.LastIndex(paths[i], "/")+1:]
	}
	return paths, err
}

func globRemote(ctx context.Context, pattern string) ([]string, error) {
	system, err := filesystem.New(ctx, pattern)
	if err != nil {
		return nil, err
	}
	paths, err := system.List(ctx, pattern)
	return paths, errors.Join(err, system.Close())
}

func readFile(ctx context.Context, path string) ([]byte, error) {
	if !isRemote(path) {
		return os.ReadFile(path)
	}
	system, err := filesystem.New(ctx, path)
	if err != nil {
		return nil, err
	}
	text, err := filesystem.Read(ctx, system, path)
	return text, errors.Join(err, system.Close())
}

func writeFile(ctx context.Context, path string, text []byte) error {
	if isRemote(path) {
		system, err := filesystem.New(ctx, path)
		if err != nil {
			return err
		}
		return errors.Join(filesystem.Write(ctx, system, path, text), system.Close())
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".part-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// withLocalCopy calls use with a recording as a local file: a copy if the recording is on one of Beam's file systems.
func withLocalCopy(ctx context.Context, path string, use func(file string) error) (err error) {
	if !isRemote(path) {
		return use(path)
	}
	system, err := filesystem.New(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, system.Close()) }()
	from, err := system.OpenRead(ctx, path)
	if err != nil {
		return err
	}
	copied, err := os.CreateTemp("", "gpumemtop-fleet-*.gmt")
	if err != nil {
		return errors.Join(err, from.Close())
	}
	defer func() { err = errors.Join(err, os.Remove(copied.Name())) }()
	_, err = io.Copy(copied, from)
	if err = errors.Join(err, copied.Close(), from.Close()); err != nil {
		return err
	}
	return use(copied.Name())
}

// fileSizeAndVersion identifies the version of a file, by its size and, if known, the time of its last change.
func fileSizeAndVersion(ctx context.Context, path string) (size int64, version string, err error) {
	if !isRemote(path) {
		info, err := os.Stat(path)
		if err != nil {
			return 0, "", err
		}
		if !info.Mode().IsRegular() {
			return 0, "", fmt.Errorf("%s is no file that can be sought", path)
		}
		return info.Size(), fmt.Sprint(info.Size(), info.ModTime().UnixNano()), nil
	}
	system, err := filesystem.New(ctx, path)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, system.Close()) }()
	if size, err = system.Size(ctx, path); err != nil {
		return 0, "", err
	}
	version = fmt.Sprint(size)
	if dated, ok := system.(filesystem.LastModifiedGetter); ok {
		at, err := dated.LastModified(ctx, path)
		if err != nil {
			return 0, "", err
		}
		version += " " + fmt.Sprint(at.UnixNano())
	}
	return size, version, nil
}

// expandArguments returns the recordings that arguments name: files, patterns, and folders with what lies below them, each once, in order.
func expandArguments(ctx context.Context, arguments []string) ([]string, error) {
	var list []string
	seen := map[string]bool{}
	for _, a := range arguments {
		found, err := expandArgument(ctx, a)
		switch {
		case err != nil:
			return nil, err
		case len(found) == 0:
			return nil, fmt.Errorf("%s: no recording is there: name files, patterns such as 'runs/*.gmt', or folders with *.gmt files", a)
		}
		for _, path := range found {
			if !seen[path] {
				seen[path] = true
				list = append(list, path)
			}
		}
	}
	return list, nil
}

func expandArgument(ctx context.Context, argument string) ([]string, error) {
	if isRemote(argument) {
		return globRemote(ctx, argument)
	}
	info, err := os.Stat(argument)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return filepath.Glob(argument)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return []string{argument}, nil
	}
	if tables, _ := filepath.Glob(filepath.Join(argument, "commit=*")); len(tables) > 0 {
		return nil, fmt.Errorf("%s is a lake of tables, which hold no events: give the recordings that it was made of, and ask the lake in SQL (docs/FLEET.md)", argument)
	}
	var list []string
	err = eachFileBelow(argument, map[string]bool{}, func(path string) { list = append(list, path) })
	return list, err
}

// eachFileBelow calls take with files below a folder that may be recordings. It follows links, and reads each folder once.
func eachFileBelow(folder string, seen map[string]bool, take func(path string)) error {
	place, err := filepath.EvalSymlinks(folder)
	if err != nil || seen[place] {
		return err
	}
	seen[place] = true
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		path, isDir := filepath.Join(folder, e.Name()), e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(path)
			isDir = err == nil && info.IsDir()
		}
		if isDir {
			err = errors.Join(err, eachFileBelow(path, seen, take))
		} else if strings.HasSuffix(path, ".gmt") {
			take(path)
		}
	}
	return err
}

// removeOldFiles removes old files of runs that were killed.
func (s store) removeOldFiles() {
	old, _ := filepath.Glob(s.pathOf("runs/*"))
	for _, run := range old {
		parts, _ := filepath.Glob(run + "/*")
		if !slices.ContainsFunc(append(parts, run), func(path string) bool {
			info, err := os.Stat(path)
			return err != nil || time.Since(info.ModTime()) < leftFor
		}) {
			_ = os.RemoveAll(run) // another run may do so
		}
	}
}

// leftFor is the time without a write after which a run counts as killed.
const leftFor = 7 * 24 * time.Hour

// countResults returns how many results of a command are in a folder that is not remote.
func (s store) countResults(command string) (n int64) {
	folders, _ := filepath.Glob(s.pathOf(command + "/*"))
	for _, folder := range folders {
		entries, _ := os.ReadDir(folder)
		n += int64(len(entries))
	}
	return n
}
