package merging

import (
	"cmp"
	"slices"
)

// Form says when two buffers are in each other's way.
type Form uint8

// The forms, from what the program did to what it had to do.
const (
	API        Form = iota // both were created and not released
	Completion             // from the first use until the last is known to have completed
	Uses                   // from the first use to the last, in the order of the calls: for one in-order queue
)

var forms = [...]string{"api", "completion", "uses"}

// String returns the word for a form.
func (f Form) String() string { return forms[min(int(f), len(forms)-1)] }

// Span is the steps [From, To).
type Span struct{ From, To int }

// Lifetimes are the spans of buffers with memory of their own, in one form: sorted, disjoint, with gaps between them.
// A buffer that is a part or, but for API, was never used has none. Two interfere when spans of theirs overlap, so that
// no graph needs to be held.
type Lifetimes struct {
	Form  Form
	Spans [][]Span // by buffer
	sizes []uint64
	class []uint32
}

// Lifetimes returns all lifetimes in one form. Those by use have one span for each content.
func (a *Analysis) Lifetimes(form Form) *Lifetimes {
	buffers := a.Program.Buffers
	l := &Lifetimes{Form: form, Spans: make([][]Span, len(buffers))}
	var room []Span // of many buffers
	for i := range buffers {
		l.sizes = append(l.sizes, buffers[i].Size)
		l.class = append(l.class, buffers[i].Class)
		if !a.root(i) {
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
		if n := len(room); n > start && room[n-1].To >= s.From {
			room[n-1].To = max(room[n-1].To, s.To)
			continue
		}
		room = append(room, s)
	}
	return room
}

// Interfere reports whether two buffers do.
func (l *Lifetimes) Interfere(x, y int) bool { return x != y && overlap(l.Spans[x], l.Spans[y]) }

// overlap reports whether two sorted lists of spans have a step in common.
func overlap(x, y []Span) bool {
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

// edge is where a span begins or ends.
type edge struct {
	step   int
	buffer int32
	begins bool
}

// edges returns all begins and ends; at one step the ends come first.
func (l *Lifetimes) edges() []edge {
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

// Sweep calls visit for pairs that interfere, from the first step to the last, until it returns false. A pair whose
// spans overlap more than once comes as often. It holds what is live, not the pairs.
func (l *Lifetimes) Sweep(visit func(x, y int) bool) {
	at := make([]int32, len(l.Spans)) // in live
	var live []int32
	for _, e := range l.edges() {
		if e.begins {
			for _, other := range live {
				if !visit(int(other), int(e.buffer)) {
					return
				}
			}
			at[e.buffer] = int32(len(live))
			live = append(live, e.buffer)
			continue
		}
		last := live[len(live)-1]
		live[at[e.buffer]], at[last] = last, at[e.buffer]
		live = live[:len(live)-1]
	}
}

// Bound is what no plan can go below: what was live at once, added up over classes, which share nothing.
type Bound struct {
	Bytes  uint64
	Blocks int
}

// Bound returns the lower bound of these lifetimes.
func (l *Lifetimes) Bound() Bound {
	type load struct {
		bytes, peak   uint64
		blocks, count int
	}
	loads := map[uint32]*load{}
	for _, e := range l.edges() {
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

// Peak returns the most bytes live at once, of all classes, and the step at which that was first so.
func (l *Lifetimes) Peak() (bytes uint64, step int) {
	var now uint64
	for _, e := range l.edges() {
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
