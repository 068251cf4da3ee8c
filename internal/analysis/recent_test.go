package analysis

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestLatelyAtThePeak: of what is in use at the peak, what was used in an iteration is apart from what was not.
func TestLatelyAtThePeak(t *testing.T) {
	s := newTape()
	old := s.driver(1, 900)
	s.use(old)
	for range 10 { // of 3 ms
		o := s.driver(2, 100)
		s.use(o)
		s.release(o, wire.OutcomeDriver)
	}
	if got := s.analyse(t).Peak; got.InUse != 1000 || got.Lately != (stats.Lately{}) {
		t.Errorf("%+v: the first peak is at the first iteration, when the process is too young", got)
	}
	s.driver(2, 100)
	s.driver(3, 100)
	if got, want := s.analyse(t).Peak, (stats.Lately{NS: 3 * ms, Iteration: true, Bytes: 200}); got.InUse != 1100 || got.Lately != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	s = newTape()
	s.use(s.driver(1, 900))
	for i := range uint64(12) { // most only queue commands; each third waits for these
		s.now += i % 3 / 2 * 100 * ms
		o := s.driver(2, 100)
		s.use(o)
		s.release(o, wire.OutcomeDriver)
	}
	s.driver(2, 100)
	s.driver(3, 100)
	if got, want := s.analyse(t).Peak, (stats.Lately{NS: 100 * ms, Bytes: 200}); got.InUse != 1100 || got.Lately != want {
		t.Errorf("%+v, want %+v: the median is not what an iteration takes", got, want)
	}
	s = newTape()
	s.use(s.driver(1, 900))
	s.now += 100 * ms
	s.driver(2, 100)
	if got, want := s.analyse(t).Peak.Lately, (stats.Lately{NS: 10 * ms, Bytes: 100}); got != want {
		t.Errorf("without iterations %+v, want %+v", got, want)
	}
	s = newTape()
	s.driver(1, 900)
	s.now += 100 * ms
	s.driver(2, 100)
	if got := s.analyse(t).Peak.Lately; got != (stats.Lately{}) {
		t.Errorf("without uses %+v", got)
	}
}

// TestKeepsWhatItUsed: buffers of a pool of the program's own that never finds them again, and the same where it does.
func TestKeepsWhatItUsed(t *testing.T) {
	const many = 2 * spentMany
	for name, test := range map[string]struct {
		size  func(i uint64) uint64
		after func(s *tape, objects []uint64)
		want  bool
	}{
		"other sizes": {func(i uint64) uint64 { return mib + i }, func(*tape, []uint64) {}, true},
		"one size":    {func(uint64) uint64 { return mib }, func(*tape, []uint64) {}, false},
		"used again later": {func(i uint64) uint64 { return mib + i }, func(s *tape, objects []uint64) {
			s.now += 1000 * ms
			for _, o := range objects {
				s.use(o)
			}
		}, false},
	} {
		s := newTape()
		var objects []uint64
		for i := range uint64(many) {
			o := s.driver(1, test.size(i))
			s.use(o)
			objects = append(objects, o)
			s.now += 20 * ms
		}
		test.after(s, objects)
		for _, o := range objects {
			s.release(o, wire.OutcomeDriver)
		}
		found := ""
		for _, d := range s.analyse(t).Diagnoses {
			if strings.HasPrefix(d.Title, "buffers are kept") {
				found = d.Text
			}
		}
		if (found != "") != test.want {
			t.Errorf("%s: found %q", name, found)
		}
	}
}
