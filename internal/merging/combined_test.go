package merging

import "testing"

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
	copies := a.Copies()
	if !copies[0].Taken || !copies[1].Taken || copies[0].Into != t2 {
		t.Fatalf("%+v, want both taken, the first into the last destination", copies)
	}
	r, err := a.Reuse(Uses, true, copies)
	if err != nil {
		t.Fatal(err)
	}
	if r.Reuses != 0 || r.After.Blocks != 2 {
		t.Errorf("%+v, want two blocks: %d is in use while %d holds what was made in place", r, other, t2)
	}
	if r, err = a.Reuse(Uses, true, nil); err != nil || r.Reuses == 0 {
		t.Errorf("%+v, %v, want reuses without the copies", r, err)
	}
}

// TestSourcesThatAreFilledAgainStay has a source of which one content is made elsewhere.
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
