package measure

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/experiment"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// target is a process whose pool obeys the messages of a Director, after a while.
type target struct {
	director *Director
	second   Follower // reads the records that a recording would have
	random   *rand.Rand

	now, request uint64
	sizes        []uint64   // of an iteration
	cost         [2]float64 // ns of an iteration in each arm
	arm          experiment.Arm
	prepared     bool
	free, used   uint64
	inbox        []message
	switches     []Plan // Arm and From
	sequence     uint64
	said         []string
	delay        uint64             // ns that a message takes
	refuse       string             // why the pool does not prepare the alternative
	costs        map[string]float64 // ns of an iteration by alternative; none: cost has it
	pending      uint64             // ns for which a request has waited for the driver when the experiment begins; 0: none has
}

type message struct {
	at, sequence uint64
	text         string
}

// latest returns the latest result; nil: none.
func (f *Follower) latest() *Result {
	if rs := f.Results(); len(rs) > 0 {
		return &rs[len(rs)-1]
	}
	return nil
}

func newTarget(until float64, sizes ...uint64) *target {
	p := &target{random: rand.New(rand.NewPCG(1, 2)), now: 1e9, sizes: sizes, cost: [2]float64{2e6, 3e6}, free: 1 << 30, used: 1 << 20, delay: 20e6}
	p.director = NewDirector(Options{Alternatives: []string{"none"}, Until: until, Budget: Budget, Seed: 7, Session: p})
	return p
}

func (p *target) IsReady() bool { return true }

func (p *target) SendMessage(_ uint32, text string) uint64 {
	p.sequence++
	p.inbox = append(p.inbox, message{p.now + p.delay, p.sequence, text})
	return p.sequence
}

func (p *target) RecordText(process uint32, time uint64, text string) {
	p.said = append(p.said, text)
	r := wire.DiagFields{Time: time, Diag: wire.DiagMeasure}.Record([]byte(text))
	r.Process = process
	p.take(&r)
}

func (p *target) RoomBytes(uint32) (free, used uint64) { return p.free, p.used }

func (p *target) take(r *wire.Record) {
	p.second.TakeRecord(r, Held{1 << 20, 3 << 20})
	p.director.TakeRecord(r)
}

func (p *target) limit(sequence uint64, status int16, text string) {
	r := wire.LimitFields{Time: p.now, Status: status, Sequence: sequence}.Record([]byte(text))
	r.Process = 1
	p.take(&r)
}

// obey takes the messages that have come.
func (p *target) obey() {
	for len(p.inbox) > 0 && p.inbox[0].at <= p.now {
		m := p.inbox[0]
		p.inbox = p.inbox[1:]
		var next Plan
		switch {
		case m.text == "arms":
			p.prepared, p.arm, p.switches = false, 0, nil
			p.limit(m.sequence, 0, fmt.Sprintf("arms=off,request=%d", p.request))
		case strings.HasPrefix(m.text, "arms ") && p.refuse != "":
			p.limit(m.sequence, -1, p.refuse)
		case strings.HasPrefix(m.text, "arms "):
			p.prepared = true
			if cost, known := p.costs[strings.TrimPrefix(m.text, "arms ")]; known {
				p.cost[experiment.Alternative] = cost
			}
			if p.pending > 0 {
				p.request++
			}
			p.limit(m.sequence, 0, fmt.Sprintf("arms=%s,request=%d", strings.TrimPrefix(m.text, "arms "), p.request))
			if p.pending > 0 {
				f := wire.CreateFields{Time: p.now + 500, Duration: uint32(p.pending), Outcome: wire.OutcomeHit, Requested: 100, Granted: 100, Object: p.request}
				p.take(&wire.Record{Event: f.Event(), Process: 1, Thread: 6})
			}
		default:
			if _, err := fmt.Sscanf(m.text, "arm %d %d", &next.Arm, &next.From); err != nil {
				panic(m.text)
			}
			if last := len(p.switches) - 1; next.From <= p.request || last >= 0 && next.From <= p.switches[last].From {
				p.limit(m.sequence, -1, "too late")
				continue
			}
			p.switches = append(p.switches, next)
		}
	}
}

