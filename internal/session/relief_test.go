package session

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/session/machine"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	mib  = uint64(1) << 20
	gib  = uint64(1) << 30
	tick = uint64(tickNS)
)

// TestHeadroom: a tenth, at least 256 MiB, at most a quarter of a small device.
func TestHeadroom(t *testing.T) {
	for total, want := range map[uint64]uint64{80 * gib: 8 * gib, 2 * gib: 256 * mib, 400 * mib: 100 * mib, 0: 0} {
		if got := headroomBytes(total); got != want {
			t.Errorf("of %d: %d, want %d", total, got, want)
		}
	}
}

// asks collects what a relief asks for.
func asks() (*relief, func() []string) {
	var list []string
	r := newRelief(func(process uint32, r wire.Relief) {
		list = append(list, fmt.Sprintf("%d: %d MiB %s", process, r.Asked/mib, r.Why))
	})
	return r, func() []string {
		got := list
		list = nil
		return got
	}
}

// card is a card of 4 GiB: others have some of it, and the rest is free or in pools.
func card(free uint64) []machine.Shared {
	return []machine.Shared{{Name: "card", Total: 4 * gib, Free: free}}
}

func lookOf(process uint32, cached, reserved uint64, shared []machine.Shared) look {
	return look{poolOf{process: process, cached: cached, reserved: reserved}, shared}
}

// TestReliefAsksForWhatIsMissing: nothing while there is headroom; then the pools with the most give first, and what they do
// not have all of them owe; an eighth of the headroom goes besides.
func TestReliefAsksForWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		free uint64
		want []string
	}{
		{410 * mib, nil},
		{400 * mib, []string{"2: 60 MiB short"}}, // 409.6 - 400 + 51.2
		{250 * mib, []string{"2: 151 MiB short", "1: 110 MiB short"}},
		{0, []string{"2: 340 MiB short", "1: 300 MiB short", "3: 300 MiB short"}}, // 189.6 that no pool has
	} {
		r, got := asks()
		looks := func(free uint64) []look {
			return []look{
				lookOf(1, 60*mib, gib, card(free)), lookOf(2, 100*mib, gib, card(free)), lookOf(3, 60*mib, 0, card(free)), lookOf(4, gib, gib, nil),
			}
		}
		r.askPools(tick, looks(c.free))
		if diff := cmp.Diff(c.want, got()); diff != "" {
			t.Errorf("%d MiB free (-want +got):\n%s", c.free/mib, diff)
		}
		if r.askPools(2*tick, looks(c.free)); len(got()) > 0 {
			t.Errorf("%d MiB free: asked twice", c.free/mib)
		}
	}
}

// TestRoomAroundAPool: what is free beyond the headroom, of the memory that has least; unknown before the first look, where
// nothing can be read, and of a process that is gone.
func TestRoomAroundAPool(t *testing.T) {
	r, _ := asks()
	if _, known := r.freeBytesAroundPool(1); known {
		t.Error("known before a look")
	}
	host := machine.Shared{Name: "host", Total: 64 * gib, Free: 32 * gib}
	r.askPools(tick, []look{lookOf(1, 0, gib, append(card(gib), host)), lookOf(2, 0, gib, nil), lookOf(3, 0, gib, card(100*mib))})
	for process, want := range map[uint32]uint64{1: gib - headroomBytes(4*gib), 3: 0} {
		if got, known := r.freeBytesAroundPool(process); got != want || !known {
			t.Errorf("process %d: %d, want %d", process, got, want)
		}
	}
	if _, known := r.freeBytesAroundPool(2); known {
		t.Error("known though nothing can be read")
	}
	r.forgetProcess(1)
	if _, known := r.freeBytesAroundPool(1); known {
		t.Error("a process is not forgotten")
	}
}

// TestReliefOwed: a pool is asked again when more lacks than it owes, and owes nothing once there is headroom and an eighth more.
func TestReliefOwed(t *testing.T) {
	r, got := asks()
	for i, c := range []struct {
		free, paid uint64
		want       []string
	}{
		{400 * mib, 0, []string{"1: 60 MiB short"}},
		{350 * mib, 0, nil},
		{340 * mib, 10 * mib, []string{"1: 120 MiB short"}},
		{450 * mib, 110 * mib, nil},
		{410 * mib, 0, nil},
		{470 * mib, 0, []string{"1: 0 MiB short"}},
		{470 * mib, 0, nil},
	} {
		r.askPools(uint64(i+1)*tick, []look{lookOf(1, 0, gib, card(c.free))})
		if diff := cmp.Diff(c.want, got()); diff != "" {
			t.Errorf("look %d (-want +got):\n%s", i, diff)
		}
		r.notePoolGave(1, c.paid)
	}
	if r.forgetProcess(1); len(r.owed) > 0 {
		t.Error("a process is not forgotten")
	}
}

// TestReliefAlone: a program that has the card for itself gives what was idle for a second, each second.
func TestReliefAlone(t *testing.T) {
	r, got := asks()
	var all []string
	for now := tick; now <= 21*tick; now += tick {
		r.askPools(now, []look{lookOf(1, gib, 4*gib-100*mib, card(50*mib))})
		all = append(all, got()...)
	}
	if want := []string{"1: 410 MiB idle", "1: 410 MiB idle", "1: 410 MiB idle"}; !slices.Equal(all, want) {
		t.Errorf("asked %v, want %v", all, want)
	}
	r.askPools(22*tick, []look{lookOf(1, gib, 4*gib-200*mib, card(50*mib))}) // another one comes
	if want := []string{"1: 410 MiB short"}; !slices.Equal(got(), want) {
		t.Errorf("want %v", want)
	}
}

