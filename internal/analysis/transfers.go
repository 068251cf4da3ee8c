package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Thresholds of findings about transfers.
const (
	movesLeast    = 4        // fewer may be a start
	moveShare     = 0.05     // of the bytes that went the same way
	smallMost     = 16 << 10 // bytes: what a call costs is more than what such a transfer does
	smallRun      = 8        // neighbours in a row
	smallLeast    = 32       // calls in such rows
	roundsLeast   = 16       // blocking reads with a kernel before each
	blockingShare = 0.1      // of the run, waiting in them
	coldShare     = 0.5      // of the pages looked at
	copyHostLeast = 1 << 20  // bytes
	copyHostShare = 0.1      // of the peak
)

// TransferKind is what is wrong with transfers.
type TransferKind string

// The kinds of findings about transfers.
const (
	Rewritten TransferKind = "same bytes written again"
	ReadBack  TransferKind = "read back what was just written"
	Unchanged TransferKind = "read of what the device never changed"
	Copied    TransferKind = "copy on unified memory where a map would do"
	SecondOne TransferKind = "COPY_HOST_PTR keeps a second copy"
	ColdRead  TransferKind = "cold readback"
	Small     TransferKind = "many small transfers that could be one"
	Blocking  TransferKind = "blocking read inside the loop"
)

// TransferFinding is transfers of one call site that could go or be faster.
type TransferFinding struct {
	Kind    TransferKind `json:"finding"`
	Name    string       `json:"site"`
	Stack   []string     `json:"stack"` // innermost first
	Count   uint64       `json:"calls"`
	Bytes   uint64       `json:"bytes"`
	NS      uint64       `json:"ns"`      // in these calls, where they block; 0: unknown
	Share   float64      `json:"share"`   // of the run, or of the bytes that went the same way
	Advice  string       `json:"advice"`  // what to do
	Certain bool         `json:"certain"` // false: samples of the bytes were equal
}

var transferAdvice = map[TransferKind]string{
	Rewritten: "write only what has changed",
	ReadBack:  "keep the bytes on the host",
	Unchanged: "keep what the last read returned, or what the buffer was made of",
	Copied:    "create the buffer with CL_MEM_ALLOC_HOST_PTR or CL_MEM_USE_HOST_PTR and map it",
	SecondOne: "free the source, or create with CL_MEM_USE_HOST_PTR, or with CL_MEM_ALLOC_HOST_PTR and fill through a map",
	ColdRead:  "read into memory that is kept, or mapped, instead of allocated for each read",
	Small:     "collect the bytes on the host, or use a Rect command",
	Blocking:  "read without blocking and look at the event one iteration later, or read less often",
}

// moves follows what buffers contain as far as host and commands say, and finds transfers that could go.
type moves struct {
	sides    stats.Sides
	contents []contents // by the places of objects
	epoch    uint64     // raised by commands that may use any memory
	found    map[moveKey]*move
	threads  map[uint64]*mover
	copies   map[uint64]int64 // bytes in buffers that began as copies, by process and tag
	held     int64            // in all of these
	most     int64            // of held
	mostOf   uint64           // which of copies had most then
}

type moveKey struct {
	kind    TransferKind
	process uint32
	tag     uint32
}

type move struct {
	count, bytes, ns uint64
	sampled          bool
	warm             stats.Flow // of ColdRead: reads into warm memory
}

// mover is a thread that moves memory.
type mover struct {
	run, runBytes, runNS uint64
	key                  moveKey
	command              wire.Command
	object, end          uint64
	launched             bool // a kernel, since its last blocking read
}

// span is bytes of an object.
type span struct{ from, to uint64 }

func (s span) holds(o span) bool { return o.from >= s.from && o.to <= s.to && o.to > o.from }

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

func (c *contents) changed() { c.wrote, c.read, c.initial, c.hashed = span{}, span{}, false, 0 }

// of returns what is known of an object, nil if others may change it.
func (m *moves) of(p *heap.Process, o *heap.Object) *contents {
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
		c.changed()
		c.epoch = m.epoch
	}
	return c
}

// see takes a record before the heap does.
func (m *moves) see(p *heap.Process, r *wire.Record) {
	switch r.Kind {
	case wire.KindTransfer:
		m.sides.Note(r)
	case wire.KindUse:
		if p != nil {
			m.use(p, r)
		}
	case wire.KindLost:
		m.epoch++
	default:
	}
}

func (m *moves) use(p *heap.Process, r *wire.Record) {
	u, thread := r.AsUse(), m.thread(r)
	o := p.Object(u.Object())
	if o == nil {
		if u.Object() == 0 {
			m.epoch++
		}
		return
	}
	key := moveKey{process: r.Process, tag: u.Tag()}
	if more, known := m.sides.Of(r); known {
		key.tag = more.Site()
		m.cold(key, u, more)
	}
	m.neighbours(thread, key, u)
	m.waits(thread, key, u)
	if u.Command() == wire.CommandRead || u.Command() == wire.CommandWrite {
		m.add(Copied, key, u)
	}
	m.follow(p, o, key, r)
}

