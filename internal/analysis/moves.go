package analysis

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// moves follows what buffers contain as far as host and commands say, and finds transfers that could go.
type moves struct {
	sides    stats.Sides
	contents []contents // by the places of objects
	epoch    uint64     // raised by commands that may use any memory
	found    map[moveKey]*move
	names    *callsite.Names
	named    map[namedSite]uint32 // the first tag of that name
	threads  map[uint64]*mover
	copies   map[uint64]copied // by process and tag
	held     int64             // bytes in all of these
	most     int64             // of held
	mostOf   uint64            // which of copies had most then
	mostHere copied            // that
}

// copied is buffers that began as copies of host memory.
type copied struct{ buffers, bytes int64 }

type namedSite struct {
	process uint32
	name    string
}

type moveKey struct {
	kind    TransferKind
	process uint32
	tag     uint32
}

type move struct {
	count, bytes, ns uint64
	sampled          bool
	waited           bool // of ColdRead: calls waited for commands as well
	busy             window
	warm             stats.Flow // of ColdRead: reads into warm memory; of Copied: calls that waited for no commands
}

// window is the time from the end of a first call to that of the last, and how much of it calls took. The first call is left out: it may
// wait for all that a program does once.
type window struct {
	first, last, busy uint64
	gaps              [4]span // the latest times without calls: records of a thread may come late
	several           bool    // threads were in calls at the same time
}

func (w *window) addCall(from, to uint64) {
	if w.last == 0 {
		w.first, w.last = to, to
		return
	}
	more := max(to, w.last) - max(from, w.last)
	for i := range w.gaps {
		more += w.gaps[i].cutFromGap(from, to)
	}
	if from > w.last {
		copy(w.gaps[1:], w.gaps[:])
		w.gaps[0] = span{w.last, from}
	}
	w.busy, w.last, w.several = w.busy+more, max(to, w.last), w.several || more < to-from
}

// cutFromGap takes a time out of a gap, and returns how much that was. Of a gap on both sides the longer one stays.
func (s *span) cutFromGap(from, to uint64) uint64 {
	from, to = max(from, s.from), min(to, s.to)
	if from >= to {
		return 0
	}
	if from-s.from > s.to-to {
		s.to = from
	} else {
		s.from = to
	}
	return to - from
}

// addLaterCalls adds calls that began later. Of those that overlap, the window has what one of the threads was busy.
func (w *window) addLaterCalls(o *window) {
	switch {
	case w.last == 0:
		*w = *o
	case o.last == 0:
	case o.first >= w.last:
		w.last, w.busy, w.several = o.last, w.busy+o.busy, w.several || o.several
	default:
		w.first, w.last, w.busy, w.several = min(w.first, o.first), max(w.last, o.last), max(w.busy, o.busy), true
	}
}

// callShare is the part of the time that calls took.
func (w *window) callShare() float64 { return shareOfWhole(w.busy, w.last-w.first) }

// mover is a thread that moves memory.
type mover struct {
	run, runBytes, runNS uint64
	busy                 window
	key                  moveKey
	command              wire.Command
	object, end          uint64
	queued               bool // a command, since it waited last
}

// span is bytes of an object.
type span struct{ from, to uint64 }

func (s span) contains(o span) bool { return o.from >= s.from && o.to <= s.to && o.to > o.from }

// contents is what is known of an object's bytes.
type contents struct {
	id, epoch uint64
	process   uint32
	wrote     span // by the host; nothing else has written since
	hash      uint64
	hashed    uint64
	read      span // by the host; nothing has been written since
	initial   bool // it has the bytes that it was created with
	mapped    bool // for writing
}

func (c *contents) forgetContents() { c.wrote, c.read, c.initial, c.hashed = span{}, span{}, false, 0 }

// contentsOf returns what is known of an object, nil if others may change it.
func (m *moves) contentsOf(p *heap.Process, o *heap.Object) *contents {
	if o.Memory >= wire.MemorySVM {
		return nil
	}
	for int(o.Place) >= len(m.contents) {
		m.contents = append(m.contents, contents{})
	}
	c := &m.contents[o.Place]
	if c.id != o.ID || c.process != p.Number {
		*c = contents{id: o.ID, process: p.Number, epoch: m.epoch, initial: o.Access&wire.CopyHostPtr != 0 && !o.CarriedOver}
	}
	if c.epoch != m.epoch {
		c.forgetContents()
		c.epoch = m.epoch
	}
	return c
}

