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
	s := labtest.Empty(number)
	s.Device(1<<30, 1<<28, 128)
	s.Context(labtest.Scope)
	for i := range uint64(3) {
		s.Create(i+1, 4096)
	}
	s.Release(3, wire.OutcomeCooling).Flags = wire.FlagWouldRace
	s.By(9).Add(wire.Event{Kind: wire.KindExit})
	s.By(0).Release(2, wire.OutcomeCached)
	s.Add(wire.Event{Kind: wire.KindExit})
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
	all := labtest.Empty(0)
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
		c.ForgetRead()
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
		if c.ReservedBytes(member) != one.PeakReserved {
			t.Errorf("%s: %d are reserved, the last left %d", policy, c.ReservedBytes(member), one.PeakReserved)
		}
		if again := replay(t, all, policy, 0); again.PeakReserved != r.PeakReserved || again.InUse != r.InUse {
			t.Errorf("%s: a replay says %+v", policy, retried)
		}
	}
}
