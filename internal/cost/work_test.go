package cost

import "testing"

func TestWork(t *testing.T) {
	d := Device{
		Create: Line{A: 100, B: 1, Below: Below{Bytes: 10, A: 5, B: 2}}, Touch: Line{A: 3}, Release: Line{A: 7, B: 0.5}, Part: Line{A: 1000},
	}
	w := NewWork(&d)
	w.Creates.CountCall(9)              // 5 + 18
	w.Creates.CountCall(10)             // 100 + 10
	w.Creates.CountCallForPart(9, 1)    // 5 + 2
	w.Touches.CountCallForPart(10, 100) // 3
	w.Releases.CountCall(4)             // 7 + 2
	if got := w.TotalNS(&d); got != 23+110+7+3+9 {
		t.Errorf("%g ns", got)
	}
	before := w
	w.Parts.CountCall(50)
	w.Creates.CountCall(20)
	since := w.CallsSince(&before)
	if got := since.TotalNS(&d); got != 1000+120 {
		t.Errorf("%g ns since", got)
	}
}
