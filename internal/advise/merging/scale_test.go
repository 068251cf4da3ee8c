package merging

import (
	"runtime"
	"testing"
)

// large makes a program of many rounds: each creates four buffers, runs kernels, and copies one of the buffers into a
// lasting buffer and into a buffer of the round.
func large(rounds int) *Program {
	s := newScript()
	keep := s.create(uint64(rounds)*256, 2)
	for i := range rounds {
		out, in, part, tmp := s.create(1024, 4), s.create(512, 1), s.create(256, 3), s.create(uint64(256*(1+i%7)), 5)
		for range 10 {
			s.step(KindKernel, reads(in), writes(tmp))
		}
		for range 10 {
			s.step(KindKernel, reads(tmp), writes(part))
		}
		s.copy(part, keep, uint64(i)*256)
		s.copy(in, out, 512)
		for range 5 {
			s.step(KindKernel, reads(out))
		}
		wait := s.step(KindSync)
		for n := wait - 27; n < wait; n++ {
			s.Steps[n].Done = wait
		}
		s.release(out)
		s.release(in)
		s.release(part)
		s.release(tmp)
	}
	return &s.Program
}

// TestLargeProgramsAreBounded has 2,000 rounds instead of the 25,000 of the benchmark. All sources can be created in
// place, and three of the rounds' buffers remain for reuse.
func TestLargeProgramsAreBounded(t *testing.T) {
	r := advise(t, large(2000))
	run := r.Runs[0]
	if run.Merged.Coalescings != 4000 || run.Merged.Reuses != 4000-2 {
		t.Errorf("merged %+v, want 4000 coalescings and 3998 reuses", run.Merged)
	}
	if run.Reuse.Linear.Blocks == 0 || run.Reuse.Best.Blocks > run.Reuse.Linear.Blocks {
		t.Errorf("linear %+v, best %+v", run.Reuse.Linear, run.Reuse.Best)
	}
}

// BenchmarkAdvise has 10^5 buffers and 10^6 steps, and a buffer that is alive for all of them.
func BenchmarkAdvise(b *testing.B) {
	p := large(25000)
	b.ReportMetric(float64(len(p.Buffers)), "buffers")
	b.ReportMetric(float64(len(p.Steps)), "steps")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if _, err := AdviseOnRuns([]*Program{p}, Options{Form: Completion, Max: true}); err != nil {
			b.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/(1<<20), "MiB/op")
}

// manySites makes a program of many sites that are used one after the other and could share one block except for the
// last: until then much other memory is held.
func manySites(sites, rounds int) *Program {
	s := newScript()
	alone := func(size uint64, site uint32) {
		b := s.create(size, site)
		s.step(KindKernel, writes(b))
		s.release(b)
	}
	for range rounds {
		for i := range sites {
			alone(64, uint32(1000+i))
		}
	}
	x, y := s.create(6400, 5), s.create(6400, 5)
	s.step(KindKernel, reads(x), writes(y))
	s.release(x)
	s.release(y)
	alone(64, 7)
	return &s.Program
}

func TestOneSiteTooManyEndsAGroup(t *testing.T) {
	r := advise(t, manySites(20, 3))
	if a := about(r, ShareBlock); len(a.Sites) != 20 || a.Count != 59 || a.Bytes != 0 {
		t.Errorf("%+v, want all sites but the last", a)
	}
	if r.Runs[0].Now.Peak != 12800 || r.Runs[0].Merged.Peak != 12800 {
		t.Errorf("now %+v, merged %+v", r.Runs[0].Now, r.Runs[0].Merged)
	}
}

// BenchmarkManySites has 10^3 sites and 6·10^5 steps.
func BenchmarkManySites(b *testing.B) {
	p := manySites(1000, 200)
	for b.Loop() {
		if _, err := AdviseOnRuns([]*Program{p}, Options{Form: Completion, Max: true}); err != nil {
			b.Fatal(err)
		}
	}
}
