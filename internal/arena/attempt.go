package arena

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// attempt is one search with a bounded number of steps.
type attempt struct {
	number   int
	order    order
	pick     picker
	noise    float64
	mixture  bool // the order is a random mixture of size and width, after the load if the order begins with that
	capacity int64
	steps    int64
}

// String names the attempt as a method.
func (a attempt) String() string {
	name := a.order.name
	if a.mixture {
		name = "size and width mixed"
		if a.order.by[0] == byLoad {
			name = "load, " + name
		}
	}
	text := fmt.Sprintf("search %d, %s", a.number+1, name)
	if a.noise > 0 {
		text += fmt.Sprintf(" with %.0f %% noise", 100*a.noise)
	}
	return text
}

// itemsInOrder returns the items in the order of the attempt.
func (a attempt) itemsInOrder(s *scales, items []int32, random *rand.Rand) []int32 {
	if a.mixture {
		return s.sortByRandomMean(items, a.order.by[0] == byLoad, a.noise, random)
	}
	return s.itemsSortedBy(items, a.order.by, a.noise, random)
}

// quick are the orders of a round of short searches, all but the one by time. From the second round on the orders are
// mixtures.
var quick = []int{0, 1, 2, 3, 4}

// thorough are the orders and pickers of one round of searches that get twice the steps in each round. pickLowest goes
// with Moffitt's three orders, because his search goes from the lowest floor up. The other pairs have no derivation:
// they were chosen by trial on the instances of TestPopulation.
var thorough = []struct {
	order int
	pick  picker
}{
	{0, pickFewest}, {1, pickFewest}, {2, pickFewest}, {0, pickLowest}, {1, pickLowest}, {3, pickLowest}, {0, pickProduct}, {2, pickTight},
}

// The lengths of searches, in steps, were chosen by trial on the instances of TestPopulation: searches that end well end
// soon, so short ones solve more instances, and most of them sooner, than a few that double.
const (
	quickSteps    = 1024
	thoroughSteps = 2048
	stepsMost     = 1 << 24
	// thoroughShare is how many steps are taken in all for one step of a thorough search.
	thoroughShare = 4
)

// noises are the shares by which the first measure of an order is changed at random, by round. They have no derivation,
// either: one round in three stays close to the order, and one changes the measure by a factor from 0.2 to 1.8.
var noises = []float64{0.1, 0.4, 1.6}

// nextAttempt returns what to try next, false if the search is finished.
//
// The duration of a search differs by orders of magnitude between orders that are about as good. So most attempts are
// short, with random mixtures of orders, and their lengths follow the sequence of M. Luby et al. (1993), which is nearly
// as good as any other. But a share of the steps is for long attempts, because only these show that there is no
// placement, and some of them go from the lowest floor up, as Moffitt's search does, with his orders.
func (s *solver) nextAttempt() (attempt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isFinishedLocked() {
		return attempt{}, false
	}
	a := attempt{number: s.quick + s.thorough}
	var round int
	if s.steps >= thoroughShare*(s.thoroughSteps+quickSteps) {
		way := thorough[s.thorough%len(thorough)]
		round = s.thorough / len(thorough)
		a.order, a.pick, a.steps = orders[way.order], way.pick, min(int64(thoroughSteps)<<min(round, 30), stepsMost)
		s.thorough++
		s.thoroughSteps += a.steps
	} else {
		round = s.quick / len(quick)
		a.order, a.pick, a.steps = orders[quick[s.quick%len(quick)]], pickFewest, thoroughSteps
		if a.mixture = round > 0; a.mixture {
			a.steps = quickSteps * lubyNumber(round)
		}
		s.quick++
	}
	if round > 0 {
		a.noise = noises[round%len(noises)]
	}
	a.capacity = s.capacityOfAttempt(a.number, round)
	return a, true
}

// lubyNumber returns the nth number, from 1 on, of 1, 1, 2, 1, 1, 2, 4, 1, ...
func lubyNumber(n int) int64 {
	for {
		power := 1 << (bits.Len(uint(n)) - 1) // at most n
		if n == 2*power-1 {
			return int64(power)
		}
		n -= power - 1
	}
}

// capacityOfAttempt returns the capacity of an attempt: the wanted one, or in turns the lower bound, the middle between the
// bound and the best placement so far, and one that is an eighth below the best placement. The bound would be optimal,
// the others are easier to find. round shifts the turns so that each order gets each capacity.
func (s *solver) capacityOfAttempt(n, round int) int64 {
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
