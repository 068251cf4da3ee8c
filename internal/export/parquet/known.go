package parquet

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/lake"
)

// knownAs is what a lake knows of a recording.
type knownAs struct {
	Amount int64  `json:"amount"` // see amount
	Path   string `json:"path"`   // of its file
}

// readCommit has the recordings of a commit, by id.
type readCommit map[string]knownAs

// noted is a line of a lake's lock file: what a commit has, so that who adds need not read it again. What is not noted, because a
// writer was killed or a line is damaged, is read.
type noted struct {
	Commit     string     `json:"commit"`
	Recordings readCommit `json:"recordings"`
}

// rankOfVersion orders versions of a recording: by the number of events, and if that is equal, a whole version after a torn one.
func rankOfVersion(events int64, ending string) int64 {
	if ending == lake.Torn {
		return 2 * events
	}
	return 2*events + 1
}

// readKnownRecordings reads which recordings the lake has. With force, a recording that is there is wanted, too.
func (l *Lake) readKnownRecordings(force bool) error {
	l.unread = map[string]readCommit{}
	notes := l.readNotes()
	names, _ := fs.Glob(l.folder.root.FS(), commits)
	for _, name := range names {
		recordings, there := notes[name]
		if !there {
			var err error
			if recordings, err = l.readCommit(name); errors.Is(err, fs.ErrNotExist) {
				if _, err := l.folder.root.Stat(name); err == nil {
					continue // no commit
				}
				return l.readKnownRecordings(force) // it has just been compacted
			} else if err != nil {
				return err
			}
			l.unread[name] = recordings
		}
		for id, known := range recordings {
			if force {
				known.Amount = -1
			}
			l.known[id] = known
		}
	}
	return nil
}

// notesMax bounds what is read of them, in bytes.
const notesMax = 64 << 20

func (l *Lake) readNotes() map[string]readCommit {
	notes := map[string]readCommit{}
	file, err := l.folder.openRegularFile(lockName, os.O_RDONLY)
	if err != nil {
		return notes
	}
	text, _ := io.ReadAll(io.LimitReader(file, notesMax))
	_ = file.Close() // only read
	for line := range bytes.Lines(text) {
		var n noted
		if json.Unmarshal(line, &n) == nil {
			notes[n.Commit] = n.Recordings
		}
	}
	return notes
}

func (l *Lake) readCommit(name string) (readCommit, error) {
	type row struct {
		Recording string `parquet:"recording"`
		Events    int64  `parquet:"events"`
		Ending    string `parquet:"ending"`
		Path      string `parquet:"path"`
	}
	recordings := readCommit{}
	err := eachRowOfFile(l, name+"/"+Runs+".parquet", func(r *row) {
		recordings[r.Recording] = knownAs{rankOfVersion(r.Events, r.Ending), r.Path}
	})
	return recordings, err
}

// noteReadCommits notes what this commit has, and what was read. A line that a killed writer began ends first.
func (l *Lake) noteReadCommits(lock *os.File, name string) {
	l.unread[name] = l.adding
	text := []byte{'\n'}
	for commit, recordings := range l.unread {
		line, err := json.Marshal(noted{commit, recordings})
		if err == nil {
			text = append(append(text, line...), '\n')
		}
	}
	_, _ = lock.Write(text) // else the next writer reads the commits
}
