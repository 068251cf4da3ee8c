package export

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is a decoded message: the values of each field, by the numbers in Perfetto's .proto files.
type message map[protowire.Number][]field

type field struct {
	n     uint64 // of a varint or fixed number
	bytes []byte
}

func (m message) number(at protowire.Number) uint64 {
	if len(m[at]) == 0 {
		return 0
	}
	return m[at][len(m[at])-1].n
}

func (m message) text(at protowire.Number) string {
	if len(m[at]) == 0 {
		return ""
	}
	return string(m[at][0].bytes)
}

func (m message) has(at protowire.Number) bool { return len(m[at]) > 0 }

func decode(t testing.TB, b []byte) message {
	t.Helper()
	m := message{}
	for len(b) > 0 {
		at, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			t.Fatalf("no tag: %x", b)
		}
		b = b[size:]
		var f field
		switch kind {
		case protowire.VarintType:
			f.n, size = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.n, size = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			f.bytes, size = protowire.ConsumeBytes(b)
		default:
			size = -1
		}
		if size < 0 {
			t.Fatalf("field %d: no value: %x", at, b)
		}
		m[at], b = append(m[at], f), b[size:]
	}
	return m
}

// moment is an event of a trace as its reader sees it.
type moment struct {
	ns     uint64
	kind   uint64 // 1 begins a slice, 2 ends one, 3 is a moment, 4 a counter
	track  uint64
	name   string
	stack  []string // innermost first
	flows  []uint64
	args   map[string]string
	value  float64
	number uint64
}

// perfettoTrace is what a reader makes of a trace.
type perfettoTrace struct {
	t        testing.TB
	interned map[protowire.Number]map[uint64]message
	tracks   map[uint64]message
	clock    uint64
	fallback uint64 // track of events that name none
	events   []moment
}

// readPerfetto decodes a trace. What is used before it is defined fails the test.
func readPerfetto(t testing.TB, b []byte) *perfettoTrace {
	t.Helper()
	p := &perfettoTrace{t: t, interned: map[protowire.Number]map[uint64]message{}, tracks: map[uint64]message{}}
	for i, packet := range decode(t, b)[1] {
		m := decode(t, packet.bytes)
		if m.number(10) != 1 {
			t.Fatalf("packet %d is of sequence %d", i, m.number(10))
		}
		if first := m.number(13) == 1 && m.number(87) == 1; first != (i == 0) {
			t.Errorf("packet %d: flags %v", i, m)
		}
		p.packet(m)
	}
	return p
}

func (p *perfettoTrace) packet(m message) {
	p.t.Helper()
	switch {
	case m.has(59):
		defaults := decode(p.t, m[59][0].bytes)
		if p.fallback = decode(p.t, defaults[11][0].bytes).number(11); defaults.number(58) != 64 {
			p.t.Errorf("the clock of packets is %d", defaults.number(58))
		}
	case m.has(6):
		if clocks := decode(p.t, m[6][0].bytes)[1]; len(clocks) != 3 || decode(p.t, clocks[1].bytes).number(3) != 1 {
			p.t.Errorf("clocks %v", clocks)
		}
	case m.has(60):
		track := decode(p.t, m[60][0].bytes)
		if parent := track.number(5); parent != 0 && p.tracks[parent] == nil {
			p.t.Errorf("track %d: no parent %d", track.number(1), parent)
		}
		p.tracks[track.number(1)] = track
	case m.has(12):
		for kind, list := range decode(p.t, m[12][0].bytes) {
			for _, f := range list {
				p.intern(kind, decode(p.t, f.bytes))
			}
		}
	case m.has(11):
		p.event(m)
	default:
		p.t.Errorf("unknown packet %v", m)
	}
}

