package measure

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/experiment"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Proposal is a configuration that auto takes if an experiment shows that it is better.
type Proposal struct {
	Alternative   string // as the pool takes it
	Name, Present string // it and the configuration in force, as users read them
	Memory        string // how much less memory it is expected to need, which decides between equal times; empty: it is not
}

// Verdict is the end of a proposal.
type Verdict struct {
	Proposal *Proposal
	Adopted  bool
}

// looksMost is how often the answer to a proposal is looked at: after about 90 blocks the difference is too small to find.
const looksMost = 5

// What a DIAG says of auto begins with one of the first two words, and the decision with one of the others.
const (
	autoWord     = "auto: "
	autoNotWord  = "auto, not measured: "
	switchesWord = "switches to "
	staysWord    = "stays with "
)

// ProposeExperiment lets an experiment decide on a proposal. It returns false while another experiment is wanted.
func (d *Director) ProposeExperiment(p *Proposal) bool {
	return d.asked.CompareAndSwap(nil, &task{alternatives: []string{p.Alternative}, proposal: p})
}

// LatestVerdict returns the end of the latest proposal that has one.
func (d *Director) LatestVerdict() *Verdict { return d.verdict.Load() }

// mayTaskBegin reports whether a task may begin at a time. A proposal waits until the ones before have cost no more than their
// part of the run.
func (d *Director) mayTaskBegin(t *task, now uint64) bool {
	return t.proposal == nil || d.paid <= d.options.Budget*float64(now-min(now, d.started))
}

// judgeAnswer reports whether a proposal is adopted, and whether the answer decides that. The present configuration stays
// unless the whole interval says that the alternative is faster, or the interval is narrow around no difference and the
// alternative needs less memory.
func (p *Proposal) judgeAnswer(a *experiment.Answer) (adopted, decided bool) {
	switch {
	case a.Looks == 0:
		return false, false
	case a.Certain:
		return a.Difference > 0, true
	case a.Narrow:
		return p.Memory != "", true
	}
	return false, a.Looks >= looksMost
}

// decideProposal ends the experiment of a proposal once the answer suffices, and reports whether it does.
func (d *Director) decideProposal(a *experiment.Answer) bool {
	p := d.task.proposal
	if p == nil {
		return false
	}
	adopted, decided := p.judgeAnswer(a)
	if !decided {
		return false
	}
	sentence := d.follower.result.answerSentence()
	d.endExperiment("enough is known")
	switch {
	case !adopted:
		d.sayNotAdopted(d.process, ": "+sentence)
	case a.Certain:
		d.sayAsAuto(d.process, fmt.Sprintf("%s%s %s after the first call: with %s %s", switchesWord, p.Name, d.ageOfRunText(), p.Present, sentence))
	default:
		d.sayAsAuto(d.process, fmt.Sprintf("%s%s %s after the first call, for memory: %s; it needs %s", switchesWord, p.Name,
			d.ageOfRunText(), sentence, p.Memory))
	}
	d.adopted = adopted
	d.finishTask()
	return true
}

func (d *Director) ageOfRunText() string { return units.Duration(d.now - min(d.now, d.started)) }

// sayNotAdopted says that a proposal was not adopted.
func (d *Director) sayNotAdopted(process uint32, why string) {
	if p := d.task.proposal; p != nil {
		d.sayAsAuto(process, staysWord+p.Present+why)
	}
}

func (d *Director) sayAsAuto(process uint32, text string) {
	d.options.Session.RecordText(process, d.now, autoWord+text)
}

// AutoDecisions returns how often auto has decided, and what it said last.
func (f *Follower) AutoDecisions() (number uint64, said string) {
	for _, r := range f.Results() {
		if r.Auto != "" {
			said = autoWord + r.Auto
		}
	}
	return f.decisions, said
}
