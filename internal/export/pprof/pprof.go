// Package pprof writes the memory of a recording as a profile for go tool pprof, Speedscope and others: call stacks with
// what they created, had in use and left in the pool. The format is that of github.com/google/pprof, proto/profile.proto.
package pprof

import (
	"fmt"
	"io"
	"math/bits"
	"regexp"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/lives"
	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options say what a profile is about.
type Options struct {
	Header trace.Header
	At     Moment         // of what is in use and cached; what was created is counted in all of the source
	Tag    *regexp.Regexp // call sites to show; nil: all. The peak is that of all
}

// Write writes a profile of a source, not compressed. It goes through the source twice. Memory grows with what is alive
// at a time and with the call sites.
func Write(w io.Writer, src trace.Source, o Options) error {
	names, peak, err := look(src)
	if err != nil {
		return err
	}
	c := &collector{
		options: o, names: names, choice: lives.NewChoice(names, o.Tag), samples: map[sampleKey]*values{}, peak: peak,
		deadline: o.Header.ClockNS + uint64(o.At.after),
	}
	if o.At.end {
		c.plain = life.New(c)
	} else {
		c.run = lives.NewRun(c)
	}
	if err := lives.Each(src, c.step); err != nil {
		return err
	}
	c.take()
	p := c.profile()
	if err := p.CheckValid(); err != nil {
		return fmt.Errorf("make a profile: %w", err)
	}
	if err := p.WriteUncompressed(w); err != nil {
		return fmt.Errorf("write a profile: %w", err)
	}
	return nil
}

// look goes through a source for names, and for the record after which the most is in use; 0: none is.
func look(src trace.Source) (names *life.Names, peak uint64, err error) {
	names = life.NewNames()
	run := lives.NewRun(nil)
	var most int64
	var at uint64
	err = lives.Each(src, func(r *wire.Record) error {
		at++
		names.Add(r)
		run.Step(r)
		if run.InUse > most {
			most, peak = run.InUse, at
		}
		return nil
	})
	return names, peak, err
}

// Sample types, in the order of values.
const (
	allocObjects = iota
	allocSpace
	inUseObjects
	inUseSpace
	cachedSpace
)

type values [cachedSpace + 1]int64

// add adds bytes; a sum that is too large stays as large as can be.
func (v *values) add(at int, n uint64) {
	const most = 1<<63 - 1
	v[at] = int64(min(uint64(v[at])+min(n, most), most))
}

// sampleKey tells samples apart.
type sampleKey struct {
	process, tag uint32
	device       int
	slabs        bool // what is free in slabs, which no tag has
	bytes        uint64
}

// bucket is the power of two that a size belongs to.
func bucket(size uint64) uint64 {
	if size == 0 {
		return 0
	}
	return 1 << (bits.Len64(size) - 1)
}

// collector makes samples.
type collector struct {
	options  Options
	names    *life.Names
	choice   *lives.Choice
	run      *lives.Run // nil at the end: what processes left counts
	plain    *life.Fold
	samples  map[sampleKey]*values
	at       uint64 // record
	peak     uint64
	deadline uint64
	taken    bool
	when     uint64 // it was taken
}

func (c *collector) fold() *life.Fold {
	if c.run != nil {
		return c.run.Fold
	}
	return c.plain
}

func (c *collector) step(r *wire.Record) error {
	c.at++
	if c.options.At.timed && r.Time > c.deadline {
		c.take()
	}
	if c.run != nil {
		c.run.Step(r)
	} else {
		c.plain.Step(r)
	}
	if !c.options.At.timed && !c.options.At.end && c.at == c.peak {
		c.take()
	}
	return nil
}

func (c *collector) values(p *life.Process, tag uint32, scope uint16, size uint64) *values {
	if !c.choice.Has(p.Number, tag) {
		return nil
	}
	return c.sample(sampleKey{
		process: p.Number, tag: tag, device: c.names.Process(p.Number).Device(scope), bytes: bucket(size),
	})
}

func (c *collector) sample(key sampleKey) *values {
	v := c.samples[key]
	if v == nil {
		v = &values{}
		c.samples[key] = v
	}
	return v
}

// owned returns the bytes that are an object's own.
func owned(o *life.Object) uint64 {
	if !o.Owns {
		return 0
	}
	return o.Granted
}

// Begin implements life.Watcher.
func (c *collector) Begin(p *life.Process, o *life.Object) {
	if o.Carried() {
		return
	}
	if v := c.values(p, o.Tag, o.Scope, owned(o)); v != nil {
		v.add(allocObjects, 1)
		v.add(allocSpace, owned(o))
	}
}

// End implements life.Watcher.
func (c *collector) End(*life.Process, *life.Object, life.How) {}

// Pool implements life.Watcher.
func (c *collector) Pool(*life.Process, *life.Block) {}

// Unpool implements life.Watcher.
func (c *collector) Unpool(*life.Process, *life.Block, life.How) {}

// take counts what there is, once.
func (c *collector) take() {
	if c.taken {
		return
	}
	c.taken, c.when = true, c.fold().Now
	for _, p := range c.fold().Processes() {
		for _, o := range p.Objects() {
			if v := c.values(p, o.Tag, o.Scope, owned(o)); v != nil {
				v.add(inUseObjects, 1)
				v.add(inUseSpace, owned(o))
			}
		}
		for _, b := range p.Blocks() {
			if b.State != life.Cached {
				continue
			}
			if v := c.values(p, b.Tag, b.Scope, b.Size); v != nil {
				v.add(cachedSpace, b.Size)
			}
		}
		if p.Room > 0 && c.options.Tag == nil {
			c.sample(sampleKey{process: p.Number, slabs: true}).add(cachedSpace, uint64(p.Room))
		}
	}
}
