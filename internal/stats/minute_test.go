package stats

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestEachSlotHasItsMost: each 100 ms have the most in use, the counts and the time in the driver.
func TestEachSlotHasItsMost(t *testing.T) {
	s := newStream(Options{})
	s.time = streamStart + 30*1_000_000
	s.miss(1, 1, 64, 64, 1)
	s.release(1, wire.OutcomeCached)
	s.AdvanceTime(streamStart + 250*1_000_000)
	list := s.Snapshot().Minute
	if len(list) != 2 || list[0].InUse != 64 || list[0].Misses != 1 || list[0].Creates != 1 || list[0].DriverNS == 0 || list[0].Time != streamStart+slotNS ||
		list[1].InUse != 0 || list[1].Cached != 64 || list[1].Misses != 0 || list[1].DriverNS != 0 {
		t.Fatalf("%+v", list)
	}
	first := list[0]
	s.AdvanceTime(streamStart + 200_000*1_000_000)
	s.AdvanceTime(streamStart + 3_600_000*1_000_000)
	later := s.Snapshot().Minute
	if len(later) != MinuteMax || later[MinuteMax-1].Time != streamStart+3600*10*slotNS || later[0].Cached != 64 || later[0].Misses != 0 {
		t.Errorf("%d samples, %+v … %+v", len(later), later[0], later[len(later)-1])
	}
	for i := range later {
		if i > 0 && later[i].Time != later[i-1].Time+slotNS {
			t.Fatalf("sample %d is at %d after %d", i, later[i].Time, later[i-1].Time)
		}
	}
	if list[0] != first {
		t.Error("a published sample changed")
	}
}

func TestMinuteIsShared(t *testing.T) {
	var m minute
	for slot := range uint64(5 * MinuteMax) {
		m.closeSlots(0, slot, Sample{InUse: slot}, &Rates{})
		if got := m.listSamples(); len(got) != int(min(slot, MinuteMax)) || slot > 0 && got[len(got)-1].InUse != slot {
			t.Fatalf("slot %d: %d samples, the last of %d", slot, len(got), got[len(got)-1].InUse)
		}
	}
}
