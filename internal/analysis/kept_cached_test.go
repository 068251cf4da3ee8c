package analysis

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestKeptForNothing: a block that stays free to the end, and others that nearly do.
func TestKeptForNothing(t *testing.T) {
	for name, test := range map[string]struct {
		reused int // of the seconds after the release, when a request takes the block; 0: never
		long   uint64
		want   bool
	}{
		"kept": {0, 4000, true}, "asked for": {3, 4000, false}, "asked for at first": {1, 4000, true}, "a short run": {0, 800, false},
	} {
		s := newTape()
		s.release(s.create(wire.OutcomeMiss, 1, mib, mib, 1), wire.OutcomeCached).Link = 1
		begun := s.now
		if test.reused > 0 {
			s.now += uint64(test.reused) * 1000 * ms
			s.release(s.create(wire.OutcomeHit, 1, mib, mib, 1), wire.OutcomeCached).Link = 1
		}
		s.now = begun + test.long*ms
		s.exit()
		found := ""
		for _, d := range s.analyse(t).Diagnoses {
			if strings.HasPrefix(d.Title, "the pool keeps memory") {
				found = d.Text
			}
		}
		if (found != "") != test.want || test.want && !strings.HasPrefix(found, "1.00 MiB in 1 block stayed free for ") {
			t.Errorf("%s: found %q", name, found)
		}
	}
}