// run lets the program make iterations.
func (p *target) run(iterations int) {
	for range iterations {
		for i, size := range p.sizes {
			p.obey()
			if len(p.switches) > 0 && p.request+1 >= p.switches[0].From {
				p.arm, p.switches = p.switches[0].Arm, p.switches[1:]
			}
			p.create(size, uint32(i+1))
		}
		p.now += uint64(p.cost[p.arm] * (0.98 + 0.04*p.random.Float64()))
		if p.random.IntN(50) == 0 {
			p.director.Flush()
		}
	}
}

func (p *target) create(size uint64, site uint32) {
	p.now += 1000
	f := wire.CreateFields{Time: p.now, Duration: 900, Outcome: wire.OutcomeHit, Tag: site, Requested: size, Granted: size, Object: p.request + 1}
	if p.arm == experiment.Alternative {
		f.Outcome, f.Arm, f.Cost = wire.OutcomeMiss, true, 800
	}
	r := wire.Record{Event: f.Event(), Process: 1, Thread: 5}
	p.request++
	p.take(&r)
}

// releaseUsed lets the program release memory that commands still use.
func (p *target) releaseUsed() {
	r := wire.Record{Event: wire.ReleaseFields{Time: p.now, Outcome: wire.OutcomeCached, Ordered: true}.Event(), Process: 1, Thread: 5}
	p.take(&r)
}

// wait lets the program wait for the device.
func (p *target) wait(ns uint64) {
	r := wire.Record{Event: wire.SyncFields{Time: p.now, Duration: uint32(ns), Sync: wire.SyncFinish}.Event(), Process: 1, Thread: 5}
	p.now += ns
	p.take(&r)
}

func (p *target) exit() {
	r := wire.Record{Event: wire.ExitFields{Time: p.now}.Event(), Process: 1, Thread: 5}
	p.take(&r)
	p.director.Flush()
}

func TestExperiment(t *testing.T) {
	p := newTarget(Until, 100, 200, 300)
	p.run(100)
	if p.sequence > 0 {
		t.Fatal("it began without being asked")
	}
	p.director.AskForExperiment()
	p.run(5000)
	result, others := p.second.latest(), p.director.follower.Results()
	if result == nil || *result != others[0] && result.Answer.Blocks != p.director.follower.result.Answer.Blocks {
		t.Fatalf("two readers of the records: %+v, %+v", result, p.director.follower.result)
	}
	a := &result.Answer
	if a.Looks < 1 || a.Blocks != 2*a.Pairs || result.Requests != 3 || result.Alternative != "none" {
		t.Errorf("%+v", result)
	}
	for arm, got := range []float64{a.Present.Time, a.Alternative.Time} {
		if want := p.cost[arm] + 3000; got < 0.99*want || got > 1.01*want {
			t.Errorf("arm %d: %g ns, want %g", arm, got, want)
		}
	}
	t.Logf("%+v %v", result, p.said[:4])
}

// TestRequestWaitsAtTheStart: a request that the pool had counted when the experiment began is not counted again. Each block has few
// requests here, and one of the other arm voids it.
func TestRequestWaitsAtTheStart(t *testing.T) {
	p := newTarget(Until, 100)
	p.cost, p.pending = [2]float64{20e6, 30e6}, 900
	p.director.AskForExperiment()
	p.run(3000)
	if a := &p.second.latest().Answer; a.Looks == 0 {
		t.Errorf("%+v", a)
	}
}

