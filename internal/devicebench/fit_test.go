package devicebench

import (
	"math"
	"testing"
)

// on returns points of a line, as sizes from 4 KiB on.
func on(n int, cost func(size float64) float64) []measured {
	var list []measured
	for i := range n {
		size := uint64(4<<10) << i
		ns := cost(float64(size))
		list = append(list, measured{size, ns, max(ns, grain)})
	}
	return list
}

func alike(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a), math.Abs(b)) }

func TestFitted(t *testing.T) {
	f := fitLines(on(20, func(s float64) float64 { return 300 + 0.5*s }))
	if !alike(f.A, 300) || !alike(f.B, 0.5) || f.Below.Bytes != 0 || !alike(f.R2, 1) || f.Error > 1e-6 {
		t.Errorf("a line: %+v", f)
	}
	points := on(20, func(s float64) float64 { return 300 + 0.5*s })
	points[3].ns *= 40 // something else ran
	points[3].scale = points[3].ns
	if f = fitLines(points); math.Abs(f.A-300) > 15 || math.Abs(f.B-0.5) > 0.01 || f.Below.Bytes != 0 {
		t.Errorf("a line with one point that is wrong: %+v, %+v", f, f.Below)
	}
	f = fitLines(on(20, func(s float64) float64 {
		if s < 1<<20 {
			return 100
		}
		return 5000 + s
	}))
	if f.Below.Bytes != 1<<20 || !alike(f.Below.A, 100) || !alike(f.B, 1) || f.Error > 0.01 {
		t.Errorf("two lines: %+v, %+v", f, f.Below)
	}
	if f.CallNS(1<<19) > 101 || f.CallNS(1<<20) < 1<<20 {
		t.Errorf("costs around the break: %v, %v", f.CallNS(1<<19), f.CallNS(1<<20))
	}
}

// A cost is never less than nothing, and few points make no trouble.
func TestFittedEdges(t *testing.T) {
	if f := fitLines(nil); f.A != 0 || f.B != 0 || f.R2 != 1 {
		t.Errorf("no points: %+v", f)
	}
	if f := fitLines(on(1, func(float64) float64 { return 70 })); !alike(f.A, 70) || f.B != 0 {
		t.Errorf("one point: %+v", f)
	}
	if f := fitLines(on(2, func(s float64) float64 { return 1000 + s })); !alike(f.A, 1000) || !alike(f.B, 1) {
		t.Errorf("two points: %+v", f)
	}
	falling := fitLines(on(5, func(s float64) float64 { return 1e5 - s }))
	steep := fitLines(on(5, func(s float64) float64 { return s * s }))
	if falling.B != 0 || falling.A <= 0 || steep.A != 0 || steep.B <= 0 {
		t.Errorf("falling %+v, steep %+v", falling, steep)
	}
	if f := fitLines(on(8, func(float64) float64 { return 0 })); f.A != 0 || f.B != 0 || f.Error != 0 {
		t.Errorf("nothing: %+v", f)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2}, 2}} {
		if got := median(c.in); got != c.want {
			t.Errorf("%v: %v", c.in, got)
		}
	}
}

func TestJudge(t *testing.T) {
	point := func(size uint64, create, touch float64) Point {
		return Point{Size: size, Create: create, Touch: touch, Reuse: 1000, N: 9}
	}
	if v := residencyOfLargeSizes(nil); v.Lazy || v.Residency != "" {
		t.Errorf("no points: %+v", v)
	}
	if v := residencyOfLargeSizes([]Point{point(4<<10, 10, 9999), point(128<<10, 10, 9999)}); v.Lazy || v.Residency != "" {
		t.Errorf("small ones: %+v", v)
	}
	if v := residencyOfLargeSizes([]Point{point(4<<10, 10, 0), point(1<<20, 10, 9000), point(2<<20, 10, 9000)}); v.Residency != ByPage || v.DriverCaches {
		t.Errorf("by page: %+v", v)
	}
	cached := point(1<<20, 10, 0)
	cached.Fresh = &Fresh{Create: 20, Touch: 9000, N: 2}
	if v := residencyOfLargeSizes([]Point{cached}); v.DriverCaches || v.CachesUpTo != 0 || !v.Lazy {
		t.Errorf("one size may be chance: %+v", v)
	}
	if v := residencyOfLargeSizes([]Point{cached, cached}); !v.DriverCaches || v.CachesUpTo != 1<<20 || !v.Lazy {
		t.Errorf("cached: %+v", v)
	}
	// Some ns less are nothing that a program would notice.
	cached.Fresh = &Fresh{Create: 300, N: 2}
	if v := residencyOfLargeSizes([]Point{cached, cached}); v.DriverCaches {
		t.Errorf("worth nothing: %+v", v)
	}
}
