package plan

import "math"

// picker says which section to go on with.
type picker uint8

const (
	pickFewest  picker = iota // where the fewest can begin
	pickTight                 // with the least to waste
	pickProduct               // where both are small
	pickLowest                // at the lowest floor, and there where the first in the order can begin
)

// choose returns a section from low to high where no floor beside it is lower: one of those buffers that can begin there,
// or nothing, is at its floor, and nobody can come to lie below.
func (k picker) choose(x *search, low, high int32) int32 {
	best, least, s := low, int64(1<<62), x.state
	for t := low; t <= high; {
		if s.left[t] == 0 {
			t++
			continue
		}
		floor, end := s.floor[t], t+1
		for end <= high && s.left[end] > 0 && s.floor[end] == floor {
			end++
		}
		valley := (t == low || s.left[t-1] == 0 || s.floor[t-1] > floor) && (end > high || s.left[end] == 0 || s.floor[end] > floor)
		for ; valley && t < end; t++ {
			if score := k.score(x, t); score < least || score == least && k == pickLowest && x.earliest(t) < x.earliest(best) {
				best, least = t, score
			}
		}
		t = end
	}
	return best
}

// score is the lower the better a section is to go on with.
func (k picker) score(x *search, t int32) int64 {
	s := x.state
	slack := s.capacity - s.floor[t] - s.rest[t]
	ways := int64(s.support[t])
	if slack > 0 {
		ways++
	}
	slack = min(slack, 1<<40)
	switch k {
	case pickFewest:
		return ways<<41 + slack
	case pickTight:
		return slack<<20 + ways
	case pickLowest:
		return s.floor[t]
	default:
		return ways * (1 + slack)
	}
}

// earliest is the place in the order of the first buffer that can begin at the floor of a section.
func (x *search) earliest(t int32) int32 {
	first := int32(math.MaxInt32)
	for _, e := range x.live[t][:x.left[t]] {
		if x.offset[e.buffer]+e.lo == x.floor[t] {
			first = min(first, x.rank[e.buffer])
		}
	}
	return first
}