// follow compares a command with what the object contains.
func (m *moves) follow(p *heap.Process, o *heap.Object, key moveKey, r *wire.Record) {
	u, c := r.AsUse(), m.of(p, o)
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
			m.forget(p, parent)
		}
		c.changed()
	case u.Command() == wire.CommandWrite:
		m.written(c, at, key, r)
	case u.Command() == wire.CommandRead:
		m.readAgain(c, at, key, u)
	case u.Command() == wire.CommandMap:
		if u.Writes() {
			c.mapped = true
			c.changed()
		}
	case u.Command() == wire.CommandUnmap:
		if c.mapped {
			c.changed()
		}
		c.mapped = false
	case u.Command() == wire.CommandMigrate, u.Reads() && !u.Writes():
	default:
		c.changed()
	}
}

func (m *moves) forget(p *heap.Process, o *heap.Object) {
	if o == nil {
		return
	}
	if c := m.of(p, o); c != nil {
		c.changed()
	}
}

func (m *moves) written(c *contents, at span, key moveKey, r *wire.Record) {
	more, known := m.sides.Of(r)
	hashed := known && more.Hashed() > 0 && at.to > 0
	if hashed && c.wrote == at && c.hashed == more.Hashed() && c.hash == more.Hash() {
		if f := m.add(Rewritten, key, r.AsUse()); f != nil {
			f.sampled = f.sampled || more.Hashed() < r.AsUse().Bytes()
		}
	}
	c.changed()
	c.wrote = at
	if hashed {
		c.hash, c.hashed = more.Hash(), more.Hashed()
	}
}

func (m *moves) readAgain(c *contents, at span, key moveKey, u wire.UseView) {
	switch {
	case c.mapped:
		return
	case c.read.holds(at), c.initial:
		m.add(Unchanged, key, u)
	case c.wrote.holds(at):
		m.add(ReadBack, key, u)
	}
	if !c.read.holds(at) {
		c.read = at
	}
}

// cold counts reads whose host pages were looked at.
func (m *moves) cold(key moveKey, u wire.UseView, more wire.TransferView) {
	if more.Pages() == 0 || u.Command() != wire.CommandRead {
		return
	}
	if float64(more.Cold()) >= coldShare*float64(more.Pages()) {
		m.add(ColdRead, key, u)
	} else if f := m.get(ColdRead, key); f != nil {
		f.warm.Add(&stats.Flow{TimedBytes: u.Bytes(), NS: uint64(u.Duration())})
	}
}

// neighbours counts small transfers that go on where the thread's last command ended.
func (m *moves) neighbours(t *mover, key moveKey, u wire.UseView) {
	small := (u.Command() == wire.CommandRead || u.Command() == wire.CommandWrite) && u.Bytes() > 0 && u.Bytes() <= smallMost && !u.Scattered()
	if t.run > 0 && (!small || u.Object() != t.object || u.Command() != t.command || u.Offset() != t.end) {
		m.endRun(t)
	}
	if !small {
		return
	}
	key.kind = Small
	t.key, t.command, t.object, t.end = key, u.Command(), u.Object(), u.Offset()+u.Bytes()
	t.run++
	t.runBytes += u.Bytes()
	t.runNS += uint64(u.Duration())
}

func (m *moves) endRun(t *mover) {
	if t.run >= smallRun {
		if f := m.get(Small, t.key); f != nil {
			f.count += t.run
			f.bytes += t.runBytes
			f.ns += t.runNS
		}
	}
	t.run, t.runBytes, t.runNS = 0, 0, 0
}

// waits counts blocking reads behind a kernel of the same thread.
func (m *moves) waits(t *mover, key moveKey, u wire.UseView) {
	switch {
	case u.Command() == wire.CommandKernel:
		t.launched = true
	case u.Command() == wire.CommandRead && u.Duration() > 0 && t.launched:
		t.launched = false
		m.add(Blocking, key, u)
	}
}

