// Package experiment compares two configurations of a running program: in which order blocks of the run get one or the
// other, what a block is, and what the blocks show. It has no clock, no I/O and no goroutines.
//
// # Method
//
// Blocks come in quadruples ABBA or BAAB, drawn at random (Order). A quadruple gives one difference: half of the sum of
// the logarithms of its Present blocks' times minus that of its Alternative blocks'. Linear drift cancels in it. If the
// configurations differ by a constant factor, then each difference minus its logarithm has either sign with probability
// ½, whatever the noise is: the draw decides. So Wilcoxon's signed-rank test of the differences is exact, and the
// interval is what the test does not reject.
//
// The caller looks often. Looks that count are at fixed numbers of quadruples, about ⅓ apart, each at a level of its own
// so that the chance that any interval of a run misses the truth is at most Options.Level: repeated confidence
// intervals (Jennison and Turnbull, Controlled Clinical Trials 5, 1984) that spend the level as Lan and DeMets do
// (Biometrika 70, 1983). An interval stands until the next look.
//
// # Use
//
// Blocks follows the requests until its Plan has slices. Two quadruples of Order, timed slice by slice, give what
// SlicesToLeaveOut leaves out. The quadruples after that go to a Trial, until Answer.Stop says why it is enough. Quadruples may
// be apart, but the blocks of one follow each other.
package experiment

import (
	"cmp"
	"math"
)

const (
	firstLook     = 8    // quadruples; fewer reach no level that a first look can be given
	quadruplesMax = 2048 // remembered: at 50 ms for a block, seven minutes
	// levelFirst is the share of the level that the first look has, levelNext the factor from look to look. The levels add
	// up to 1.8 times the total; because looks at mostly the same quadruples err together, the chance that any errs is
	// below the total, which TestLevels computes.
	levelFirst = 0.18
	levelNext  = 0.9
)

// Block is one block of the run in one arm.
type Block struct {
	Arm        Arm
	Iterations int     // whole iterations that are counted, without those left out; requests where nothing repeats
	LeftOut    int     // iterations left out at the beginning, in the same arm: they count for Answer.Cost
	Time       float64 // ns for each iteration
	Driver     float64 // ns of driver calls (creates, releases, maps…) for each iteration
	Bytes      uint64  // device memory at its peak in the block
	Elapsed    float64 // ns that the run has taken at the block's end; 0: not known, and the blocks' own time is used
	// Void says that something else happened in the block, so that its quadruple does not count. The reason must not be
	// the block's time, or the answer is biased.
	Void bool
}

// Options say when a trial stops. Zero values are replaced by those in brackets.
type Options struct {
	Until  float64 // half-width of the interval at which it stops, as a share of the slower arm's time [0.02]
	Budget float64 // share of the run's time that it may cost, given the difference so far [0.02]
	Level  float64 // chance that any interval of a run misses the truth [0.05]
}

// Estimate is the median block of an arm.
type Estimate struct {
	Time   float64 // ns for each iteration
	Driver float64 // ns of driver calls for each iteration
	Bytes  uint64  // device memory
}

// Reason says why a trial stops.
type Reason uint8

// The reasons.
const (
	Continue  Reason = iota // it does not stop
	Precise                 // the interval is narrow enough
	OverSpent               // it has cost its budget; a longer run may afford more, and the reason passes
	Full                    // as many quadruples as are remembered
)

// String returns a reason in words.
func (r Reason) String() string {
	return [...]string{"it continues", "the interval is narrow enough", "it has cost its share of the run", "it has enough blocks"}[r]
}

// Answer is what a trial knows.
type Answer struct {
	Present, Alternative Estimate
	// Difference is the change of the time for each iteration of Present relative to Alternative: -0.37 means 37 % less
	// with the present configuration. Low and High are its interval at the latest look. Until the first (Looks is 0)
	// there is none: the ends are the least and the largest that there are.
	Difference, Low, High float64
	// Driver is the change of the ns of driver calls for each iteration, with an interval of its own at the same level.
	Driver     Interval
	Looks      int     // how many looks the interval is corrected for
	Certain    bool    // the interval excludes 0
	Narrow     bool    // half the interval is at most Options.Until of the slower arm's time
	Blocks     int     // blocks of whole quadruples
	Pairs      int     // two for each quadruple
	Iterations int     // of these blocks
	Cost       float64 // ns that running the slower arm has cost so far, compared with running only the faster one
	Stop       Reason
}

// Trial collects blocks and answers.
type Trial struct {
	options   Options
	quadruple [blocksOfQuadruple]Block
	filled    int       // blocks of the quadruple
	arms      [2]arm    // by Arm
	times     []float64 // differences of the logarithms, one for each quadruple, sorted
	drivers   []float64 // differences in ns, one for each quadruple, sorted
	next      int       // quadruples at the next look
	tried     int       // looks so far, with those that were too early for an interval
	elapsed   float64   // ns of the run
	answer    Answer
}

