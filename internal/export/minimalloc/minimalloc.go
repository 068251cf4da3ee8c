// Package minimalloc writes the lifetimes of buffers as an instance of the static allocation problem, in the CSV of
// Google's MiniMalloc (M. D. Moffitt, ASPLOS 2023): when each buffer is needed, and how large it is. A solver finds the
// offsets for the least memory.
package minimalloc

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/common"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Header is the first line.
const Header = "id,lower,upper,size"

// Options say what an instance has.
type Options struct {
	Tag *regexp.Regexp // call sites whose buffers are in it; nil: all
}

// Write writes an instance: a line for each buffer that has memory of its own and a known size, in the order of their ends.
// The size is that granted, so that the instance's peak is the peak of bytes in use. lower and upper count creates and
// releases: a buffer is needed from lower until before upper. Buffers from before the source have lower 0, and the first
// create or release in it is 1. Buffers that are left at the end have an upper after the last of these.
//
// It goes through the source twice if there is a pattern, else once. Memory grows with what is alive at a time and with the
// number of call sites.
func Write(w io.Writer, src recording.Source, o Options) error {
	choice, err := common.ReadNamesAndChooseSites(src, o.Tag)
	if err != nil {
		return err
	}
	x := &writer{choice: choice, w: bufio.NewWriterSize(w, 64<<10), lower: map[key]uint64{}}
	x.heap = heap.New(heap.Options{EndProcesses: true}, x)
	_, _ = x.w.WriteString(Header + "\n") // a bufio.Writer keeps its first error for Flush
	for r, err := range recording.Records(src) {
		if err != nil {
			return err
		}
		x.takeRecord(r)
	}
	x.quiet, x.rest = false, true
	x.reserveFirstRank()
	for _, p := range x.heap.Processes() {
		x.heap.EndObjects(p, heap.Leaked)
	}
	if err := x.w.Flush(); err != nil {
		return fmt.Errorf("write an instance for MiniMalloc: %w", err)
	}
	return nil
}

type key struct {
	process uint32
	object  uint64
}

// writer follows a run.
type writer struct {
	heap.Base
	w      *bufio.Writer
	b      []byte
	choice *common.Choice
	heap   *heap.Heap
	rank   uint64         // of the next create or release
	lower  map[key]uint64 // of the buffers that are alive
	quiet  bool           // the record was carried over
	before bool           // there were buffers before the source's beginning
	rest   bool           // the source has ended: buffers that end now were left
}

func (x *writer) takeRecord(r *wire.Record) {
	x.quiet = r.Kind != wire.KindSlab && r.CarriedOver()
	x.heap.Apply(r)
}

// reserveFirstRank reserves rank 0 for buffers from before.
func (x *writer) reserveFirstRank() {
	if x.before && x.rank == 0 {
		x.rank = 1
	}
}

// ObjectAllocated implements heap.Observer.
func (x *writer) ObjectAllocated(p *heap.Process, o *heap.Object, _ *heap.Block) {
	if !o.Owns || o.Granted == 0 || !x.choice.IncludesSite(p.Number, o.Tag) {
		return
	}
	if x.quiet {
		x.before = true
	} else {
		x.reserveFirstRank()
	}
	x.lower[key{p.Number, o.ID}] = x.rank
	if !x.quiet {
		x.rank++
	}
}

// MemoryFreed implements heap.Observer.
func (x *writer) MemoryFreed(p *heap.Process, o *heap.Object, _ heap.How) {
	k := key{p.Number, o.ID}
	lower, ok := x.lower[k]
	if !ok {
		return
	}
	delete(x.lower, k)
	if x.quiet { // the carried record was of a block in the pool
		return
	}
	x.reserveFirstRank()
	b := append(x.b[:0], 'p')
	b = strconv.AppendUint(b, uint64(p.Number), 10)
	b = append(b, 'b')
	for i, n := range [...]uint64{o.ID, lower, x.rank, o.Granted} {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, n, 10)
	}
	b = append(b, '\n')
	_, _ = x.w.Write(b)
	x.b = b
	if !x.rest {
		x.rank++
	}
}
