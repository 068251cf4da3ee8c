package analysis

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestSmallBuffersNeedMore: a process that grows by far more than its many buffers hold, and others that nearly do.
func TestSmallBuffersNeedMore(t *testing.T) {
	for name, test := range map[string]struct {
		buffers int
		size    uint64
		grown   uint64
		want    bool
	}{
		"small":               {overheadMany, 64, 30 * mib, true},
		"few":                 {overheadMany / 2, 64, 30 * mib, false},
		"hardly grows":        {overheadMany, 64, mib, false},
		"larger, so it grows": {overheadMany, 4096, 80 * mib, false},
	} {
		s := newTape()
		s.machine(40 * mib)
		s.machine(100 * mib) // the driver's start
		for range test.buffers {
			s.driver(1, test.size)
		}
		s.machine(100*mib + test.grown)
		for range overheadMany / 2 { // while the machine was asked, for all that is known
			s.driver(1, test.size)
		}
		found := ""
		for _, d := range s.analyse(t).Diagnoses {
			if strings.HasPrefix(d.Title, "many small") {
				found = d.Text
			}
		}
		if (found != "") != test.want || test.want && !strings.Contains(found, "live buffers, of 64 B on average, rose by 15000, the process's anonymous memory grew by at least 30.0 MiB, 2.05 KiB for each") {
			t.Errorf("%s: found %q", name, found)
		}
	}
}

func (t *tape) machine(bytes uint64) {
	t.put(wire.Event{Kind: wire.KindMachine, Op: uint8(wire.MachineRSS), Granted: bytes}, "")
}
