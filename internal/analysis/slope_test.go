package analysis

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// fifths keeps every fifth of 100 buffers of 1 MiB; keep says which of these stay.
func fifths(keep func(i int) bool, end func(s *tape, kept []uint64)) *tape {
	s := newTape()
	s.device(1 << 30)
	var kept []uint64
	for i := range 100 {
		o := s.driver(1, mib)
		s.use(o)
		if i%5 == 0 && keep(i) {
			kept = append(kept, o)
		} else {
			s.release(o, wire.OutcomeDriver)
		}
	}
	end(s, kept)
	return s
}

// TestListThatKeepsEveryFifthGrows: a list that keeps every fifth buffer grows, though most iterations leave nothing.
func TestListThatKeepsEveryFifthGrows(t *testing.T) {
	all := func(int) bool { return true }
	end := func(s *tape, _ []uint64) { s.exit() }
	release := func(s *tape, kept []uint64) {
		for _, o := range kept {
			s.release(o, wire.OutcomeDriver)
		}
		s.exit()
	}
	for name, test := range map[string]struct {
		s    *tape
		want string // empty: no finding of growth
	}{
		"leaks":              {fifths(all, end), "problem: memory grows over the iterations: 100 iterations leave 20.0 MiB more in use in 20 more buffers, about 206.9 KiB each; after 49"},
		"released at last":   {fifths(all, release), "advice: iterations keep memory: 100 iterations leave 20.0 MiB more in use in 20 more buffers, about 206.9 KiB each, which is released when"},
		"fills, then stays":  {fifths(func(i int) bool { return i < 50 }, end), ""},
		"keeps none of them": {fifths(func(int) bool { return false }, end), ""},
	} {
		found := ""
		a := test.s.analyse(t)
		for _, d := range a.Diagnoses {
			if strings.Contains(d.Title, "memory grows") || strings.Contains(d.Title, "keep memory") {
				found = string(d.Severity) + ": " + d.Title + ": " + d.Text
			}
		}
		if test.want == "" && found != "" || !strings.HasPrefix(found, test.want) {
			t.Errorf("%s: found %q, want %q; phases %+v", name, found, test.want, a.Phases)
		}
	}
}
