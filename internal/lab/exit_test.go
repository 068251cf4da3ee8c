package lab

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// brief is a process that leaves a buffer to the driver, has one in its pool, and one cooling there, when it is gone. Its
// own EXIT comes before the release of the second.
func brief(number uint32) *tape {
	s := newTape()
	s.process = number
	s.records = nil
	s.device(1<<30, 1<<28, 128)
	s.add(wire.Event{Kind: wire.KindContext, Op: uint8(wire.LifeCreate), Object: scope, Link: 7})
	for i := range uint64(3) {
		s.create(i+1, 4096)
	}
	s.release(3, wire.OutcomeCooling, wire.FlagWouldRace)
	s.add(wire.Event{Kind: wire.KindExit})
	s.by(9)
	s.release(2, wire.OutcomeCached, 0)
	s.add(wire.Event{Kind: wire.KindExit})
	return s
}

// TestProcessesThatAreGone take no memory any more, here and of the device, and what they did still counts.
func TestProcessesThatAreGone(t *testing.T) {
	const processes = 50
	c := NewChorus()
	for _, policy := range []string{"futhark", "slab"} {
		if _, err := c.Add(ReplayOptions{Policy: policy}); err != nil {
			t.Fatal(err)
		}
	}
	all := newTape()
	all.records = nil
	for n := range uint32(processes) {
		s := brief(n + 1)
		all.records = append(all.records, s.records...)
		for i := range s.records {
			c.Read(&s.records[i])
		}
		for voice := range c.voices {
			if err := c.Play(voice); err != nil {
				t.Fatal(err)
			}
		}
		c.Clear()
	}
	if n := len(c.resolver.processes); n != 0 || c.resolver.script.slots != 3 {
		t.Errorf("%d processes are known, %d slots taken", n, c.resolver.script.slots)
	}
	for voice, policy := range []string{"futhark", "slab"} {
		p := c.voices[voice]
		for _, one := range p.processes {
			if one != nil {
				t.Fatalf("%s keeps a process", policy)
			}
		}
		one := brief(1).replay(t, policy, 0)
		r := c.Result(voice, cost.Device{})
		if r.Processes != processes || r.Requests != 3*processes || r.Misses+r.Hits != 3*processes || r.PeakInUse != one.PeakInUse ||
			r.PeakReserved != one.PeakReserved || r.InUse != processes*one.InUse || r.Cached != processes*one.Cached || one.InUse != 4096 {
			t.Errorf("%s: %+v\none process: %+v", policy, r, one)
		}
		if c.Reserved(voice) != one.PeakReserved {
			t.Errorf("%s: %d are reserved, the last left %d", policy, c.Reserved(voice), one.PeakReserved)
		}
		if again := all.replay(t, policy, 0); again.PeakReserved != r.PeakReserved || again.InUse != r.InUse {
			t.Errorf("%s: a replay says %+v", policy, again)
		}
	}
}
