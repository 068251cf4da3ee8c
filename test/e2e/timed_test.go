package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestReleasesAreTimed: in a run that lasts, a few blocks of each size go to the driver, which replays repeat, so that what a release costs
// is known; in a short one, and with --no-relief, none does.
func TestReleasesAreTimed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pairs string // 10 ms or more apart
		flags []string
		timed bool
	}{{"1700", nil, true}, {"300", nil, false}, {"1300", []string{"--no-relief"}, false}} {
		t.Run(strings.Join(append(c.flags, c.pairs), " "), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "x.gmt")
			args := append([]string{gpumemtop(), "record", "-o", file}, c.flags...)
			r := run(t, command{args: append(args, "--", example("churn"), c.pairs, "64K", "1", "2", "10000")})
			if r.code != 0 {
				t.Fatalf("%s\n%s", r, r.stderr)
			}
			if again := decidedAgain(t, file); !again.IsExact() || again.First != "" {
				t.Errorf("replay: %+v", *again)
			}
			reader, err := recording.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			bySize := map[uint64]int{}
			for record, err := range recording.Records(reader) {
				if err != nil {
					t.Fatal(err)
				}
				if record.Kind == wire.KindEvict && record.AsEvict().Reason() == wire.EvictTimed {
					bySize[record.AsEvict().Bytes()]++
					if record.AsEvict().Cost() == 0 {
						t.Error("a release was not timed")
					}
				}
			}
			_ = reader.Close()
			all := 0
			for size, n := range bySize {
				if all += n; n > 8 {
					t.Errorf("%d blocks of %d bytes went", n, size)
				}
			}
			if slow := !c.timed && c.flags == nil && r.wall > 9*time.Second; c.timed != (all > 0) && !slow {
				t.Errorf("%v %v: %v", c.pairs, c.flags, bySize)
			}
		})
	}
}