// handleRecordBeforeHeap takes a record before the heap does.
func (m *moves) handleRecordBeforeHeap(p *heap.Process, r *wire.Record) {
	switch r.Kind {
	case wire.KindTransfer:
		m.sides.NoteTransfer(r)
	case wire.KindUse:
		if p != nil {
			m.noteUse(p, r)
		}
	case wire.KindSync:
		if how := r.AsSync().Sync(); how == wire.SyncFinish || how == wire.SyncWait { // what blocks has a USE as well
			m.threadOf(r).queued = false
		}
	case wire.KindLost:
		m.epoch++
	default:
	}
}

func (m *moves) noteUse(p *heap.Process, r *wire.Record) {
	u, thread := r.AsUse(), m.threadOf(r)
	o := p.Object(u.Object())
	if o == nil {
		if u.Object() == 0 {
			m.epoch++
		}
		return
	}
	key := moveKey{process: r.Process}
	if more, known := m.sides.TransferOf(r); !known {
		key.tag = m.representativeTag(r.Process, u.Tag())
	} else {
		key.tag = m.representativeTag(r.Process, more.Site())
		m.countColdReads(thread, key, u, more)
	}
	m.countAdjoiningTransfers(thread, key, u)
	if (u.Command() == wire.CommandRead || u.Command() == wire.CommandWrite) && o.Memory < wire.MemorySVM { // which a map is for
		if f := m.countMove(Copied, key, u); f != nil && !thread.queued && u.Duration() > 0 {
			f.warm.AddFlow(&stats.Flow{TimedBytes: u.Bytes(), NS: uint64(u.Duration())})
		}
	}
	m.countReadWaits(thread, key, u)
	m.compareWithContents(p, o, key, r)
}

// compareWithContents compares a command with what the object contains.
func (m *moves) compareWithContents(p *heap.Process, o *heap.Object, key moveKey, r *wire.Record) {
	u, c := r.AsUse(), m.contentsOf(p, o)
	if c == nil {
		return
	}
	at := span{u.Offset(), u.Offset() + u.Bytes()}
	if u.Scattered() {
		at = span{}
	}
	switch parent := p.Object(o.Parent); {
	case o.Parent != 0: // the same bytes have two names
		if parent != nil && u.Writes() || !u.Reads() {
			m.forgetContents(p, parent)
		}
		c.forgetContents()
	case u.Command() == wire.CommandWrite:
		m.noteWritten(c, at, key, r)
	case u.Command() == wire.CommandRead:
		m.noteRead(c, at, key, u)
	case u.Command() == wire.CommandMap:
		if u.Writes() {
			c.mapped = true
			c.forgetContents()
		}
	case u.Command() == wire.CommandUnmap:
		if c.mapped {
			c.forgetContents()
		}
		c.mapped = false
	case u.Command() == wire.CommandMigrate, u.Reads() && !u.Writes():
	default:
		c.forgetContents()
	}
}

// representativeTag returns the tag that stands for a call site. A compiler may have made several calls of a line, and threads are in them at the
// same time.
func (m *moves) representativeTag(process, tag uint32) uint32 {
	site := namedSite{process, m.names.Process(process).Site(tag).Name}
	one, known := m.named[site]
	if !known {
		one, m.named[site] = tag, tag
	}
	return one
}

func (m *moves) forgetContents(p *heap.Process, o *heap.Object) {
	if o == nil {
		return
	}
	if c := m.contentsOf(p, o); c != nil {
		c.forgetContents()
	}
}

func (m *moves) noteWritten(c *contents, at span, key moveKey, r *wire.Record) {
	more, known := m.sides.TransferOf(r)
	hashed := known && more.Hashed() > 0 && at.to > 0
	if hashed && c.wrote == at && c.hashed == more.Hashed() && c.hash == more.Hash() {
		if f := m.countMove(Rewritten, key, r.AsUse()); f != nil {
			f.sampled = f.sampled || more.Hashed() < r.AsUse().Bytes()
		}
	}
	c.forgetContents()
	c.wrote = at
	if hashed {
		c.hash, c.hashed = more.Hash(), more.Hashed()
	}
}

func (m *moves) noteRead(c *contents, at span, key moveKey, u wire.UseView) {
	switch {
	case c.mapped:
		return
	case c.read.contains(at), c.initial:
		m.countMove(Unchanged, key, u)
	case c.wrote.contains(at):
		m.countMove(ReadBack, key, u)
	}
	if !c.read.contains(at) {
		c.read = at
	}
}

