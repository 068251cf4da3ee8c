package main

import (
	"fmt"
	"runtime"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// heldCounts are how many blocks a policy has, in ascending order.
var heldCounts = []int{100, 1_000, 10_000, 100_000, 1_000_000}

// stride leads from one block to the next, through all of them in no order: it has no factor in common with their counts.
const stride = 61_803

// flat shows whether a hit costs the same however many blocks there are.
func (b *bench) flat() error {
	header := []any{"policy", "sizes"}
	for _, n := range heldCounts {
		header = append(header, n)
	}
	b.row(append(header, "last / first")...)
	for _, name := range allocator.Names() {
		if name == "none" {
			continue // has no blocks
		}
		for _, sizes := range []int{allSizes, 1000} {
			if sizes == allSizes || !carves(name) { // who carves knows ranges, and no sizes
				b.flatRow(name, sizes, func(n int) (holder, error) { return newStock(name, n, sizes) })
			}
		}
	}
	b.flatRow("[Go's map]", allSizes, func(n int) (holder, error) { return newKeys(n), nil })
	b.flush()
	fmt.Println("\nns for one alloc and free that hit while the policy has so many blocks: cached ones, of 64 KiB to 64 MiB, or for policies\n" +
		"that carve live parts, of up to 64 KiB. The blocks take turns in no order, so that the processor's caches hold the first\n" +
		"columns and not the last: a map shows what that alone costs, with one key deleted and put back for each pair.")
	return nil
}

// allSizes is more sizes than there are blocks.
const allSizes = 1 << 30

// holder has many blocks.
type holder interface {
	// pairs allocates and frees so often, and says when that was not what is to be measured.
	pairs(n int) error
}

// flatRow measures one holder with blocks of at most so many different sizes.
func (b *bench) flatRow(name string, sizes int, hold func(n int) (holder, error)) {
	const pairs = 1 << 14 // soon done, and more turns instead: making the blocks is what takes time
	runtime.GC()          // of the last one's blocks
	holders, ways := make([]holder, len(heldCounts)), make([]func() (float64, error), len(heldCounts))
	for i, n := range heldCounts {
		ways[i] = func() (_ float64, err error) {
			if holders[i] == nil {
				if holders[i], err = hold(n); err != nil {
					return 0, err
				}
			}
			return share(pairs, []step{holders[i].pairs})
		}
	}
	cells := []any{name, "all"}
	if sizes != allSizes {
		cells[1] = sizes
	}
	figures := inTurns(3*b.runs, ways)
	for _, f := range figures {
		if f.err != nil {
			b.row(append(cells, fmt.Sprintf("not measured: %v", f.err))...)
			return
		}
		cells = append(cells, counted(f.value))
	}
	b.row(append(cells, fixed(figures[len(figures)-1].value/figures[0].value, 2))...)
}

// stock is a policy that has many blocks.
type stock struct {
	policy allocator.Policy
	carves bool
	byTag  bool // a block is found by its tag alone
	sizes  int
	blocks []allocator.Block
	next   int
	out    []allocator.Eviction
}

// newStock returns a policy with n blocks: live parts if it carves, otherwise free ones.
func newStock(name string, n, sizes int) (*stock, error) {
	settings := []allocator.Setting{{Name: "max_cached_bytes", Value: fmt.Sprint(uint64(1) << 50)}}
	if obeys(name, "max_per_bucket") {
		settings = append(settings, allocator.Setting{Name: "max_per_bucket", Value: "0"})
	}
	policy, err := allocator.New(name, settings)
	if err != nil {
		return nil, fmt.Errorf("stock of %d: %w", n, err)
	}
	s := &stock{policy: policy, carves: carves(name), byTag: name == "futhark-2018", sizes: sizes, blocks: make([]allocator.Block, n)}
	for i := range s.blocks {
		s.blocks[i] = s.alloc(i)
	}
	if !s.carves {
		for _, block := range s.blocks {
			s.free(block)
		}
	}
	return s, nil
}

func (s *stock) alloc(i int) allocator.Block {
	req := allocator.Request{Size: s.size(i), Align: deviceAlign, Class: 1, Tag: allocator.Tag(1 + i%64), Pinned: true}
	if s.byTag {
		req.Tag = allocator.Tag(1 + i)
	}
	var plan allocator.Plan
	plan, s.out = s.policy.Plan(req, s.out[:0])
	if plan.SlabSize != 0 {
		s.policy.Grown(plan)
	}
	s.policy.Commit(plan)
	return plan.Block
}

func (s *stock) free(block allocator.Block) { s.out = s.policy.Free(block, false, 0, s.out[:0]) }

// size spreads sizes without order, in bytes: of whole blocks over 64 KiB to 64 MiB, of parts up to 64 KiB.
func (s *stock) size(i int) uint64 {
	random := uint64(i%s.sizes) * 0x9e3779b97f4a7c15 >> 32
	if s.carves {
		return 1 + random&(1<<16-1)
	}
	return 1<<16 + random&(1<<26-1)&^3
}

// pairs implements holder with requests that hit. A live part is freed first, and its room is there for the next.
func (s *stock) pairs(n int) error {
	before := s.policy.Stats().Misses
	for range n {
		if s.carves {
			s.free(s.blocks[s.next])
			s.blocks[s.next] = s.alloc(s.next)
		} else {
			s.free(s.alloc(s.next))
		}
		s.next = (s.next + stride) % len(s.blocks)
	}
	if missed := s.policy.Stats().Misses - before; missed > 0 {
		return fmt.Errorf("%d of %d requests missed", missed, n)
	}
	return nil
}

// keys is a map, to compare with.
type keys struct {
	values map[uint64]uint64
	count  int
	next   int
}

func newKeys(n int) *keys {
	k := &keys{values: make(map[uint64]uint64, n), count: n}
	for i := range n {
		k.values[k.key(i)] = 1
	}
	return k
}

func (*keys) key(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 }

func (k *keys) pairs(n int) error {
	for range n {
		key := k.key(k.next)
		value := k.values[key]
		delete(k.values, key)
		k.values[key] = value + 1
		k.next = (k.next + stride) % k.count
	}
	return nil
}
