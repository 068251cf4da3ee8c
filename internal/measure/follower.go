package measure

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/experiment"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	plansMax   = 4096 // that wait for their requests
	strayShare = 50   // of a block's requests one in 50 may be of the other arm, where threads pass each other
	warmUps    = 4    // blocks that do not count: caches of both arms fill
	firstMost  = 8    // blocks that show how long caches warm up after a change of arm
)

// Held is the memory of a process, in bytes.
type Held struct{ InUse, Reserved int64 }

// Result is what an experiment has found so far.
type Result struct {
	Alternative string // "none", or a policy and its limits, as the pool says it: "slab,max_part=1048576"
	Process     uint32 // whose requests were measured
	Requests    uint64 // of an iteration; 0: they do not repeat, and times are those of requests
	Running     bool
	Warming     bool   // caches warm up for longer than a block: the answer has some of that
	Why         string // it ended, or nothing was measured; empty: unknown
	Auto        string // what auto made of it, in words; empty: it was not auto's
	Adopted     bool   // auto took the alternative
	Former      bool   // a setting of the pool has changed since
	Answer      experiment.Answer
}

// Results are those of the experiments of a run, the latest last. Of an alternative that was measured again the latest one
// counts.
type Results []Result

// resultsMost bounds how many are remembered.
const resultsMost = 32

// Follower follows the experiments of a run.
type Follower struct {
	Started uint64  // time when the run did; 0: unknown
	Until   float64 // see experiment.Options

	past      Results // before result
	decisions uint64  // of auto
	result    Result
	trial     *experiment.Trial
	next      uint64 // number of the request that comes
	begun     uint64 // time when the experiment began
	plans     []Plan
	pending   bool      // as far as is known, commands use memory that the program has given up
	ended     []block   // blocks that the next wait judges
	behind    uint64    // blocks that do not count, as the program was far ahead of the device
	over      uint64    // blocks that have been judged
	warm      [2]uint64 // ns of the faster block of each arm that does not count
	first     []block   // the first of them, until it is known what is left out
	leave     int       // slices at the beginning of each block
	cut       block     // is being timed
	broken    bool      // records of it were lost
}

// block is what is known of a block.
type block struct {
	Plan
	marks    []uint64 // times when slices began, and when the last ended
	drivers  []uint64 // ns in the driver until then
	driver   uint64
	bytes    int64
	requests uint64
	strays   uint64 // of these, which the other arm decided
}

// IsFollowing reports whether records other than LIMIT and DIAG matter.
func (f *Follower) IsFollowing() bool { return f.result.Running }

// Results returns what was found so far; none: there was no experiment, and no user wanted one.
func (f *Follower) Results() Results {
	if f.result == (Result{}) {
		return nil
	}
	return append(slices.Clone(f.past), f.result)
}

// beginResult remembers the latest result when another begins.
func (f *Follower) beginResult(r Result) {
	if f.result != (Result{}) {
		f.past = append(f.past, f.result)
	}
	f.past = slices.DeleteFunc(f.past, func(old Result) bool {
		return old.Alternative == r.Alternative && !old.Adopted && (!old.IsKnown() || r.Auto == "")
	})
	f.past = f.past[max(0, len(f.past)-resultsMost+1):]
	f.result = r
}

// TakeRecord takes a record. Records other than LIMIT and DIAG matter only while Following. held is the memory of the record's process.
func (f *Follower) TakeRecord(r *wire.Record, held Held) {
	switch {
	case r.Kind == wire.KindLimit:
		f.handlePoolAnswer(r)
		return
	case r.Kind == wire.KindDiag:
		f.handleSessionText(r)
		return
	case !f.result.Running || r.Process != f.result.Process || r.CarriedOver():
		return
	}
	switch r.Kind {
	case wire.KindCreate:
		f.takeCreate(r, held)
	case wire.KindRelease:
		f.cut.driver += uint64(r.AsRelease().Cost())
		f.pending = f.pending || r.AsRelease().Ordered() || r.AsRelease().Outcome() == wire.OutcomeCooling
	case wire.KindSync:
		if isWait(r) {
			f.judgeBlocks(uint64(r.AsSync().Duration()))
		}
	case wire.KindEvict:
		f.cut.driver += uint64(r.AsEvict().Cost())
	case wire.KindSlab:
		f.cut.driver += uint64(r.AsSlab().Cost())
	case wire.KindLost:
		f.broken = true
	case wire.KindExit:
		f.endExperiment("")
	default: // costs the driver nothing that is known
	}
}