// arm is what is remembered of the blocks of an arm.
type arm struct {
	times, drivers, bytes []float64 // of its blocks, sorted
	ran                   int       // iterations, with those left out and those of quadruples that do not count
}

// NewTrial returns a trial without blocks.
func NewTrial(o Options) *Trial {
	o = Options{Until: cmp.Or(o.Until, 0.02), Budget: cmp.Or(o.Budget, 0.02), Level: cmp.Or(o.Level, 0.05)}
	unknown := Answer{Low: -1, High: math.MaxFloat64, Driver: Interval{Low: -math.MaxFloat64, High: math.MaxFloat64}}
	return &Trial{options: o, next: firstLook, answer: unknown}
}

// AddBlock adds the next block. Blocks come in the order of Order, void ones too.
func (t *Trial) AddBlock(b Block) {
	ran := b.Iterations + b.LeftOut
	t.arms[b.Arm].ran += ran
	t.elapsed = cmp.Or(b.Elapsed, t.elapsed+b.Time*float64(ran))
	t.quadruple[t.filled] = b
	t.filled++
	if t.filled == blocksOfQuadruple {
		t.filled = 0
		if t.isQuadrupleWhole() && len(t.times) < quadruplesMax {
			t.countQuadrupleAndTest()
		}
	}
}

// isQuadrupleWhole reports whether the quadruple is whole.
func (t *Trial) isQuadrupleWhole() bool {
	q := &t.quadruple
	for i := range q {
		if q[i].Void || q[i].Iterations <= 0 || !(q[i].Time > 0) || math.IsInf(q[i].Time, 1) {
			return false
		}
	}
	return q[0].Arm != q[1].Arm && q[1].Arm == q[2].Arm && q[3].Arm == q[0].Arm
}

// countQuadrupleAndTest counts the quadruple, and looks if it is time.
func (t *Trial) countQuadrupleAndTest() {
	time, driver := 0.0, 0.0
	for i := range t.quadruple {
		b := &t.quadruple[i]
		sign := 0.5 - float64(b.Arm)
		time += sign * math.Log(b.Time)
		driver += sign * b.Driver
		a := &t.arms[b.Arm]
		a.times, a.drivers, a.bytes = insertSorted(a.times, b.Time), insertSorted(a.drivers, b.Driver), insertSorted(a.bytes, float64(b.Bytes))
		t.answer.Iterations += b.Iterations
	}
	t.times, t.drivers = insertSorted(t.times, time), insertSorted(t.drivers, driver)
	t.answer.Blocks += blocksOfQuadruple
	t.answer.Pairs += 2
	if len(t.times) == t.next {
		t.computeIntervals()
	}
}

// quadruplesAtNextLook returns the quadruples at the look after one.
func quadruplesAtNextLook(quadruples int) int { return quadruples + quadruples/3 }

// levelOfLook returns the level of a look, from 0, for a level of all.
func levelOfLook(level float64, look int) float64 {
	return level * levelFirst * math.Pow(levelNext, float64(look))
}

// computeIntervals computes the intervals.
func (t *Trial) computeIntervals() {
	level := levelOfLook(t.options.Level, t.tried)
	t.tried++
	t.next = quadruplesAtNextLook(t.next)
	i, ok := signedRankInterval(t.times, level)
	if !ok {
		return
	}
	a := &t.answer
	a.Looks = t.tried
	a.Difference, a.Low, a.High = math.Expm1(i.Median), math.Expm1(i.Low), math.Expm1(i.High)
	a.Driver, _ = signedRankInterval(t.drivers, level)
	a.Certain = a.Low > 0 || a.High < 0
	a.Narrow = (a.High-a.Low)/2 <= t.options.Until*max(1, 1+a.Difference)
}

// Answer returns what is known so far. It may be called at any time: it takes microseconds.
func (t *Trial) Answer() Answer {
	a := t.answer
	a.Present, a.Alternative = t.arms[Present].medianEstimate(), t.arms[Alternative].medianEstimate()
	if a.Looks == 0 && a.Blocks > 0 {
		times, _ := signedRankInterval(t.times, t.options.Level)
		drivers, _ := signedRankInterval(t.drivers, t.options.Level)
		a.Difference, a.Driver.Median = math.Expm1(times.Median), drivers.Median
	}
	slower := Present
	if a.Alternative.Time > a.Present.Time {
		slower = Alternative
	}
	a.Cost = math.Abs(a.Present.Time-a.Alternative.Time) * float64(t.arms[slower].ran)
	switch {
	case a.Looks == 0: // an answer without an interval is worth nothing: that much is not saved
	case a.Narrow:
		a.Stop = Precise
	case a.Cost > t.options.Budget*t.elapsed:
		a.Stop = OverSpent
	case len(t.times) == quadruplesMax:
		a.Stop = Full
	}
	return a
}

func (a *arm) medianEstimate() Estimate {
	return Estimate{Time: median(a.times), Driver: median(a.drivers), Bytes: uint64(median(a.bytes))}
}
