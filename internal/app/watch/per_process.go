package watch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	namedMax    = 8    // files that messages name
	attemptsMax = 1000 // names that are tried for one file
)

// perProcess is a session.Recorder that gives each process a file. A file that cannot be written does not affect the others.
type perProcess struct {
	name   files.Name
	header recording.Header // what all files share
	force  bool
	model  *stats.Model
	warn   func(string)

	open   map[uint32]*processFile
	seen   map[int]int // how often, by process id
	closed uint64      // bytes in files that are complete
	names  []string    // of the first files
	files  int
	failed int   // processes that are not recorded, or not completely
	first  error // of these
}

// processFile is the file of a process.
type processFile struct {
	writer *recording.Writer
	path   string
	lost   uint64
	now    uint64 // time of its last record
}

func newPerProcess(name files.Name, header recording.Header, m *stats.Model, force bool, warn func(string)) *perProcess {
	return &perProcess{
		name: name, header: header, force: force, model: m, warn: warn,
		open: map[uint32]*processFile{}, seen: map[int]int{},
	}
}

// Append implements session.Recorder. It never fails.
func (s *perProcess) Append(r *wire.Record) error {
	if r.Kind == wire.KindProcess {
		s.createFile(r)
	}
	f := s.open[r.Process]
	if f == nil {
		return nil
	}
	if r.Kind == wire.KindLost {
		f.lost += r.AsLost().Events()
	}
	f.now = max(f.now, r.Time)
	if err := f.writer.Append(r); err != nil {
		s.abandonProcessFile(r.Process, err)
	}
	return nil
}

// createFile creates the file of the process that a PROCESS record announces.
func (s *perProcess) createFile(r *wire.Record) {
	h := s.header
	words := strings.Split(string(bytes.TrimSuffix(r.Payload, []byte{0})), "\x00")
	h.Program, h.Arguments = words[0], words[1:]
	h.Created, h.ClockNS = h.Created.Add(time.Duration(r.Time-h.ClockNS)), r.Time
	path, err := s.unusedName(int(r.AsProcess().PID()))
	if err != nil {
		s.noteFailure(err)
		return
	}
	w, err := recording.Create(path, h, s.force)
	if err != nil {
		s.noteFailure(err)
		return
	}
	if _, known := s.model.SummarizeProcessSinceLastCall(r.Process); known {
		w.SetSummarizer(func() recording.Summary {
			interval, _ := s.model.SummarizeProcessSinceLastCall(r.Process)
			return interval
		})
	}
	s.open[r.Process] = &processFile{writer: w, path: path}
	if s.files++; len(s.names) < namedMax {
		s.names = append(s.names, path)
	}
}

// unusedName returns a name for the file of a process id that no file has; with force, files of earlier runs may have it.
func (s *perProcess) unusedName(pid int) (string, error) {
	s.seen[pid]++
	wanted := s.name.ForProcess(pid, s.seen[pid])
	path := wanted
	for range attemptsMax {
		_, err := os.Lstat(path)
		if s.force || errors.Is(err, fs.ErrNotExist) {
			if path != wanted {
				s.warn(fmt.Sprintf("%s exists: process %d is recorded into %s; -f would overwrite it", wanted, pid, path))
			}
			return path, nil
		}
		s.seen[pid]++
		path = s.name.ForProcess(pid, s.seen[pid])
	}
	return "", fmt.Errorf("%s exists, and so do %d others: process %d is not recorded; use -f to overwrite them", wanted, attemptsMax, pid)
}

func (s *perProcess) noteFailure(err error) {
	s.failed++
	if s.first == nil {
		s.first = err
	}
}

// abandonProcessFile ends a file that can no longer be written. What is in it is complete.
func (s *perProcess) abandonProcessFile(process uint32, err error) {
	f := s.open[process]
	delete(s.open, process)
	s.closed += f.writer.Bytes()
	_ = f.writer.Close(recording.Footer{}) // the same error again
	s.noteFailure(fmt.Errorf("%s: %w", f.path, err))
}

// Flush implements session.Recorder.
func (s *perProcess) Flush() error {
	for process, f := range s.open {
		if err := f.writer.Flush(); err != nil {
			s.abandonProcessFile(process, err)
		}
	}
	return nil
}

// Bytes implements session.Recorder.
func (s *perProcess) Bytes() uint64 {
	sum := s.closed
	for _, f := range s.open {
		sum += f.writer.Bytes()
	}
	return sum
}

// Ended implements session.Keeper.
func (s *perProcess) Ended(process uint32, status session.Status) {
	f := s.open[process]
	if f == nil {
		return
	}
	exit := ReportedExit(status)
	s.completeProcessFile(process, f, recording.Footer{Status: exit.Status, Signal: exit.Signal})
}

// completeProcessFile ends a file.
func (s *perProcess) completeProcessFile(process uint32, f *processFile, footer recording.Footer) {
	delete(s.open, process)
	footer.Lost, footer.EndedNS = f.lost, f.now
	err := f.writer.Close(footer)
	s.closed += f.writer.Bytes()
	if err != nil {
		s.noteFailure(fmt.Errorf("%s: %w", f.path, err))
	}
}

// Close implements output: it completes the files of processes that are still running. The footer is that of the whole.
func (s *perProcess) Close(recording.Footer) error {
	for process, f := range s.open {
		s.completeProcessFile(process, f, recording.Footer{Status: -1, Cut: true})
	}
	switch {
	case s.failed == 0:
		return nil
	case errors.Is(s.first, unix.EMFILE):
		return fmt.Errorf("%d processes not recorded: too many files were open: ulimit -n allows more", s.failed)
	}
	return fmt.Errorf("%d processes not recorded completely: %w", s.failed, s.first)
}

// writtenFilesMessages returns what to tell the user at the end about files that were written.
func (s *perProcess) writtenFilesMessages() []string {
	switch {
	case s == nil:
	case s.files > len(s.names):
		return []string{fmt.Sprintf("recorded %d processes: %s, and more like these in %s", s.files, strings.Join(s.names, ", "), filepath.Dir(s.names[0]))}
	case s.files > 0:
		return []string{"recorded: " + strings.Join(s.names, ", ")}
	case s.failed == 0:
		return []string{"nothing was recorded: no process called OpenCL"}
	}
	return nil
}
