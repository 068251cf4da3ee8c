package carve

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTallyIsExact compares sums of squares with exact ones: large and small values come and go, several at once, and nothing is
// left of them.
func TestTallyIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var w Tally
	sum := new(big.Int)
	type ranges struct {
		size  uint64
		count int
	}
	var list []ranges
	squares := func(r ranges) *big.Int {
		b := new(big.Int).SetUint64(r.size)
		return b.Mul(b, b).Mul(b, big.NewInt(int64(r.count)))
	}
	for range 3000 {
		if len(list) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(list))
			w.AddRanges(list[i].size, -list[i].count)
			sum.Sub(sum, squares(list[i]))
			list = slices.Delete(list, i, i+1)
		} else {
			r := ranges{rng.Uint64() >> (8 + rng.IntN(56)), 1 + rng.IntN(100)}
			w.AddRanges(r.size, r.count)
			sum.Add(sum, squares(r))
			list = append(list, r)
		}
		got := new(big.Int).SetUint64(w.high)
		got.Lsh(got, 64).Add(got, new(big.Int).SetUint64(w.low))
		if got.Cmp(sum) != 0 {
			t.Fatalf("the sum is %v, want %v", got, sum)
		}
		if want, _ := new(big.Float).SetInt(sum).Float64(); math.Abs(w.Squares()-want) > 1e-15*want {
			t.Fatalf("the sum is %g, want %g", w.Squares(), want)
		}
	}
	for _, r := range list {
		w.AddRanges(r.size, -r.count)
	}
	if w != (Tally{}) || w.Squares() != 0 {
		t.Errorf("%+v is left of nothing", w)
	}
}
