package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/disk"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bounds on the records that a live trace holds back while the name of a call site is not known.
const (
	heldMax     = 64 << 10      // records
	heldNS      = 1_000_000_000 // between the times of the first and the last
	heldFlushes = 4             // calls of Flush; a session makes four a second
)

// Live writes a trace while the program runs. The file can be cut off at any time: only whole events are written, and in JSON
// none crosses the end of a page. Memory grows with live objects and tags. Call sites get their names a little after their
// first use, so records are held back until then, in order, for about a second; a site without a name is called
// "module+0x1234". One goroutine uses it. After the first error it writes nothing more and returns that error; what
// is in the file then is a whole trace up to there.
type Live struct {
	file    *disk.Writer
	name    string // of the file
	trace   *trace
	pids    map[uint64]bool
	modules map[moduleKey]string
	held    []held
	next    int // first of held
	flushes uint32
}

type moduleKey struct {
	process uint32
	module  uint64
}

// held is a record that waits, and the number of flushes before it came.
type held struct {
	record wire.Record
	flush  uint32
}

// CreateLive creates the file of a Chrome trace, which appears under its name once it is a readable trace. An existing file is
// replaced only with force, and only if it is a regular file; a link is followed. Times are relative to facts.ClockNS.
func CreateLive(name string, facts Facts, force bool) (*Live, error) {
	return createLive(name, &facts, force, growing)
}

// CreateLivePerfetto is CreateLive for Perfetto's own format.
func CreateLivePerfetto(name string, facts Facts, force bool) (*Live, error) {
	return createLive(name, &facts, force, packed)
}

func createLive(name string, facts *Facts, force bool, style style) (*Live, error) {
	target, direct, err := resolveTarget(name, force)
	switch {
	case err != nil:
		return nil, err
	case direct:
		return nil, fmt.Errorf("write %s: it is no regular file: name another", name)
	}
	file, err := createTemporary(temporaryNameBeside(target), name)
	if err != nil {
		return nil, err
	}
	l := newLive(disk.NewWriter(file), facts, style)
	l.name = name
	if err = l.writeFirstFacts(facts); err == nil {
		err = giveFinalName(file.Name(), target, name, force)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // a file that cannot be removed either is not worth a second error
		return nil, errors.Join(err, l.file.Close())
	}
	return l, nil
}

func newLive(file *disk.Writer, facts *Facts, style style) *Live {
	options := &TraceOptions{}
	options.setDefaults()
	seen := &survey{base: facts.ClockNS, begin: facts.ClockNS, attached: facts.Attached, processes: map[uint32]*surveyed{}}
	l := &Live{file: file, pids: map[uint64]bool{}, modules: map[moduleKey]string{}}
	l.trace = newTrace(file, seen, options, TraceReport{}, style)
	l.trace.live, l.trace.whole = true, false
	return l
}

// writeFirstFacts writes the facts of the run, because an empty array is no trace.
func (l *Live) writeFirstFacts(facts *Facts) error {
	x := l.trace
	x.home = placeOfProcess(firstFreePID)
	if err := x.writeFacts(facts); err != nil {
		return err
	}
	x.out.nameProcess(`"gpumemtop"`, x.home)
	return l.Flush()
}

// Append takes a record. It is in the file after the fourth call of Flush at the latest.
func (l *Live) Append(r *wire.Record) error {
	l.noteNamesInRecord(r)
	if l.next == len(l.held) && l.areNamesKnown(r) {
		l.trace.takeRecord(r)
		return l.traceError()
	}
	copied := *r
	copied.Payload = slices.Clone(r.Payload)
	l.held = append(l.held, held{copied, l.flushes})
	l.writeWaitingRecords(func(h *held) bool { return len(l.held)-l.next > heldMax || h.record.Time+heldNS <= r.Time })
	return l.traceError()
}

// writeWaitingRecords writes records that waited, up to the first whose call site has no name and that is not late.
func (l *Live) writeWaitingRecords(late func(*held) bool) {
	for ; l.next < len(l.held); l.next++ {
		h := &l.held[l.next]
		if !l.areNamesKnown(&h.record) {
			if !late(h) {
				break
			}
			l.guessName(&h.record)
		}
		l.trace.takeRecord(&h.record)
		h.record.Payload = nil
	}
	if l.next > heldMax/2 || l.next == len(l.held) {
		l.held = slices.Delete(l.held, 0, l.next)
		l.next = 0
	}
}

