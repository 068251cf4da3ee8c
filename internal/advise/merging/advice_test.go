package merging

import (
	"slices"
	"strings"
	"testing"
)

// TestARefilledSourceIsReported: creating the source in the destination is right for one of its contents, and wrong for
// the buffer.
func TestARefilledSourceIsReported(t *testing.T) {
	for _, again := range []bool{false, true} {
		s := newScript()
		out, part := s.create(128, 2), s.create(128, 3)
		s.fill(part)
		s.copy(part, out, 0)
		if again {
			s.fill(part)
			s.step(KindRead, reads(part))
		}
		s.step(KindRead, reads(out))
		if c := about(advise(t, &s.Program), Coalesce); c.Verdict != HoldsHere || c.Refilled != again {
			t.Errorf("filled again %v: %+v", again, c)
		}
	}
}

// TestThreadsTakeTurnsByChance: two threads did not use memory at the same time, but may do so the next time, however
// often they did not.
func TestThreadsTakeTurnsByChance(t *testing.T) {
	run := func(recording int, threads ...uint32) *Program {
		s := newScript()
		s.Recording = recording
		for i, thread := range threads {
			b := s.create(64, uint32(1+i%2))
			s.Steps[s.step(KindKernel, writes(b))].Thread = thread
			s.release(b)
		}
		return &s.Program
	}
	verdict := func(topic Topic, threads ...uint32) Verdict {
		return about(advise(t, run(0, threads...), run(1, threads...)), topic).Verdict
	}
	if got := verdict(ShareBlock, 1, 1); got != Safe {
		t.Errorf("one thread: %s", got)
	}
	if got := verdict(ShareBlock, 1, 2); got != HoldsHere {
		t.Errorf("two threads, each with a buffer: %s", got)
	}
	if got := verdict(ShareBlock, 2, 2, 1, 1); got != HoldsHere {
		t.Errorf("two threads that use the buffers of both sites: %s", got)
	}
	twice := func(recording int, thread uint32) *Program {
		s := newScript()
		s.Recording = recording
		out, part := s.create(128, 2), s.create(128, 3)
		s.Steps[s.step(KindKernel, writes(part))].Thread = 1
		s.Steps[s.copy(part, out, 0)].Thread = 1
		s.Steps[s.step(KindRead, reads(out))].Thread = thread
		return &s.Program
	}
	for thread, want := range map[uint32]Verdict{1: Safe, 2: HoldsHere} {
		if got := about(advise(t, twice(0, thread), twice(1, thread)), Coalesce).Verdict; got != want {
			t.Errorf("a copy whose destination thread %d reads: %s", thread, got)
		}
	}
}

// TestSharingSavesWhatThePeakFallsBy: buffers that are released before the next is created were never there at the same
// time.
func TestSharingSavesWhatThePeakFallsBy(t *testing.T) {
	for early, want := range map[bool]uint64{true: 0, false: 64} {
		s := newScript()
		first := s.create(64, 1)
		s.step(KindKernel, writes(first))
		if early {
			s.release(first)
		}
		second := s.create(64, 2)
		s.step(KindKernel, writes(second))
		if !early {
			s.release(first)
		}
		s.release(second)
		if a := about(advise(t, &s.Program), ShareBlock); a.Bytes != want || a.Count != 1 {
			t.Errorf("released early %v: %+v, want %d bytes", early, a, want)
		}
	}
}

// TestEarlierBuffersAreNotCalledHeld: any kernel may use an earlier buffer through an argument that was set before.
func TestEarlierBuffersAreNotCalledHeld(t *testing.T) {
	for pinned, want := range map[Pin]uint64{Free: 100, Earlier: 0} {
		s := newScript()
		old := s.create(100, 1)
		s.Buffers[old].Pinned = pinned
		s.Steps[0].Uses = []Use{s.all(writes(old))}
		s.step(KindRead, reads(old))
		for range 2 {
			b := s.create(50, 2)
			s.step(KindKernel, writes(b))
			s.release(b)
		}
		if a := about(advise(t, &s.Program), HeldLate); a.Bytes != want {
			t.Errorf("%v: %+v, want %d bytes", pinned, a, want)
		}
	}
}

// TestKeptBufferIsNotReleasedSooner: a program that collects what it uses once gets the advice to keep one buffer, not to release it as well.
func TestKeptBufferIsNotReleasedSooner(t *testing.T) {
	s := newScript()
	var kept []int
	for range 4 {
		b := s.create(64, 1)
		s.step(KindKernel, writes(b))
		s.Steps[len(s.Steps)-1].Done = len(s.Steps) - 1
		kept = append(kept, b)
	}
	s.create(16, 2) // the peak
	for _, b := range kept {
		s.release(b)
	}
	r := advise(t, &s.Program)
	r.Advice = Reconcile(r.Advice)
	if about(r, CreateOnce).Count != 3 || about(r, HeldLate).Bytes != 0 {
		t.Errorf("%+v", r.Advice)
	}
}

