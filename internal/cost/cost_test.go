package cost

import (
	"math"
	"testing"
)

func TestDevice(t *testing.T) {
	d := Device{Create: Line{A: 100, B: 0.5}, Touch: Line{B: 2}, Release: Line{A: 7}, Part: Line{A: 3, B: 1}}
	if d.Create.CallNS(10) != 105 || d.Touch.CallNS(10) != 20 || d.Release.CallNS(10) != 7 || d.Part.CallNS(10) != 13 {
		t.Errorf("10 bytes take %g, %g, %g, %g", d.Create.CallNS(10), d.Touch.CallNS(10), d.Release.CallNS(10), d.Part.CallNS(10))
	}
}

func TestFit(t *testing.T) {
	fit := func(pairs ...float64) (f Fit) {
		for i := 0; i < len(pairs); i += 2 {
			f.AddCall(pairs[i], pairs[i+1])
		}
		return f
	}
	if f := fit(64, 100, 64, 200); f.StdDevOfCalls() != 50 {
		t.Errorf("standard deviation %g, want 50", f.StdDevOfCalls())
	}
	falling := fit(0, 300, 100, 100)
	if a, b, r2 := falling.LeastSquaresLine(); a != 300 || b != -2 || r2 != 1 {
		t.Errorf("free line %g + %g size, R² %g", a, b, r2)
	}
}

func TestBreak(t *testing.T) {
	l := Line{A: 1000, B: 0.5, Below: Below{Bytes: 64, A: 10, B: 2}}
	for size, want := range map[uint64]float64{0: 10, 63: 136, 64: 1032, 100: 1050} {
		if got := l.CallNS(size); got != want {
			t.Errorf("%d bytes take %g ns, want %g", size, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	good := Line{A: 1, B: 2, Below: Below{Bytes: 3, A: 4, B: 5}}
	if err := good.CheckCosts(); err != nil {
		t.Error(err)
	}
	for _, bad := range []Line{{A: -1}, {B: math.NaN()}, {A: math.Inf(1)}, {Below: Below{A: -2}}, {Below: Below{B: 1e30}}} {
		if bad.CheckCosts() == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

func TestAssumePart(t *testing.T) {
	for name, c := range map[string]struct{ device, want Device }{
		"takes nothing": {Device{}, Device{}},
		"known":         {Device{Create: Line{A: 1000}, Part: Line{A: 1}}, Device{Create: Line{A: 1000}, Part: Line{A: 1}}},
		"as a block of nothing": {
			Device{Create: Line{A: 1000, B: 1}, Release: Line{A: 200, B: 1}},
			Device{Create: Line{A: 1000, B: 1}, Release: Line{A: 200, B: 1}, Part: Line{A: 1200}, PartAssumed: true},
		},
		"small blocks are cheap": {
			Device{Create: Line{A: 90000, Below: Below{Bytes: 4096, A: 300}}},
			Device{Create: Line{A: 90000, Below: Below{Bytes: 4096, A: 300}}, Part: Line{A: 300}, PartAssumed: true},
		},
		"nothing takes no time": {Device{Create: Line{B: 1}}, Device{Create: Line{B: 1}, Part: Line{A: partMin}, PartAssumed: true}},
		"assumed before": {
			Device{Create: Line{A: 1000}, Part: Line{A: 5}, PartAssumed: true},
			Device{Create: Line{A: 1000}, Part: Line{A: 1000}, PartAssumed: true},
		},
	} {
		got := c.device
		if got.AssumePartCost(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
