package replay

import (
	"math"
	"math/rand/v2"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestReplayRandom plays random records through every policy: the policies' invariants hold, and the simulation's
// counters agree with theirs.
func TestReplayRandom(t *testing.T) {
	for i, policy := range allocator.PolicyNames() {
		for seed := range uint64(15) {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			o := Options{Policy: policy, Capacity: rng.Uint64N(2) * 1 << 22, AsRecorded: seed%3 == 0}
			r, err := newBatchOfOne(o)
			if err != nil {
				t.Fatal(err)
			}
			for n := range 400 {
				record := randomRecord(rng, uint64(n))
				if seed%2 == 0 && record.Kind == wire.KindLost { // numbers are no longer of use
					continue
				}
				if err := r.readAndPlayRecord(&record); err != nil {
					t.Fatal(err)
				}
				if n%20 == 0 && !o.AsRecorded { // there plans are open
					checkProcesses(t, r.onlyMember())
				}
			}
			if err := r.playWaitingRecords(); err != nil {
				t.Fatal(err)
			}
			if !o.AsRecorded {
				checkProcesses(t, r.onlyMember())
			}
			result := r.resultSoFar()
			if rate := result.WasteAtPeak(); math.IsNaN(rate) || rate < 0 || rate > 1 {
				t.Errorf("%s: waste %g", policy, rate)
			}
			if t.Failed() {
				t.Fatalf("%s, seed %d", policy, seed)
			}
		}
	}
}

func randomRecord(rng *rand.Rand, n uint64) wire.Record {
	kinds := []wire.Kind{
		wire.KindCreate, wire.KindCreate, wire.KindCreate, wire.KindRelease, wire.KindRelease, wire.KindCooled, wire.KindEvict,
		wire.KindSync, wire.KindDevice, wire.KindContext, wire.KindLost, wire.KindUse,
		wire.KindOrder, wire.KindOrder, wire.KindSlab, wire.KindLimit, wire.KindExit,
	}
	changes := []string{"policy=pow2", "policy=slab,max_part=1MiB", "max_cached_bytes=5000", "3000", "="}
	return wire.Record{Process: 1 + rng.Uint32N(2), Thread: rng.Uint32N(2), Payload: []byte(changes[rng.IntN(len(changes))]), Event: wire.Event{
		Time: n * 1e6, Kind: kinds[rng.IntN(len(kinds))], Op: uint8(rng.IntN(4)), Outcome: wire.Outcome(rng.IntN(8)), Reason: uint8(rng.IntN(10)),
		Flags: uint8(rng.IntN(64)), Scope: uint16(rng.IntN(2)), Access: 1 | uint16(rng.IntN(2))<<4, Object: rng.Uint64N(12),
		Link: rng.Uint64N(12), Size: 1 + rng.Uint64N(1<<uint(rng.IntN(21))), Granted: rng.Uint64N(2) * rng.Uint64N(1<<30), Tag: 1 << rng.UintN(10),
	}}
}

func checkProcesses(t *testing.T, r *simulation) {
	t.Helper()
	var reserved uint64
	held, alone := map[*simulatedProcess]uint64{}, map[*simulatedProcess]uint64{} // bytes in use, and of these those that no policy knows
	for i := range r.buffers {
		switch h := &r.buffers[i]; h.state {
		case direct:
			alone[h.process] += h.granted
			held[h.process] += h.granted
		case inUse:
			held[h.process] += h.granted
		}
	}
	var inUse uint64
	for number, p := range r.processes {
		if p == nil {
			continue
		}
		if err := p.policy.Validate(); err != nil {
			t.Fatal(err)
		}
		s := p.policy.Stats()
		if p.reserved != s.ReservedBytes()+alone[p] {
			t.Errorf("process %d has %d reserved, its policy %d and %d besides", number, p.reserved, s.ReservedBytes(), alone[p])
		}
		if held[p] != s.BytesInUse+alone[p] {
			t.Errorf("process %d has %d in use, its policy %d and %d besides", number, held[p], s.BytesInUse, alone[p])
		}
		inUse, reserved = inUse+held[p], reserved+p.reserved
	}
	if r.inUse != inUse || r.reserved != reserved+r.leftBehind {
		t.Errorf("%d in use and %d reserved, %d of them left behind, the processes have %d and %d", r.inUse, r.reserved, r.leftBehind, inUse, reserved)
	}
}