// handlePoolAnswer takes the pool's word: an experiment begins or ends, or a setting changes.
func (f *Follower) handlePoolAnswer(r *wire.Record) {
	name, value := wire.ParseLimit(r.Payload)
	switch {
	case r.AsLimit().Status() != 0:
		return
	case isAboutPresentConfiguration(r):
		f.supersedeResults(r.Process)
	}
	if string(name) != wire.ArmsSetting {
		return
	}
	alternative, request, ok := wire.ParseArmsSetting(string(value))
	switch {
	case !ok || strings.HasPrefix(alternative, "+"):
	case alternative == wire.ArmsOff:
		if r.Process == f.result.Process {
			f.endExperiment("")
		}
	default:
		f.beginResult(Result{Alternative: callsite.CleanText([]byte(alternative)), Process: r.Process, Running: true})
		*f = Follower{
			Started: f.Started, Until: f.Until, trial: experiment.NewTrial(experiment.Options{Until: f.Until}), next: request + 1, begun: r.Time,
			past: f.past, result: f.result, decisions: f.decisions,
		}
	}
}

// supersedeResults marks what was measured in a process whose settings change.
func (f *Follower) supersedeResults(process uint32) {
	for i := range f.past {
		f.past[i].Former = f.past[i].Former || f.past[i].Process == process
	}
	f.result.Former = f.result != (Result{}) && (f.result.Former || f.result.Process == process)
}

// handleSessionText takes what the session says.
func (f *Follower) handleSessionText(r *wire.Record) {
	if r.AsDiag().Diag() != wire.DiagMeasure {
		return
	}
	text := callsite.CleanText(wire.TextBeforeNUL(r.Payload))
	if p, ok := parseBlockPlan(text); ok {
		if f.result.Running && r.Process == f.result.Process && len(f.plans)+len(f.ended) < plansMax {
			f.plans = append(f.plans, p)
		}
		return
	}
	if why, ok := strings.CutPrefix(text, endWord); ok && r.Process == f.result.Process {
		f.endExperiment(why)
	} else if text, ok := strings.CutPrefix(text, notWord); ok {
		alternative, why, _ := strings.Cut(text, ": ")
		f.takeUnmeasuredResult(&Result{Alternative: alternative, Process: r.Process, Why: why})
	} else if text, ok := strings.CutPrefix(text, autoNotWord); ok {
		alternative, why, _ := strings.Cut(text, ": ")
		f.takeUnmeasuredResult(&Result{Alternative: alternative, Process: r.Process, Auto: why})
		f.decisions++
	} else if text, ok := strings.CutPrefix(text, autoWord); ok && f.result.Process == r.Process {
		f.result.Auto, f.result.Adopted = text, strings.HasPrefix(text, switchesWord)
		f.decisions++
	}
}

// takeUnmeasuredResult takes a result without an answer, unless the user has an answer about that alternative.
func (f *Follower) takeUnmeasuredResult(r *Result) {
	for _, old := range f.Results() {
		if old.Alternative == r.Alternative && old.IsKnown() && old.Auto == "" && r.Auto == "" {
			return
		}
	}
	if f.result.Alternative == r.Alternative && !f.result.IsKnown() {
		f.endExperiment("")
		f.result.Why, f.result.Auto = r.Why, r.Auto
		return
	}
	f.beginResult(*r)
}

func (f *Follower) endExperiment(why string) {
	f.result.Running, f.plans, f.first, f.cut = false, nil, nil, block{}
	if f.result.Why == "" {
		f.result.Why = why
	}
}

// takeCreate counts a request of the pool, and begins and ends blocks and their slices at it.
func (f *Follower) takeCreate(r *wire.Record, held Held) {
	c := r.AsCreate()
	if o := c.Outcome(); o != wire.OutcomeHit && o != wire.OutcomeMiss { // the pool was not asked
		f.cut.driver += uint64(c.Cost())
		return
	}
	entered := r.Time - min(uint64(c.Duration()), r.Time)
	if entered < f.begun {
		return // the pool had counted the request when the experiment began
	}
	number := f.next
	f.next++
	for len(f.plans) > 0 && number >= f.plans[0].firstRequestAfter() {
		f.endSlice(entered)
		f.endBlock()
	}
	if len(f.plans) == 0 || number < f.plans[0].From {
		return
	}
	p := &f.plans[0]
	if number == p.From {
		f.cut, f.broken = block{Plan: *p}, false
	}
	if (number-p.From)%p.Requests == 0 {
		f.endSlice(entered)
	}
	b := &f.cut
	b.requests++
	if c.Arm() != (p.Arm == experiment.Alternative) {
		b.strays++
	}
	b.driver += uint64(c.Cost())
	b.bytes = max(b.bytes, f.bytesNeeded(p.Arm, held))
}

