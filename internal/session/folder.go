package session

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const folderPrefix = "gpumemtop-"

// viewName is the socket for other terminals in a runtime folder.
const viewName = "view"

// socketPathMax is what fits sockaddr_un.sun_path with its final NUL (unix(7)).
const socketPathMax = 107

// folder is the private runtime folder of a session. Its name carries our pid, and we hold a lock on it for as long
// as we live, so that a later session can tell the folder of a dead one, even across pid namespaces that share /tmp.
type folder struct {
	path    string
	lock    *os.File
	late    sync.WaitGroup // of files that are being written
	lateErr error          // from then on
}

// runtimeFolderPlaces are the places for a runtime folder, best first.
func runtimeFolderPlaces() []string {
	places := []string{"/dev/shm", "/tmp"}
	switch dir := os.Getenv("XDG_RUNTIME_DIR"); {
	case dir == "":
		return places
	case os.Geteuid() == 0 && strings.HasPrefix(dir, "/run/user/"): // programs that become another user cannot load from there
		return append(places, dir)
	default:
		return append([]string{dir}, places...)
	}
}

// content is a file of the folder.
type content struct {
	open func() (io.Reader, error)
	mode os.FileMode
	late bool // written while the program starts, which waits for the file's name
}

// roomNeeded is the free space that a place must have: 4 MiB, which is more than the files take.
const roomNeeded = 4 << 20

// newFolder makes the folder, with its files by their names, in the first place that can be used and has room. It removes
// what dead sessions left there.
func newFolder(places []string, files map[string]content) (*folder, error) {
	var reasons []string
	for _, place := range places {
		f, err := makeFolderIn(place)
		if err == nil {
			if err = f.writeFiles(files); err == nil {
				return f, nil
			}
			_, removed := f.deleteFolder()
			err = errors.Join(err, removed)
		}
		reasons = append(reasons, err.Error())
	}
	return nil, fmt.Errorf("no place for a runtime folder (%s): set XDG_RUNTIME_DIR to a private folder that allows execution",
		strings.Join(reasons, "; "))
}

func makeFolderIn(place string) (*folder, error) {
	// The owner of a link could point it elsewhere after the checks.
	place, err := filepath.EvalSymlinks(place)
	if err != nil {
		return nil, err
	}
	if err := preloadObstacle(place); err != nil {
		return nil, err
	}
	removeStaleFolders(place)
	var random [6]byte
	rand.Read(random[:])
	path := filepath.Join(place, folderPrefix+strconv.Itoa(os.Getpid())+"-"+hex.EncodeToString(random[:]))
	if len(path)+1+len(wire.OutsidersName) > socketPathMax {
		return nil, fmt.Errorf("%s: path is too long for a socket", place)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockOwnFolder(path)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	if os.Geteuid() == 0 {
		// Programs of root may become another user, and what those start must find the library: nothing else is theirs to read.
		if err := os.Chmod(path, 0o711); err != nil {
			return nil, errors.Join(err, lock.Close(), os.Remove(path))
		}
	}
	return &folder{path: path, lock: lock}, nil
}

// preloadObstacle says why LD_PRELOAD could not load a library from a place: the dynamic linker splits the variable at spaces
// and colons without a way to quote them (ld.so(8)), and a noexec mount refuses to map code.
func preloadObstacle(place string) error {
	if !filepath.IsAbs(place) {
		return fmt.Errorf("%s: not an absolute path", place)
	}
	if strings.ContainsAny(place, " :\t\n") {
		return fmt.Errorf("%s: a path with a space or colon cannot be preloaded", place)
	}
	var mount unix.Statfs_t
	if err := unix.Statfs(place, &mount); err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	if mount.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Errorf("%s: mounted noexec", place)
	}
	if mount.Blocks > 0 && mount.Bavail*uint64(mount.Bsize) < roomNeeded { // some file systems do not know
		return fmt.Errorf("%s: no space left", place)
	}
	return checkPlaceIsSafe(place)
}

// checkPlaceIsSafe returns an error that names who else could replace files in a place: the owner of the folder or of a folder above
// it, or all users who may write there, unless its sticky bit forbids them to rename files of others.
func checkPlaceIsSafe(place string) error {
	path, err := filepath.EvalSymlinks(place)
	if err != nil {
		return err
	}
	for {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		switch {
		case st.Uid != 0 && int(st.Uid) != os.Geteuid() && (!slices.Contains(systems, path) || !isUnmappedUser(st.Uid)):
			return fmt.Errorf("%s: belongs to another user (%d)", path, st.Uid)
		case st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0:
			return fmt.Errorf("%s: others may write there", path)
		case path == "/":
			return nil
		}
		path = filepath.Dir(path)
	}
}

// systems are the folders that may belong to a user whom our user namespace does not know: root appears as such a user there,
// but so do all others. So a folder that a variable names is not trusted to be root's.
var systems = []string{"/", "/dev", "/dev/shm", "/run", "/run/user", "/tmp"}

// isUnmappedUser reports whether a user id stands for all that a user namespace does not know (user_namespaces(7)).
func isUnmappedUser(uid uint32) bool {
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil || strings.TrimSpace(string(overflow)) != strconv.FormatUint(uint64(uid), 10) {
		return false
	}
	users, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && !slices.Equal(strings.Fields(string(users)), []string{"0", "0", "4294967295"})
}

