package study

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestInterval(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		want   Interval
	}{
		"one pair":     {[]float64{2}, Interval{2, 2, 2, 0}},
		"two pairs":    {[]float64{3, 1}, Interval{2, 1, 3, 0.5}},
		"five pairs":   {[]float64{5, 1, 4, 2, 3}, Interval{3, 1, 5, 0.9375}},
		"six pairs":    {[]float64{6, 5, 1, 4, 2, 3}, Interval{3.5, 1, 6, 0.96875}},
		"nine: 2nd":    {[]float64{9, 8, 7, 6, 5, 4, 3, 2, 1}, Interval{5, 2, 8, 1 - 2*10/512.}},
		"twelve: 3rd":  {[]float64{12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, Interval{6.5, 3, 10, 1 - 2*79/4096.}},
		"equal values": {[]float64{1, 1, 1}, Interval{1, 1, 1, 0.75}},
	} {
		if got := medianInterval(c.values); math.Abs(got.Confidence-c.want.Confidence) > 1e-12 || got.Median != c.want.Median ||
			got.Low != c.want.Low || got.High != c.want.High {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestIntervalHoldsTheMedian draws from a skewed distribution with median 1: intervals miss it as rarely as they say.
func TestIntervalHoldsTheMedian(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, n := range []int{3, 6, 20} {
		const draws = 20_000
		held, said := 0, 0.0
		for range draws {
			values := make([]float64, n)
			for i := range values {
				values[i] = math.Exp(r.NormFloat64() * 2)
			}
			in := medianInterval(values)
			if said = in.Confidence; in.Low <= 1 && 1 <= in.High {
				held++
			}
		}
		if got := float64(held) / draws; math.Abs(got-said) > 0.015 {
			t.Errorf("of %d pairs: %.3f of the intervals hold the median, want %.3f", n, got, said)
		}
	}
}

func TestText(t *testing.T) {
	for want, speeds := range map[string][]float64{
		"2.00 times as fast as bare: 1.50 to 3.00 with 96 % confidence":          {1.5, 2, 2, 2, 2, 3},
		"0.50 times as fast as bare: 0.40 to 0.60 with 75 % confidence":          {0.4, 0.5, 0.6},
		"1.00 times as fast as bare, which is no difference that these runs can": {0.5, 1, 2},
		"4.00 times as fast as bare, by a single pair of runs":                   {4},
	} {
		r := Comparison{Configuration: "slab", Pairs: len(speeds), speeds: speeds, Bare: []uint64{1}, Pooled: []uint64{1}}
		r.computeMedians()
		if got := r.Text(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
