package stats

import (
	"math/rand/v2"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestWindowKeepsTheLastFullSecond(t *testing.T) {
	var w window
	for slot := range uint64(25) {
		w.advanceToSlot(slot)
		w.currentSlot().Hits = slot
	}
	got := w.ratesOfFullSlots()
	if want := uint64(14+23) * 10 / 2; got.Hits != want || got.NS != 1_000_000_000 {
		t.Errorf("last() = %+v, want %d hits in a second: slots 14 to 23", got, want)
	}
	w.advanceToSlot(1 << 60)
	if got := w.ratesOfFullSlots(); got.Hits != 0 {
		t.Errorf("%d hits after a long silence", got.Hits)
	}
}

func TestWindowOfAYoungRun(t *testing.T) {
	var w window
	w.currentSlot().Creates = 3
	w.advanceToSlot(2)
	if got := w.ratesOfFullSlots(); got.Creates != 3 || got.NS != 2*slotNS {
		t.Errorf("last() = %+v, want 3 creates in 0.2 s", got)
	}
}

func TestPace(t *testing.T) {
	var p pace
	p.countAt(3)
	p.countAt(3)
	p.countAt(12)
	for slot, want := range map[uint64]uint64{12: 2, 13: 3, 14: 1, 22: 1, 23: 0} {
		q := p
		if got := q.countInFullSlots(slot); got != want {
			t.Errorf("last(%d) = %d, want %d", slot, got, want)
		}
	}
}

func TestTrendPoints(t *testing.T) {
	w := trend{kept: true, born: 5, second: 5}
	w.advanceToSecond(7, 10)
	w.advanceToSecond(8, 20)
	if got := w.pointsSoFar().Points(); !slices.Equal(got, []uint64{10, 10, 20}) {
		t.Errorf("list() = %v, want [10 10 20]", got)
	}
	w.raiseCurrent(50)
	w.raiseCurrent(40)
	if got := w.recentMost(); got != 50 {
		t.Errorf("held() = %d, want 50", got)
	}
	w.advanceToSecond(9, 5)
	if got := w.pointsSoFar().Points(); !slices.Equal(got, []uint64{10, 10, 20, 50}) || w.recentMost() != 50 {
		t.Errorf("list() = %v, want the most of each second; held() = %d", got, w.recentMost())
	}
	w.advanceToSecond(10, 5)
	if got := w.recentMost(); got != 5 {
		t.Errorf("held() = %d after a second, want 5", got)
	}
	w.advanceToSecond(1000, 30)
	if got := w.pointsSoFar().Points(); len(got) != trendPoints || slices.Min(got) != 30 {
		t.Errorf("after a long silence list() = %v, want 60 times 30", got)
	}
}

// TestDamagedTrend: a viewer gets what a session of another version may have sent.
func TestDamagedTrend(t *testing.T) {
	for _, data := range []string{"", "\x80", "\x05\x07", "\x05\x07\x80", "\x05\x80\x01", "\x7f\x07\x3d", "\x7f\x07\x3c\x08\x01", "\x02\x07\x03"} {
		if err := new(Trend).GobDecode([]byte(data)); err == nil {
			t.Errorf("%q is taken", data)
		}
	}
}

// plainTrend keeps every point of a trend.
type plainTrend struct {
	points map[uint64]uint64 // by second
	trend  trend             // its born, second and most
}

func (p *plainTrend) advance(second, value uint64) {
	p.trend.raiseCurrent(value)
	for ; p.trend.second < second; p.trend.second++ {
		p.points[p.trend.second], p.trend.most = p.trend.most, value
	}
}

func (p *plainTrend) list() []uint64 {
	points := []uint64{}
	for s := p.trend.second - p.trend.countPoints(); s < p.trend.second; s++ {
		points = append(points, p.points[s])
	}
	return points
}

func TestTrendsAreExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var trends [2]trend
		var plain [2]plainTrend
		second := uint64(random.IntN(5))
		for i := range trends {
			trends[i] = trend{kept: true, born: second, second: second}
			plain[i] = plainTrend{points: map[uint64]uint64{}, trend: trends[i]}
			for range random.IntN(40) {
				second += uint64([]int{0, 1, 1, 2, 30, 59, 60, 61, 200}[random.IntN(9)])
				value := uint64(random.IntN(3))
				trends[i].advanceToSecond(second, value)
				plain[i].advance(second, value)
				if got, want := trends[i].pointsSoFar().Points(), plain[i].list(); !slices.Equal(got, want) || trends[i].most != plain[i].trend.most {
					t.Fatalf("%v, want %v", got, want)
				}
			}
		}
		trends[0].advanceToSecond(second, 1)
		trends[1].advanceToSecond(second, 1)
		sent, _ := trends[0].pointsSoFar().GobEncode()
		var got Trend
		if err := got.GobDecode(sent); err != nil || !got.Equal(trends[0].pointsSoFar()) || got.end != second {
			t.Fatalf("%v came as %v: %v", trends[0].pointsSoFar(), got, err)
		}
		a, b := trends[0].pointsSoFar().Points(), trends[1].pointsSoFar().Points()
		trends[0].addTrend(&trends[1])
		for i, got := range slices.Backward(trends[0].pointsSoFar().Points()) {
			want := uint64(0)
			for _, list := range [2][]uint64{a, b} {
				if n := len(list) - (int(trends[0].countPoints()) - i); n >= 0 {
					want += list[n]
				}
			}
			if got != want {
				t.Fatalf("point %d of the sum of %v and %v is %d", i, a, b, got)
			}
		}
	}
}

