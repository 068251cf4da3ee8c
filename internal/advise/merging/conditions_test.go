package merging

import (
	"slices"
	"testing"
)

// TestEachConditionRefusesItsCopy has one program for each way in which a copy fails, and programs that must not be refused.
func TestEachConditionRefusesItsCopy(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(s *script) int // returns the copy
		want []Condition
	}{
		{"all hold", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			s.step(KindKernel, writes(src))
			return s.copy(src, dst, 128)
		}, nil},
		{"the source is read later", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			s.step(KindKernel, writes(src))
			n := s.copy(src, dst, 0)
			s.step(KindKernel, reads(src))
			return n
		}, []Condition{LastUse}},
		{"the source is overwritten later", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			s.step(KindKernel, writes(src))
			n := s.copy(src, dst, 0)
			s.fill(src)
			return n
		}, nil},
		{"the source stays mapped", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			s.step(KindMap, Use{Buffer: src, Writes: true})
			return s.copy(src, dst, 0)
		}, []Condition{LastUse}},
		{"the destination comes later", func(s *script) int {
			src := s.create(128, 1)
			s.step(KindKernel, writes(src))
			return s.copy(src, s.create(512, 2), 0)
		}, []Condition{Allocated}},
		{"other bytes of the destination are used", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			s.step(KindKernel, writes(src))
			s.step(KindFill, Use{Buffer: dst, Bytes: 128, Extent: Range, Writes: true})
			return s.copy(src, dst, 128)
		}, nil},
		{"a part of the destination is used", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			part := s.create(128, 3)
			s.Buffers[part].Parent, s.Buffers[part].Offset = dst, 128
			s.step(KindKernel, writes(src))
			s.step(KindKernel, reads(part))
			return s.copy(src, dst, 128)
		}, []Condition{Undisturbed}},
		{"the destination is mapped meanwhile", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			s.step(KindMap, reads(dst))
			s.step(KindKernel, writes(src))
			n := s.copy(src, dst, 0)
			s.step(KindUnmap, Use{Buffer: dst})
			return n
		}, []Condition{Undisturbed}},
		{"the source is a part", func(s *script) int {
			dst, whole := s.create(512, 2), s.create(128, 1)
			src := s.create(128, 3)
			s.Buffers[src].Parent = whole
			s.step(KindKernel, writes(src))
			return s.copy(src, dst, 0)
		}, []Condition{OwnMemory}},
		{"the source is the host's", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			s.Buffers[src].Pinned = HostPtr
			s.step(KindKernel, writes(src))
			return s.copy(src, dst, 0)
		}, []Condition{OwnMemory}},
		{"source and destination are one buffer", func(s *script) int {
			one := s.create(512, 2)
			s.step(KindKernel, writes(one))
			return s.step(KindCopy, Use{Buffer: one, Bytes: 128, Extent: Range, Reads: true},
				Use{Buffer: one, Offset: 256, Bytes: 128, Extent: Range, Writes: true})
		}, []Condition{OwnMemory, Addressable}},
		{"the place is not aligned", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			s.step(KindKernel, writes(src))
			return s.copy(src, dst, 64)
		}, []Condition{Addressable}},
		{"the place may depend on the source", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			s.step(KindKernel, writes(src))
			s.step(KindRead, reads(src))
			return s.copy(src, dst, 128)
		}, []Condition{Addressable}},
		{"rectangles", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			s.step(KindKernel, writes(src))
			return s.step(KindCopy, s.all(reads(src)), Use{Buffer: dst, Bytes: 128, Extent: Scattered, Writes: true})
		}, []Condition{Addressable}},
		{"a part of what a kernel made", func(s *script) int {
			dst, src := s.create(512, 2), s.create(256, 1)
			s.step(KindKernel, writes(src))
			return s.step(KindCopy, Use{Buffer: src, Bytes: 128, Extent: Range, Reads: true},
				Use{Buffer: dst, Bytes: 128, Extent: Range, Writes: true})
		}, []Condition{Addressable}},
		{"a part of a source that has parts", func(s *script) int {
			dst, src := s.create(512, 2), s.create(384, 1)
			part := s.create(128, 3)
			s.Buffers[part].Parent, s.Buffers[part].Offset = src, 128
			s.step(KindFill, s.all(writes(part)))
			return s.step(KindCopy, Use{Buffer: src, Offset: 128, Bytes: 128, Extent: Range, Reads: true},
				Use{Buffer: dst, Bytes: 128, Extent: Range, Writes: true})
		}, []Condition{Addressable}},
		{"another queue reads the source", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			s.step(KindKernel, writes(src))
			s.Steps[s.step(KindKernel, reads(src))].Queue = 1
			return s.copy(src, dst, 0)
		}, []Condition{Order}},
		{"another queue used the destination", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			s.Steps[s.step(KindKernel, reads(dst))].Queue = 1
			s.step(KindKernel, writes(src))
			return s.copy(src, dst, 0)
		}, []Condition{Order}},
		{"another queue used the destination and was waited for", func(s *script) int {
			dst, src := s.create(512, 2), s.create(128, 1)
			n := s.step(KindKernel, reads(dst))
			s.Steps[n].Queue, s.Steps[n].Done = 1, s.step(KindSync)
			s.step(KindKernel, writes(src))
			return s.copy(src, dst, 0)
		}, nil},
		{"the source comes with data", func(s *script) int {
			dst := s.create(512, 2)
			s.step(KindKernel, reads(dst))
			src := s.create(128, 1)
			s.Steps[s.Buffers[src].Created].Uses = []Use{s.all(writes(src))}
			return s.copy(src, dst, 0)
		}, []Condition{OwnMemory}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript()
			step := c.make(s)
			a, err := Analyse(&s.Program)
			if err != nil {
				t.Fatal(err)
			}
			copies := a.CheckCopies()
			i := slices.IndexFunc(copies, func(x Copy) bool { return x.Step == step })
			var got []Condition
			for _, f := range copies[i].Failed {
				got = append(got, f.Condition)
			}
			if !slices.Equal(got, c.want) || copies[i].Taken != (len(c.want) == 0) {
				t.Errorf("fails %v, taken %v; want %v: %+v", got, copies[i].Taken, c.want, copies[i])
			}
		})
	}
}