// noteNamesInRecord notes the names in a record as soon as it comes.
func (l *Live) noteNamesInRecord(r *wire.Record) {
	p := l.trace.seen.processNumbered(r.Process)
	switch r.Kind {
	case wire.KindProcess:
		if p.pid == 0 {
			p.noteProcess(r)
			p.chooseDistinctPID(l.pids)
			l.trace.nameProcess(p)
		}
	case wire.KindModule:
		file, _ := wire.ParseModule(r.Payload)
		l.modules[moduleKey{r.Process, r.AsModule().Module()}] = string(file)
	case wire.KindTag, wire.KindSite:
		if name := callsite.TagNameOf(r); name != "" {
			p.renameTag(r, name)
		} else if r.Kind == wire.KindTag {
			p.tag(r.AsTag().Tag()).frame = l.nameFromFrame(r)
		}
	default:
	}
}

// renameTag gives a tag a name in place of a guessed one.
func (p *surveyed) renameTag(r *wire.Record, name string) {
	if t := p.tags[r.DefinedTag()]; t != nil && t.guessed {
		// Lifetimes that began under the old name must end under it.
		delete(p.tags, r.DefinedTag())
		p.latest.tag = nil
	}
	p.noteTagName(r, name)
	if t := p.tags[r.DefinedTag()]; !t.named {
		t.guessed = true
	}
}

// nameFromFrame returns a name for a tag that has none: its innermost frame.
func (l *Live) nameFromFrame(r *wire.Record) string {
	for _, f := range wire.FramesOfTag(r.Payload) {
		if file := l.modules[moduleKey{r.Process, f.Module}]; file != "" {
			return fmt.Sprintf("%s+0x%x", path.Base(file), f.Offset)
		}
	}
	return ""
}

// areNamesKnown reports whether the names that a record needs are known.
func (l *Live) areNamesKnown(r *wire.Record) bool {
	site := tagNeedingName(r)
	if site == 0 {
		return true
	}
	t := l.trace.seen.processNumbered(r.Process).tag(site)
	return t.named || t.guessed
}

// tagNeedingName returns the tag whose name a record needs, 0 if none.
func tagNeedingName(r *wire.Record) uint32 {
	switch r.Kind {
	case wire.KindCreate:
		return r.AsCreate().Tag()
	case wire.KindDiag:
		return r.AsDiag().Tag()
	}
	return 0
}

func (l *Live) guessName(r *wire.Record) {
	t := l.trace.seen.processNumbered(r.Process).tag(tagNeedingName(r))
	t.guessed = true
	if t.frame != "" {
		t.setName(t.frame, nil)
	}
}

// Flush writes the counters, and all records that do not wait for a name.
func (l *Live) Flush() error {
	l.flushes++
	l.writeWaitingRecords(func(h *held) bool { return l.flushes-h.flush >= heldFlushes })
	for _, p := range l.trace.sortedProcesses() {
		if p.counters.changed {
			l.trace.writeCounters(p, l.trace.heap.Now())
		}
	}
	l.trace.out.flush()
	return l.traceError()
}

// Bytes returns the length of the file.
func (l *Live) Bytes() uint64 { return l.file.BytesTaken() }

func (l *Live) traceError() error {
	if err := l.trace.out.firstError(); err != nil {
		return fmt.Errorf("write trace %s: %w", l.name, withoutTempName(err))
	}
	return nil
}

// Close completes the trace and closes the file. Objects of processes that have not ended are no leaks.
func (l *Live) Close() error {
	l.writeWaitingRecords(func(*held) bool { return true })
	l.trace.endLifetimes()
	_ = l.trace.out.finish() // err returns it
	if err := l.file.Close(); err != nil && l.trace.out.firstError() == nil {
		return fmt.Errorf("close trace %s: %w", l.name, withoutTempName(err))
	}
	return l.traceError()
}

// withoutTempName removes the temporary name of the file from an error.
func withoutTempName(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