// TestAlternativeEndsByItself: a program whose messages come no more returns to its present configuration.
func TestAlternativeEndsByItself(t *testing.T) {
	p := newTarget(1e-9, 100)
	p.cost = [2]float64{1e6, 1e4}
	p.director.AskForExperiment()
	for range 300 {
		p.run(10)
		if last := len(p.switches) - 1; last >= 0 && p.switches[last].Arm == experiment.Alternative {
			t.Fatalf("the latest order is %+v", p.switches[last])
		} else if last < 0 && p.arm == experiment.Alternative {
			t.Fatalf("after request %d it stays in the alternative", p.request)
		}
	}
	if a := &p.second.latest().Answer; a.Looks == 0 {
		t.Errorf("%+v", a)
	}
}

// TestSlowStart: a program that is slow at its start still gets blocks of fifty milliseconds.
func TestSlowStart(t *testing.T) {
	p := newTarget(1e-9, 100)
	p.cost = [2]float64{10e6, 10e6}
	p.director.AskForExperiment()
	p.run(130)
	p.cost = [2]float64{1e5, 1e5}
	p.run(50000)
	if plan := p.director.plan; float64(plan.RequestsPerBlock())*1e5 < 0.9*experiment.BlockLeast {
		t.Errorf("%+v", plan)
	}
}

// TestExperimentCostsWhatItMay: the experiment costs about as much as it may, once a few pairs are known.
func TestExperimentCostsWhatItMay(t *testing.T) {
	p := newTarget(1e-9, 100)
	p.cost = [2]float64{1e6, 10e6}
	p.director.AskForExperiment()
	began, slow := p.now, uint64(0)
	for range 200000 {
		before := p.now
		p.run(1)
		if p.arm == experiment.Alternative {
			slow += p.now - before
		}
	}
	if p.director.late > 0 {
		t.Errorf("%d orders were refused", p.director.late)
	}
	if cost := 0.9 * float64(slow) / float64(p.now-began); cost > 0.021 || cost < 0.01 {
		t.Errorf("it cost %.3f of the run", cost)
	}
}

func TestNotMeasured(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(p *target)
		want    string
	}{
		"short":   {func(p *target) { p.run(60) }, "too short: an answer takes longer than 180 requests"},
		"no room": {func(p *target) { p.free = 1000; p.run(500) }, "the device may lack the memory"},
		"late":    {func(p *target) { p.run(30); p.delay = 3e9; p.run(2000) }, "reached the library in the program too late"},
		"refused": {func(p *target) { p.refuse = "no such policy"; p.run(500) }, "no such policy"},
		"no iterations": {func(p *target) {
			for i := range uint64(6000) {
				p.now += 1e5
				p.create(p.random.Uint64N(1<<(10+i/300)), 1)
			}
		}, "requests do not repeat"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTarget(Until, 100, 200, 300)
			p.director.AskForExperiment()
			test.prepare(p)
			p.exit()
			if result := p.second.latest(); result == nil || !strings.Contains(result.Why, test.want) || result.Running || result.Answer.Blocks > 0 {
				t.Errorf("%+v", result)
			}
			if p.director.stage > looking {
				t.Error("it goes on")
			}
		})
	}
}

// TestProgramAheadOfItsDevice: the times of requests say nothing of a program that makes them long before the device is done with
// them. A program that waits now and then has an answer.
func TestProgramAheadOfItsDevice(t *testing.T) {
	for name, test := range map[string]struct {
		iterations int // from one wait to the next
		wait       uint64
		known      bool
	}{
		"it waits":            {4, 4e6, true},
		"it waits for long":   {1000, 900e6, false},
		"it waits at last":    {3000, 4e9, false},
		"it does not wait":    {1 << 20, 0, false},
		"it waits for little": {1000, 20e6, true},
	} {
		p := newTarget(1e-9, 100, 200, 300)
		p.director.AskForExperiment()
		for i := range 6000 {
			p.run(1)
			p.releaseUsed()
			if (i+1)%test.iterations == 0 {
				p.wait(test.wait)
			}
		}
		p.exit()
		r := p.second.latest()
		if other := p.director.follower.latest(); r.IsKnown() != test.known || other.IsKnown() != test.known {
			t.Errorf("%s: %+v, %+v", name, r, other)
		}
		if ahead := strings.Contains(r.Why, "without waiting for the device"); ahead == test.known {
			t.Errorf("%s: %q", name, r.Why)
		}
	}
}

