package analysis

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// rank lets a process with a rank begin.
func (t *tape) rank(number uint32, rank uint64) {
	t.process = number
	t.put(wire.Event{Kind: wire.KindProcess, Object: uint64(4000 + number), Granted: rank + 1}, "app\x00")
	t.site(1, "temporary")
	t.site(2, "result")
}

// TestFindingsNameTheirProcess: what one process of several does names that process, also where another outlives it and uses memory later.
func TestFindingsNameTheirProcess(t *testing.T) {
	for name, test := range map[string]struct {
		does  func(*tape)
		title string
		want  string
		both  string // where both processes do it; empty: not tested
	}{
		"leaks": {
			func(s *tape) { s.driver(2, mib); s.driver(2, mib) }, "2 buffers never released", "; all in rank 3 (pid 4002)", "; in 2 processes",
		},
		"grows": {func(s *tape) { leaking(s, 8) }, "memory grows with every iteration", "more in use in rank 3 (pid 4002); most of what is left comes from result.c:2 result", ""},
		"maps": {func(s *tape) {
			object := s.driver(2, mib)
			for range 60 {
				s.put(wire.UseFields{Object: object, Command: wire.CommandMap, Tag: 2, Bytes: 64}.Event(), "")
			}
			s.release(object, wire.OutcomeDriver)
		}, "map without unmap", "; 60 of the 60 that stay open are in rank 3 (pid 4002)", "; 60 of the 120 that stay open are in rank 0 (pid 4001)"},
		"refused": {func(s *tape) {
			s.put(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeFailed, Status: -61, Tag: 2}, "")
		}, "1 call refused", " at result.c:2 result failed with CL_INVALID_BUFFER_SIZE (-61), in rank 3 (pid 4002)", ""},
	} {
		for _, both := range []bool{false, true} {
			s := newTape()
			s.rank(1, 0)
			if both {
				test.does(s)
			}
			s.rank(2, 3)
			test.does(s)
			s.exit()
			s.last().Thread = 0
			s.process = 1
			late := s.driver(1, mib)
			for range 100 {
				s.use(late)
			}
			s.release(late, wire.OutcomeDriver)
			s.exit()
			s.last().Thread = 0
			want := test.want
			if both {
				if want = test.both; want == "" {
					continue
				}
				test.title = strings.Replace(test.title, "2 buffers", "4 buffers", 1)
			}
			if d := diagnosis(s.analyse(t), test.title); d == nil || !strings.Contains(d.Text, want) {
				t.Errorf("%s, both %v: %+v, want %q", name, both, d, want)
			}
		}
	}
}

// TestOneProcessIsNotNamed: where there is one process, no finding says which.
func TestOneProcessIsNotNamed(t *testing.T) {
	s := newTape()
	s.rank(1, 3)
	leaking(s, 8)
	for _, d := range s.analyse(t).Diagnoses {
		if strings.Contains(d.Text, "pid 4001") {
			t.Errorf("%+v", d)
		}
	}
}

// TestCallSiteOfOneProcess: a finding at a call site that one process alone has names the process.
func TestCallSiteOfOneProcess(t *testing.T) {
	for name, test := range map[string]struct{ shared bool }{"alone": {false}, "shared": {true}} {
		s := newTape()
		s.rank(1, 0)
		if s.release(s.driver(1, mib), wire.OutcomeDriver); test.shared {
			s.release(s.driver(2, mib), wire.OutcomeDriver)
		}
		s.rank(2, 3)
		s.create(wire.OutcomeDriver, 2, 64<<10, 64<<10, 0)
		s.last().Access, s.last().Flags = wire.UseHostPtr, wire.FlagOffPage
		s.release(s.objects, wire.OutcomeDriver)
		d := diagnosis(s.analyse(t), "drivers may copy the program's own memory")
		if d == nil || strings.HasSuffix(d.Text, "; that call site is in rank 3 (pid 4002) alone") == test.shared {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
