package analysis

import (
	"fmt"
	"slices"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// endsSoon is how long after a failure its process may end so that both are in one sentence.
const endsSoon = uint64(10 * time.Second)

// findFailures are the calls that failed for lack of memory.
func findFailures(e *Evidence) (list []Diagnosis) {
	for i := range e.Run.PostMortems {
		list = append(list, e.failureDiagnosis(&e.Run.PostMortems[i]))
	}
	return list
}

// findFirstFailure is the first of them: a report has a section for each.
func findFirstFailure(e *Evidence) (Diagnosis, bool) {
	if len(e.Run.PostMortems) == 0 {
		return Diagnosis{}, false
	}
	return e.failureDiagnosis(&e.Run.PostMortems[0]), true
}

func (e *Evidence) failureDiagnosis(p *stats.PostMortem) Diagnosis {
	title := p.FailedText(units.FormatApart)
	brief := title
	text := p.Verdict.String() + ", " + units.FormatLong(p.InUse) + " in use"
	if p.Verdict != stats.VerdictKilled {
		place := p.Tag
		if p.Command {
			place = p.At
		}
		if place != "" {
			title += " at " + place
		}
		if p.Command && p.Tag != "" {
			text += "; it was given memory created at " + p.Tag
		}
		if p.First {
			text += ", which no command had used: a driver may take memory only then"
		}
		title += " failed (" + wire.StatusNumber(int32(p.Status)) + ")"
		brief += " failed"
		if then := e.Run.FailedSoonAfterText(p); then != "" {
			text += "; " + then
		}
		text += e.processEndText(p.Process, p.Time)
	}
	return Diagnosis{
		Severity: Problem, Title: title, Text: text, Tag: p.Tag, Brief: brief,
		Share: 2, About: AboutFailure, placed: p.Who != "", // before mistakes: it may end the program
	}
}

// processEndText says how a process ended that failed soon after a call of it had failed. Whether it ended for that is not known.
func (e *Evidence) processEndText(process uint32, failed uint64) string {
	at := slices.IndexFunc(e.Run.Processes, func(p stats.Process) bool { return p.Number == process && p.Folded == 0 })
	if at < 0 {
		return ""
	}
	p := &e.Run.Processes[at]
	after := differenceOrZero(failed, p.Ended)
	how := p.BadEndText()
	if how == "" || after > endsSoon {
		return ""
	}
	return fmt.Sprintf("; %s within %s", how, units.Duration(after)) // the session notices an end late
}

// findRefusedCalls finds calls that failed for what the program asked for. It may have expected that.
func findRefusedCalls(e *Evidence) (Diagnosis, bool) {
	list := e.Run.RefusedCalls()
	if len(list) == 0 {
		return Diagnosis{}, false
	}
	first, others, last, memory := &list[0], uint64(0), &list[0], false
	for i := range list {
		others += list[i].Count
		memory = memory || list[i].Create
		if list[i].Time > last.Time {
			last = &list[i]
		}
	}
	title := units.Count(others, "call") + " refused"
	if n := e.Run.OtherFailed; n > 0 { // which may lack memory
		title += ", and " + units.Count(n, "more failure") + " not listed"
	}
	d := Diagnosis{Severity: Note, Title: title, Tag: first.Tag, Text: first.SentenceWithMeaning(units.FormatLong), placed: first.Who != ""}
	if memory {
		d.Severity = Advice
	}
	if others -= first.Count; others > 0 {
		d.Text += fmt.Sprintf("; and %d with other codes or at other places", others)
	}
	if end := e.processEndText(last.Process, last.Time); end != "" {
		d.Severity, d.Text = Problem, d.Text+end
	}
	return d, true
}