// TestProgramWithoutCommands: a program that gives the device nothing to do need not wait for it.
func TestProgramWithoutCommands(t *testing.T) {
	p := newTarget(Until, 100, 200, 300)
	p.director.AskForExperiment()
	p.run(100)
	p.releaseUsed()
	p.wait(1e6)
	p.run(4000)
	if r := p.second.latest(); !r.IsKnown() {
		t.Errorf("%+v", r)
	}
}

// TestShortProgramAheadOfItsDevice: more requests would show nothing of a program that makes all before the device is done with the first.
func TestShortProgramAheadOfItsDevice(t *testing.T) {
	for wait, want := range map[uint64]string{1e6: "too short: ", 4e9: "without waiting for the device"} {
		p := newTarget(Until, 100, 200, 300)
		p.director.AskForExperiment()
		p.run(22)
		p.wait(wait)
		p.exit()
		if r := p.second.latest(); r == nil || !strings.Contains(r.Why, want) {
			t.Errorf("%+v, want %q", r, want)
		}
	}
}

// TestUnaskedExperimentWithoutAnswerIsNotMentioned: what no user asked for is not mentioned where nothing was measured.
func TestUnaskedExperimentWithoutAnswerIsNotMentioned(t *testing.T) {
	p := newTarget(Until, 100, 200, 300)
	p.director.OfferUnaskedExperiment()
	p.run(15)
	p.exit()
	if result := p.second.latest(); result != nil || len(p.said) > 0 {
		t.Errorf("%+v, %q", result, p.said)
	}
	p.run(5000)
	if result := p.second.latest(); result.Answer.Looks == 0 {
		t.Errorf("%+v", result)
	}
}

// TestStoppedExperimentKeepsItsAnswer: an experiment that is stopped keeps its answer, and another may follow.
func TestStoppedExperimentKeepsItsAnswer(t *testing.T) {
	p := newTarget(1e-9, 100, 200, 300)
	p.director.AskForExperiment()
	p.run(3000)
	p.director.EndExperiment()
	p.director.Flush()
	p.run(500)
	first := p.second.latest()
	if p.prepared || p.arm != experiment.Present || first.Running || first.Why != "it was stopped" || first.Answer.Blocks == 0 {
		t.Fatalf("%+v", first)
	}
	p.director.AskForExperiment()
	p.run(3000)
	if again := p.second.latest(); !p.prepared || again.Why != "" || again.Answer.Blocks == 0 {
		t.Errorf("%+v", again)
	}
}

// TestFormerConfiguration: what was measured before a setting changed is not known of the settings now.
func TestFormerConfiguration(t *testing.T) {
	p := newTarget(1e-9, 100, 200, 300)
	p.director.AskForExperiment()
	p.run(3000)
	p.director.EndExperiment()
	p.director.Flush()
	p.run(500)
	const since = "; settings have changed since"
	known := func(when string, want bool) {
		t.Helper()
		results := p.second.Results()
		if got := results.LatestKnown() != nil; got != want || strings.Contains(results.LatestResult().Text(), since) == want {
			t.Errorf("%s: known %v, %s", when, got, results.LatestResult().Text())
		}
	}
	known("after the experiment", true)
	p.limit(900, 0, "period=4000000000")
	p.limit(901, 22, "max_cached_bytes=x")
	known("after what the pool learned, and a setting that was refused", true)
	p.limit(902, 0, "max_cached_bytes=4096")
	known("after another limit", false)
}

// TestLateChangesAreNoBlocks: changes that come too late are no blocks, and the next are ordered earlier.
func TestLateChangesAreNoBlocks(t *testing.T) {
	p := newTarget(1e-9, 100, 200, 300)
	p.director.AskForExperiment()
	p.delay = 600e6
	p.run(20000)
	if a := p.second.latest().Answer; p.director.ahead == aheadLeast || a.Blocks < 20 || a.Present.Time > 2.03e6 || a.Alternative.Time < 2.97e6 {
		t.Errorf("%+v", a)
	}
}

