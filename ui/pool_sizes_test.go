package ui

import (
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

func TestPoolGolden(t *testing.T) {
	for _, keys := range [][]string{{"4"}, {"5"}, {"enter"}} {
		for _, size := range [][2]int{{140, 42}, {80, 24}} {
			t.Run(keys[0]+itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
				d := newTest((&calls{}).options(), size[0], size[1], sampleSnapshot())
				press(d, keys...)
				checkFrame(t, frameText(d), size[0], size[1])
				golden.RequireEqual(t, screen(d))
			})
		}
	}
}

// TestEnterNarrowsThePool: enter shows a site's free list and its misses alone, esc the whole pool again.
func TestEnterNarrowsThePool(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, sampleSnapshot())
	shows(t, d, "pool by size", "too wasteful")
	press(d, "4")
	shows(t, d, "SIZE+", "REUSE")
	press(d, "enter")
	shows(t, d, "free list blur.c:88 make_tmp", "BYTES", "call stack", "01:22.9")
	hides(t, d, "conv.c:203 im2col", "SIZE+")
	press(d, "esc")
	shows(t, d, "pool by size", "conv.c:203 im2col")
	press(d, "4")
	shows(t, d, "SIZE+")
	press(d, "4", "5", "/", "t", "m", "p", "_", "enter")
	shows(t, d, "scan.c:77 tmp_flags", "misses  /tmp_")
	hides(t, d, "make_tmp", "im2col")
}

// TestWhereASizeFits: where a buffer of a size could come from, in the pool and on the device.
func TestWhereASizeFits(t *testing.T) {
	for _, test := range []struct {
		name, typed, want string
		change            func(s *stats.Snapshot)
	}{
		{"block", "48M", "48.0M now: free block of 64.0M (waste 25.0 %); fits the 14.1G that the device has left", nil},
		{"none", "1G", "1.00G now: no free block or range, the largest is 320.0M; fits the 14.1G that the device has left", nil},
		{"full", "15G", "15.0G now: no free block or range, the largest is 320.0M; does not fit: the device has 14.1G left", nil},
		{"with the cached", "14.4G", "14.4G now: no free block or range, the largest is 320.0M; fits the device once 257.6M of the cached go back", nil},
		{"slab", "200M", "200.0M now: free range of 320.0M in a slab; fits", func(s *stats.Snapshot) { s.Totals.SlabFree = 330 * mib }},
		{"too large at once", "5G", "does not fit: the device allocates at most 4.00G at once", func(s *stats.Snapshot) { s.Device.Largest = 4 * gib }},
		{"nothing", "1M", "1.00M now: nothing free in the pool; the device's memory is not known", func(s *stats.Snapshot) {
			s.Device.Global, s.Totals.Cached, s.Totals.LargestCached, s.Tags = 0, 0, 0, nil
		}},
		{"cooling only", "64M", "no free block or range", func(s *stats.Snapshot) {
			s.Totals.LargestCached = 4 * mib
			s.Tags[0].Free[3].Cooling = 2
		}},
		{"no size", "much", `✗ bad size "much"`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := sampleSnapshot()
			if test.change != nil {
				test.change(s)
			}
			d := newTest((&calls{}).options(), 160, 45, s)
			press(d, "F")
			shows(t, d, "would fit now: _")
			d.Update(pasted(test.typed))
			press(d, "enter")
			shows(t, d, test.want)
		})
	}
}

// TestSizeRows: the oldest block of a range of sizes, and what is in slabs.
func TestSizeRows(t *testing.T) {
	s := sampleSnapshot()
	s.Totals.SlabBytes, s.Totals.SlabFree = 64*mib, 16*mib
	rows := newTest((&calls{}).options(), 120, 36, s).sizeRows(s)
	if len(rows) != 6 || rows[0].label != "64.0M" || rows[0].oldest != s.Time-8e9 || rows[4].oldest != s.Time-2e8 || rows[1].oldest != 0 {
		t.Errorf("%+v", rows)
	}
	if in := rows[5].share; in.InUse != 48*mib || in.Cached != 16*mib {
		t.Errorf("in slabs %+v", in)
	}
}
