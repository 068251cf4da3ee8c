package merging

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// script builds programs for tests.
type script struct{ Program }

func (s *script) step(kind Kind, uses ...Use) int {
	n := len(s.Steps)
	done := None
	if kind == KindCreate || kind == KindRelease || kind == KindRead || kind == KindSync {
		done = n
	}
	s.Steps = append(s.Steps, Step{Kind: kind, Done: done, Uses: uses, Time: uint64(n+1) * 1000, Site: 99})
	return n
}

func (s *script) create(size uint64, site uint32) int {
	b := len(s.Buffers)
	s.Buffers = append(s.Buffers, Buffer{Size: size, Site: site, Parent: None, Created: s.step(KindCreate), Released: None})
	return b
}

func (s *script) release(b int) { s.Buffers[b].Released = s.step(KindRelease) }

func reads(b int) Use  { return Use{Buffer: b, Reads: true} }
func writes(b int) Use { return Use{Buffer: b, Writes: true} }

// all is a use of all bytes of a buffer by a command that certainly uses them.
func (s *script) all(u Use) Use {
	u.Extent, u.Bytes = Range, s.Buffers[u.Buffer].Size
	return u
}

func (s *script) fill(b int) { s.step(KindFill, s.all(writes(b))) }

func (s *script) copy(src, dst int, at uint64) int {
	to := s.all(writes(dst))
	to.Offset, to.Bytes = at, s.Buffers[src].Size
	return s.step(KindCopy, s.all(reads(src)), to)
}

func newScript() *script {
	return &script{Program{Align: 128, Names: map[uint32]string{1: "in", 2: "out", 3: "part", 99: "copy.c:9"}}}
}