// countColdReads counts reads whose host pages were looked at. What a read took that also waited for commands says nothing of its pages.
func (m *moves) countColdReads(t *mover, key moveKey, u wire.UseView, more wire.TransferView) {
	if u.Command() != wire.CommandRead {
		return
	}
	if more.Pages() == 0 {
		key.kind = ColdRead
		if f := m.found[key]; f != nil {
			f.sampled = true
		}
		return
	}
	if float64(more.Cold()) >= coldShare*float64(more.Pages()) {
		if f := m.countMove(ColdRead, key, u); f != nil {
			f.waited = f.waited || t.queued
		}
	} else if f := m.entryOfMove(ColdRead, key); f != nil {
		f.warm.AddFlow(&stats.Flow{TimedBytes: u.Bytes(), NS: uint64(u.Duration())})
	}
}

// countAdjoiningTransfers counts small transfers that go on where the thread's last command ended.
func (m *moves) countAdjoiningTransfers(t *mover, key moveKey, u wire.UseView) {
	small := (u.Command() == wire.CommandRead || u.Command() == wire.CommandWrite) && u.Bytes() > 0 && u.Bytes() <= smallMost && !u.Scattered()
	if t.run > 0 && (!small || u.Object() != t.object || u.Command() != t.command || u.Offset() != t.end) {
		m.endSmallTransfers(t)
	}
	if !small {
		return
	}
	key.kind = Small
	t.key, t.command, t.object, t.end = key, u.Command(), u.Object(), u.Offset()+u.Bytes()
	t.run++
	t.runBytes += u.Bytes()
	t.runNS += uint64(u.Duration())
	t.busy.addCall(u.Time(), u.Time()+uint64(u.Duration()))
}

func (m *moves) endSmallTransfers(t *mover) {
	if t.run >= smallRun {
		if f := m.entryOfMove(Small, t.key); f != nil {
			f.count += t.run
			f.bytes += t.runBytes
			f.ns += t.runNS
			f.busy.addLaterCalls(&t.busy)
		}
	}
	t.run, t.runBytes, t.runNS, t.busy = 0, 0, 0, window{}
}

// countReadWaits counts blocking reads, and maps for reading, that wait for commands of the same thread.
func (m *moves) countReadWaits(t *mover, key moveKey, u wire.UseView) {
	if u.Duration() > 0 && t.queued {
		switch {
		case u.Command() == wire.CommandRead:
			m.countMove(Blocking, key, u)
		case u.Command() == wire.CommandMap && u.Reads():
			m.countMove(BlockingMap, key, u)
		}
	}
	t.queued = u.Duration() == 0
}

func (m *moves) threadOf(r *wire.Record) *mover {
	key := streamNumber(r.Process, r.Thread)
	t := m.threads[key]
	if t == nil {
		if m.threads == nil || len(m.threads) == streamsMax {
			m.threads = map[uint64]*mover{}
		}
		t = new(mover)
		m.threads[key] = t
	}
	return t
}

// movesMax bounds the pairs of finding and call site.
const movesMax = 1 << 16

// entryOfMove returns the entry of a finding and call site, nil if there are too many.
func (m *moves) entryOfMove(kind TransferKind, key moveKey) *move {
	key.kind = kind
	f := m.found[key]
	if f == nil {
		if len(m.found) == movesMax {
			return nil
		}
		if m.found == nil {
			m.found = map[moveKey]*move{}
		}
		f = new(move)
		m.found[key] = f
	}
	return f
}

func (m *moves) countMove(kind TransferKind, key moveKey, u wire.UseView) *move {
	f := m.entryOfMove(kind, key)
	if f == nil {
		return nil
	}
	f.count++
	f.bytes += u.Bytes()
	f.ns += uint64(u.Duration())
	f.busy.addCall(u.Time(), u.Time()+uint64(u.Duration()))
	return f
}

// countHostCopies follows buffers that began as copies of host memory.
func (m *moves) countHostCopies(p *heap.Process, o *heap.Object, sign int64) {
	if o.Access&wire.CopyHostPtr == 0 || !o.Owns || o.Size < copyHostLeast {
		return
	}
	if m.copies == nil {
		m.copies = map[uint64]copied{}
	}
	key := streamNumber(p.Number, o.Tag)
	c := m.copies[key]
	c.buffers, c.bytes = c.buffers+sign, c.bytes+sign*int64(o.Size)
	m.copies[key] = c
	if m.held += sign * int64(o.Size); m.held > m.most {
		m.most = m.held
		if c.bytes >= m.copies[m.mostOf].bytes {
			m.mostOf = key
		}
		m.mostHere = m.copies[m.mostOf]
	}
}
