package calls_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
)

// tags is a Tagger whose call sites are the addresses of callers.
type tags struct{ asked int }

const unknownTag = 99

func (t *tags) Tag(s *wire.Sample, _ uint64) uint32 { t.asked++; return uint32(s.Ip) }
func (t *tags) SiteTag(s *wire.Sample) uint32       { return uint32(s.Ip) }
func (t *tags) UnknownTag() uint32                  { return unknownTag }

// numbers are the numbers of functions, by name.
var numbers = func() map[string]uint16 {
	m := map[string]uint16{}
	for i := range calls.Functions {
		m[calls.Functions[i].Name] = uint16(i)
	}
	return m
}()

// sampler makes samples as the eBPF program does. Each call takes 10 ns, and they are 10 ns apart.
type sampler struct {
	t       testing.TB
	tracker *calls.Tracker
	tags    tags
	records []wire.Record
	objects []wire.Record // counts of objects
	now     uint64
	tid     uint32
	called  map[string]bool
}

func newSampler(tb testing.TB) *sampler {
	tb.Helper()
	p := &sampler{t: tb, now: 1000, tid: 7, called: map[string]bool{}}
	p.tracker = calls.NewTracker(&p.tags, func(r *wire.Record) {
		kept := *r
		kept.Payload = slices.Clone(r.Payload)
		if r.Kind == wire.KindObject {
			p.objects = append(p.objects, kept)
			return
		}
		p.records = append(p.records, kept)
	})
	return p
}

// newFromStart returns a sampler of a program that is watched from its first call on.
func newFromStart(tb testing.TB) *sampler {
	tb.Helper()
	p := newSampler(tb)
	p.tracker.NoteSeenFromStart()
	return p
}

// call is a call with its copies. The result of calls that are reported at their entry is ignored.
type call struct {
	name    string
	args    []uint64
	result  uint64
	err     int32
	entered uint64 // 0: 10 ns before its return
	from    uint64 // call site; 0: 5
	event   uint64 // that the call returned
	copies  [2][]byte
}

func (c *call) sample(tb testing.TB, now uint64, tid uint32) *wire.Sample {
	tb.Helper()
	number, ok := numbers[c.name]
	if !ok {
		tb.Fatalf("%s is not in the table", c.name)
	}
	s := &wire.Sample{Call: wire.Call{Time: now, Entered: now, Pid: 1, Tid: tid, Function: number, Ip: 5}}
	if c.from != 0 {
		s.Ip = c.from
	}
	shape := calls.Functions[number].Shape
	if shape.Flags&wire.ShapeReturn != 0 {
		s.Entered, s.Result, s.Error, s.Event = now-10, c.result, c.err, c.event
		if c.entered != 0 {
			s.Entered = c.entered
		}
	}
	copy(s.Argument[:], c.args)
	for i, copied := range c.copies {
		if copied == nil {
			continue
		}
		if shape.Copy[i].Argument == 0 {
			tb.Fatalf("%s has no copy %d", c.name, i)
		}
		if s.Copies == nil {
			s.Copies = make([]byte, wire.CallData)
		}
		copy(s.Copies[i*wire.CallData/wire.CallCopies:(i+1)*wire.CallData/wire.CallCopies], copied)
		s.Copied[i] = 1
	}
	return s
}

func (p *sampler) do(c call) {
	p.t.Helper()
	p.now += 20
	p.called[c.name] = true
	p.tracker.HandleCall(c.sample(p.t, p.now, p.tid))
	if err := p.tracker.Check(); err != nil {
		p.t.Fatal(err)
	}
}

// call makes a call without copies.
func (p *sampler) call(name string, result uint64, args ...uint64) {
	p.t.Helper()
	p.do(call{name: name, args: args, result: result})
}

func words(list ...uint64) (b []byte) {
	for _, v := range list {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func format(order, channel uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, order), channel)
}

// desc makes a cl_image_desc: type, width, height, depth, array size, row and slice pitch, memory.
func desc(kind, width, height, depth, array, row, slice, memory uint64) []byte {
	return words(kind, width, height, depth, array, row, slice, 0, memory)
}