func advise(t *testing.T, programs ...*Program) *Report {
	t.Helper()
	r, err := AdviseOnRuns(programs, Options{Form: Completion, Max: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func about(r *Report, topic Topic) *Advice {
	i := slices.IndexFunc(r.Advice, func(a Advice) bool { return a.Topic == topic })
	if i < 0 {
		return &Advice{Sentence: "(none)"}
	}
	return &r.Advice[i]
}

// series is figure 10.4: two arrays are created and concatenated.
func series() *Program {
	s := newScript()
	out, first, rest := s.create(1024, 2), s.create(128, 1), s.create(896, 3)
	s.step(KindKernel, writes(first))
	s.step(KindKernel, writes(rest))
	s.copy(first, out, 0)
	s.copy(rest, out, 128)
	s.release(first)
	s.release(rest)
	s.step(KindRead, reads(out))
	s.release(out)
	return &s.Program
}

func TestSeriesHalvesItsPeak(t *testing.T) {
	r := advise(t, series())
	run := r.Runs[0]
	if run.Now.Peak != 2048 || run.Merged.Peak != 1024 || run.Merged.Coalescings != 2 {
		t.Errorf("now %+v, merged %+v: want a peak of 2048, then 1024 with 2 coalescings", run.Now, run.Merged)
	}
	if run.Now.Allocated != 2048 || run.Now.Freed != 2048 || run.Merged.Allocated != 1024 || run.Merged.Freed != 1024 {
		t.Errorf("now %+v, merged %+v: want 2048 bytes allocated and freed, then 1024", run.Now, run.Merged)
	}
	c := about(r, Concat)
	if !slices.Equal(c.Offsets, []uint64{0, 128}) || !slices.Equal(c.Sites, []string{"out", "in", "part"}) || c.Verdict != HoldsHere {
		t.Errorf("concat %+v, want in and part at 0 and 128 of out, holding in this run", c)
	}
	if !strings.Contains(c.Sentence, "in at byte 0; part at byte 128") {
		t.Errorf("sentence %q", c.Sentence)
	}
	if h := about(r, HeldEarly); h.Bytes != 0 {
		t.Errorf("%+v, but all is in use at once at the copies", h)
	}
}

func TestTwoRunsThatAgreeAreSafe(t *testing.T) {
	other := series()
	if c := about(advise(t, series(), other), Concat); c.Verdict != HoldsHere || c.Runs != 2 {
		t.Errorf("%+v, but both runs are of one recording", c)
	}
	other.Recording = 1
	if c := about(advise(t, series(), other), Concat); c.Verdict != Safe || c.Runs != 2 || c.Count != 4 {
		t.Errorf("%+v, want safe in 2 runs", c)
	}
	other.Partial = true
	if c := about(advise(t, series(), other), Concat); c.Verdict != Unsure {
		t.Errorf("%+v, but a run lacks something", c)
	}
	other.Partial = false
	other.Steps = append(other.Steps, Step{Kind: KindRead, Done: len(other.Steps), Uses: []Use{reads(1)}})
	c := advise(t, series(), other)
	i := slices.IndexFunc(c.Advice, func(a Advice) bool { return a.Failed == Agreement })
	if i < 0 || c.Advice[i].Verdict != NearMiss || c.Advice[i].Run != 1 || c.Advice[i].Step != len(other.Steps)-1 {
		t.Errorf("%+v, want a near miss by C6 in the second run's last step", c.Advice)
	}
}

// TestLUDIsANearMissInTheProducer is the thesis' benchmark: a small copy in a loop; the kernel that produces its source
// uses the destination, too.
func TestLUDIsANearMissInTheProducer(t *testing.T) {
	s := newScript()
	out := s.create(4096, 2)
	s.fill(out)
	for i := range 8 {
		part := s.create(256, 3)
		s.step(KindKernel, reads(out), writes(part))
		s.copy(part, out, 256*uint64(i))
		s.release(part)
	}
	s.step(KindRead, reads(out))
	r := advise(t, &s.Program)
	c := about(r, Coalesce)
	if c.Verdict != NearMiss || c.Failed != Undisturbed || !c.Producer || c.Count != 8 || c.Bytes != 2048 || c.Step != 3 {
		t.Errorf("%+v, want 8 near misses by C3 in the producing kernel, the first at step 3", c)
	}
	if r.Runs[0].NearMisses != 8 {
		t.Errorf("%d near misses, want 8", r.Runs[0].NearMisses)
	}
	if once := about(r, CreateOnce); once.Count != 7 {
		t.Errorf("%+v, want 7 creates saved", once)
	}
}

// figure7 is figures 7.1 and 7.3: the destination is created, and in the latter also filled, after the source is
// produced.
func figure7(fill, read bool) *Program {
	s := newScript()
	src := s.create(128, 1)
	s.step(KindKernel, writes(src))
	if read {
		s.step(KindRead, reads(src))
	}
	dst := s.create(512, 2)
	if fill {
		s.fill(dst)
	}
	s.copy(src, dst, 0)
	s.step(KindRead, reads(dst))
	return &s.Program
}

func TestHoistingIsAdvisedWhereItIsLegal(t *testing.T) {
	for _, c := range []struct {
		fill, read bool
		want       Hoist
		failed     Condition
	}{
		{false, false, HoistCreate, Allocated},
		{true, false, HoistCreate | HoistFill, Allocated},
		{false, true, 0, Allocated},
	} {
		a := about(advise(t, figure7(c.fill, c.read)), Coalesce)
		if a.Hoist != c.want || a.Failed != c.failed || a.Verdict != NearMiss {
			t.Errorf("fill %v, read %v: %+v, want hoist %d", c.fill, c.read, a, c.want)
		}
	}
}

// TestChoiceSavesMost is figure 5.26: t0 goes into t1 or t1 into t2. t0 cannot go into t2, because the size of t2 is
// read after t0 is produced. Here t0 is the larger one, and only a part of it is used.
func TestChoiceSavesMost(t *testing.T) {
	s := newScript()
	t1, t0 := s.create(128, 1), s.create(256, 3)
	part := func(u Use) Use { u.Extent, u.Bytes = Range, 128; return u }
	s.step(KindFill, part(writes(t0)))
	s.step(KindRead, part(reads(t0)))
	t2 := s.create(1024, 2)
	first := s.step(KindCopy, part(reads(t0)), part(writes(t1)))
	s.copy(t1, t2, 0)
	s.step(KindRead, reads(t2))
	a, err := Analyse(&s.Program)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range a.CheckCopies() {
		if !c.MeetsConditions() || c.Taken != (c.Step == first) {
			t.Errorf("%+v, want both to hold and the first to be taken", c)
		}
	}
}

func TestNothingRaisesThePeak(t *testing.T) {
	fell := 0
	for seed := range uint64(800) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p := randomProgram(rng, 1)
		for i := range p.Buffers {
			b := &p.Buffers[i]
			b.Site = uint32(rng.IntN(4))
			if rng.IntN(2) == 0 {
				b.Released = b.Created + rng.IntN(len(p.Steps)-b.Created+1)
			}
		}
		for _, o := range []Options{{Completion, true}, {Uses, false}, {API, true}} {
			r, err := AdviseOnRuns([]*Program{p}, o)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			run := r.Runs[0]
			if run.Merged.Peak > run.Now.Peak || run.Reuse.Linear.Peak < run.Reuse.Best.Peak {
				t.Fatalf("seed %d: peak %d, then %d; linear %+v, best %+v", seed, run.Now.Peak, run.Merged.Peak, run.Reuse.Linear, run.Reuse.Best)
			}
			if b := run.Reuse; b.Best.Peak < b.Bound.Peak || b.Best.Blocks < b.Bound.Blocks {
				t.Fatalf("seed %d: best %+v is below the bound %+v", seed, b.Best, b.Bound)
			}
			if run.Merged.Peak < run.Now.Peak {
				fell++
			}
		}
	}
	if fell < 100 {
		t.Errorf("the peak fell %d times: too few to tell", fell)
	}
}

// pingPong is a stencil: each round computes the next buffer from the last one, which it then releases.
func pingPong(rounds int) *Program {
	s := newScript()
	now := s.create(64, 1)
	s.fill(now)
	for range rounds {
		next := s.create(64, 2)
		s.step(KindKernel, reads(now), writes(next))
		s.release(now)
		now = next
	}
	s.step(KindRead, reads(now))
	s.release(now)
	return &s.Program
}

func TestTwoBuffersInTurn(t *testing.T) {
	r := advise(t, pingPong(10))
	k := about(r, KeepSeveral)
	if k.Blocks != 2 || k.Count != 8 || k.Sites[0] != "out" || k.Verdict != HoldsHere {
		t.Errorf("%+v, want two buffers of out for ten", k)
	}
	if !strings.Contains(k.Sentence, "Keep 2 buffers of out and use them in turn") {
		t.Errorf("%q", k.Sentence)
	}
	again := pingPong(10)
	again.Recording = 1
	if k := about(advise(t, pingPong(10), again), KeepSeveral); k.Verdict != Safe || k.Count != 16 {
		t.Errorf("%+v, want it safe", k)
	}
	held := newScript() // three at once for a moment, when nothing else is there: to keep three makes the peak larger
	for range 4 {
		a, b, c := held.create(64, 1), held.create(64, 1), held.create(64, 1)
		held.step(KindKernel, reads(a), reads(b), writes(c))
		held.release(a)
		held.release(b)
		held.release(c)
		big := held.create(180, 2)
		held.fill(big)
		held.release(big)
	}
	if k := about(advise(t, &held.Program), KeepSeveral); k.Blocks != 0 {
		t.Errorf("%+v, but the peak would rise", k)
	}
}

// A kernel that reads a buffer for the last time only in the last round cannot write in its place.
func TestInPlaceHoldsEachTime(t *testing.T) {
	s := newScript()
	lasts := s.create(64, 1)
	s.fill(lasts)
	for range 3 {
		out := s.create(64, 2)
		s.step(KindKernel, reads(lasts), writes(out))
		s.step(KindRead, reads(out))
		s.release(out)
	}
	s.release(lasts)
	if a := about(advise(t, &s.Program), InPlace); a.Count != 0 {
		t.Errorf("%+v, but two rounds of three read it again", a)
	}
}

// A kernel that reads a buffer for the last time, and writes one of another size in most rounds, cannot write in its place.
func TestInPlaceIsOfOneSize(t *testing.T) {
	for _, test := range []struct{ same, odd, want int }{{2, 1, 2}, {1, 2, 0}} {
		s := newScript()
		for i := range test.same + test.odd {
			in := s.create(64, 1)
			s.fill(in)
			out := s.create(64+64*uint64(i/test.same), 2)
			s.step(KindKernel, reads(in), writes(out))
			s.step(KindRead, reads(out))
			s.release(in)
			s.release(out)
		}
		if a := about(advise(t, &s.Program), InPlace); a.Count != test.want {
			t.Errorf("%+v: %+v", test, a)
		}
	}
}

// What is created right before its first use is not held early, even if that makes the peak.
// Where no command is recorded, nothing is known to be idle.
func TestWithoutUsesAllIsInUse(t *testing.T) {
	s := newScript()
	a, b := s.create(512, 1), s.create(512, 2)
	s.release(a)
	s.release(b)
	s.release(s.create(512, 3))
	r := advise(t, &s.Program)
	if c := about(r, ShareBlock); slices.Contains(c.Sites, "in") && slices.Contains(c.Sites, "out") || r.Runs[0].Reuse.Form != API {
		t.Errorf("%+v, but in and out are there at once", c)
	}
	if about(r, HeldEarly).Bytes != 0 || r.Runs[0].Merged.Peak != 1024 || r.Runs[0].Reuse.Bound != (Footprint{2, 1024}) {
		t.Errorf("%+v %+v", r.Runs[0], r.Advice)
	}
	s.step(KindRead, reads(s.create(512, 2)))
	r = advise(t, &s.Program)
	if found := &r.Runs[0]; found.Reuse.Bound != (Footprint{1, 512}) || found.Reuse.After != (Footprint{1, 512}) || found.Merged.Allocated != 512 {
		t.Errorf("%+v, %+v: one buffer is used", found, found.Reuse)
	}
	if h := about(r, HeldEarly); !h.Unused || !strings.Contains(h.Sentence, "that nothing uses") {
		t.Errorf("%+v, want the first ones unused", h)
	}
}

// TestCopiedAndUnused: what only a create copies into is not "no longer used".
func TestCopiedAndUnused(t *testing.T) {
	for _, read := range []bool{false, true} {
		s := newScript()
		copied := s.create(512, 1)
		s.Steps[s.Buffers[copied].Created].Uses = []Use{s.all(writes(copied))}
		if read {
			s.step(KindRead, reads(copied))
		}
		b := s.create(512, 2)
		s.step(KindWrite, s.all(writes(b)))
		s.step(KindRead, s.all(reads(b)))
		s.release(b)
		s.release(copied)
		r := advise(t, &s.Program)
		if early, late := about(r, HeldEarly), about(r, HeldLate); early.Unused == read || late.Bytes > 0 != read {
			t.Errorf("read %v: %+v", read, r.Advice)
		}
	}
}

func TestHeldEarlyOnlyWhereSomethingGoesBefore(t *testing.T) {
	early := func(gap bool) *Advice {
		s := newScript()
		idle, first := s.create(64, 3), s.create(64, 1)
		s.fill(first)
		second := s.create(64, 2)
		if gap {
			s.release(first)
		}
		s.fill(second)
		if !gap {
			s.release(first)
		}
		s.release(second)
		s.release(idle)
		return about(&Report{Advice: slices.DeleteFunc(advise(t, &s.Program).Advice, func(a Advice) bool { return a.Sites[0] != "out" })}, HeldEarly)
	}
	if a := early(true); a.Bytes != 64 {
		t.Errorf("%+v, want out held early: in is released before its first use", a)
	}
	if a := early(false); a.Bytes != 0 {
		t.Errorf("%+v, but out is created when it is needed", a)
	}
}

// Two sites that share a block may fit where neither alone may keep its buffer.
func TestSharedThoughNoneCouldBeKept(t *testing.T) {
	s := newScript()
	all := s.create(1024, 5)
	s.fill(all)
	for range 3 {
		for site := uint32(1); site < 3; site++ {
			b := s.create(64, site)
			s.step(KindKernel, reads(all), writes(b))
			s.step(KindRead, reads(b))
			s.release(b)
		}
	}
	s.release(all)
	if a := about(advise(t, &s.Program), ShareBlock); !slices.Equal(a.Sites, []string{"in", "out"}) || a.Count != 5 {
		t.Errorf("%+v, want one block for in and out", a)
	}
}

func TestCopiesBetweenFlagsSaySo(t *testing.T) {
	s := newScript()
	src, dst := s.create(64, 1), s.create(64, 2)
	s.Buffers[src].Class = 7
	s.step(KindKernel, writes(src))
	s.copy(src, dst, 0)
	s.release(src)
	s.step(KindRead, reads(dst))
	s.release(dst)
	if a := about(advise(t, &s.Program), Coalesce); !a.OtherFlags || !strings.HasSuffix(a.Sentence, "out must then allow what is done to in.") {
		t.Errorf("%+v", a)
	}
}
