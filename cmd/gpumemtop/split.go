package main

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

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	namedMax    = 8    // files that are named at the end
	attemptsMax = 1000 // names that are tried for one file
)

// split is a Recorder that gives each process a file of its own. One that cannot be written costs the others nothing.
type split struct {
	name   fileName
	header trace.Header // of all, but for what differs
	force  bool
	model  *model.Model
	warn   func(string)

	open   map[uint32]*share
	times  map[int]int // that a process id was seen
	closed uint64      // bytes in files that are complete
	names  []string    // of the first files
	files  int
	failed int   // processes that are not, or not wholly, recorded
	first  error // of these
}

// share is the file of a process.
type share struct {
	writer *trace.Writer
	path   string
	lost   uint64
	now    uint64 // time of its last record
}

func newSplit(name fileName, header trace.Header, m *model.Model, force bool, warn func(string)) *split {
	return &split{
		name: name, header: header, force: force, model: m, warn: warn,
		open: map[uint32]*share{}, times: map[int]int{},
	}
}

// Append implements session.Recorder. It never fails: the program's other files go on.
func (s *split) Append(r *wire.Record) error {
	if r.Kind == wire.KindProcess {
		s.begin(r)
	}
	f := s.open[r.Process]
	if f == nil {
		return nil
	}
	if r.Kind == wire.KindLost {
		f.lost += r.Size
	}
	f.now = max(f.now, r.Time)
	if err := f.writer.Append(r); err != nil {
		s.broken(r.Process, err)
	}
	return nil
}

// begin makes the file of a process, which a PROCESS record introduces.
func (s *split) begin(r *wire.Record) {
	h := s.header
	words := strings.Split(string(bytes.TrimSuffix(r.Payload, []byte{0})), "\x00")
	h.Program, h.Arguments = words[0], words[1:]
	h.Created, h.ClockNS = h.Created.Add(time.Duration(r.Time-h.ClockNS)), r.Time
	path, err := s.free(int(r.Object))
	if err != nil {
		s.fail(err)
		return
	}
	w, err := trace.Create(path, h, s.force)
	if err != nil {
		s.fail(err)
		return
	}
	if _, known := s.model.ProcessInterval(r.Process); known {
		w.Summarize(func() trace.Summary {
			interval, _ := s.model.ProcessInterval(r.Process)
			return trace.Summary(interval)
		})
	}
	s.open[r.Process] = &share{writer: w, path: path}
	if s.files++; len(s.names) < namedMax {
		s.names = append(s.names, path)
	}
}

// free returns a name for the file of a process id that was not given yet and, without force, that no file has.
func (s *split) free(pid int) (string, error) {
	s.times[pid]++
	wanted := s.name.of(pid, s.times[pid])
	path := wanted
	for range attemptsMax {
		_, err := os.Lstat(path)
		if s.force || errors.Is(err, fs.ErrNotExist) {
			if path != wanted {
				s.warn(fmt.Sprintf("%s exists: process %d is recorded into %s; -f would overwrite it", wanted, pid, path))
			}
			return path, nil
		}
		s.times[pid]++
		path = s.name.of(pid, s.times[pid])
	}
	return "", fmt.Errorf("%s exists, and so do %d others: process %d is not recorded; use -f to overwrite them", wanted, attemptsMax, pid)
}

func (s *split) fail(err error) {
	s.failed++
	if s.first == nil {
		s.first = err
	}
}

// broken ends a file that cannot be written any more. What is in it is whole.
func (s *split) broken(process uint32, err error) {
	f := s.open[process]
	delete(s.open, process)
	s.closed += f.writer.Bytes()
	_ = f.writer.Close(trace.Footer{}) // it says the same again
	s.fail(fmt.Errorf("%s: %w", f.path, err))
}

// Flush implements session.Recorder.
func (s *split) Flush() error {
	for process, f := range s.open {
		if err := f.writer.Flush(); err != nil {
			s.broken(process, err)
		}
	}
	return nil
}

// Bytes implements session.Recorder.
func (s *split) Bytes() uint64 {
	sum := s.closed
	for _, f := range s.open {
		sum += f.writer.Bytes()
	}
	return sum
}

// Ended implements session.Keeper.
func (s *split) Ended(process uint32, status session.Status) {
	f := s.open[process]
	if f == nil {
		return
	}
	exit := exitOf(status)
	s.complete(process, f, trace.Footer{Status: exit.Status, Signal: exit.Signal})
}

// complete writes the end of a file.
func (s *split) complete(process uint32, f *share, footer trace.Footer) {
	delete(s.open, process)
	footer.Lost, footer.EndedNS = f.lost, f.now
	err := f.writer.Close(footer)
	s.closed += f.writer.Bytes()
	if err != nil {
		s.fail(fmt.Errorf("%s: %w", f.path, err))
	}
}

// close completes the files of processes that are still there, and go on.
func (s *split) close() {
	for process, f := range s.open {
		s.complete(process, f, trace.Footer{Status: -1, Cut: true})
	}
}

// said is what there is to say at the end, a line each.
func (s *split) said() []string {
	var lines []string
	switch {
	case s.files > len(s.names):
		lines = append(lines, fmt.Sprintf("recorded %d processes: %s, and more like these in %s", s.files, strings.Join(s.names, ", "), filepath.Dir(s.names[0])))
	case s.files > 0:
		lines = append(lines, "recorded: "+strings.Join(s.names, ", "))
	case s.failed == 0:
		lines = append(lines, "nothing was recorded: no process called OpenCL")
	}
	if s.failed > 0 {
		text := fmt.Sprintf("%d not or not wholly recorded: %v", s.failed, s.first)
		if errors.Is(s.first, unix.EMFILE) {
			text = fmt.Sprintf("%d not recorded: too many files were open: ulimit -n allows more", s.failed)
		}
		lines = append(lines, text)
	}
	return lines
}
