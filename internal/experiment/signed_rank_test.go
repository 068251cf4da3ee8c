package experiment

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSignedRank compares with all Walsh averages, sorted.
func TestSignedRank(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 60; n++ {
		var d, all []float64
		for range n {
			d = insertSorted(d, math.Round(r.NormFloat64()*20)/10) // with ties
		}
		for i := range d {
			for j := i; j < n; j++ {
				all = append(all, (d[i]+d[j])/2)
			}
		}
		slices.Sort(all)
		for _, level := range []float64{0.05, 0.004} {
			got, ok := signedRankInterval(d, level)
			out := criticalSignedRank(n, level)
			if ok != (out >= 0) || math.Abs(got.Median-median(all)) > 1e-6 {
				t.Fatalf("%d differences: %+v, %v; want the median %v", n, got, ok, median(all))
			}
			if ok && (math.Abs(got.Low-all[out]) > 1e-6 || math.Abs(got.High-all[len(all)-1-out]) > 1e-6) {
				t.Fatalf("%d differences: %+v, want %v to %v", n, got, all[out], all[len(all)-1-out])
			}
		}
	}
}

// TestSignedRankCritical tries all signs of few ranks, and compares with a table for more.
func TestSignedRankCritical(t *testing.T) {
	for n := 1; n <= 14; n++ {
		count := make([]int, n*(n+1)/2+1) // of sign patterns with each sum
		for signs := range 1 << n {
			sum := 0
			for s := uint(signs); s != 0; s &= s - 1 {
				sum += bits.TrailingZeros(s) + 1
			}
			count[sum]++
		}
		for _, level := range []float64{0.1, 0.05, 0.01, 0.001} {
			want, total := -1, 0
			for sum, c := range count {
				if total += c; float64(total)/float64(int(1)<<n) > level/2 {
					break
				}
				want = sum
			}
			if got := criticalSignedRank(n, level); got != want {
				t.Errorf("%d ranks at %v: %d, want %d", n, level, got, want)
			}
		}
	}
	// Critical values at 5 % and 1 % of tables that are printed in textbooks.
	for n, want := range map[int][2]int{20: {52, 37}, 25: {89, 68}, 30: {137, 109}, 40: {264, 220}, 50: {434, 373}} {
		for i, level := range []float64{0.05, 0.01} {
			if got := criticalSignedRank(n, level); got > want[i] || got < want[i]-want[i]/50 {
				t.Errorf("%d ranks at %v: %d, want %d or up to 2 %% less", n, level, got, want[i])
			}
		}
	}
}

// TestLevels computes the chance that any look errs where both arms are alike, as Armitage, McPherson and Rowe do (J. R.
// Statist. Soc. A 132, 1969): the density of a Brownian motion that has crossed no boundary yet, from look to look.
func TestLevels(t *testing.T) {
	for _, level := range []float64{0.01, 0.05, 0.1} {
		const points = 150
		phi := func(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }
		bound := func(n, look int) float64 {
			return math.Sqrt2 * math.Erfcinv(levelOfLook(level, look)) * math.Sqrt(float64(n))
		}
		var at, density [points]float64
		place := func(b float64) (width float64) {
			for i := range at {
				at[i] = b * (2*(float64(i)+0.5)/points - 1)
			}
			return 2 * b / points
		}
		n, look, errs := firstLook, 1, levelOfLook(level, 0)
		width, root := place(bound(firstLook, 0)), math.Sqrt(firstLook)
		for i, x := range at {
			density[i] = phi(x/root) / root * width
		}
		for next := quadruplesAtNextLook(n); next <= quadruplesMax; n, next, look = next, quadruplesAtNextLook(next), look+1 {
			b, s := bound(next, look), math.Sqrt(float64(next-n))
			before, chance := at, density
			for i, x := range before {
				errs += chance[i] * (math.Erfc((b-x)/s/math.Sqrt2) + math.Erfc((b+x)/s/math.Sqrt2)) / 2
			}
			width = place(b)
			for i, y := range at {
				density[i] = 0
				for j, x := range before {
					density[i] += chance[j] * phi((y-x)/s) / s * width
				}
			}
		}
		if errs > level || errs < 0.75*level {
			t.Errorf("level %v: %d looks err with %.4f", level, look, errs)
		}
	}
}

// TestFactorIsFoundWhateverDrifts: a factor is found whatever drifts in both.
func TestFactorIsFoundWhateverDrifts(t *testing.T) {
	var present, other []float64
	for i := range 6 {
		drift := 1 + 0.2*float64(i)
		present, other = append(present, drift*(0.6+0.001*float64(i%2))), append(other, drift)
	}
	got, ok := ComparePairs(present, other, 0.05)
	if !ok || math.Abs(got.Median+0.4) > 0.001 || math.Abs(got.Low+0.4) > 1e-6 || math.Abs(got.High+0.399) > 1e-6 {
		t.Errorf("%+v, %v", got, ok)
	}
	if _, ok := ComparePairs(present[:5], other[:5], 0.05); ok {
		t.Error("five pairs are too few")
	}
}