// endSlice ends a slice at a time.
func (f *Follower) endSlice(now uint64) {
	f.cut.marks, f.cut.drivers = append(f.cut.marks, now), append(f.cut.drivers, f.cut.driver)
}

// bytesNeeded returns what an arm needs: without a pool it needs no more than is in use, whatever the other arm keeps.
func (f *Follower) bytesNeeded(arm experiment.Arm, held Held) int64 {
	if arm == experiment.Alternative && f.result.Alternative == "none" {
		return held.InUse
	}
	return held.Reserved
}

// endBlock ends the first planned block.
func (f *Follower) endBlock() {
	b := f.cut
	if b.Slices == 0 || f.broken || b.strays*strayShare > b.requests || uint64(len(b.marks)) != b.Slices+1 {
		b.marks = nil
	}
	b.Plan = f.plans[0]
	f.plans, f.cut = f.plans[1:], block{}
	if f.result.Requests = 0; b.Iterations > 0 {
		f.result.Requests = b.Requests / b.Iterations
	}
	if f.ended = append(f.ended, b); !f.pending && len(f.ended) == 1 {
		f.judgeBlocks(0)
	}
}

// judgeBlocks judges the blocks that have ended, when the program has waited for the device for some ns. If that is longer than a
// block, the device was as far behind, and the block's time is that of its requests alone. The first blocks then wait for the rule of
// what is left out.
func (f *Follower) judgeBlocks(waited uint64) {
	f.pending = false
	for _, b := range f.ended {
		if b.marks != nil && waited > b.durationNS() {
			b.marks = nil
			f.behind++
		}
		switch f.over++; {
		case f.over <= warmUps:
			if b.marks != nil {
				f.warm[b.Arm] = min(b.durationNS(), cmp.Or(f.warm[b.Arm], math.MaxUint64))
			}
		case f.over <= warmUps+firstMost:
			if f.first = append(f.first, b); len(f.first) == firstMost {
				f.chooseSlicesToLeaveOut()
			}
		default:
			f.addBlockToTrial(&b)
		}
	}
	f.ended = f.ended[:0]
}

func (b *block) durationNS() uint64 {
	return b.marks[len(b.marks)-1] - min(b.marks[0], b.marks[len(b.marks)-1])
}

// chooseSlicesToLeaveOut decides what is left out of each block, and gives the first blocks to the trial.
func (f *Follower) chooseSlicesToLeaveOut() {
	var times [2][][]float64
	for i := range f.first {
		if b := &f.first[i]; b.marks != nil {
			times[b.Arm] = append(times[b.Arm], b.sliceTimes())
		}
	}
	settled := true
	if f.leave = 1; len(times[0]) == firstMost/2 && len(times[1]) == firstMost/2 {
		f.leave, settled = experiment.SlicesToLeaveOut(times[0], times[1])
	}
	f.result.Warming = !settled
	for i := range f.first {
		f.addBlockToTrial(&f.first[i])
	}
	f.first = nil
}

// sliceTimes returns the ns of the slices.
func (b *block) sliceTimes() []float64 {
	times := make([]float64, len(b.marks)-1)
	for i := range times {
		times[i] = float64(b.marks[i+1] - min(b.marks[i], b.marks[i+1]))
	}
	return times
}

// addBlockToTrial gives a block to the trial.
func (f *Follower) addBlockToTrial(b *block) {
	things := int(min(b.sliceLength(), math.MaxInt32))
	leave := min(f.leave, int(b.Slices)-1)
	out := experiment.Block{Arm: b.Arm, LeftOut: leave * things, Iterations: (int(b.Slices) - leave) * things, Void: b.marks == nil}
	if !out.Void {
		end := len(b.marks) - 1
		out.Time = float64(b.marks[end]-min(b.marks[leave], b.marks[end])) / float64(out.Iterations)
		out.Driver = float64(b.drivers[end]-b.drivers[leave]) / float64(out.Iterations)
		out.Bytes, out.Elapsed = uint64(max(b.bytes, 0)), float64(b.marks[end]-min(f.Started, b.marks[end]))
	}
	f.trial.AddBlock(out)
	f.result.Answer = f.trial.Answer()
	fitTimesToRatio(&f.result.Answer)
}

// fitTimesToRatio gives the times the ratio of the difference, which is that of neighbouring blocks: medians of all blocks of
// an arm have another where a run becomes faster or slower.
func fitTimesToRatio(a *experiment.Answer) {
	if a.Looks == 0 || a.Difference <= -1 {
		return
	}
	middle, root := math.Sqrt(a.Present.Time*a.Alternative.Time), math.Sqrt(1+a.Difference)
	a.Present.Time, a.Alternative.Time = middle*root, middle/root
}
