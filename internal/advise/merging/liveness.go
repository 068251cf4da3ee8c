package merging

import (
	"cmp"
	"slices"
)

// Life is when a root existed, and when it had contents. Steps are numbers in the program; First, Last and Done are
// None for a buffer that was never used.
type Life struct {
	Created, End int // [Created, End): until the buffer and all its sub-buffers are released, or the run ends
	First, Last  int // uses of the buffer or its sub-buffers
	Done         int // when all its uses are known to have completed
	// Contents follow one another: each begins where commands certainly overwrite the whole buffer.
	Contents []Content
}

// Content is what a buffer held from one full overwrite to the next.
type Content struct {
	First, Last int // uses
	Done        int
	begin, end  int // indices of the root's touches
}

func (a *Analysis) findLives() {
	p := a.Program
	a.Lives = make([]Life, len(p.Buffers))
	for i := range p.Buffers {
		b := &p.Buffers[i]
		end := b.Released
		if end == None {
			end = len(p.Steps)
		}
		a.Lives[i] = Life{Created: b.Created, End: end, First: None, Last: None, Done: None}
		root := &a.Lives[a.roots[i].root]
		root.End = max(root.End, end)
	}
	for i := range p.Buffers {
		if a.isRoot(i) {
			a.findLife(i)
		}
	}
}

func (a *Analysis) findLife(root int) {
	l := &a.Lives[root]
	touches := a.touchesOf(root)
	if len(touches) == 0 {
		return
	}
	l.Contents = a.splitContents(root)
	l.First = l.Contents[0].First
	for _, c := range l.Contents {
		l.Last = max(l.Last, c.Last)
		l.Done = max(l.Done, c.Done)
	}
	l.End = max(l.End, l.Last+1) // a use after the release keeps the memory alive
}

// splitContents splits a root's touches into contents. Writes in a row that together cover the whole buffer count as one
// overwrite: the old content is dead from the first of them on.
func (a *Analysis) splitContents(root int) []Content {
	touches := a.touchesOf(root)
	size := a.Program.Buffers[root].Size
	var found []Content
	begin := 0
	var run cover
	open := int32(None) // last step of an open map
	for i := range touches {
		t := &touches[i]
		if t.certain && t.writes && !t.reads && t.step > open {
			run.addWrite(i, t)
		} else {
			run = cover{}
		}
		if run.coversWhole(size) && run.first > begin {
			found = append(found, a.contentBetween(root, begin, run.first))
			begin = run.first
		}
		open = max(open, t.until)
	}
	return append(found, a.contentBetween(root, begin, len(touches)))
}

func (a *Analysis) contentBetween(root, begin, end int) Content {
	touches := a.touchesOf(root)[begin:end]
	c := Content{First: int(touches[0].step), Last: None, Done: None, begin: begin, end: end}
	for i := range touches {
		last := int(touches[i].until)
		c.Last = max(c.Last, min(last, len(a.Program.Steps)-1))
		c.Done = max(c.Done, a.stepKnownCompleted(int(touches[i].step)), min(last+1, len(a.Program.Steps)))
	}
	return c
}

// cover is the range that writes in a row have covered without a gap.
type cover struct {
	started bool
	first   int
	lo, hi  uint64
}

// addWrite adds a write. A write that leaves a gap starts a new range.
func (c *cover) addWrite(i int, t *touch) {
	if !c.started || t.lo > c.hi || t.hi < c.lo {
		*c = cover{started: true, first: i, lo: t.lo, hi: t.hi}
	}
	c.lo, c.hi = min(c.lo, t.lo), max(c.hi, t.hi)
}

func (c *cover) coversWhole(size uint64) bool { return c.started && c.lo == 0 && c.hi == size }

// Form says when two buffers interfere.
type Form uint8

// The forms, from what the program did to what it had to do.
const (
	API        Form = iota // both were created and not released
	Completion             // from the first use until the last is known to have completed
	Uses                   // from the first use to the last, in the order of the calls; for a single in-order queue
)

var forms = [...]string{"api", "completion", "uses"}

// String returns the word for a form.
func (f Form) String() string { return forms[min(int(f), len(forms)-1)] }

// Span is the steps [From, To).
type Span struct{ From, To int }

