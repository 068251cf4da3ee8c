package cost

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestUsual(t *testing.T) {
	for name, c := range map[string]struct {
		calls []float64 // sizes and times
		want  Line
	}{
		"no call":             {},
		"one size":            {[]float64{64, 100, 64, 120, 64, 9000}, Line{A: 120}},
		"a line":              {[]float64{0, 100, 100, 300, 50, 200}, Line{A: 100, B: 2}},
		"one slow call":       {[]float64{64, 100, 64, 9e6, 64, 100, 1024, 100, 1024, 100, 1024, 100}, Line{A: 100}},
		"alone in its class":  {[]float64{64, 100, 64, 100, 1024, 9e6}, Line{A: 100}},
		"falls":               {[]float64{0, 300, 100, 100, 100, 100, 100, 100}, Line{A: 100}},
		"starts below zero":   {[]float64{1, 0, 2, 2, 4, 6}, Line{B: 1}},
		"one class of three":  {[]float64{64, 164, 64, 164, 256, 7e5, 256, 7e5, 1024, 1124, 1024, 1124, 4096, 4196, 4096, 4196}, Line{A: 100, B: 1}},
		"equal times":         {[]float64{64, 100, 128, 100}, Line{A: 100}},
		"a size of 0 at last": {[]float64{0, 7, 0, 7}, Line{A: 7}},
	} {
		var u Usual
		for i := 0; i < len(c.calls); i += 2 {
			u.AddCall(uint64(c.calls[i]), c.calls[i+1])
		}
		if got := u.MedianLine(); math.Abs(got.A-c.want.A) > 1e-6 || math.Abs(got.B-c.want.B) > 1e-6 {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestUsualOfMany: however many calls there are, the line is that of usual ones, and a class keeps few.
func TestUsualOfMany(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var u Usual
	for range 200_000 {
		size := uint64(1) << (10 + r.IntN(10))
		ns := 1000 + float64(size)/100
		if r.IntN(5) == 0 {
			ns *= 1000
		}
		u.AddCall(size, ns)
	}
	if got := u.MedianLine(); math.Abs(got.A-1000) > 1 || math.Abs(got.B-0.01) > 1e-4 || u.Calls != 200_000 {
		t.Errorf("%+v of %d calls", got, u.Calls)
	}
	for _, c := range u.classes {
		if c != nil && len(c.sizes) > classMax {
			t.Errorf("a class keeps %d calls", len(c.sizes))
		}
	}
}
