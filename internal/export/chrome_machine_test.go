package export

import (
	"bytes"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestChromeMachine: what the machine reports of all devices of a process is a counter, beside what is reserved.
func TestChromeMachine(t *testing.T) {
	p := labtest.NewTape()
	p.AddCreate(1, 64)
	for _, m := range []wire.MachineFields{
		{Source: wire.MachineDRM, Device: 0x300, Resident: 100}, {Source: wire.MachineDRM, Device: 0x400, Resident: 20},
		{Source: wire.MachineRSS, Resident: 1000}, {Source: wire.MachineDRM, Unread: 13},
	} {
		p.AddEvent(m.Event())
	}
	var b bytes.Buffer
	if _, err := WriteChrome(&b, p, Facts{}, TraceOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"name":"machine drm"`, `{"resident":100,"drivers_own":36}`, `{"resident":120,"drivers_own":56}`, `{"resident":1000}`,
	} {
		if strings.Count(b.String(), want) == 0 {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), `"machine `); n != 3 {
		t.Errorf("%d values", n)
	}
}
