package export

import (
	"bytes"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestChromeSpill: with --spill a counter says where memory is, and what moved so far.
func TestChromeSpill(t *testing.T) {
	p := labtest.NewTape()
	p.AddCreate(1, 64)
	for _, s := range []wire.SpillFields{
		{Spill: wire.SpillFirst, Bytes: 64, Resident: 64}, {Spill: wire.SpillOut, Bytes: 64, Spilled: 64}, {Spill: wire.SpillIn, Bytes: 64, Resident: 64},
	} {
		p.AddEvent(s.Event())
	}
	var b bytes.Buffer
	if _, err := WriteChrome(&b, p, Facts{}, TraceOptions{}); err != nil {
		t.Fatal(err)
	}
	if want := `{"resident":64,"spilled":0,"out":64,"back":64}`; strings.Count(b.String(), want) != 1 {
		t.Errorf("no %s in\n%s", want, b.String())
	}
}
