package stats

// Steady counts the hits in the later half of all requests without keeping the requests. It notes the hits so far at every
// step-th request. When the notes are full, it drops every other note and doubles the step. Up to steadyNotes requests the half
// is exact; after that it begins up to 1 % of all requests late. The zero Steady is ready for use, by one goroutine.
type Steady struct {
	notes    [steadyNotes]uint64 // hits among the first i × step requests
	step     uint64
	next     uint64 // request before which the next note is due
	requests uint64
	hits     uint64
}

const steadyNotes = 256

// AddRequest takes the next request.
func (s *Steady) AddRequest(hit bool) {
	if s.requests == s.next {
		s.recordHitsAtStep()
	}
	s.requests++
	if hit {
		s.hits++
	}
}

// recordHitsAtStep records the hits before a request whose index is a multiple of step.
func (s *Steady) recordHitsAtStep() {
	s.step = max(s.step, 1)
	i := s.requests / s.step
	if i == steadyNotes {
		for j := range steadyNotes / 2 {
			s.notes[j] = s.notes[2*j]
		}
		s.step *= 2
		i /= 2
	}
	s.notes[i] = s.hits
	s.next = (i + 1) * s.step
}

// HitsOfLaterHalf returns hits and requests of the later half.
func (s *Steady) HitsOfLaterHalf() (hits, requests uint64) {
	if s.requests == 0 {
		return 0, 0
	}
	i := (s.requests/2 + s.step - 1) / s.step
	return s.hits - s.notes[i], s.requests - i*s.step
}