// TestHeldIsTheMostOfASecond: a loop that holds nothing at the end of a slot still held something in it.
func TestHeldIsTheMostOfASecond(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 64, 64, 1)
	s.release(1, wire.OutcomeCached)
	for _, at := range []struct{ ms, want uint64 }{{50, 64}, {1000, 64}, {1100, 0}, {3_600_000, 0}} {
		s.AdvanceTime(streamStart + at.ms*1_000_000)
		if got := s.Snapshot().Totals.Held; got != at.want {
			t.Errorf("after %d ms: %d, want %d", at.ms, got, at.want)
		}
	}
	s.time = streamStart + 3_600_100*1_000_000
	s.miss(2, 2, 36, 36, 1)
	s.AdvanceTime(streamStart + 3_700_000*1_000_000)
	if got := s.Snapshot().Totals.Held; got != 36 {
		t.Errorf("of what stays: %d, want 36", got)
	}
}

func TestHistoryDoublesItsSpacing(t *testing.T) {
	var h history
	const started = 1000
	for slot := range uint64(5000) {
		h.closeSamples(started, slot, Sample{InUse: slot})
		h.pending.Hits++
	}
	if h.spacing != 16 || len(h.samples) != 4999/16 {
		t.Fatalf("%d samples with a spacing of %d slots, want 312 of 16", len(h.samples), h.spacing)
	}
	for i, s := range h.samples {
		if want := started + uint64(i+1)*16*slotNS; s.Time != want {
			t.Errorf("sample %d is at %d, want %d", i, s.Time, want)
		}
		// A hit was counted in each slot, before the advance that closes it.
		if s.Hits != 16 {
			t.Errorf("sample %d has %d hits, want 16", i, s.Hits)
		}
		if want := uint64(i+1) * 16; s.InUse != want {
			t.Errorf("sample %d has gauge %d, want %d: the value at its end", i, s.InUse, want)
		}
	}
}

func TestHistoryAfterALongSilence(t *testing.T) {
	var h history
	h.closeSamples(0, 3, Sample{})
	h.pending.Creates = 7
	h.closeSamples(0, 1<<40, Sample{InUse: 9})
	if len(h.samples) > HistoryMax {
		t.Errorf("%d samples", len(h.samples))
	}
	var creates uint64
	for _, s := range h.samples {
		creates += s.Creates
	}
	if creates += h.pending.Creates; creates != 7 {
		t.Errorf("%d creates in the history, want 7", creates)
	}
}

// A buffer that lives for less than a slot shows in the history all the same.
func TestHistoryShowsWhatCameAndWentWithinASlot(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 4096, 4096, 1)
	s.release(1, wire.OutcomeCached)
	s.AdvanceTime(streamStart + slotNS)
	history := s.Snapshot().History
	if len(history) != 1 || history[0].InUse != 4096 || history[0].Cached != 0 {
		t.Errorf("history %+v, want one sample with 4096 in use", history)
	}
}