// TestEachAlternativeHasItsTurn: each alternative has its turn, and its own answer.
func TestEachAlternativeHasItsTurn(t *testing.T) {
	p := newTarget(Until, 100, 200, 300)
	p.director.options.Alternatives = []string{"none", "slab", "pow2"}
	p.costs = map[string]float64{"none": 3e6, "slab": 1e6, "pow2": 2.1e6}
	p.director.AskForExperiment()
	for i := 0; p.director.IsExperimentWanted() && i < 500; i++ {
		p.run(100)
	}
	results := p.second.Results()
	if len(results) != 3 || p.director.IsExperimentWanted() {
		t.Fatalf("%+v", results)
	}
	for i := range results {
		r, a := &results[i], &results[i].Answer
		if want := 2.003e6/(p.costs[r.Alternative]+3e3) - 1; !r.IsKnown() || r.Alternative != p.director.options.Alternatives[i] || a.Low > want || a.High < want {
			t.Errorf("%+v: want %g", r, want)
		}
	}
	if known := results.LatestKnown(); known == nil || known.Alternative != "none" || known.Why != experiment.Precise.String() {
		t.Errorf("%+v", known)
	}
}

// TestSeveralInALimitedTime: an alternative without a turn says why, and an expensive one makes room for the next.
func TestSeveralInALimitedTime(t *testing.T) {
	p := newTarget(1e-9, 100, 200, 300)
	p.director.options.Alternatives = []string{"none", "slab"}
	p.director.AskForExperiment()
	p.run(20)
	p.exit()
	for i, r := range p.second.Results() {
		if r.Alternative != p.director.options.Alternatives[i] || !strings.HasPrefix(r.Why, "too short: ") || r.IsKnown() {
			t.Errorf("%+v", r)
		}
	}
	p.run(600)
	p.exit()
	if r := p.second.latest(); len(p.second.Results()) != 2 || r.Alternative != "slab" || r.Why != "the program ended before its turn" {
		t.Errorf("%+v", p.second.Results())
	}
	p.run(3000)
	if rs := p.second.Results(); len(rs) != 2 || rs[0].Why != experiment.OverSpent.String() || !rs[0].IsKnown() || rs[1].Alternative != "slab" || !rs[1].IsKnown() {
		t.Errorf("%+v", rs)
	}
}

// TestFasterProposalIsAdopted: what is proposed is adopted if the experiment says that it is faster, or as fast where that is
// enough.
func TestFasterProposalIsAdopted(t *testing.T) {
	for name, test := range map[string]struct {
		cost    float64
		memory  string
		adopted bool
		want    string // of the sentence
	}{
		"faster":             {1.5e6, "", true, "switches to no pool 2."},
		"a little faster":    {1.97e6, "", true, "with futhark an iteration takes 2.01 ms instead of 1.97 ms without the pool, but watched: 1.6 ± "},
		"slower":             {3e6, "", false, "stays with futhark: an iteration takes 2.01 ms instead of 3.0"},
		"slower, and small":  {3e6, "1 MiB instead of 2", false, "stays with futhark: an iteration takes 2.01 ms instead of 3.0"},
		"as fast":            {2e6, "", false, "stays with futhark: no certain difference: an iteration takes "},
		"as fast, and small": {2e6, "1 MiB instead of 2", true, "s after the first call, for memory: no certain difference: "},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTarget(Until, 100, 200, 300)
			p.cost[experiment.Alternative] = test.cost
			proposal := &Proposal{Alternative: "none", Name: "no pool", Present: "futhark", Memory: test.memory}
			if !p.director.ProposeExperiment(proposal) || p.director.ProposeExperiment(proposal) {
				t.Fatal("two at a time")
			}
			for i := 0; p.director.IsExperimentWanted() && i < 500; i++ {
				p.run(100)
			}
			p.run(100)
			r, v := p.second.latest(), p.director.LatestVerdict()
			if v == nil || v.Proposal != proposal || v.Adopted != test.adopted || r.Adopted != test.adopted || !strings.Contains(r.Auto, test.want) || !r.IsKnown() || r.Running || p.prepared {
				t.Errorf("%+v, %+v", v, r)
			}
			if number, said := p.second.AutoDecisions(); number != 1 || said != "auto: "+r.Auto || test.adopted && p.second.Results().LatestKnown() != nil {
				t.Errorf("%d, %q", number, said)
			}
			t.Log(r.Auto)
		})
	}
}

