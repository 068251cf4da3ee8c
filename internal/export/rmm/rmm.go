// Package rmm writes the creates and releases of a recording as the log of RMM's logging resource adaptor, which RMM's
// replay benchmark plays through other pools. The format is that of rapidsai/rmm,
// cpp/src/mr/detail/logging_resource_adaptor_impl.cpp: a line is "thread,HH:MM:SS.microseconds,action,pointer,size,
// stream"; its reader is cpp/benchmarks/utilities/log_parser.hpp.
package rmm

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/lives"
	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Header is the first line.
const Header = "Thread,Time,Action,Pointer,Size,Stream"

// Options say what a log has.
type Options struct {
	Header trace.Header
	Tag    *regexp.Regexp // call sites whose buffers are in it; nil: all
}

// Write writes a log: what owns memory, with the sizes that the program asked for. What was there before the source
// begins is allocated in the first lines; the memory of a process that ended is freed when another one goes on. It goes
// through the source twice; memory grows with what is alive at a time, and with the call sites.
func Write(w io.Writer, src trace.Source, o Options) error {
	x := &writer{w: bufio.NewWriterSize(w, 64<<10), header: o.Header, layout: lives.NewLayout()}
	names := life.NewNames()
	if o.Tag != nil {
		var err error
		if names, err = life.ReadNames(src); err != nil {
			return err
		}
	}
	x.choice = lives.NewChoice(names, o.Tag)
	x.run = lives.NewRun(x)
	x.line(Header)
	if err := lives.Each(src, x.step); err != nil {
		return err
	}
	x.begin()
	if err := x.w.Flush(); err != nil {
		return fmt.Errorf("write a log of RMM: %w", err)
	}
	return nil
}

// writer follows a run. Lines are made in b.
type writer struct {
	w      *bufio.Writer
	b      []byte
	header trace.Header
	layout *lives.Layout
	choice *lives.Choice
	run    *lives.Run
	begun  bool // what was there before is written
	thread uint32
}

func (x *writer) step(r *wire.Record) error {
	x.thread = r.Thread
	switch r.Kind {
	case wire.KindCreate, wire.KindRelease, wire.KindSlab, wire.KindExit:
		if r.Flags&wire.FlagCarried == 0 {
			x.begin()
		}
	default:
	}
	if r.Kind == wire.KindCreate && r.Outcome == wire.OutcomeFailed && life.HasMemory(&r.Event) && x.choice.Has(r.Process, r.Tag) {
		x.run.Now = max(x.run.Now, r.Time)
		x.write("allocate failure", nil, r.Size)
	}
	x.run.Step(r)
	return nil
}

// begin writes what was there before, once.
func (x *writer) begin() {
	if x.begun {
		return
	}
	x.begun = true
	thread := x.thread
	for _, p := range x.run.Processes() {
		for _, o := range p.Objects() {
			x.thread = o.Thread
			x.allocate(p, o)
		}
	}
	x.thread = thread
}

// Begin implements life.Watcher.
func (x *writer) Begin(p *life.Process, o *life.Object) {
	if !o.Owns {
		return
	}
	r := x.layout.Object(p, o)
	if r != nil && (r.IsSlab() || r.Size != o.Granted) { // its end is not in the recording
		x.layout.Give(r)
		r = nil
	}
	if r == nil {
		x.layout.Place(p, o, o.Block != 0 && o.Flags&wire.FlagPart != 0)
	}
	if x.begun {
		x.allocate(p, o)
	}
}

func (x *writer) allocate(p *life.Process, o *life.Object) {
	if o.Owns && x.choice.Has(p.Number, o.Tag) {
		x.write("allocate", x.layout.Object(p, o), o.Size)
	}
}

// End implements life.Watcher.
func (x *writer) End(p *life.Process, o *life.Object, _ life.How) {
	r := x.layout.Object(p, o)
	if !o.Owns || r == nil {
		return
	}
	if x.begun && x.choice.Has(p.Number, o.Tag) {
		x.write("free", r, o.Size)
	}
	if o.Block == 0 {
		x.layout.Give(r)
	}
}

// Pool implements life.Watcher.
func (x *writer) Pool(p *life.Process, b *life.Block) {
	if b.State == life.Slab {
		x.layout.Slab(p, b)
	}
}

// Unpool implements life.Watcher.
func (x *writer) Unpool(*life.Process, *life.Block, life.How) {}

// Gone implements life.BlockWatcher.
func (x *writer) Gone(p *life.Process, b *life.Block) {
	if r := x.layout.Block(p, b.Number); r != nil {
		x.layout.Give(r)
	}
}

func (x *writer) line(text string) {
	_, _ = x.w.WriteString(text) // a bufio.Writer keeps its first error for Flush
	_ = x.w.WriteByte('\n')
}

// write writes a line. Streams are all the default one: the replay benchmark takes no other.
func (x *writer) write(action string, at *lives.Range, size uint64) {
	b := strconv.AppendUint(x.b[:0], uint64(x.thread), 10)
	b = append(b, ',')
	b = x.header.Created.Add(time.Duration(max(x.run.Now, x.header.ClockNS)-x.header.ClockNS)).AppendFormat(b, "15:04:05.000000")
	b = append(b, ',')
	b = append(b, action...)
	if at == nil {
		b = append(b, ",(nil),"...)
	} else {
		b = append(b, ",0x"...)
		b = strconv.AppendUint(b, at.Addr, 16)
		b = append(b, ',')
	}
	b = strconv.AppendUint(b, size, 10)
	b = append(b, ",0\n"...)
	_, _ = x.w.Write(b)
	x.b = b
}
