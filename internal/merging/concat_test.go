package merging

import (
	"slices"
	"strings"
	"testing"
)

// joined is a program that makes buffers and copies each behind the other into one.
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

// told adds up the copies that coalescings are about.
func told(r *Report) (copies int) {
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
	if told(r) != 5 || c.Count != 5 || c.Verdict != Safe || c.Runs != 2 || c.Offsets != nil || !slices.Equal(c.Sites, []string{"out", "part"}) {
		t.Errorf("%+v, want five copies in one piece, at no certain places", r.Advice)
	}
	alone := joined(256) // fills its buffer by itself
	alone.Recording = 1
	r = advise(t, joined(128, 256), alone)
	if c := about(r, Coalesce); told(r) != 3 || c.Count != 3 || c.Verdict != Safe {
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