// code returns a status as in a register.
func code(err int32) uint64 { return uint64(uint32(err)) }

// Handles of a program after setUp.
const (
	ctx   = 0x1000
	queue = 0x2000
	buf   = 0x3000 // and so on, in steps of 0x100
	kern  = 0x4000
)

// setUp creates a context, a queue and a kernel, and drops their records.
func (p *sampler) setUp() {
	p.call("clCreateContext", ctx)
	p.call("clCreateCommandQueue", queue, ctx, 0x1, 0)
	p.do(call{name: "clCreateKernel", result: kern, args: []uint64{0x1, 0x2}, copies: [2][]byte{[]byte("add\x00rest")}})
	p.records = nil
}

// buffer creates a buffer.
func (p *sampler) buffer(handle, size uint64) { p.call("clCreateBuffer", handle, ctx, 1, size, 0, 0) }

// text formats records, one a line, without zero fields; times count from the start.
func text(records []wire.Record) string {
	var b strings.Builder
	for i := range records {
		b.WriteString(line(&records[i]) + "\n")
	}
	return b.String()
}

func line(r *wire.Record) string {
	words := []string{fmt.Sprintf("%d %s", r.Time, r.Kind)}
	add := func(name string, v int64) {
		if v != 0 {
			words = append(words, fmt.Sprintf("%s=%d", name, v))
		}
	}
	if r.Flags&wire.FlagCarried != 0 {
		words = append(words, "carried")
	}
	switch r.Kind {
	case wire.KindContext, wire.KindQueue:
		words = append(words, wire.Life(r.Op).String())
	case wire.KindCreate:
		words = append(words, wire.Memory(r.Op).String(), r.Outcome.String())
	case wire.KindRelease:
		words = append(words, wire.Memory(r.Op).String(), r.Outcome.String())
	case wire.KindRetain:
		words = append(words, wire.Memory(r.Op).String())
	case wire.KindUse:
		words = append(words, wire.Command(r.Op).String())
	case wire.KindSync:
		words = append(words, wire.Sync(r.Op).String())
	case wire.KindDiag:
		words = append(words, wire.Diag(r.Op).String()+":")
	default:
		add("op", int64(r.Op))
	}
	if r.Payload != nil {
		words = append(words, fmt.Sprintf("%q", r.Payload))
	} else {
		add("size", int64(r.Size))
	}
	add("object", int64(r.Object))
	add("granted", int64(r.Granted))
	add("link", int64(r.Link))
	add("scope", int64(r.Scope))
	add("tag", int64(r.Tag))
	add("access", int64(r.Access))
	add("reason", int64(r.Reason))
	add("status", int64(r.Status))
	if r.Kind == wire.KindUse {
		add("argument", int64(r.Duration))
	} else {
		add("duration", int64(r.Duration))
	}
	add("cost", int64(r.Cost))
	if r.Flags&wire.FlagReads != 0 && r.Kind == wire.KindUse {
		words = append(words, "reads")
	}
	if r.Flags&wire.FlagWrites != 0 && r.Kind == wire.KindUse {
		words = append(words, "writes")
	}
	if r.Flags&wire.FlagScattered != 0 && r.Kind == wire.KindUse {
		words = append(words, "scattered")
	}
	if r.Flags&wire.FlagOutOfOrder != 0 && r.Kind == wire.KindQueue {
		words = append(words, "out of order")
	}
	return strings.Join(words, " ")
}

// want compares the records with lines without times.
func (p *sampler) want(lines string) {
	p.t.Helper()
	var got []string
	for i := range p.records {
		_, rest, _ := strings.Cut(line(&p.records[i]), " ")
		got = append(got, rest)
	}
	p.records = nil
	var want []string
	for l := range strings.Lines(lines) {
		if l = strings.TrimSpace(l); l != "" {
			want = append(want, l)
		}
	}
	if !slices.Equal(got, want) {
		p.t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
