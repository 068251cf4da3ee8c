// Package pprof writes the memory of a recording as a profile for go tool pprof, Speedscope and others: call stacks with
// the bytes that they created, had in use and left in the pool. The format is that of github.com/google/pprof,
// proto/profile.proto.
package pprof

import (
	"fmt"
	"io"
	"math/bits"
	"regexp"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/common"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options say what a profile is about.
type Options struct {
	Header recording.Header
	At     Moment         // when memory in use and cached is counted; creates are counted in the whole source
	Tag    *regexp.Regexp // call sites to show; nil: all. The peak is that of all call sites
}

// WriteProfile writes a profile of a source, not compressed. It goes through the source twice. Memory grows with what is alive
// at a time and with the call sites.
func WriteProfile(w io.Writer, src recording.Source, o Options) error {
	names, peak, err := readNamesAndPeak(src)
	if err != nil {
		return err
	}
	c := &collector{
		options: o, names: names, choice: common.ChooseSites(names, o.Tag), samples: map[sampleKey]*values{}, peak: peak,
		deadline: o.Header.ClockNS + uint64(o.At.after),
	}
	c.heap = heap.New(heap.Options{EndProcesses: !o.At.end}, c)
	for r, err := range recording.Records(src) {
		if err != nil {
			return err
		}
		c.takeRecord(r)
	}
	c.countHeldMemory()
	p := c.makeProfile()
	if err := p.CheckValid(); err != nil {
		return fmt.Errorf("make a profile: %w", err)
	}
	if err := p.WriteUncompressed(w); err != nil {
		return fmt.Errorf("write a profile: %w", err)
	}
	return nil
}

// readNamesAndPeak reads a source for its names, and for the number of the record after which the most is in use; 0: nothing ever is.
func readNamesAndPeak(src recording.Source) (names *callsite.Names, peak uint64, err error) {
	names = callsite.NewNames()
	run := heap.New(heap.Options{EndProcesses: true})
	var most int64
	var at uint64
	for r, err := range recording.Records(src) {
		if err != nil {
			return nil, 0, err
		}
		at++
		names.AddRecord(r)
		run.AdvanceTime(r.Time)
		run.Apply(r)
		if run.InUse > most {
			most, peak = run.InUse, at
		}
	}
	return names, peak, nil
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

// addToValue adds bytes; the sum is at most the largest number.
func (v *values) addToValue(at int, n uint64) {
	const most = 1<<63 - 1
	v[at] = int64(min(uint64(v[at])+min(n, most), most))
}

type sampleKey struct {
	process, tag uint32
	device       int
	slabs        bool // free memory in slabs, which belongs to no tag
	bytes        uint64
}

// sizeBucket returns the power of two that a size belongs to.
func sizeBucket(size uint64) uint64 {
	if size == 0 {
		return 0
	}
	return 1 << (bits.Len64(size) - 1)
}

// collector makes samples.
type collector struct {
	heap.Base
	options  Options
	names    *callsite.Names
	choice   *common.Choice
	heap     *heap.Heap // at the end, memory that ended processes have left counts
	samples  map[sampleKey]*values
	at       uint64 // number of the record after which memory is counted
	peak     uint64
	deadline uint64
	taken    bool
	when     uint64 // it was taken
}

func (c *collector) takeRecord(r *wire.Record) {
	c.at++
	if c.options.At.timed && r.Time > c.deadline {
		c.countHeldMemory()
	}
	if !c.options.At.end {
		c.heap.AdvanceTime(r.Time) // also for records that the session wrote late
	}
	c.heap.Apply(r)
	if !c.options.At.timed && !c.options.At.end && c.at == c.peak {
		c.countHeldMemory()
	}
}

func (c *collector) valuesOfSite(p *heap.Process, tag uint32, scope uint16, size uint64) *values {
	if !c.choice.IncludesSite(p.Number, tag) {
		return nil
	}
	return c.valuesOfKey(sampleKey{
		process: p.Number, tag: tag, device: c.names.Process(p.Number).DeviceIndex(scope), bytes: sizeBucket(size),
	})
}

func (c *collector) valuesOfKey(key sampleKey) *values {
	v := c.samples[key]
	if v == nil {
		v = &values{}
		c.samples[key] = v
	}
	return v
}

// bytesOwnedBy returns the bytes that are an object's own.
func bytesOwnedBy(o *heap.Object) uint64 {
	if !o.Owns {
		return 0
	}
	return o.Granted
}

// ObjectAllocated implements heap.Observer.
func (c *collector) ObjectAllocated(p *heap.Process, o *heap.Object, _ *heap.Block) {
	if o.CarriedOver {
		return
	}
	if v := c.valuesOfSite(p, o.Tag, o.Scope, bytesOwnedBy(o)); v != nil {
		v.addToValue(allocObjects, 1)
		v.addToValue(allocSpace, bytesOwnedBy(o))
	}
}

// countHeldMemory counts memory in use and cached, once.
func (c *collector) countHeldMemory() {
	if c.taken {
		return
	}
	c.taken, c.when = true, c.heap.Now()
	for _, p := range c.heap.Processes() {
		for _, o := range p.Objects() {
			if v := c.valuesOfSite(p, o.Tag, o.Scope, bytesOwnedBy(o)); v != nil {
				v.addToValue(inUseObjects, 1)
				v.addToValue(inUseSpace, bytesOwnedBy(o))
			}
		}
		for _, b := range p.Blocks() {
			if b.State != heap.Cached {
				continue
			}
			if v := c.valuesOfSite(p, b.Tag, b.Scope, b.Size); v != nil {
				v.addToValue(cachedSpace, b.Size)
			}
		}
		if p.Room > 0 && !p.Left && c.options.Tag == nil {
			c.valuesOfKey(sampleKey{process: p.Number, slabs: true}).addToValue(cachedSpace, uint64(p.Room))
		}
	}
}
