package parquet

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/tempfile"
)

// folder is a folder of tables. New tables are written into a temporary folder in it, stage, and moved to their places
// when all are complete.
type folder struct {
	dir   string
	made  bool // by us
	root  *os.Root
	stage string
	moves []move
	saved []move // files that were moved out of the way
}

type move struct{ from, to string }

// openFolder opens a folder, and creates it if there is none. other is a pattern of files that it must not have, because
// readers cannot read tables of both kinds in one folder.
func openFolder(dir, other string) (*folder, error) {
	if found, _ := fs.Glob(os.DirFS(dir), other); len(found) > 0 {
		remedy := "name another folder with -o"
		if other == commits {
			remedy += ", or add to this lake with --lake"
		}
		return nil, fmt.Errorf("%s has tables of another kind, see docs/EXPORTS.md: %s", dir, remedy)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: name a folder with -o", dir)
	}
	f := &folder{dir: dir, stage: fmt.Sprintf(".gpumemtop-%016x.tmp", rand.Uint64())}
	err := os.Mkdir(dir, 0o777)
	if f.made = err == nil; f.made {
		tempfile.NoteUnfinishedShared(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the folder: %w", err)
	}
	if f.root, err = os.OpenRoot(dir); err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	tempfile.NoteUnfinished(f.stagePath())
	if err := f.root.Mkdir(f.stage, 0o777); err != nil {
		return nil, errors.Join(fmt.Errorf("write into %s: %w", dir, err), f.removeStage())
	}
	return f, nil
}

// stagePath returns the path of the stage, which signals remove.
func (f *folder) stagePath() string { return filepath.Join(f.dir, f.stage) }

// removeStage removes the stage, and an empty folder that was created.
func (f *folder) removeStage() error {
	err := tempfile.FinishWith(f.stagePath(), func() error { return f.root.RemoveAll(f.stage) })
	err = errors.Join(err, f.root.Close())
	if f.made {
		_ = tempfile.FinishWith(f.dir, func() error { return os.Remove(f.dir) }) // fails, as it should, if the folder has files
	}
	return err
}

// openRegularFile opens a regular file of the folder. Other writers may put a pipe at its name, which would wait for one more.
func (f *folder) openRegularFile(name string, flags int) (*os.File, error) {
	file, err := f.root.OpenFile(name, flags|unix.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no regular file", name), err, file.Close())
	}
	return file, nil
}

// createInStage creates a file in the stage for a place in the folder.
func (f *folder) createInStage(to string) (*os.File, error) {
	from := path.Join(f.stage, fmt.Sprint(len(f.moves)))
	file, err := f.root.OpenFile(from, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("write into %s: %w", f.dir, err)
	}
	f.moves = append(f.moves, move{from, to})
	return file, nil
}

// filesOfRecordings returns the folder's files of some recordings.
func (f *folder) filesOfRecordings(recordings map[string]bool) ([]string, error) {
	var found []string
	for _, table := range tableNames {
		files, err := fs.Glob(f.root.FS(), table+"/host=*/process=*/*.parquet")
		if err != nil {
			return nil, fmt.Errorf("look through %s: %w", f.dir, err)
		}
		for _, file := range files {
			if recording, _, ok := strings.Cut(path.Base(file), "-"); ok && recordings[recording] {
				found = append(found, file)
			}
		}
	}
	return found, nil
}

// commitFiles moves the new files to their places, after old ones were moved out of the way. It does all or nothing.
func (f *folder) commitFiles(old []string, force bool) error {
	return tempfile.FinishWith(f.stagePath(), func() error {
		err := f.replaceFiles(old, force)
		if err != nil {
			err = errors.Join(err, f.restoreOldFiles())
		}
		return err
	})
}

func (f *folder) replaceFiles(old []string, force bool) error {
	for i, file := range old {
		aside := move{file, path.Join(f.stage, fmt.Sprint("old", i))}
		if err := f.root.Rename(aside.from, aside.to); err != nil {
			return fmt.Errorf("replace %s: %w", file, err)
		}
		f.saved = append(f.saved, aside)
	}
	for i, m := range f.moves {
		if err := f.moveToPlace(m, force); err != nil {
			f.undoMoves(f.moves[:i+1])
			return err
		}
	}
	for _, m := range f.saved {
		f.removeEmptyFolders(m.from)
	}
	return nil
}

// moveToPlace moves a file to its place. Without force it must not replace a file that has appeared meanwhile. Only a hard
// link ensures that; file systems without hard links get a rename.
func (f *folder) moveToPlace(m move, force bool) error {
	if err := f.root.MkdirAll(path.Dir(m.to), 0o777); err != nil {
		return fmt.Errorf("write into %s: %w", f.dir, err)
	}
	if !force {
		err := f.root.Link(m.from, m.to)
		if err == nil {
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			return f.alreadyThereError()
		}
	}
	if err := f.root.Rename(m.from, m.to); err != nil {
		return fmt.Errorf("write %s: %w", path.Join(f.dir, m.to), err)
	}
	return nil
}

// alreadyThereError returns the error that a recording is in the folder already.
func (f *folder) alreadyThereError() error {
	return fmt.Errorf("this recording is in %s already: use -f to replace it, or -o to name another folder", f.dir)
}

// undoMoves takes back moves. The last of them has failed, but its folders may exist.
func (f *folder) undoMoves(moves []move) {
	for i, m := range moves {
		if i < len(moves)-1 {
			_ = f.root.Remove(m.to) // it cannot be removed: nothing more can be done
		}
		f.removeEmptyFolders(m.to)
	}
}

// restoreOldFiles moves the old files back.
func (f *folder) restoreOldFiles() error {
	for _, m := range f.saved {
		err := f.root.MkdirAll(path.Dir(m.from), 0o777)
		if err == nil {
			err = f.root.Rename(m.to, m.from)
		}
		if err != nil {
			return fmt.Errorf("put %s back: %w", m.from, err)
		}
	}
	return nil
}

// removeEmptyFolders removes the folders above a file that are empty.
func (f *folder) removeEmptyFolders(file string) {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if f.root.Remove(dir) != nil {
			return // not empty, or not there
		}
	}
}
