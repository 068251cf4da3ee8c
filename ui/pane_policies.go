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

	wanted string // the policy that was requested; empty: no change is pending
	label  string // of the request: the policy with the limits that it gets
	when   uint64 // snapshot time of the request
	// The state before the request.
	from           string
	done, refusals uint64
	limits         []stats.Limit

	reported uint64 // number of the latest automatic change that was reported
}

func (b *policiesPane) title(*stats.Snapshot) (title, hint []span) {
	title = []span{{"policies ", titleStyle}, {strconv.Itoa(len(b.d.o.Policies)), dim}}
	return title, []span{{" enter", keyStyle}, {" switch to it ", dim}, {"esc", keyStyle}, {" back ", dim}}
}

// request notes that a policy was requested. The label also names its limits.
func (b *policiesPane) request(name, label string) {
	s := b.d.live
	b.wanted, b.label, b.when = name, label, s.Time
	b.from, b.done, b.refusals, b.limits = s.Policy, s.Change.Done, s.Change.Refusals, s.Limits
}

// update reports the answer to the request, and what an automatic session has changed.
func (b *policiesPane) update(s *stats.Snapshot) {
	if text, st := b.answer(s); text != "" {
		b.wanted, b.d.limits.chosen, b.d.curve.tried = "", "", 0 // the limits are other ones
		b.d.say(st, text)
		if st == goodStyle {
			b.d.ledger.add(s, change{label: "policy " + b.from + " → " + b.label, policy: b.from, limits: b.limits})
		} else {
			b.d.ledger.failed("")
		}
	}
	if a := s.Auto; a != nil && a.Number != b.reported {
		b.reported = a.Number
		b.d.say(warnStyle, a.Said)
	}
}

// answer returns how the request ended, empty while it is pending.
func (b *policiesPane) answer(s *stats.Snapshot) (text string, st style) {
	ended := b.d.ended()
	switch {
	case b.wanted == "" || s.Change.Wanted != "" && !ended:
		return "", plain
	case s.Change.Refusals != b.refusals:
		return "✗ policy " + b.label + ": " + s.Change.Refused, badStyle
	case s.Policy == b.wanted && s.Change.Done != b.done:
		return "✓ policy " + b.from + " → " + b.label + " acknowledged", goodStyle
	case ended:
		return "✗ policy " + b.label + ": the program ended before it answered", warnStyle
	case since(b.when, s.Time) > answerTime:
		return "✗ policy " + b.label + ": the program does not answer", warnStyle
	}
	return "", plain
}

// obstacle says why the policy cannot be changed, empty if it can.
func (b *policiesPane) obstacle() string {
	d := b.d
	switch {
	case d.mode.fixedPolicy != "":
		return d.mode.fixedPolicy
	case d.ended():
		return "the program has ended: its policy can no longer change"
	case d.live == nil || d.live.Policy == "":
		return "the program has not reported its policy yet"
	case sizeOf(d.w, d.h) < compact:
		return "the terminal is too small for the list of policies"
	}
	return ""
}

// open shows the list, with the cursor at the policy in force.
func (b *policiesPane) open() {
	if why := b.obstacle(); why != "" {
		b.d.say(warnStyle, why)
		return
	}
	if b.d.zoom != panePolicies {
		b.at = max(0, slices.IndexFunc(b.d.o.Policies, func(p Policy) bool { return p.Name == b.d.live.Policy }))
	}
	b.d.zoomOn(panePolicies)
}

func (b *policiesPane) move(a action) { b.list.move(a, len(b.d.o.Policies)) }

// enter requests the policy at the cursor. The list stays, to show which processes follow.
func (b *policiesPane) enter() {
	d := b.d
	switch why := b.obstacle(); {
	case why != "":
		d.say(warnStyle, why)
	case b.at >= len(d.o.Policies):
	case d.o.Policies[b.at].Name == d.live.Policy && b.wanted == "":
		d.say(dim, "policy "+d.live.Policy+" is in force already")
	default:
		name := d.o.Policies[b.at].Name
		if err := d.o.SetPolicy(name); err != nil {
			d.say(badStyle, "✗ "+err.Error())
			return
		}
		b.request(name, name)
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
		names = max(names, width(policies[i].Name))
	}
	b.scroll(min(len(policies), max(r.h-policyRest, r.h/2)), len(policies))
	for y := range min(b.page, len(policies)-b.top) {
		b.drawRow(r.sub(0, y, r.w, 1), &policies[b.top+y], b.top+y == b.at, names)
	}
	y := b.page + 1
	if b.at < len(policies) {
		y = r.lines(1, y, policies[b.at].Summary, plain)
	}
	b.drawFollowers(r.rows(y + 1))
}

// drawRow draws a policy: "●" in force, "…" pending, and the summary.
func (b *policiesPane) drawRow(r region, p *Policy, chosen bool, names int) {
	nameStyle, textStyle := plain, dim
	if chosen {
		r.repeat(0, 0, r.w, " ", cursorStyle)
		r.put(0, 0, "▸", cursorStyle)
		nameStyle, textStyle = cursorStyle, cursorStyle
	}
	switch p.Name {
	case b.wanted, b.d.live.Change.Wanted:
		r.put(1, 0, "…", warnStyle)
	case b.d.live.Policy:
		r.put(1, 0, "●", goodStyle)
	}
	r.text(3, 0, p.Name, nameStyle)
	r.textIn(names+5, 0, r.w-names-6, p.Summary, textStyle)
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
	r.text(1, 0, "processes under "+b.d.live.Policy+": "+strconv.Itoa(follow)+" of "+strconv.Itoa(running), strong)
	for y, p := range others {
		text := pidOf(p) + " " + p.Policy + "  " + commandLine(&stats.Snapshot{Program: p.Program, Arguments: p.Arguments})
		r.textIn(1, y+1, r.w-2, text, warnStyle)
	}
}
