package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestHistogramError(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, top := range []float64{10, 1e3, 1e6, math.MaxUint32} {
		var h Histogram
		var values []uint32
		for range 5000 {
			v := uint32(math.Exp(r.Float64()*math.Log(top))) + 1
			h.Add(uint64(v))
			values = append(values, v)
		}
		slices.Sort(values)
		for _, p := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
			exact := float64(values[int(math.Ceil(p*float64(len(values))))-1])
			got := float64(h.Percentile(p))
			if math.Abs(got-exact) > exact/32+0.5 {
				t.Errorf("top %g: percentile(%g) = %g, exact %g", top, p, got, exact)
			}
		}
	}
}

func TestHistogramEdges(t *testing.T) {
	var h Histogram
	if got := h.Percentile(0.5); got != 0 {
		t.Errorf("empty histogram has median %d", got)
	}
	if addMeasuredDuration(&h, 0); h.Total != 0 {
		t.Error("a duration of 0 was counted: it means not measured")
	}
	if h.Add(316_133); h.Percentile(0.5) != 316_133 || h.Percentile(0.99) != 316_133 {
		t.Errorf("the percentiles of one value are %d and %d", h.Percentile(0.5), h.Percentile(0.99))
	}
	h = Histogram{}
	h.Add(math.MaxUint64)
	h.Add(0)
	if h.Total != 2 || h.Percentile(0.5) != 0 {
		t.Errorf("%d values, the median is %d", h.Total, h.Percentile(0.5))
	}
	if got := float64(h.Percentile(1)); math.Abs(got-math.MaxUint64) > math.MaxUint64/32 {
		t.Errorf("maximum is %g", got)
	}
}

func TestSteadyAgainstExact(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var s Steady
	var before []uint64 // hits before request i
	hits := uint64(0)
	for n := uint64(1); n <= 20_000; n++ {
		before = append(before, hits)
		hit := r.Float64() < float64(n)/10_000
		if hit {
			hits++
		}
		s.AddRequest(hit)
		gotHits, requests := s.HitsOfLaterHalf()
		start := n - requests
		if late := start - n/2; start < n/2 || float64(late) > float64(n)/100 || n <= steadyNotes && late != 0 {
			t.Fatalf("after %d requests the later half begins at %d", n, start)
		}
		if want := hits - before[start]; gotHits != want {
			t.Fatalf("after %d requests: %d hits since %d, want %d", n, gotHits, start, want)
		}
	}
}

func TestSteadyEmpty(t *testing.T) {
	var s Steady
	if hits, requests := s.HitsOfLaterHalf(); hits != 0 || requests != 0 {
		t.Errorf("later() = %d, %d before the first request", hits, requests)
	}
}
