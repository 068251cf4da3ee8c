package replay

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// brief is a process that ends while it has a buffer of the driver, one in its pool, and one that cools. Its own EXIT
// comes before the release of the second.
func brief(number uint32) *labtest.Tape {
	s := labtest.NewEmptyTape(number)
	s.AddDevice(1<<30, 1<<28, 128)
	s.AddContext(labtest.Scope)
	for i := range uint64(3) {
		s.AddCreate(i+1, 4096)
	}
	s.AddRelease(3, wire.OutcomeCooling).Flags = wire.FlagWouldRace
	s.SetThread(9).AddEvent(wire.Event{Kind: wire.KindExit})
	s.SetThread(0).AddRelease(2, wire.OutcomeCached)
	s.AddEvent(wire.Event{Kind: wire.KindExit})
	return s
}

// TestProcessesThatAreGone take no memory, of the simulation or the device, and their figures still count.
func TestProcessesThatAreGone(t *testing.T) {
	const processes = 50
	c := NewBatch()
	for _, policy := range []string{"futhark", "slab"} {
		if _, err := c.AddSimulation(Options{Policy: policy}); err != nil {
			t.Fatal(err)
		}
	}
	all := labtest.NewEmptyTape(0)
	for n := range uint32(processes) {
		s := brief(n + 1)
		all.Records = append(all.Records, s.Records...)
		for i := range s.Records {
			c.ReadRecord(&s.Records[i])
		}
		for member := range c.members {
			if err := c.PlayMember(member); err != nil {
				t.Fatal(err)
			}
		}
		c.ForgetReadSteps()
	}
	if n := len(c.resolver.processes); n != 0 || c.resolver.script.slots != 3 {
		t.Errorf("%d processes are known, %d slots taken", n, c.resolver.script.slots)
	}
	for member, policy := range []string{"futhark", "slab"} {
		p := c.members[member]
		for _, one := range p.processes {
			if one != nil {
				t.Fatalf("%s keeps a process", policy)
			}
		}
		one := replay(t, brief(1), policy, 0)
		r := c.ResultOfMember(member, cost.Device{})
		if r.Processes != processes || r.Requests != 3*processes || r.Misses+r.Hits != 3*processes || r.PeakInUse != one.PeakInUse ||
			r.PeakReserved != one.PeakReserved || r.InUse != processes*one.InUse || r.Cached != processes*one.Cached || one.InUse != 4096 {
			t.Errorf("%s: %+v\none process: %+v", policy, r, one)
		}
		if c.ReservedBytesOfMember(member) != one.PeakReserved {
			t.Errorf("%s: %d are reserved, the last left %d", policy, c.ReservedBytesOfMember(member), one.PeakReserved)
		}
		if again := replay(t, all, policy, 0); again.PeakReserved != r.PeakReserved || again.InUse != r.InUse {
			t.Errorf("%s: a replay says %+v", policy, retried)
		}
	}
}
