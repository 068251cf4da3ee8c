package analysis

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// What is mapped several times over is a mistake; what threads or frames in flight map is not. References of a program that goes on
// count once they have grown for a while.
func TestPairsThatStayOpen(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  stats.ObjectType
		state stats.State
		site  stats.ObjectSite
		own   bool
		want  string
	}{
		{"maps", stats.Mappings, stats.Running, pairSite(60, 60, 60, 60), true, "60 maps at x.c:1, 0 unmaps"},
		{"released while mapped", stats.Mappings, stats.Exited, forgotten(60), true, "60 maps at x.c:1, 0 unmaps before the release of the memory"},
		{"attached", stats.Mappings, stats.Running, pairSite(60, 59, 60, 9), false, "60 maps of memory created at x.c:1, 1 unmap"},
		{"one mapping of each buffer", stats.Mappings, stats.Exited, pairSite(60, 60, 60, 1), true, ""},
		{"some in flight", stats.Mappings, stats.Running, pairSite(1000, 8, 0, 8), true, ""},
		{"retains", stats.References, stats.Exited, pairSite(100, 100, 0, 100), true, "100 retains of memory created at x.c:1, 0 releases of that memory"},
		{"retains that are known", stats.References, stats.Exited, retained(pairSite(100, 99, 0, 100)), true, "100 retains at x.c:1, 1 release of that memory"},
		{"retains of late", stats.References, stats.Running, pairSite(100, 100, 100, 100), true, ""},
		{"retains for long", stats.References, stats.Running, pairSite(100, 100, 50, 100), true, "100 retains of memory created at x.c:1, 0 releases of that memory"},
		{"acquires", stats.Acquisitions, stats.Running, pairSite(60, 59, 60, 9), true, "60 acquires of memory created at x.c:1, 1 release to OpenGL"},
		{"acquired by a few queues", stats.Acquisitions, stats.Running, pairSite(7, 7, 7, 7), true, ""},
		{"a few copies", stats.References, stats.Exited, pairSite(30, 30, 0, 30), true, ""},
	} {
		s := &stats.Snapshot{
			Processes: []stats.Process{{State: c.state}}, Transfers: stats.Transfers{OwnSites: c.own},
			Pairs: []stats.ObjectCount{{Type: c.kind, Live: c.site.Live, Sites: []stats.ObjectSite{c.site}}},
		}
		got := ""
		for _, d := range FindUnpairedCalls(s, false) {
			got += d.Text
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func pairSite(created, live uint64, recent int64, deepest uint64) stats.ObjectSite {
	return stats.ObjectSite{Tag: "x.c:1", Created: created, Live: live, Recent: recent, Pairing: stats.Pairing{Deepest: deepest}}
}

func retained(s stats.ObjectSite) stats.ObjectSite {
	s.Own = true
	return s
}

func forgotten(n uint64) stats.ObjectSite {
	s := pairSite(n, n, 0, n)
	s.Forgotten = n
	return s
}

// What several devices hold together says nothing certain of one of them, and a process among several is named.
func TestNearlyFullNamesWhatItKnows(t *testing.T) {
	for devices, want := range map[int]string{
		1: "device memory is nearly full: 950 B of 1000 B are reserved, and 0 B in use, by rank 1 (pid 7)",
		2: "device memory may be nearly full: 950 B are reserved on 2 devices together, and 0 B in use; one of them has 1000 B, by rank 1 (pid 7)",
	} {
		rank := uint64(1)
		p := stats.Process{PID: 7, Rank: &rank, DeviceMemory: 1000, Devices: devices, Totals: stats.Totals{Cached: 950}}
		d, _ := findFullDevice(&Evidence{Run: &stats.Snapshot{Processes: []stats.Process{p, {}}}})
		if got := d.Title + ": " + d.Text; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
