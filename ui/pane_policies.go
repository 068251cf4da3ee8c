package ui

import (
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// policiesPane is the list of the policies, and the change of the policy that is pending.
type policiesPane struct {
	basePane
	list

	asked    *policyRequest // by this dashboard, the answer not reported yet; nil: none
	reported uint64         // number of the latest automatic change that was reported
}

// policyRequest is a policy that this dashboard asked for.
type policyRequest struct {
	request
	policy, label string        // the label also names limits that it gets
	from          string        // the policy before,
	limits        []stats.Limit // and its limits
}

func (b *policiesPane) title(*stats.Snapshot) (title, hint []span) {
	title = []span{{"policies ", titleStyle}, {strconv.Itoa(len(b.d.o.Policies)), dim}}
	return title, []span{{" enter", keyStyle}, {" switch to it ", dim}, {"esc", keyStyle}, {" back ", dim}}
}

// requestPolicy asks for a policy, or for a ghost's, with ask, and reports whether that could be asked.
func (b *policiesPane) requestPolicy(ask func(name string) (uint64, error), name, policy string) bool {
	b.d.ledger.rememberFiguresBefore("", b.d.live)
	sequence, err := ask(name)
	if err != nil {
		b.d.ledger.noteRequestFailed("")
		b.d.sayMessage(badStyle, "✗ "+err.Error())
		return false
	}
	s := b.d.live
	b.asked = &policyRequest{request{sequence: sequence}, policy, name, s.Policy, s.Limits}
	return true
}

// update reports the answer to the request, and what an automatic session has decided.
func (b *policiesPane) update(s *stats.Snapshot) {
	if q := b.asked; q != nil {
		if text, st := q.howRequestEndedText(&s.Change.Request, s.Time, b.d.hasProgramEnded()); text != "" {
			b.reportAnswer(s, q, text, st)
		}
	}
	if a := s.Auto; a != nil && a.Number != b.reported {
		b.reported = a.Number
		b.d.sayMessage(warnStyle, a.Said)
	}
}

func (b *policiesPane) reportAnswer(s *stats.Snapshot, q *policyRequest, text string, st style) {
	if !q.late {
		b.asked = nil
	}
	b.d.limits.chosen, b.d.curve.tried = "", 0 // the limits are other ones
	if st != goodStyle {
		b.d.ledger.noteRequestFailed("")
		b.d.sayMessage(st, "✗ policy "+q.label+": "+text)
		return
	}
	if s.Change.Sequence != q.sequence { // another terminal has asked for another one since
		q.label = s.Policy
	}
	label := "policy " + q.from + " → " + q.label
	b.d.ledger.noteChange(s, change{label: label, policy: q.from, limits: q.limits}, "✓ "+label+" "+text)
}

// pendingPolicy returns the policy that is on its way, empty if there is none or the program does not answer.
func (b *policiesPane) pendingPolicy() string {
	c := &b.d.live.Change
	switch {
	case b.asked != nil && !b.asked.isAnsweredBy(&c.Request):
		return b.asked.policy
	case c.IsUnanswered(b.d.live.Time):
		return ""
	}
	return c.Wanted
}

// obstacleText says why the policy cannot be changed, empty if it can.
func (b *policiesPane) obstacleText() string {
	d := b.d
	switch {
	case d.mode.fixedPolicy != "":
		return d.mode.fixedPolicy
	case d.hasProgramEnded():
		return "the program has ended: its policy can no longer change"
	case d.live == nil || d.live.Policy == "":
		return "the program has not reported its policy yet"
	case sizeOfTerminal(d.w, d.h) < compact:
		return "the terminal is too small for the list of policies"
	}
	return ""
}

// showPolicyList shows the list, with the cursor at the policy in force.
func (b *policiesPane) showPolicyList() {
	if b.d.zoom != panePolicies {
		b.at = max(0, slices.IndexFunc(b.d.o.Policies, func(p Policy) bool { return p.Name == b.d.live.Policy }))
	}
	b.d.showPaneAlone(panePolicies)
}

func (b *policiesPane) move(m motion) { b.list.moveCursor(m, len(b.d.o.Policies)) }

// handleEnter requests the policy at the cursor. The list stays, to show which processes follow.
func (b *policiesPane) handleEnter() {
	d := b.d
	switch why := b.obstacleText(); {
	case why != "":
		d.sayMessage(warnStyle, why)
	case b.at >= len(d.o.Policies):
	case d.o.Policies[b.at].Name == d.live.Policy && b.pendingPolicy() == "":
		d.sayMessage(dim, "policy "+d.live.Policy+" is in force already")
	default:
		name := d.o.Policies[b.at].Name
		b.requestPolicy(d.o.SetPolicy, name, name)
	}
}

// policyRest is the number of rows under the list for the summary and the processes; on small screens half of all rows.
const policyRest = 8

// draw draws the list, the summary of the policy at the cursor, and which processes follow the policy in force. Like the
// limits it shows the latest state even while the screen is frozen.
func (b *policiesPane) draw(r region, _ *stats.Snapshot) {
	if b.d.live == nil {
		return
	}
	policies := b.d.o.Policies
	names := 0
	for i := range policies {
		names = max(names, textWidth(policies[i].Name))
	}
	b.setPageAndScroll(min(len(policies), max(r.h-policyRest, r.h/2)), len(policies))
	for y := range min(b.page, len(policies)-b.top) {
		b.drawRow(r.subRegion(0, y, r.w, 1), &policies[b.top+y], b.top+y == b.at, names)
	}
	y := b.page + 1
	if b.at < len(policies) {
		y = r.writeLines(1, y, policies[b.at].Summary, plain)
	}
	b.drawFollowers(r.withoutRows(y + 1))
}

// drawRow draws a policy: "●" in force, "…" pending, and the summary.
func (b *policiesPane) drawRow(r region, p *Policy, chosen bool, names int) {
	nameStyle, textStyle, sign := plain, dim, span{}
	switch p.Name {
	case b.pendingPolicy(), b.d.live.Change.Wanted:
		sign = span{"…", warnStyle}
	case b.d.live.Policy:
		sign = span{"●", goodStyle}
	}
	if chosen {
		r.markChosenRow(0)
		nameStyle, textStyle, sign.style = cursorStyle, cursorStyle, cursorStyle
	}
	r.writeSpans(1, 0, sign)
	r.writeText(3, 0, p.Name, nameStyle)
	r.writeTextInColumns(names+5, 0, r.w-names-6, p.Summary, textStyle)
}

// drawFollowers says how many of the running processes follow the policy in force, and lists the others.
func (b *policiesPane) drawFollowers(r region) {
	running, follow := 0, 0
	var others []*stats.Process
	for i := range b.d.live.Processes {
		p := &b.d.live.Processes[i]
		switch {
		case p.State != stats.Running:
			continue
		case p.Policy == b.d.live.Policy:
			follow++
		default:
			others = append(others, p)
		}
		running++
	}
	if running == 0 {
		return
	}
	r.writeText(1, 0, "processes under "+b.d.live.Policy+": "+strconv.Itoa(follow)+" of "+strconv.Itoa(running), strong)
	for y, p := range others {
		text := pidText(p) + " " + p.Policy + "  " + commandLine(&stats.Snapshot{Program: p.Program, Arguments: p.Arguments})
		r.writeTextInColumns(1, y+1, r.w-2, text, warnStyle)
	}
}
