package carve

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// reference knows every sub-allocation and, unit by unit, which bytes were ever used. It asks nothing of the carver
// that it does not check.
type reference struct {
	tb    testing.TB
	kind  *kind
	c     Carver
	slabs map[int32]*refSlab
	live  []Part
}

type refSlab struct {
	size    uint64
	parts   map[uint64]Part // by offset
	touched []bool          // by unit
	taken   []bool
}

func newReference(tb testing.TB, k *kind) *reference {
	tb.Helper()
	return &reference{tb: tb, kind: k, c: k.create(), slabs: map[int32]*refSlab{}}
}

func (r *reference) add(slab int32, size uint64) {
	units := size / r.kind.unit
	r.slabs[slab] = &refSlab{size: size, parts: map[uint64]Part{}, touched: make([]bool, units), taken: make([]bool, units)}
	r.c.AddSlab(slab, size)
}

func (r *reference) remove(slab int32) {
	r.c.RemoveSlab(slab)
	delete(r.slabs, slab)
}

// numbers returns the slabs' numbers in order.
func (r *reference) numbers() []int32 {
	var list []int32
	for slab := range r.slabs {
		list = append(list, slab)
	}
	slices.Sort(list)
	return list
}

func (r *reference) carve(size uint64) bool {
	r.tb.Helper()
	slab, offset, ok := int32(0), uint64(0), false
	if r.kind.choose != nil {
		slab, offset, ok = r.kind.choose(r, size)
	}
	p, got := r.c.Carve(size)
	if r.kind.choose != nil && (got != ok || got && (p.Slab != slab || p.Offset != offset)) {
		r.tb.Fatalf("a request of %d got %+v, %v; want slab %d at %d, %v", size, p, got, slab, offset, ok)
	}
	if !got {
		if r.kind.refused != nil && !r.kind.refused(size, r.c.FreeSpace()) {
			r.tb.Fatalf("a request of %d was refused with %+v", size, r.c.FreeSpace())
		}
		return false
	}
	r.check(p, size)
	s := r.slabs[p.Slab]
	s.parts[p.Offset] = p
	for i := p.Offset / r.kind.unit; i < (p.Offset+p.Size)/r.kind.unit; i++ {
		s.touched[i], s.taken[i] = true, true
	}
	r.live = append(r.live, p)
	return true
}

// check looks at a new sub-allocation by itself.
func (r *reference) check(p Part, size uint64) {
	r.tb.Helper()
	s := r.slabs[p.Slab]
	unit := r.kind.unit
	switch {
	case s == nil:
		r.tb.Fatalf("%+v is in no slab", p)
	case p.Size < size || p.Size == 0 || p.Size != r.c.RoundUp(size):
		r.tb.Fatalf("a request of %d got %+v, rounded it is %d", size, p, r.c.RoundUp(size))
	case p.Offset%unit != 0 || p.Size%unit != 0:
		r.tb.Fatalf("%+v is no multiple of %d", p, unit)
	case p.Offset+p.Size > s.size:
		r.tb.Fatalf("%+v ends beyond the slab's %d", p, s.size)
	}
	fresh := true
	for i := p.Offset / unit; i < (p.Offset+p.Size)/unit; i++ {
		if s.taken[i] {
			r.tb.Fatalf("%+v overlaps another part at %d", p, i*unit)
		}
		fresh = fresh && !s.touched[i]
	}
	if p.Fresh != fresh {
		r.tb.Fatalf("%+v: is fresh: %v", p, fresh)
	}
}

func (r *reference) free(i int) {
	r.tb.Helper()
	p := r.live[i]
	r.live[i] = r.live[len(r.live)-1]
	r.live = r.live[:len(r.live)-1]
	s := r.slabs[p.Slab]
	delete(s.parts, p.Offset)
	for i := p.Offset / r.kind.unit; i < (p.Offset+p.Size)/r.kind.unit; i++ {
		s.taken[i] = false
	}
	if empty := r.c.Free(Part{Slab: p.Slab, Offset: p.Offset, Size: p.Size}); empty != (len(s.parts) == 0) {
		r.tb.Fatalf("after %+v slab %d has %d parts, empty: %v", p, p.Slab, len(s.parts), empty)
	}
}