func TestNoOpCopyIsSeen(t *testing.T) {
	s := newScript()
	one := s.create(512, 2)
	part := s.create(128, 3)
	s.Buffers[part].Parent, s.Buffers[part].Offset = one, 256
	s.step(KindCopy, s.all(reads(part)), Use{Buffer: one, Offset: 256, Bytes: 128, Extent: Range, Writes: true})
	r := advise(t, &s.Program)
	if a := about(r, NoOpCopy); a.Bytes != 128 || a.Verdict != HoldsHere || r.Runs[0].NoOps != 1 {
		t.Errorf("%+v, want one copy of 128 bytes", a)
	}
}

func TestChainStopsWhereAnotherQueueMayStillRead(t *testing.T) {
	s := newScript()
	t2, t1, t0 := s.create(1024, 2), s.create(128, 1), s.create(128, 3)
	early := s.step(KindKernel, reads(t2))
	s.Steps[early].Queue = 1
	s.step(KindKernel, writes(t0))
	wait := s.step(KindSync)
	s.Steps[early].Done = wait
	s.copy(t0, t1, 0)
	s.copy(t1, t2, 0)
	a, err := Analyse(&s.Program)
	if err != nil {
		t.Fatal(err)
	}
	c := a.CheckCopies()
	if !c[0].MeetsConditions() || !c[1].MeetsConditions() || c[0].reach != 1 || c[0].Taken == c[1].Taken {
		t.Errorf("%+v: want both to hold and one to be taken", c)
	}
}

// An event orders two queues, and through it all before it on its own queue.
func TestEventsOrderQueues(t *testing.T) {
	for events, want := range map[string]bool{"none": false, "first": false, "last": true, "by way of another queue": true} {
		s := newScript()
		dst, src, other := s.create(256, 2), s.create(256, 3), s.create(8, 1)
		on := func(queue uint32, step int, after ...int) int {
			s.Steps[step].Queue, s.Steps[step].After = queue, after
			return step
		}
		first := on(1, s.step(KindKernel, writes(other)))
		last := on(1, s.step(KindKernel, writes(src)))
		var after []int
		switch events {
		case "first":
			after = []int{first}
		case "last":
			after = []int{last}
		case "by way of another queue":
			on(3, s.step(KindKernel, writes(other)), last)
			after = []int{on(3, s.step(KindKernel, writes(other)))}
		}
		on(2, s.step(KindKernel, writes(other)), after...)
		on(2, s.copy(src, dst, 0))
		on(2, s.step(KindRead, reads(dst)))
		a, err := Analyse(&s.Program)
		if err != nil {
			t.Fatal(err)
		}
		if c := a.CheckCopies()[0]; c.MeetsConditions() != want {
			t.Errorf("%s: %+v, want it to hold: %v", events, c.Failed, want)
		}
	}
}

func TestUsesOfALife(t *testing.T) {
	s := newScript()
	b := s.create(64, 1)
	s.step(KindSync)
	s.step(KindKernel, writes(b))
	s.Steps[2].Done = s.step(KindSync)
	s.step(KindSync)
	s.release(b)
	a, err := Analyse(&s.Program)
	if err != nil {
		t.Fatal(err)
	}
	l := a.Lives[b]
	if l.First != 2 || l.Last != 2 || l.Done != 3 {
		t.Errorf("%+v", l)
	}
}

func TestInPlaceAndHeldAreHinted(t *testing.T) {
	s := newScript()
	idle, in, out := s.create(4096, 3), s.create(512, 1), s.create(512, 2)
	s.step(KindKernel, writes(in))
	s.step(KindKernel, reads(in), writes(out))
	s.step(KindRead, reads(out))
	s.release(idle)
	r := advise(t, &s.Program)
	if a := about(r, InPlace); !slices.Equal(a.Sites, []string{"in", "out"}) || a.Verdict != Hinted || a.Bytes != 512 {
		t.Errorf("%+v, want a hint to write out over in", a)
	}
	if a := about(r, HeldEarly); a.Bytes != 4096 {
		t.Errorf("%+v, want 4096 bytes that nothing used", a)
	}
}

func TestContradictionsAreErrors(t *testing.T) {
	for name, p := range map[string]*Program{
		"a use before the create": {
			Buffers: []Buffer{{Size: 1, Parent: None, Created: 1, Released: None}},
			Steps:   []Step{{Done: None, Uses: []Use{{Buffer: 0}}}, {Done: None}},
		},
		"a use beyond the end": {
			Buffers: []Buffer{{Size: 8, Parent: None, Released: None}},
			Steps:   []Step{{Done: None, Uses: []Use{{Buffer: 0, Offset: 4, Bytes: 8, Extent: Range}}}},
		},
		"an unknown buffer": {Steps: []Step{{Done: None, Uses: []Use{{Buffer: 3}}}}},
		"a part before its parent": {
			Buffers: []Buffer{{Size: 1, Parent: 1, Released: None}, {Size: 1, Parent: None, Released: None}},
		},
		"done before it began": {Steps: []Step{{Done: None}, {Done: 0}}},
	} {
		if _, err := Analyse(p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
