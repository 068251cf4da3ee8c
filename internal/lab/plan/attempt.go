package plan

import "fmt"

// attempt is one search with a bound on its steps.
type attempt struct {
	number   int
	order    order
	pick     picker
	noise    float64
	capacity int64
	steps    int64
}

// String names the attempt as a method.
func (a attempt) String() string {
	text := fmt.Sprintf("search %d, %s", a.number+1, a.order.name)
	if a.noise > 0 {
		text += fmt.Sprintf(" with %.0f %% noise", 100*a.noise)
	}
	return text
}

// ways are the orders and pickers of one round. The first are those that solve the most at once.
var ways = []struct {
	order int
	pick  picker
}{
	{0, pickFewest}, {1, pickFewest}, {2, pickFewest}, {0, pickProduct}, {1, pickProduct}, {2, pickTight}, {4, pickFewest}, {0, pickTight},
}

// In each round every way gets more steps than in the last.
const (
	firstSteps = 2048
	growth     = 2
	stepsMost  = 1 << 24
)

// nextAttempt says what to try next, false when nothing is left to look for.
func (s *solver) nextAttempt() (attempt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() {
		return attempt{}, false
	}
	n := s.next
	s.next++
	round, way := n/len(ways), ways[n%len(ways)]
	a := attempt{number: n, order: orders[way.order], pick: way.pick, steps: firstSteps}
	for range round {
		a.steps = min(a.steps*growth, stepsMost)
	}
	if round > 0 {
		a.noise = []float64{0.1, 0.4, 1.6}[round%3]
	}
	a.capacity = s.aim(n, round)
	return a, true
}

// aim chooses a capacity to try: the wanted one, or else the bound in turns with ones that are easier to find.
func (s *solver) aim(n, round int) int64 {
	step := s.p.step
	if s.options.Capacity > 0 {
		return int64(min(s.options.Capacity, sumMax)) / step * step
	}
	low, high := s.target, max(roundUp(s.height, step)-step, s.target)
	switch (n + round) % 3 {
	case 0:
		return low
	case 1:
		return low + (high-low)/2/step*step
	}
	return max(low, high-(high-low)/8/step*step)
}