// space compares what the carver says of free ranges with a recount.
func (r *reference) space() {
	r.tb.Helper()
	got := r.c.FreeSpace()
	free := uint64(0)
	for _, s := range r.slabs {
		free += s.size
	}
	for _, p := range r.live {
		free -= p.Size
	}
	if got.Largest > got.Bytes || got.Bytes > free || got.Squares > float64(got.Bytes)*float64(got.Bytes)*1.000001 {
		r.tb.Fatalf("%+v with %d bytes free", got, free)
	}
	if r.kind.ranges == nil {
		return
	}
	var want Space
	for _, s := range r.slabs {
		for _, size := range r.kind.ranges(s) {
			want.Bytes += size
			want.Largest = max(want.Largest, size)
			want.Squares += float64(size) * float64(size) // small enough to be exact
			want.Ranges++
		}
	}
	if got != want {
		r.tb.Fatalf("space is %+v, a recount says %+v", got, want)
	}
}

// edge asks for the largest that should work and for more than that.
func (r *reference) edge() {
	r.tb.Helper()
	largest := r.c.FreeSpace().Largest
	if r.carve(largest + 1) {
		r.tb.Fatalf("a request of %d was served, the largest is %d", largest+1, largest)
	}
	if largest != 0 && !r.carve(largest) {
		r.tb.Fatalf("a request of %d was refused", largest)
	}
}

// drain frees everything, and looks at the slabs.
func (r *reference) drain() {
	r.tb.Helper()
	for len(r.live) > 0 {
		r.free(0)
		r.validate()
	}
	var want Space
	for _, s := range r.slabs {
		want.Largest = max(want.Largest, r.c.UsableBytes(s.size))
	}
	if got := r.c.FreeSpace(); got.Largest != want.Largest || got.Ranges < len(r.slabs) {
		r.tb.Fatalf("all is free, and space is %+v in %d slabs; want %d", got, len(r.slabs), want.Largest)
	}
	for _, slab := range r.numbers() {
		r.remove(slab)
		r.validate()
	}
	if got := r.c.FreeSpace(); got != (Space{}) {
		r.tb.Fatalf("no slab is left, and space is %+v", got)
	}
}

func (r *reference) validate() {
	r.tb.Helper()
	if err := r.c.Validate(); err != nil {
		r.tb.Fatal(err)
	}
}

// play reads steps from data, three bytes each.
func play(tb testing.TB, k *kind, data []byte) {
	tb.Helper()
	r := newReference(tb, k)
	for ; len(data) >= 3; data = data[3:] {
		r.step(data[0], int(data[1])<<8|int(data[2]))
		r.validate()
		r.space()
	}
	r.drain()
}

func (r *reference) step(what byte, n int) {
	r.tb.Helper()
	switch {
	case what < 10:
		slab := int32(1 + n%7)
		if r.slabs[slab] == nil {
			r.add(slab, r.kind.slabs[n/7%len(r.kind.slabs)])
		}
	case what < 20:
		for _, slab := range r.numbers() {
			if len(r.slabs[slab].parts) == 0 {
				r.remove(slab)
				break
			}
		}
	case what < 24:
		r.edge()
	case what < 135:
		below := r.kind.sizes[int(what)%len(r.kind.sizes)]
		if !r.carve(uint64(n) * below >> 16) {
			r.step(0, n)
		}
	default:
		if len(r.live) > 0 {
			r.free(n % len(r.live))
		}
	}
}

// TestAgainstReference plays the same steps as the fuzz targets, chosen at random.
func TestAgainstReference(t *testing.T) {
	for i := range kinds {
		t.Run(kinds[i].name, func(t *testing.T) {
			for seed := range uint64(6) {
				rng := rand.New(rand.NewPCG(seed, 1))
				data := make([]byte, 3*400)
				for i := range data {
					data[i] = byte(rng.Uint32())
					if i%3 == 0 && i/300%2 == 0 && data[i] > 200 { // a hundred steps up, a hundred down
						data[i] -= 100
					}
				}
				play(t, &kinds[i], data)
			}
		})
	}
}

func fuzz(f *testing.F, name string) {
	f.Helper()
	f.Add([]byte{0, 0, 1, 30, 0, 9, 31, 200, 0, 200, 0, 0, 21, 0, 0})
	k := &kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
	f.Fuzz(func(t *testing.T, data []byte) { play(t, k, data[:min(len(data), 3*300)]) })
}

func FuzzBestFit(f *testing.F) { fuzz(f, "bestfit") }
func FuzzBuddy(f *testing.F)   { fuzz(f, "buddy") }
func FuzzUAlloc(f *testing.F)  { fuzz(f, "ualloc") }
