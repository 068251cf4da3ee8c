package cost

import "testing"

func TestWork(t *testing.T) {
	d := Device{
		Create: Line{A: 100, B: 1, Below: Below{Bytes: 10, A: 5, B: 2}}, Touch: Line{A: 3}, Release: Line{A: 7, B: 0.5}, Part: Line{A: 1000},
	}
	w := NewWork(&d)
	w.Creates.Add(9)             // 5 + 18
	w.Creates.Add(10)            // 100 + 10
	w.Creates.AddPartOf(9, 1)    // 5 + 2
	w.Touches.AddPartOf(10, 100) // 3
	w.Releases.Add(4)            // 7 + 2
	if got := w.TotalNS(&d); got != 23+110+7+3+9 {
		t.Errorf("%g ns", got)
	}
	before := w
	w.Parts.Add(50)
	w.Creates.Add(20)
	since := w.Since(&before)
	if got := since.TotalNS(&d); got != 1000+120 {
		t.Errorf("%g ns since", got)
	}
}
