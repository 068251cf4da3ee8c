package export

import (
	"cmp"
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// firstFreePID is above what Linux gives to processes: the place for those whose own number is unknown or taken.
const firstFreePID = 1 << 22

// survey is the result of a first pass over a source: all that must be known before the first line is written.
type survey struct {
	base      uint64 // time to which all others are relative
	begin     uint64 // no event shows earlier: where a part begins, else base
	last      uint64 // time of the last record
	lost      uint64 // events
	most      int    // objects, or blocks and slabs, at once in one process: at least as many as there were
	attached  bool   // programs were only watched: carried objects have the time when they were first seen
	part      bool   // something was carried over
	happened  bool   // something happened after that
	processes map[uint32]*surveyed
	alive     map[uint32]*population
}

// population is how many objects and blocks there are in a process, at most.
type population struct{ objects, blocks int }

// surveyRecording reads a source to its end.
func surveyRecording(src recording.Source, facts *Facts) (*survey, error) {
	s := &survey{base: facts.ClockNS, attached: facts.Attached, processes: map[uint32]*surveyed{}, alive: map[uint32]*population{}}
	for r, err := range recording.Records(src) {
		if err != nil {
			return nil, err
		}
		s.noteRecord(r)
	}
	if facts.Since > 0 {
		s.begin = s.base + uint64(facts.Since)
	}
	if facts.Attached { // in a trimmed recording carried objects have times from before it
		s.begin = max(s.begin, facts.ClockNS)
	}
	s.begin = max(s.begin, s.base)
	s.makePIDsDistinct()
	return s, nil
}

func (s *survey) noteRecord(r *wire.Record) {
	s.last = max(s.last, r.Time)
	if start := r.Start(); !r.CarriedOver() && (s.base == 0 || start < s.base && start > 0) {
		s.base = start
	}
	if r.Kind == wire.KindLost {
		s.lost += r.AsLost().Events()
		return
	}
	p := s.processNumbered(r.Process)
	switch r.Kind {
	case wire.KindProcess:
		p.noteProcess(r)
	case wire.KindTag, wire.KindSite:
		if name := callsite.TagNameOf(r); name != "" {
			p.noteTagName(r, name)
		}
	case wire.KindCreate, wire.KindRelease, wire.KindSync, wire.KindSlab, wire.KindEvict, wire.KindDiag:
		s.noteRunEvent(p, r)
	default:
	}
}

// noteRunEvent notes something that happened, or was carried over.
func (s *survey) noteRunEvent(p *surveyed, r *wire.Record) {
	if r.CarriedOver() {
		s.part = s.part || !s.happened
	} else {
		if s.part && !s.happened && !s.attached {
			s.begin = r.Time
		}
		s.happened = true
		if r.Kind != wire.KindEvict && (r.Kind != wire.KindDiag || r.AsDiag().Diag().IsFinding()) {
			p.threads[r.Thread] = struct{}{}
		}
	}
	alive := s.alive[p.number]
	if alive == nil {
		alive = &population{}
		s.alive[p.number] = alive
	}
	switch r.Kind {
	case wire.KindCreate:
		p.addCreatedBytes(r.AsCreate())
		alive.objects++
		if r.AsCreate().Outcome() == wire.OutcomeMiss || r.CarriedOver() {
			alive.blocks++
		}
	case wire.KindSlab:
		alive.blocks++
	case wire.KindRelease:
		if e := r.AsRelease(); e.References() == 0 && e.Outcome() != wire.OutcomePinned {
			alive.objects--
		}
	case wire.KindEvict:
		alive.blocks--
	default:
	}
	s.most = max(s.most, alive.objects, alive.blocks)
}

func (s *survey) processNumbered(number uint32) *surveyed {
	p := s.processes[number]
	if p == nil {
		p = newSurveyed(number)
		s.processes[number] = p
	}
	return p
}

func (p *surveyed) noteProcess(r *wire.Record) {
	p.pid = r.AsProcess().PID()
	program, _ := wire.ParseProcess(r.Payload)
	p.program = string(program)
}

// noteTagName takes the name of a TAG or SITE. The first name stays, unless a frame had no name in it.
func (p *surveyed) noteTagName(r *wire.Record, name string) {
	if t := p.tags[r.DefinedTag()]; t != nil && t.named {
		return
	}
	t := p.tag(r.DefinedTag())
	t.named = r.Kind == wire.KindTag || !callsite.HasUnnamedCode(r.Payload)
	if r.Kind == wire.KindSite {
		t.setName(name, callsite.StackFrames(r.Payload))
		return
	}
	t.setName(name, nil)
}

// sortedProcesses returns the processes by their numbers.
func (s *survey) sortedProcesses() []*surveyed {
	return slices.SortedFunc(maps.Values(s.processes), func(a, b *surveyed) int { return cmp.Compare(a.number, b.number) })
}

// makePIDsDistinct makes the pids distinct, because object numbers are only so within a process.
func (s *survey) makePIDsDistinct() {
	taken := map[uint64]bool{}
	for _, p := range s.sortedProcesses() {
		p.chooseDistinctPID(taken)
	}
}

// chooseDistinctPID gives a process another pid when its own is unknown or taken.
func (p *surveyed) chooseDistinctPID(taken map[uint64]bool) {
	if p.pid == 0 || p.pid >= firstFreePID || taken[p.pid] {
		p.pid = firstFreePID + uint64(p.number)
	}
	taken[p.pid] = true
}