// TestOneOfTwoIsAdvised: buffers that other advice keeps or shares are to be held for less time only instead, and where that saves more.
func TestOneOfTwoIsAdvised(t *testing.T) {
	for want, list := range map[string][]Advice{
		"":                                {{Topic: ShareBlock, Sites: []string{"b", "a"}, Bytes: 50}, {Topic: HeldLate, Sites: []string{"a"}, Bytes: 100}},
		"Release the buffers of a sooner": {{Topic: ShareBlock, Sites: []string{"b", "c"}}, {Topic: HeldLate, Sites: []string{"a"}, Bytes: 100}},
		"Instead of keeping or sharing them, release the buffers of a sooner": {{Topic: KeepSeveral, Sites: []string{"a"}}, {Topic: HeldLate, Sites: []string{"a"}, Bytes: 100}},
		"Instead of keeping or sharing them, create the buffers of a later":   {{Topic: WriteInto, Sites: []string{"a"}}, {Topic: HeldEarly, Sites: []string{"a"}, Bytes: 100}},
		"Do without the buffers of a":                                         {{Topic: CreateOnce, Sites: []string{"a"}, Bytes: 100}, {Topic: HeldEarly, Unused: true, Sites: []string{"a"}, Sentence: "Do without the buffers of a"}},
	} {
		got := Reconcile(list)
		if last := got[len(got)-1]; !strings.HasPrefix(last.Sentence, want) || (len(got) == 1) != (want == "") {
			t.Errorf("%q: %+v", want, got)
		}
	}
}

func TestSentencesSayWhatToChange(t *testing.T) {
	for want, a := range map[string]Advice{
		"Make part in a sub-buffer of out and drop the copy at copy.c:9 from part to out (8 times, 2.00 KiB).": {
			Topic: Coalesce, Verdict: Safe, Sites: []string{"copy.c:9", "part", "out"}, Count: 8, Bytes: 2048,
		},
		"It would do without the copy at copy.c:9 from part to out (256 B), if not for C3: the kernel that makes the source " +
			"uses the destination's bytes too, and nothing else does. Let that kernel read from elsewhere what it needs of " +
			"the destination.": {
			Topic: Coalesce, Verdict: NearMiss, Sites: []string{"copy.c:9", "part", "out"}, Count: 1, Bytes: 256,
			Failed: Undisturbed, Producer: true,
		},
		"It would do without the copy at copy.c:9 from part to out (256 B), if not for C2: the destination is created after " +
			"the source is first used. To mend that, create the destination, and fill it, before the source is first used: " +
			"the host reads nothing in between.": {
			Topic: Coalesce, Verdict: NearMiss, Sites: []string{"copy.c:9", "part", "out"}, Count: 1, Bytes: 256,
			Failed: Allocated, Hoist: HoistCreate | HoistFill,
		},
		"Remove the copy at copy.c:9 (2 times, 512 B): it puts bytes where they are.": {
			Topic: NoOpCopy, Sites: []string{"copy.c:9", "a", "a"}, Count: 2, Bytes: 512,
		},
		"Create one buffer for a, b and c: their buffers are never needed at once. It saves 1.00 MiB at the peak and 2 creates.": {
			Topic: ShareBlock, Sites: []string{"a", "b", "c"}, Count: 2, Bytes: 1 << 20,
		},
		"Create one buffer for a and b: their buffers are never needed at once. It saves 2 creates.": {
			Topic: ShareBlock, Sites: []string{"a", "b"}, Count: 2,
		},
		"Make part in a sub-buffer of out and drop the copy at copy.c:9 from part to out (256 B). The source holds several " +
			"contents, one after the other: each needs memory of its own, a sub-buffer where it is copied.": {
			Topic: Coalesce, Verdict: Safe, Sites: []string{"copy.c:9", "part", "out"}, Count: 1, Bytes: 256, Refilled: true,
		},
		"Keep the buffer of a and use it again: it is never needed twice at once. It saves one create.": {
			Topic: CreateOnce, Sites: []string{"a"}, Count: 1,
		},
		"Make the parts of d where they belong, in sub-buffers of it (a at bytes 0, 8, 16 and 2 more), and " +
			"drop the copies at x (100 times, 800 B).": {
			Topic: Concat, Sites: []string{"d", "a", "a", "a", "a", "a"}, Copies: []string{"x"}, Count: 100, Bytes: 800,
			Offsets: []uint64{0, 8, 16, 24, 32},
		},
		"Make the parts of d where they belong, in sub-buffers of it (a and b, not always at the same bytes), and drop the " +
			"copies at x and y (2 times, 800 B). OpenCL has no sub-buffers of sub-buffers: make those within it of the " +
			"outermost buffer, too.": {
			Topic: Concat, Sites: []string{"d", "a", "b"}, Copies: []string{"x", "y"}, Count: 2, Bytes: 800, Nested: true,
		},
	} {
		if got := a.adviceSentence(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestWhatNothingUsesIsNotKept: a buffer to do without is not one to keep, nor one to share; used once, it is.
func TestWhatNothingUsesIsNotKept(t *testing.T) {
	for _, used := range []bool{false, true} {
		s := newScript()
		for range 3 {
			idle, busy := s.create(64, 1), s.create(64, 2)
			if used {
				s.step(KindKernel, writes(idle))
			}
			s.step(KindKernel, writes(busy))
			s.release(idle)
			s.release(busy)
		}
		kept, without := false, false
		for _, a := range advise(t, &s.Program).Advice {
			kept = kept || (a.Topic == CreateOnce || a.Topic == ShareBlock) && slices.Contains(a.Sites, s.NameOfSite(1))
			without = without || a.Topic == HeldEarly && a.Unused && a.Sites[0] == s.NameOfSite(1)
		}
		if kept != used || without == used {
			t.Errorf("used %v: kept %v, done without %v", used, kept, without)
		}
	}
}
