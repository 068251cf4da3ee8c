package merging

import (
	"slices"
	"strings"
	"testing"
)

// joined is a program that creates buffers and copies them into one, side by side.
func joined(sizes ...uint64) *Program {
	s := newScript()
	var sum uint64
	for _, size := range sizes {
		sum += size
	}
	out := s.create(sum, 2)
	var parts []int
	for _, size := range sizes {
		parts = append(parts, s.create(size, 3))
		s.step(KindKernel, writes(parts[len(parts)-1]))
	}
	at := uint64(0)
	for i, part := range parts {
		s.copy(part, out, at)
		at += sizes[i]
	}
	s.step(KindRead, reads(out))
	return &s.Program
}

// copiesIn sums up the copies of coalescing advice.
func copiesIn(r *Report) (copies int) {
	for _, a := range r.Advice {
		if a.Topic == Coalesce || a.Topic == Concat {
			copies += a.Count
		}
	}
	return copies
}

func TestEachCopyIsToldOfOnce(t *testing.T) {
	other := joined(256, 128, 128)
	other.Recording = 1
	r := advise(t, joined(128, 256), other)
	c := about(r, Concat)
	if copiesIn(r) != 5 || c.Count != 5 || c.Verdict != Safe || c.Runs != 2 || c.Offsets != nil || !slices.Equal(c.Sites, []string{"out", "part"}) {
		t.Errorf("%+v, want five copies in one piece, at no certain places", r.Advice)
	}
	alone := joined(256) // fills its buffer by itself
	alone.Recording = 1
	r = advise(t, joined(128, 256), alone)
	if c := about(r, Coalesce); copiesIn(r) != 3 || c.Count != 3 || c.Verdict != Safe {
		t.Errorf("%+v, want three copies in one piece: one of them has no neighbour", r.Advice)
	}
}

func TestSubBuffersOfWhatBecomesOne(t *testing.T) {
	for pin, holds := range map[Pin]bool{Free: true, Image: false} {
		s := newScript()
		dst, src := s.create(512, 2), s.create(256, 3)
		part := len(s.Buffers)
		s.Buffers = append(s.Buffers, Buffer{Size: 128, Parent: src, Offset: 128, Created: s.step(KindCreate), Released: None, Pinned: pin})
		s.step(KindKernel, writes(part))
		s.step(KindKernel, writes(src))
		s.copy(src, dst, 256)
		s.step(KindRead, reads(dst))
		c := about(advise(t, &s.Program), Coalesce)
		if holds && (c.Verdict != HoldsHere || !c.Nested || !strings.Contains(c.Sentence, "no sub-buffers of sub-buffers")) {
			t.Errorf("%+v, want it nested", c)
		}
		if !holds && (c.Verdict != NearMiss || c.Failed != OwnMemory) {
			t.Errorf("%+v, but an image shows the source", c)
		}
	}
}

// TestChainsKeepTheirLastBlockFromReuse has a buffer that could share the last destination's block if that were in use
// only from its own copy on.
func TestChainsKeepTheirLastBlockFromReuse(t *testing.T) {
	s := newScript()
	t2, t1, t0, other := s.create(1024, 2), s.create(128, 1), s.create(128, 3), s.create(1024, 4)
	s.step(KindKernel, writes(t0))
	s.step(KindKernel, writes(other))
	s.step(KindKernel, reads(other))
	s.copy(t0, t1, 0)
	s.copy(t1, t2, 0)
	s.step(KindRead, reads(t2))
	a, err := Analyse(&s.Program)
	if err != nil {
		t.Fatal(err)
	}
	copies := a.CheckCopies()
	if !copies[0].Taken || !copies[1].Taken || copies[0].Into != t2 {
		t.Fatalf("%+v, want both taken, the first into the last destination", copies)
	}
	r, err := a.GroupForReuse(Uses, true, copies)
	if err != nil {
		t.Fatal(err)
	}
	if r.Reuses != 0 || r.After.Blocks != 2 {
		t.Errorf("%+v, want two blocks: %d is in use while %d holds what was made in place", r, other, t2)
	}
	if r, err = a.GroupForReuse(Uses, true, nil); err != nil || r.Reuses == 0 {
		t.Errorf("%+v, %v, want reuses without the copies", r, err)
	}
}

// TestSourcesThatAreFilledAgainStay has a source with one content that is created elsewhere.
func TestSourcesThatAreFilledAgainStay(t *testing.T) {
	s := newScript()
	dst, src := s.create(512, 2), s.create(128, 1)
	s.step(KindKernel, writes(src))
	s.copy(src, dst, 0)
	s.fill(src)
	s.step(KindKernel, reads(src), reads(dst))
	run := advise(t, &s.Program).Runs[0]
	if run.Merged.Coalescings != 1 || run.Merged.Allocated != 640 || run.Merged.Peak != 640 {
		t.Errorf("%+v, want one coalescing and no byte less", run.Merged)
	}
}