// lockOwnFolder locks a folder of ours. It fails if another folder was put in its place.
func lockOwnFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || int(st.Uid) != os.Geteuid() || st.Mode&0o066 != 0 {
		return nil, errors.Join(fmt.Errorf("%s: not a private folder of this user", path), f.Close())
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// removeStaleFolders removes our own folders whose session is gone. It is housekeeping: what cannot be removed stays.
func removeStaleFolders(place string) {
	paths, _ := filepath.Glob(filepath.Join(place, folderPrefix+"*-*"))
	for _, path := range paths {
		if !isAbandonedFolder(path) || isLibraryLoaded(filepath.Join(path, wire.ShimName)) {
			continue
		}
		if lock, err := lockOwnFolder(path); err == nil {
			_ = os.RemoveAll(path)
			_ = lock.Close()
		}
	}
}

// ViewSockets returns the sockets for other terminals of this user's sessions.
func ViewSockets() []string { return socketsNamed(viewName) }

// socketsNamed returns the sockets of a name in the folders of this user's sessions.
func socketsNamed(name string) []string {
	var sockets []string
	for _, place := range runtimeFolderPlaces() {
		paths, _ := filepath.Glob(filepath.Join(place, folderPrefix+"*-*", name))
		for _, path := range paths {
			var st unix.Stat_t
			if unix.Lstat(filepath.Dir(path), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == os.Geteuid() && checkPlaceIsSafe(place) == nil {
				sockets = append(sockets, path)
			}
		}
	}
	return sockets
}

// NewViewSocket makes a runtime folder for the socket alone, and returns its path and what removes it.
func NewViewSocket() (path string, remove func(), err error) {
	f, err := newFolder(runtimeFolderPlaces(), nil)
	if err != nil {
		return "", nil, err
	}
	return f.pathOf(viewName), func() { _, _ = f.deleteFolder() }, nil
}

// OwnerPID returns the process id of the session with a socket, as the name of its folder has it.
func OwnerPID(socket string) string {
	number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(filepath.Dir(socket)), folderPrefix), "-")
	return number
}

// lockedWithin is how long a session may take to lock its new folder.
const lockedWithin = time.Minute

// isAbandonedFolder reports whether a folder is ours by name and owner, and its process does not run or would have locked it
// long ago: in a container each gpumemtop may be process 1.
func isAbandonedFolder(path string) bool {
	pid, err := strconv.Atoi(OwnerPID(filepath.Join(path, viewName)))
	if err != nil || pid <= 0 {
		return false
	}
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
		return false
	}
	return errors.Is(unix.Kill(pid, 0), unix.ESRCH) || time.Since(time.Unix(st.Mtim.Unix())) > lockedWithin
}

// writeFiles writes the files, and begins to write those that are late.
func (f *folder) writeFiles(files map[string]content) error {
	for name, file := range files {
		if file.late {
			continue
		}
		if err := file.writeFile(f.pathOf(name)); err != nil {
			return fmt.Errorf("write runtime folder: %w", err)
		}
	}
	f.late.Go(func() {
		for name, file := range files {
			if file.late {
				f.lateErr = errors.Join(f.lateErr, file.writeWhenComplete(f.pathOf(name)))
			}
		}
	})
	return nil
}

// writeWhenComplete gives the file its name when it is complete. If writing fails, an empty file gets the name, so that no process
// waits on.
func (c content) writeWhenComplete(path string) error {
	part := path + ".part"
	err := c.writeFile(part)
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("write runtime folder: %w", err), os.WriteFile(path, nil, 0o600), os.RemoveAll(part))
	}
	return err
}

func (c content) writeFile(path string) error {
	from, err := c.open()
	if err != nil {
		return err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, c.mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close(), os.Chmod(path, c.mode)) // whatever the umask is
}

func (f *folder) pathOf(name string) string { return filepath.Join(f.path, name) }

// deleteFolder deletes the folder. The library stays while processes use it, since programs that they start load it, too; a later
// session removes it. Calling remove again does nothing.
func (f *folder) deleteFolder() (kept bool, err error) {
	if f.lock == nil {
		return false, nil
	}
	f.late.Wait()
	kept = isLibraryLoaded(f.pathOf(wire.ShimName))
	for pause := time.Millisecond; kept && pause < 100*time.Millisecond; pause *= 2 { // processes that were killed are ending
		time.Sleep(pause)
		kept = isLibraryLoaded(f.pathOf(wire.ShimName))
	}
	if !kept {
		err = os.RemoveAll(f.path)
	} else {
		for _, name := range []string{wire.ConfigName, wire.CoreName, wire.SocketName, wire.OutsidersName, viewName} {
			if gone := os.Remove(f.pathOf(name)); !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}
	err = errors.Join(f.lateErr, err, f.lock.Close())
	f.lock = nil
	return kept, err
}

// isLibraryLoaded reports whether a process has a library loaded: the kernel grants a write lease only on files that no other
// process has open or mapped (fcntl(2)).
func isLibraryLoaded(library string) bool {
	f, err := os.OpenFile(library, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // ends the lease
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	return errors.Is(err, unix.EAGAIN)
}

// Place is where a runtime folder may be made.
type Place struct {
	Path string
	Err  error // why not; nil: it may
}

// FolderPlaces returns the places for a runtime folder, best first: a session takes the first without an error.
func FolderPlaces() []Place {
	var list []Place
	for _, path := range runtimeFolderPlaces() {
		err := preloadObstacle(path)
		if err == nil && unix.Access(path, unix.W_OK|unix.X_OK) != nil {
			err = fmt.Errorf("%s: not writable", path)
		}
		list = append(list, Place{path, err})
	}
	return list
}

// FirstFolderPlace returns the first place where a runtime folder can be made.
func FirstFolderPlace() (string, error) {
	var last error
	for _, place := range FolderPlaces() {
		if place.Err == nil {
			return place.Path, nil
		}
		last = place.Err
	}
	return "", fmt.Errorf("no place for a runtime folder: %w", last)
}