// intern takes a definition, which may refer only to what is defined.
func (p *perfettoTrace) intern(kind protowire.Number, m message) {
	p.t.Helper()
	if p.interned[kind] == nil {
		p.interned[kind] = map[uint64]message{}
	}
	if p.interned[kind][m.number(1)] != nil || m.number(1) == 0 {
		p.t.Errorf("kind %d: %d is defined twice, or 0", kind, m.number(1))
	}
	p.interned[kind][m.number(1)] = m
	refers := func(to, at protowire.Number) {
		for _, f := range m[at] {
			p.look(to, f.n)
		}
	}
	switch kind {
	case 6:
		refers(5, 2)
		refers(19, 3)
		refers(18, 5)
	case 7:
		refers(6, 2)
	case 19:
		refers(17, 7)
	}
}

func (p *perfettoTrace) look(kind protowire.Number, id uint64) message {
	p.t.Helper()
	m := p.interned[kind][id]
	if m == nil {
		p.t.Errorf("kind %d: %d is used, not defined", kind, id)
	}
	return m
}

func (p *perfettoTrace) event(packet message) {
	p.t.Helper()
	e := decode(p.t, packet[11][0].bytes)
	m := moment{kind: e.number(9), track: p.fallback, args: map[string]string{}, number: e.number(30), ns: packet.number(8)}
	if !packet.has(58) {
		m.ns += p.clock
		p.clock = m.ns
	}
	if e.has(11) {
		m.track = e.number(11)
	}
	if track := p.tracks[m.track]; track == nil || track.has(8) != (m.kind == 4) {
		p.t.Errorf("event %v is on no track for it: %v", e, track)
	}
	if e.has(10) {
		m.name = p.look(2, e.number(10)).text(2)
	}
	for _, category := range e[3] {
		p.look(1, category.n)
	}
	m.value = math.Float64frombits(e.number(44))
	for _, f := range slices.Concat(e[47], e[48]) {
		m.flows = append(m.flows, f.n)
	}
	for _, note := range e[4] {
		a := decode(p.t, note.bytes)
		m.args[p.look(3, a.number(1)).text(2)] = argument(a)
	}
	if e.has(56) {
		for _, f := range slices.Backward(p.look(7, e.number(56))[2]) {
			m.stack = append(m.stack, p.look(5, p.look(6, f.n).number(2)).text(2))
		}
	}
	p.events = append(p.events, m)
}

func argument(a message) string {
	switch {
	case a.has(6):
		return a.text(6)
	case a.has(5):
		return fmt.Sprint(math.Float64frombits(a.number(5)))
	case a.has(4):
		return fmt.Sprint(int64(a.number(4)))
	}
	return fmt.Sprint(a.number(2) + a.number(3))
}

// named returns the name of a track.
func (p *perfettoTrace) named(track uint64) string {
	m := p.tracks[track]
	switch {
	case m.has(3):
		return "process " + decode(p.t, m[3][0].bytes).text(6)
	case m.has(4):
		return "thread " + decode(p.t, m[4][0].bytes).text(5)
	}
	return m.text(2)
}

// slices checks that slices nest on each track, in the order of their times, and that each ends.
func (p *perfettoTrace) slices() {
	p.t.Helper()
	sorted := slices.Clone(p.events)
	slices.SortStableFunc(sorted, func(a, b moment) int { return int(int64(a.ns) - int64(b.ns)) })
	open := map[uint64]int{}
	for _, e := range sorted {
		switch e.kind {
		case 1:
			if open[e.track]++; open[e.track] > 1 && !p.tracks[e.track].has(4) {
				p.t.Errorf("two lifetimes at once on the track %q, at %d", p.named(e.track), e.ns)
			}
		case 2:
			if open[e.track]--; open[e.track] < 0 {
				p.t.Errorf("a slice on the track %q ends at %d that did not begin", p.named(e.track), e.ns)
			}
		}
	}
	for track, n := range open {
		if n != 0 {
			p.t.Errorf("%d slices on the track %q have no end", n, p.named(track))
		}
	}
}

// peak returns the most that the counters of memory in use add up to.
func (p *perfettoTrace) peak() (most uint64) {
	last, sum := map[uint64]uint64{}, uint64(0)
	for _, e := range p.events {
		if e.kind == 4 && p.named(e.track) == "mem in use" {
			sum += e.number - last[e.track]
			last[e.track] = e.number
			most = max(most, sum)
		}
	}
	return most
}
