package carve

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTallyIsExact compares sums of squares with exact ones: large and small values come and go, and nothing is left of them.
func TestTallyIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var w Tally
	sum := new(big.Int)
	var list []uint64
	square := func(v uint64) *big.Int {
		b := new(big.Int).SetUint64(v)
		return b.Mul(b, b)
	}
	for range 3000 {
		if len(list) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(list))
			w.Add(list[i], -1)
			sum.Sub(sum, square(list[i]))
			list = slices.Delete(list, i, i+1)
		} else {
			v := rng.Uint64() >> (8 + rng.IntN(56))
			w.Add(v, 1)
			sum.Add(sum, square(v))
			list = append(list, v)
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
	for _, v := range list {
		w.Add(v, -1)
	}
	if w != (Tally{}) || w.Squares() != 0 {
		t.Errorf("%+v is left of nothing", w)
	}
}
