package measure

import (
	"fmt"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/internal/experiment"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// What a Director goes by.
const (
	Until  = 0.02 // half the width of the interval with which it is content
	Budget = 0.02 // of the run's time that it may cost

	aheadLeast  = 250_000_000 // ns from when a change of arms is ordered to when it takes place: events and messages take their time
	aheadMost   = 5_000_000_000
	waitingMost = 8 // blocks that are announced and not over, except to complete a quadruple

	lookAgain    = 64 // requests from one look at a process to the next
	processesMax = 64 // among which it chooses
)

// Session is what a Director asks of the session. It is called on the goroutine of Take and Flush, and must not wait.
type Session interface {
	// IsReady reports whether the session can do what follows.
	IsReady() bool
	// SendMessage gives a process a message, and returns its number, under which it is answered.
	SendMessage(process uint32, text string) (sequence uint64)
	// RecordText puts a DIAG into the run.
	RecordText(process uint32, time uint64, text string)
	// RoomBytes returns the bytes of device memory that a process may use beside what it uses, and what it uses at most; 0, 0:
	// unknown.
	RoomBytes(process uint32) (free, used uint64)
}

// Options are what an experiment is about.
type Options struct {
	Alternatives []string // measured in turn: "none", or a policy and its limits: "slab max_part=1048576"
	Until        float64
	Budget       float64 // part of the run's time
	Seed         uint64
	Session      Session
}

// task is what a Director was asked for.
type task struct {
	alternatives []string  // in turn
	proposal     *Proposal // nil: a user asked, or quiet
	quiet        bool      // no user asked: only iterations are measured, and where there are none no message says so
}

// stage of a Director.
type stage uint8

const (
	idle      stage = iota
	looking         // for iterations
	preparing       // the pool has been asked to prepare the alternative
	running
)

// candidate is a process that may be measured.
type candidate struct {
	blocks   experiment.Blocks
	requests uint64
	why      string // it cannot be measured
}

// Director runs experiments in one process of a program, that with the most requests. Take and Flush are called on the goroutine
// that reads the records, Start and Stop on any.
type Director struct {
	options Options
	asked   atomic.Pointer[task] // nil: nothing is wanted
	task    *task                // that is served, unless idle
	adopted bool                 // its proposal
	verdict atomic.Pointer[Verdict]
	turn    int // of its alternatives
	stage   stage
	started uint64 // time of the first record
	now     uint64
	number  uint64 // of the last message

	candidates map[uint32]*candidate
	lag        lag // of all of them
	process    uint32
	plan       experiment.Plan
	follower   Follower
	pace       pace
	order      *experiment.Order
	last       Plan           // the latest block that was announced
	arm        experiment.Arm // that was ordered last
	spent      uint64         // iterations of the alternative that were announced
	paid       float64        // ns that the experiments before cost the program
	ahead      uint64         // ns
	late       uint64         // changes of arms that came too late for the program
}

// NewDirector returns a director that waits for Start.
func NewDirector(o Options) *Director {
	return &Director{options: o}
}

// AskForExperiment lets an experiment begin.
func (d *Director) AskForExperiment() { d.asked.Store(&task{alternatives: d.options.Alternatives}) }

// OfferUnaskedExperiment lets one begin that no user asked for.
func (d *Director) OfferUnaskedExperiment() {
	d.asked.CompareAndSwap(nil, &task{alternatives: d.options.Alternatives, quiet: true})
}

// EndExperiment ends the experiment.
func (d *Director) EndExperiment() { d.asked.Store(nil) }

// IsExperimentWanted reports whether an experiment goes on, or would if it could.
func (d *Director) IsExperimentWanted() bool { return d.asked.Load() != nil }

// TakeRecord takes a record.
func (d *Director) TakeRecord(r *wire.Record) {
	if d.started == 0 {
		d.started = r.Time
	}
	if d.stage == idle {
		if d.task = d.asked.Load(); d.task == nil || r.Kind == wire.KindDiag || !d.mayTaskBegin(d.task, r.Time) {
			return
		}
		d.turn, d.adopted = 0, false
		d.beginIterationSearch()
	}
	d.now = max(d.now, r.Time)
	d.follower.TakeRecord(r, Held{})
	d.lag.takeRecord(r)
	switch r.Kind {
	case wire.KindCreate:
		if o := r.AsCreate().Outcome(); (o == wire.OutcomeHit || o == wire.OutcomeMiss) && !r.CarriedOver() {
			d.takeRequest(r)
		}
	case wire.KindLimit:
		d.handlePoolAnswer(r)
	case wire.KindExit:
		d.handleProcessExit(r)
	default:
	}
}

// Flush is called from time to time.
func (d *Director) Flush() {
	switch {
	case d.stage == idle:
	case d.asked.Load() != d.task:
		d.endExperiment("it was stopped")
		d.finishTask()
	case d.stage == running:
		d.announceBlocksOrEndExperiment()
	}
}

// beginIterationSearch begins to look for iterations.
func (d *Director) beginIterationSearch() {
	d.stage, d.candidates, d.process, d.ahead, d.late, d.lag = looking, map[uint32]*candidate{}, 0, aheadLeast, 0, lag{}
	d.follower = Follower{Started: d.started, Until: d.options.Until}
}

// takeRequest takes a request of the pool.
func (d *Director) takeRequest(r *wire.Record) {
	if d.stage == looking {
		d.findIterationsInRecords(r)
		return
	}
	if r.Process != d.process {
		return
	}
	if d.candidates[d.process].requests++; d.stage != running {
		return
	}
	d.pace.addRequest(d.follower.next-1, r.Time-min(uint64(r.AsCreate().Duration()), r.Time), r.Time)
	if d.pace.count%lookAgain == 0 {
		d.announceBlocksOrEndExperiment()
	}
}

// findIterationsInRecords looks for the iterations of the process with the most requests.
func (d *Director) findIterationsInRecords(r *wire.Record) {
	c := d.candidates[r.Process]
	if c == nil {
		if len(d.candidates) == processesMax {
			return
		}
		c = &candidate{}
		d.candidates[r.Process] = c
	}
	create := r.AsCreate()
	c.blocks.AddRequest(create.Requested(), create.Tag(), create.Access(), float64(r.Time))
	if c.requests++; c.requests%lookAgain != 0 || c.requests < d.mostRequestsOfProcess() {
		return
	}
	if !d.options.Session.IsReady() {
		return
	}
	plan := c.blocks.BlockPlan()
	if c.why = plan.Reason; plan.Slices == 0 || plan.Iterations == 0 && d.task.quiet {
		return
	}
	if why := d.whyTooLittleMemory(r.Process); why != "" {
		d.sayNothingMeasured(r.Process, why, why)
		d.finishTask()
		return
	}
	d.process, d.plan = r.Process, plan
	d.askForAlternative()
}

// currentAlternative is the one whose turn it is.
func (d *Director) currentAlternative() string { return d.task.alternatives[d.turn] }

// askForAlternative asks the pool for the alternative.
func (d *Director) askForAlternative() {
	d.stage = preparing
	d.number = d.options.Session.SendMessage(d.process, "arms "+d.currentAlternative())
}

// goToNextAlternative goes on with the next alternative, if there is one.
func (d *Director) goToNextAlternative() {
	if d.turn++; d.turn < len(d.task.alternatives) {
		d.askForAlternative()
		return
	}
	d.finishTask()
}

// finishTask waits for another task.
func (d *Director) finishTask() {
	d.stage = idle
	if d.task.proposal != nil {
		d.verdict.Store(&Verdict{d.task.proposal, d.adopted})
	}
	d.asked.CompareAndSwap(d.task, nil)
}

// mostRequestsOfProcess returns how many requests the process with the most has made.
func (d *Director) mostRequestsOfProcess() (most uint64) {
	for _, c := range d.candidates {
		most = max(most, c.requests)
	}
	return most
}

// handlePoolAnswer takes the pool's word.
func (d *Director) handlePoolAnswer(r *wire.Record) {
	if r.Process != d.process {
		return
	}
	refused, ours := r.AsLimit().Status() != 0, r.AsLimit().Sequence() == d.number
	switch {
	case d.stage == preparing && refused && ours:
		d.sayNotMeasured(d.process, d.currentAlternative(), string(wire.TextBeforeNUL(r.Payload)))
		d.goToNextAlternative()
	case d.stage == preparing && ours && d.follower.IsFollowing():
		d.stage, d.last, d.arm, d.spent, d.pace = running, Plan{}, experiment.Present, 0, newPace(&d.plan)
		d.options.Seed++
		d.order = experiment.NewOrder(d.options.Seed)
		d.options.Session.RecordText(d.process, d.now, startWord+d.comparedConfigurationsText())
	case d.stage == running && !refused && isAboutPresentConfiguration(r):
		d.endExperiment("the configuration was changed")
		d.finishTask()
	case d.stage == running && refused:
		d.ahead = min(2*d.ahead, aheadMost) // the change came too late: its block does not count
		d.late++
	}
}

// isAboutPresentConfiguration reports whether an accepted LIMIT is about the present configuration: not of experiments, nor
// what the pool learned of the program or of its neighbours.
func isAboutPresentConfiguration(r *wire.Record) bool {
	name, _ := wire.ParseLimit(r.Payload)
	switch string(name) {
	case wire.ArmsSetting, wire.ArmSetting, wire.PeriodSetting, wire.RelieveSetting:
		return false
	}
	return true
}

// comparedConfigurationsText says what is compared.
func (d *Director) comparedConfigurationsText() string {
	text := "the present configuration and " + d.currentAlternative()
	if d.plan.Iterations > 0 {
		text += fmt.Sprintf(", in iterations of %d requests", d.pace.period)
	} else {
		text += ", in requests, whose mix is steady"
	}
	if n := len(d.candidates); n > 1 {
		text += fmt.Sprintf(", in the process with the most requests of %d", n)
	}
	return text
}

// handleProcessExit ends the experiment with its process. Where an alternative was not measured, another process may do.
func (d *Director) handleProcessExit(r *wire.Record) {
	const late = "the program ended before its turn"
	switch {
	case d.stage == looking:
		if c := d.candidates[r.Process]; c != nil && c.requests == d.mostRequestsOfProcess() {
			why := d.whyRunTooShort(c)
			d.sayNothingMeasured(r.Process, why, why)
		}
		delete(d.candidates, r.Process)
	case r.Process != d.process:
	case d.follower.result.Answer.Looks > 0:
		d.options.Session.RecordText(d.process, d.now, endWord+"the program ended")
		d.sayNotAdopted(d.process, ", as the program ended: "+d.follower.result.answerSentence())
		if d.turn++; d.turn == len(d.task.alternatives) {
			d.finishTask()
			return
		}
		d.sayNothingMeasured(d.process, late, late)
		d.beginIterationSearch()
	default:
		d.sayNothingMeasured(d.process, d.whyRunTooShort(d.candidates[r.Process]), late)
		d.beginIterationSearch()
	}
}

// announceBlocksOrEndExperiment announces blocks, and ends the experiment when enough is known.
func (d *Director) announceBlocksOrEndExperiment() {
	if !d.pace.isKnown() {
		return
	}
	answer := &d.follower.result.Answer
	if d.decideProposal(answer) {
		return
	}
	if answer.Stop == experiment.Precise || answer.Stop == experiment.Full {
		d.endExperiment(answer.Stop.String())
		d.goToNextAlternative()
		return
	}
	if d.turn+1 < len(d.task.alternatives) && d.hasCostTooMuch(answer) { // others wait
		d.endExperiment(experiment.OverSpent.String())
		d.goToNextAlternative()
		return
	}
	if d.last.Requests == 0 {
		d.fitSlicesToIterations()
	}
	// The end of the alternative is ordered with its beginning: an order that comes too late would leave the program in it.
	for d.arm == experiment.Alternative || d.last.firstRequestAfter() < d.firstRequestAfter(d.ahead) {
		if d.last.Requests > 0 && d.last.Number%4 == 3 && d.mustDelayQuadruple(answer) {
			d.letArmDecideFrom(experiment.Present, d.last.firstRequestAfter())
			return
		}
		if n := d.last.Number + 1; n == warmUps || n == warmUps+firstMost { // a program may be slow at its start
			d.fitSlicesToIterations()
		}
		d.announceBlock()
	}
}

// firstRequestAfter returns the first request after some ns at which a block may begin.
func (d *Director) firstRequestAfter(ns uint64) uint64 {
	return d.pace.alignedRequest(d.follower.next, ns, d.plan.Requests)
}

// fitSlicesToIterations makes slices of whole numbers of the iterations that the program makes from one wait to the next, and
// blocks of these. The plan's own times are those between requests. A program that is ahead of the device makes many requests
// at once.
func (d *Director) fitSlicesToIterations() {
	p := &d.plan
	if p.Iterations == 0 {
		return
	}
	request := d.pace.takeMeanRequestNS()
	each := request * float64(d.pace.period) // ns of an iteration
	iterations := float64(d.pace.iterationsPerWait(uint64(experiment.BlockLeast / request)))
	slices, together := experiment.SlicesOfBlock(each * iterations)
	p.Iterations, p.Slices = int(iterations*together), int(slices)
	p.Requests = uint64(p.Iterations) * d.pace.period
}

// mustDelayQuadruple reports whether a quadruple of blocks is not followed by the next yet. The first quadruple is short and
// does not count: it shows how long an iteration takes in each arm.
func (d *Director) mustDelayQuadruple(a *experiment.Answer) bool {
	return d.follower.over < warmUps || d.hasCostTooMuch(a) || d.last.Number+1-d.follower.over >= waitingMost
}

// announceBlock plans the next block.
func (d *Director) announceBlock() {
	p := Plan{Arm: d.order.NextArm(), From: d.last.firstRequestAfter(), Slices: d.slicesPerBlock(), Requests: d.plan.Requests, Iterations: uint64(d.plan.Iterations)}
	if d.last.Requests > 0 {
		p.Number = d.last.Number + 1
	}
	if p.From < d.firstRequestAfter(d.ahead/2) { // the first, one after a rest, or the program has become faster
		p.From = d.firstRequestAfter(d.ahead)
	} else if p.Arm == experiment.Alternative && d.last.Arm == p.Arm && d.arm == experiment.Present {
		p.From += d.plan.Requests // the present configuration has been ordered from there on
	}
	d.letArmDecideFrom(p.Arm, p.From)
	if p.Arm == experiment.Alternative {
		d.spent += p.Slices * p.sliceLength()
	}
	d.options.Session.RecordText(d.process, d.now, p.announcementText())
	d.last = p
}

// slicesPerBlock returns how many slices a block has. Where one arm is much slower, blocks are shorter, as time in it is what
// the program pays.
func (d *Director) slicesPerBlock() uint64 {
	fewest := uint64(min(d.plan.Slices, experiment.SlicesLeast))
	if d.last.Requests == 0 || d.last.Number+1 < warmUps {
		return fewest
	}
	slower, faster := max(d.follower.warm[0], d.follower.warm[1]), min(d.follower.warm[0], d.follower.warm[1])
	return max(fewest, uint64(d.plan.Slices)/3, uint64(float64(d.plan.Slices)*min(1, 1.5*float64(faster+1)/float64(slower+1))))
}

// letArmDecideFrom lets an arm decide from a request on.
func (d *Director) letArmDecideFrom(arm experiment.Arm, from uint64) {
	if d.arm != arm {
		d.arm = arm
		d.options.Session.SendMessage(d.process, fmt.Sprintf("arm %d %d", arm, from))
	}
}

// hasCostTooMuch reports whether the experiment has cost more than its part of the run so far: it then waits.
func (d *Director) hasCostTooMuch(a *experiment.Answer) bool {
	if a.Looks == 0 { // without an interval the answer is worth nothing
		return false
	}
	return d.paid+d.nsLostSoFar(a) > d.options.Budget*float64(d.now-d.started)
}

// nsLostSoFar returns the ns that the experiment has cost the program so far.
func (d *Director) nsLostSoFar(a *experiment.Answer) float64 {
	return max(0, a.Alternative.Time-a.Present.Time) * float64(d.spent)
}

// endExperiment ends the experiment while the program goes on.
func (d *Director) endExperiment(why string) {
	if d.stage == preparing || d.stage == running {
		d.paid += d.nsLostSoFar(&d.follower.result.Answer)
		d.options.Session.SendMessage(d.process, "arms")
		d.options.Session.RecordText(d.process, d.now, endWord+why)
	}
}
