package session

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const folderPrefix = "gpumemtop-"

// socketPathMax is what fits sockaddr_un.sun_path with its final NUL (unix(7)).
const socketPathMax = 107

// folder is the private runtime folder of a session. Its name carries our pid, and we hold a lock on it for as long
// as we live, so that a later session can tell the folder of a dead one, even across pid namespaces that share /tmp.
type folder struct {
	path string
	lock *os.File
}

// candidates are the places for a runtime folder, best first.
func candidates() []string {
	places := []string{"/dev/shm", "/tmp"}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		places = append([]string{dir}, places...)
	}
	return places
}

// newFolder makes the folder in the first place that can be used, and removes what dead sessions left there.
func newFolder(places []string) (*folder, error) {
	var reasons []string
	for _, place := range places {
		f, err := folderIn(place)
		if err == nil {
			return f, nil
		}
		reasons = append(reasons, err.Error())
	}
	return nil, fmt.Errorf("no place for a runtime folder (%s): set XDG_RUNTIME_DIR to a private folder that allows execution",
		strings.Join(reasons, "; "))
}

func folderIn(place string) (*folder, error) {
	if err := usable(place); err != nil {
		return nil, err
	}
	removeStale(place)
	var random [6]byte
	rand.Read(random[:])
	path := filepath.Join(place, folderPrefix+strconv.Itoa(os.Getpid())+"-"+hex.EncodeToString(random[:]))
	if len(path)+1+len(wire.SocketName) > socketPathMax {
		return nil, fmt.Errorf("%s: path is too long for a socket", place)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockFolder(path)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &folder{path: path, lock: lock}, nil
}

// usable says why LD_PRELOAD could not load a library from a place: the dynamic linker splits the variable at spaces
// and colons without a way to quote them (ld.so(8)), and a noexec mount refuses to map code.
func usable(place string) error {
	if !filepath.IsAbs(place) {
		return fmt.Errorf("%s: not an absolute path", place)
	}
	if strings.ContainsAny(place, " :\t\n") {
		return fmt.Errorf("%s: a path with a space or colon cannot be preloaded", place)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(place, &fs); err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	if fs.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Errorf("%s: mounted noexec", place)
	}
	return nil
}

func lockFolder(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// removeStale removes our own folders whose session is gone. It is housekeeping: what cannot be removed stays.
func removeStale(place string) {
	paths, _ := filepath.Glob(filepath.Join(place, folderPrefix+"*-*"))
	for _, path := range paths {
		if !stale(path) {
			continue
		}
		if lock, err := lockFolder(path); err == nil {
			_ = os.RemoveAll(path)
			_ = lock.Close()
		}
	}
}

// stale reports whether a folder is ours by name and owner, and its process does not run.
func stale(path string) bool {
	name := strings.TrimPrefix(filepath.Base(path), folderPrefix)
	number, _, _ := strings.Cut(name, "-")
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 0 {
		return false
	}
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
		return false
	}
	return errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// write puts a file into the folder.
func (f *folder) write(name string, data []byte, mode os.FileMode) error {
	if err := os.WriteFile(f.join(name), data, mode); err != nil {
		return fmt.Errorf("write runtime folder: %w", err)
	}
	return nil
}

func (f *folder) join(name string) string { return filepath.Join(f.path, name) }

// remove deletes the folder. Calling it again does nothing.
func (f *folder) remove() error {
	if f.lock == nil {
		return nil
	}
	err := errors.Join(os.RemoveAll(f.path), f.lock.Close())
	f.lock = nil
	return err
}

// Place is where a runtime folder may be made.
type Place struct {
	Path string
	Err  error // why not; nil: it may
}

// Places returns the places for a runtime folder, best first: a session takes the first without an error.
func Places() []Place {
	var list []Place
	for _, path := range candidates() {
		err := usable(path)
		if err == nil && unix.Access(path, unix.W_OK|unix.X_OK) != nil {
			err = fmt.Errorf("%s: not writable", path)
		}
		list = append(list, Place{path, err})
	}
	return list
}

// FirstPlace returns the first place where a runtime folder can be made.
func FirstPlace() (string, error) {
	var last error
	for _, place := range Places() {
		if place.Err == nil {
			return place.Path, nil
		}
		last = place.Err
	}
	return "", fmt.Errorf("no place for a runtime folder: %w", last)
}
