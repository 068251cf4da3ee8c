package stats

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestBetweenDevices has commands on the queues of two devices of one context, and how often contents had to move, and had to move back.
func TestBetweenDevices(t *testing.T) {
	kernel := wire.UseFields{Command: wire.CommandKernel, Object: 1}
	reads := wire.UseFields{Command: wire.CommandKernel, Object: 1, Reads: true}
	writes := wire.UseFields{Command: wire.CommandFill, Object: 1, Writes: true, Bytes: 1000}
	of := func(u wire.UseFields, command wire.Command) wire.UseFields {
		u.Command = command
		return u
	}
	on := func(queue uint64, u wire.UseFields) wire.UseFields {
		u.Queue = queue
		return u
	}
	for name, c := range map[string]struct {
		commands    []wire.UseFields
		calls, back uint64
	}{
		"one device":         {[]wire.UseFields{on(1, kernel), on(3, kernel), on(1, kernel)}, 0, 0},
		"back and forth":     {[]wire.UseFields{on(1, kernel), on(2, kernel), on(1, kernel), on(2, kernel)}, 3, 2},
		"read on both":       {[]wire.UseFields{on(1, writes), on(2, reads), on(1, reads), on(2, reads)}, 1, 0},
		"written in between": {[]wire.UseFields{on(1, writes), on(2, reads), on(1, writes), on(2, reads)}, 2, 1},
		"overwritten":        {[]wire.UseFields{on(1, writes), on(2, writes), on(1, writes)}, 0, 0},
		"migrated":           {[]wire.UseFields{on(1, kernel), on(2, of(kernel, wire.CommandMigrate)), on(2, kernel)}, 0, 0},
		"read back":          {[]wire.UseFields{on(1, kernel), on(2, of(reads, wire.CommandRead))}, 1, 0},
		"unmapped":           {[]wire.UseFields{on(1, kernel), on(2, of(kernel, wire.CommandUnmap))}, 0, 0},
		"unknown queue":      {[]wire.UseFields{on(1, kernel), on(9, kernel), on(2, kernel)}, 0, 0},
		"ended queue":        {[]wire.UseFields{on(1, kernel), on(4, kernel)}, 0, 0},
	} {
		s := newStream(Options{})
		for queue, device := range []uint64{1, 2, 1, 2} {
			s.feed(wire.QueueFields{Queue: uint64(queue + 1), Device: device}.Event())
		}
		s.feed(wire.QueueFields{Life: wire.LifeEnd, Queue: 4, Device: 2}.Event())
		s.miss(1, 1, 1000, 1024, 5)
		for _, u := range c.commands {
			s.feed(u.Event())
		}
		shown := s.Snapshot()
		got := shown.Transfers
		if run, process := shown.Totals.BetweenDevices, shown.Processes[0].Totals.BetweenDevices; run != 1000*c.calls || process != run {
			t.Errorf("%s: %d bytes in all, %d of the process, want %d", name, run, process, 1000*c.calls)
		}
		var site Flow
		for i := range got.Sites {
			if x := &got.Sites[i]; x.Between {
				site.AddFlow(&x.Flow)
				if x.Name != "tag 5" || x.CommandText() != "between devices" {
					t.Errorf("%s: %+v", name, x)
				}
			}
		}
		if want := (Flow{Calls: c.calls, Bytes: 1000 * c.calls, Again: c.back}); site != want || got.Directions[Between].Calls != c.calls {
			t.Errorf("%s: %+v and %+v, want %+v", name, site, got.Directions[Between], want)
		}
	}
}

// TestBetweenDevicesOfOneContextEach: nothing moves where each context has one device, or uses are not all known.
func TestBetweenDevicesOfOneContextEach(t *testing.T) {
	for _, alone := range []bool{false, true} {
		s := newStream(Options{TransfersOnly: alone})
		s.feed(wire.QueueFields{Queue: 1, Device: 1}.Event())
		if second := (wire.QueueFields{Queue: 2, Device: 1}); alone {
			second.Device = 2
			s.feed(second.Event())
		} else {
			s.feed(second.Event())
		}
		s.miss(1, 1, 1000, 1024, 5)
		s.uses(1, 1)
		s.uses(1, 2)
		if f := s.Snapshot().Transfers.Directions[Between]; f != (Flow{}) {
			t.Errorf("%v: %+v", alone, f)
		}
	}
}

// TestBetweenFollowsSubBuffersThemselves: the contents of their buffer are in several places then.
func TestBetweenFollowsSubBuffersThemselves(t *testing.T) {
	s := newStream(Options{})
	s.feed(wire.QueueFields{Queue: 1, Device: 1}.Event())
	s.feed(wire.QueueFields{Queue: 2, Device: 2}.Event())
	s.feed(wire.CreateFields{Object: 1, Requested: 100, Granted: 100}.Event())
	s.uses(1, 1)
	for part := range uint64(2) {
		s.feed(wire.CreateFields{Object: 2 + part, Requested: 50, Memory: wire.MemorySubBuffer, Parent: 1}.Event())
		s.uses(2+part, 1+part)
	}
	s.uses(1, 1)
	if f := s.Snapshot().Transfers.Directions[Between]; f != (Flow{}) {
		t.Errorf("%+v", f)
	}
	s.uses(2, 2)
	if f := s.Snapshot().Transfers.Directions[Between]; f.Calls != 1 || f.Bytes != 50 {
		t.Errorf("%+v", f)
	}
}