func (m *moves) thread(r *wire.Record) *mover {
	key := streamOf(r.Process, r.Thread)
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

// get returns the entry of a finding and call site, nil if there are too many.
func (m *moves) get(kind TransferKind, key moveKey) *move {
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

func (m *moves) add(kind TransferKind, key moveKey, u wire.UseView) *move {
	f := m.get(kind, key)
	if f == nil {
		return nil
	}
	f.count++
	f.bytes += u.Bytes()
	f.ns += uint64(u.Duration())
	return f
}

// hold follows buffers that began as copies of host memory.
func (m *moves) hold(p *heap.Process, o *heap.Object, sign int64) {
	if o.Access&wire.CopyHostPtr == 0 || !o.Owns || o.Size < copyHostLeast {
		return
	}
	if m.copies == nil {
		m.copies = map[uint64]int64{}
	}
	key := streamOf(p.Number, o.Tag)
	m.copies[key] += sign * int64(o.Size)
	m.held += sign * int64(o.Size)
	if m.held > m.most {
		m.most = m.held
		if m.copies[key] >= m.copies[m.mostOf] {
			m.mostOf = key
		}
	}
}

// transfers returns the findings that matter, the largest share first.
func (x *run) transfers(a *Analysis) []TransferFinding {
	m := &x.moves
	for _, t := range m.threads {
		m.endRun(t)
	}
	unified := x.snapshot.Transfers.Unified
	rows := map[moveKey]*TransferFinding{}
	names := map[string]int{}
	warm := map[*TransferFinding]*stats.Flow{}
	sum := func(kind TransferKind, process, tag uint32, f *move) {
		site := x.survey.names.Process(process).Site(tag)
		if _, known := names[site.Name]; !known {
			names[site.Name] = len(names)
		}
		key := moveKey{kind: kind, tag: uint32(names[site.Name])}
		row := rows[key]
		if row == nil {
			row = &TransferFinding{Kind: kind, Name: site.Name, Stack: site.Stack, Advice: transferAdvice[kind], Certain: true}
			rows[key], warm[row] = row, &stats.Flow{}
		}
		row.Count += f.count
		row.Bytes += f.bytes
		row.NS += f.ns
		row.Certain = row.Certain && !f.sampled
		warm[row].Add(&f.warm)
	}
	for key, f := range m.found {
		if key.kind != Copied || unified {
			sum(key.kind, key.process, key.tag, f)
		}
	}
	if unified && m.most > 0 && float64(m.most) >= copyHostShare*float64(a.Peak.InUse) {
		sum(SecondOne, uint32(m.mostOf>>32), uint32(m.mostOf), &move{count: 1, bytes: uint64(m.most)})
	}
	var list []TransferFinding
	for _, row := range rows {
		if x.weigh(row, a) {
			if w := warm[row]; row.Kind == ColdRead && w.NS > 0 && row.NS > 0 {
				row.Advice = fmt.Sprintf("%s (%.1f GB/s, into warm memory %.1f)", row.Advice, float64(row.Bytes)/float64(row.NS), w.Rate()/1e9)
			}
			list = append(list, *row)
		}
	}
	slices.SortFunc(list, func(a, b TransferFinding) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// weigh sets the share of a finding, and reports whether it is worth a line.
func (x *run) weigh(f *TransferFinding, a *Analysis) bool {
	all := &x.snapshot.Transfers.Directions
	inTime := share(f.NS, x.length())
	switch f.Kind {
	case SecondOne:
		f.Share = share(f.Bytes, a.Peak.InUse)
		return true
	case Blocking:
		f.Share = inTime
		return f.Count >= roundsLeast && f.Share >= blockingShare
	case Small:
		f.Share = max(inTime, share(f.Count, all[stats.ToDevice].Calls+all[stats.ToHost].Calls))
		return f.Count >= smallLeast && f.Share >= moveShare
	case Copied: // much of the time may be waiting for other commands: at most 1 ns per byte counts
		f.Share = share(min(f.NS, f.Bytes), x.length())
		return f.Count >= movesLeast && f.Share >= moveShare
	case ColdRead:
		f.Share = inTime
		return f.Count >= movesLeast && (f.Share >= driverShare || f.NS == 0)
	}
	way := &all[stats.ToHost]
	if f.Kind == Rewritten {
		way = &all[stats.ToDevice]
	}
	ofBytes := share(f.Bytes, way.Bytes)
	f.Share = max(min(inTime, ofBytes), moveShare*ofBytes)
	return f.Count >= movesLeast && f.Bytes >= bytesLeast && ofBytes >= moveShare
}

// transferRule returns the rule for one kind of finding about transfers: its largest site.
func transferRule(kind TransferKind) func(*run, *Analysis) (Diagnosis, bool) {
	return func(x *run, a *Analysis) (Diagnosis, bool) {
		at := slices.IndexFunc(a.Transfers, func(f TransferFinding) bool { return f.Kind == kind })
		if at < 0 {
			return Diagnosis{}, false
		}
		f := &a.Transfers[at]
		d := Diagnosis{Severity: Advice, Title: string(kind), Tag: f.Name, Share: f.Share, Text: f.text()}
		if kind != Copied && kind != SecondOne && kind != ColdRead {
			x.doubt(&d, "commands in between", string(kind)+", perhaps")
		}
		return d, true
	}
}

// text says what was found, and what to do.
func (f *TransferFinding) text() string {
	what := fmt.Sprintf("%s of %s", units.Count(f.Count, "call"), units.FormatLong(f.Bytes))
	if f.Kind == SecondOne {
		what = units.FormatLong(f.Bytes) + " at most, in memory that host and device share"
	}
	if f.NS > 0 {
		what += fmt.Sprintf(", %s", units.Duration(f.NS))
	}
	if !f.Certain {
		what += ", as far as samples of the bytes show (--hash-writes is certain)"
	}
	return fmt.Sprintf("%s at %s: %s", what, f.Name, f.Advice)
}