// TestReliefOfStalls: where processes of a control group wait for memory, there is too little, however much is free.
func TestReliefOfStalls(t *testing.T) {
	r, got := asks()
	for i, stalled := range []uint64{5 * tick, 5 * tick, 5*tick + tick/20, 6 * tick, 6 * tick} {
		group := machine.Shared{Name: "group", Total: 4 * gib, Free: gib, Stalled: stalled}
		r.askPools(uint64(i+1)*tick, []look{lookOf(1, gib, gib, []machine.Shared{group})})
		want := map[int][]string{3: {"1: 255 MiB short"}, 4: {"1: 0 MiB short"}}[i]
		if diff := cmp.Diff(want, got()); diff != "" {
			t.Errorf("look %d (-want +got):\n%s", i, diff)
		}
	}
}

// pooled is a program with a pool on a card that others use, and the session that looks after it.
type pooled struct {
	pool   *allocator.Pool
	relief *relief
	blocks []allocator.Block
	sizes  []uint64
	inUse  uint64
	time   int64
	dice   *rand.Rand

	given    uint64 // since the last look
	messages int
}

func newPooled(t *testing.T, seed uint64) *pooled {
	p := &pooled{dice: rand.New(rand.NewPCG(seed, 1))}
	names := []string{"futhark", "pow2", "mantissa", "buckets"} // whole blocks
	var err error
	if p.pool, err = allocator.New(names[seed%4], nil); err != nil {
		t.Fatal(err)
	}
	p.relief = newRelief(func(_ uint32, r wire.Relief) {
		p.messages++
		for _, e := range p.pool.EvictForOthers(r.Asked, r.LeastIdleNS(), p.time, nil) {
			p.given += e.Size
		}
	})
	return p
}

// reserved returns what the driver has given the program.
func (p *pooled) reserved() uint64 {
	s := p.pool.Stats()
	return s.ReservedBytes()
}

// step creates or releases a buffer. It takes at most so much more from a card that has so much free.
func (p *pooled) step(most, free uint64) {
	p.time++
	if len(p.blocks) > 0 && p.dice.IntN(5) < 2 || len(p.blocks) > 12 {
		i := p.dice.IntN(len(p.blocks))
		for _, e := range p.pool.Free(p.blocks[i], false, p.time, nil) {
			if e.Reason == wire.EvictRelief {
				p.given += e.Size
			}
		}
		p.inUse -= p.sizes[i]
		p.blocks, p.sizes = slices.Delete(p.blocks, i, i+1), slices.Delete(p.sizes, i, i+1)
		return
	}
	before := p.reserved()
	d, _ := p.pool.Decide(allocator.Request{Size: 1 + p.dice.Uint64N(90*mib), Class: 1, Tag: allocator.Tag(p.dice.IntN(4)), Time: p.time}, nil)
	if !d.Hit && d.Size > min(most, free+before-p.reserved()) {
		p.pool.Abort(d)
		return
	}
	p.pool.Commit(d)
	p.blocks, p.sizes, p.inUse = append(p.blocks, d.Block), append(p.sizes, d.Size), p.inUse+d.Size
}

// lookAfter is a look of its session.
func (p *pooled) lookAfter(now, total, free uint64) {
	p.relief.notePoolGave(1, p.given)
	p.given = 0
	p.relief.askPools(now, []look{lookOf(1, p.pool.Stats().BytesCached, p.reserved(), []machine.Shared{{Name: "card", Total: total, Free: free}})})
}

// TestNeighboursCreates plays 1,000 random runs of two programs on one card. Of the creates of the one without a pool, those that
// would fit beside what the other one holds must not fail for what its pool keeps, as long as both take no more than the headroom
// between two looks. Without relief many do.
func TestNeighboursCreates(t *testing.T) {
	for _, relieved := range []bool{true, false} {
		failed, creates, messages := 0, 0, 0
		for seed := range uint64(1000) {
			p := newPooled(t, seed)
			total := 700*mib + p.dice.Uint64N(2*gib)
			least := headroomBytes(total) / othersLeast // its context
			neighbour := least
			for round := range uint64(60) {
				taken := uint64(0)
				for range p.dice.IntN(6) {
					before := p.reserved()
					p.step(headroomBytes(total)-taken, total-neighbour-before)
					taken += max(p.reserved(), before) - before
				}
				size := p.dice.Uint64N(headroomBytes(total) - taken + 1)
				if p.dice.IntN(6) == 0 {
					neighbour = least
				} else if neighbour+size+p.inUse <= total { // it would not fail bare
					creates++
					if neighbour+size+p.reserved() > total {
						failed++
					} else {
						neighbour += size
					}
				}
				if relieved {
					p.lookAfter((round+1)*tick, total, total-neighbour-p.reserved())
				}
			}
			messages += p.messages
		}
		t.Logf("relieved %v: %d of %d creates failed, %d messages", relieved, failed, creates, messages)
		if (failed == 0) != relieved || creates < 30_000 {
			t.Errorf("relieved %v: %d of %d creates failed", relieved, failed, creates)
		}
	}
}
