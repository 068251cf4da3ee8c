package ui

import (
	"fmt"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// moving has transfers of many call sites.
func moving(s *stats.Snapshot) *stats.Snapshot {
	t := &s.Transfers
	t.Unified, t.OwnSites, t.Window = true, true, [2]uint64{120 * mib, 3 * mib}
	t.Directions = [stats.AtCreate + 1]stats.Flow{
		stats.ToDevice: {Calls: 4000, Bytes: 1200 * mib, Blocking: 4000, TimedBytes: 1200 * mib, NS: 370e6, Pinned: 300 * mib, Pageable: 900 * mib},
		stats.ToHost:   {Calls: 40, Bytes: 300 * mib, Blocking: 40, TimedBytes: 300 * mib, NS: 150e6, Pageable: 300 * mib, Pages: 160, Cold: 80, Looks: 10},
		stats.Mapped:   {Calls: 2, Bytes: 4 * mib},
	}
	for i := range uint64(60) {
		t.Trend[0], t.Trend[1] = append(t.Trend[0], i*mib), append(t.Trend[1], (60-i)*mib)
	}
	for i := range 30 {
		flow := stats.Flow{Calls: 100, Bytes: 40 * mib, Blocking: 1, TimedBytes: mib, NS: 1e6}
		t.Sites = append(t.Sites, stats.TransferSite{Name: fmt.Sprintf("io.c:%d send_part_of_a_frame", i+1), Command: wire.CommandWrite, Flow: flow})
	}
	return s
}

func TestTransfersGolden(t *testing.T) {
	for _, size := range [][2]int{{140, 40}, {80, 24}, {60, 12}} {
		t.Run(itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
			d := newTest((&calls{}).options(), size[0], size[1], moving(sampleSnapshot()))
			press(d, "b")
			checkFrame(t, frameText(d), size[0], size[1])
			golden.RequireEqual(t, screen(d))
		})
	}
}

func TestTransfersPane(t *testing.T) {
	s := sampleSnapshot()
	d := newTest((&calls{}).options(), 100, 30, s)
	press(d, "b")
	shows(t, d, "no command has moved memory")
	moving(s)
	d = newTest((&calls{}).options(), 100, 30, s)
	press(d, "b", "G")
	shows(t, d, "io.c:30 send_part_of_a_frame", "in memory that host and device share", "3.2 GiB/s", "25.0% pinned", "into cold pages")
	hides(t, d, "io.c:1 send")
	press(d, "g")
	shows(t, d, "io.c:1 send")
	press(d, "b")
	hides(t, d, "io.c:1 send")
}