// TestDecidesNothing: without an answer the present configuration stays, and a message says why.
func TestDecidesNothing(t *testing.T) {
	for want, prepare := range map[string]func(p *target){
		"stays with futhark: nothing could be measured: too short: an answer takes longer than 60 requests": func(p *target) { p.run(20) },
		"stays with futhark: nothing could be measured: no such policy":                                     func(p *target) { p.refuse = "no such policy"; p.run(500) },
		"stays with futhark: nothing could be measured: the device may lack the memory for it":              func(p *target) { p.free = 1000; p.run(500) },
		"stays with futhark, as the program ended: no certain difference: ":                                 func(p *target) { p.director.options.Until = 1e-9; p.run(1500) },
	} {
		p := newTarget(Until, 100, 200, 300)
		p.cost[experiment.Alternative] = 2e6
		p.director.ProposeExperiment(&Proposal{Alternative: "none", Name: "none", Present: "futhark"})
		prepare(p)
		p.exit()
		if r, v := p.second.latest(), p.director.LatestVerdict(); r == nil || !strings.HasPrefix(r.Auto, want) || r.Adopted || v != nil && v.Adopted {
			t.Errorf("%+v, %+v, want %q", r, v, want)
		}
	}
}

// TestProposalsWait: together they cost no more than their part of the run, and a user who stops one is obeyed.
func TestProposalsWait(t *testing.T) {
	p := newTarget(Until, 100, 200, 300)
	propose := func() { p.director.ProposeExperiment(&Proposal{Alternative: "none", Name: "none", Present: "futhark"}) }
	propose()
	for i := 0; p.director.IsExperimentWanted() && i < 500; i++ {
		p.run(10)
	}
	first := p.now
	propose()
	p.run(2000)
	if p.director.stage != idle || p.director.paid == 0 {
		t.Errorf("it begins the second trial %d ns after the first, which cost %g", p.now-first, p.director.paid)
	}
	p.run(20000)
	if number, _ := p.second.AutoDecisions(); number != 2 {
		t.Errorf("%d decisions", number)
	}
	p.run(30000)
	propose()
	p.run(200)
	p.director.EndExperiment()
	p.run(200)
	if number, _ := p.second.AutoDecisions(); number != 2 || p.director.LatestVerdict().Adopted || p.prepared {
		t.Errorf("%d decisions, %+v", number, p.second.latest())
	}
}

func FuzzPlan(f *testing.F) {
	f.Add((&Plan{1, 1, 100, 4, 2, 1}).announcementText())
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := parseBlockPlan(text)
		if again, same := parseBlockPlan(p.announcementText()); ok && (!same || again != p) {
			t.Errorf("%q: %+v, %+v", text, p, again)
		}
	})
}

// TestAnotherConfigurationEndsAnExperiment: what ends an experiment is another configuration, not what the pool learns meanwhile.
func TestAnotherConfigurationEndsAnExperiment(t *testing.T) {
	for text, want := range map[string]bool{
		"max_cached_bytes=4096": true, "policy=slab": true, "arm=1 77": false, "period=4000000000": false, "relieve=4096 0 short": false,
	} {
		if got := isAboutPresentConfiguration(&wire.Record{Payload: []byte(text)}); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
