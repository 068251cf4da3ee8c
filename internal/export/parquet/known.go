package parquet

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

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
	names, _ := fs.Glob(l.folder.root.FS(), commits)
	notes := l.readCommitNotes(names)
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

// notesMax bounds the bytes of notes that are read and written: some eight million recordings.
const notesMax = 1 << 30

// readCommitNotes reads what is noted of commits, whose names are sorted, a line at a time: a million recordings have 120 MB of
// notes.
func (l *Lake) readCommitNotes(names []string) map[string]readCommit {
	notes := map[string]readCommit{}
	file, err := l.folder.openRegularFile(lockName, os.O_RDONLY)
	if err != nil {
		return notes
	}
	defer file.Close() //nolint:errcheck // only read
	for lines := bufio.NewReader(io.LimitReader(file, notesMax)); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return notes // a line without an end is damaged
		}
		var n noted
		if json.Unmarshal(line, &n) != nil {
			continue
		}
		if _, there := slices.BinarySearch(names, n.Commit); there {
			notes[n.Commit] = n.Recordings
		}
	}
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

// noteKnownCommits notes what this commit has, and what was read. A line that a killed writer began ends first.
func (l *Lake) noteKnownCommits(lock *os.File, name string) {
	if info, err := lock.Stat(); err != nil || info.Size() >= notesMax {
		return // nothing more is read
	}
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