// Lifetimes are the spans of roots, in one form: sorted, disjoint, with gaps between them. Sub-buffers have none;
// unused buffers have one only for API. Two buffers interfere if spans of theirs overlap, so no graph is necessary.
type Lifetimes struct {
	Form  Form
	Spans [][]Span // by buffer
	sizes []uint64
	class []uint32
}

// Lifetimes returns all lifetimes in one form. For Uses and Completion a buffer has one span per content.
func (a *Analysis) Lifetimes(form Form) *Lifetimes {
	buffers := a.Program.Buffers
	l := &Lifetimes{Form: form, Spans: make([][]Span, len(buffers))}
	var room []Span // shared by all buffers
	for i := range buffers {
		l.sizes = append(l.sizes, buffers[i].Size)
		l.class = append(l.class, buffers[i].Class)
		if !a.isRoot(i) {
			continue
		}
		start := len(room)
		room = a.appendSpans(room, &a.Lives[i], form)
		l.Spans[i] = room[start:len(room):len(room)]
	}
	return l
}

func (a *Analysis) appendSpans(room []Span, life *Life, form Form) []Span {
	if form == API {
		if life.Created < life.End {
			room = append(room, Span{life.Created, life.End})
		}
		return room
	}
	start := len(room)
	for _, c := range life.Contents {
		s := Span{c.First, c.Last + 1}
		if form == Completion {
			s.To = max(s.To, c.Done)
		}
		room = appendSpan(room, start, s)
	}
	return room
}

// appendSpan appends a span, or extends the last one if both meet. Spans before start belong to other buffers.
func appendSpan(room []Span, start int, s Span) []Span {
	if n := len(room); n > start && room[n-1].To >= s.From {
		room[n-1].To = max(room[n-1].To, s.To)
		return room
	}
	return append(room, s)
}

// haveOverlap reports whether two sorted lists of spans have a step in common.
func haveOverlap(x, y []Span) bool {
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0].To <= y[0].From:
			x = x[1:]
		case y[0].To <= x[0].From:
			y = y[1:]
		default:
			return true
		}
	}
	return false
}

// edge is the begin or the end of a span.
type edge struct {
	step   int
	buffer int32
	begins bool
}

// spanEdges returns all begins and ends. At one step the ends come first.
func (l *Lifetimes) spanEdges() []edge {
	var edges []edge
	for i, spans := range l.Spans {
		for _, s := range spans {
			edges = append(edges, edge{s.From, int32(i), true}, edge{s.To, int32(i), false})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if c := cmp.Compare(a.step, b.step); c != 0 || a.begins == b.begins {
			return cmp.Or(c, cmp.Compare(a.buffer, b.buffer))
		}
		if a.begins {
			return 1
		}
		return -1
	})
	return edges
}

// Bound is a lower bound for all groupings: what was live at one time, summed over classes, which share nothing.
type Bound struct {
	Bytes  uint64
	Blocks int
}

// LowerBound returns the lower bound of these lifetimes.
func (l *Lifetimes) LowerBound() Bound {
	type load struct {
		bytes, peak   uint64
		blocks, count int
	}
	loads := map[uint32]*load{}
	for _, e := range l.spanEdges() {
		class := loads[l.class[e.buffer]]
		if class == nil {
			class = &load{}
			loads[l.class[e.buffer]] = class
		}
		if !e.begins {
			class.bytes -= l.sizes[e.buffer]
			class.blocks--
			continue
		}
		class.bytes += l.sizes[e.buffer]
		class.blocks++
		class.peak, class.count = max(class.peak, class.bytes), max(class.count, class.blocks)
	}
	var b Bound
	for _, class := range loads {
		b.Bytes += class.peak
		b.Blocks += class.count
	}
	return b
}

// Peak returns the most bytes that were live at one time, of all classes, and the first step at which they were.
func (l *Lifetimes) Peak() (bytes uint64, step int) {
	var now uint64
	for _, e := range l.spanEdges() {
		if !e.begins {
			now -= l.sizes[e.buffer]
			continue
		}
		now += l.sizes[e.buffer]
		if now > bytes {
			bytes, step = now, e.step
		}
	}
	return bytes, step
}
