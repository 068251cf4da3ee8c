package ui

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// policyBook knows which policy is at the cursor of the list, and which one was asked for.
type policyBook struct {
	at, top, page int

	asked string // empty: nothing is on its way
	words string // for what was asked: the policy, and limits that it is to have
	when  uint64 // snapshot time when it was asked for
	// What there was before.
	from           string
	done, refusals uint64

	told uint64 // number of what was said last of a session that goes over by itself
}

func (b *policyBook) move(all, by int) { b.at = max(0, min(b.at+by, all-1)) }

// ask notes that a policy was asked for, in words that also say its limits.
func (b *policyBook) ask(name, words string, s *model.Snapshot) {
	b.asked, b.words, b.when = name, words, s.Time
	b.from, b.done, b.refusals = s.Policy, s.Change.Done, s.Change.Refusals
}

// settle looks whether the program has answered, or has ended without, and returns what there is to say about it.
func (b *policyBook) settle(s *model.Snapshot, ended bool) (text string, st style) {
	if b.asked == "" {
		return "", plain
	}
	switch {
	case s.Change.Wanted != "" && !ended:
		return "", plain
	case s.Change.Refusals != b.refusals:
		text, st = "✗ policy "+b.words+": "+s.Change.Refused, badStyle
	case s.Policy == b.asked && s.Change.Done != b.done:
		text, st = "✓ policy "+b.from+" → "+b.words+" acknowledged", goodStyle
	case ended:
		text, st = "✗ policy "+b.words+": the program ended before it answered", warnStyle
	case since(b.when, s.Time) > answerTime:
		text, st = "✗ policy "+b.words+": the program does not answer", warnStyle
	default:
		return "", plain
	}
	b.asked = ""
	return text, st
}

// obstacle says why the policy cannot be changed, empty when it can.
func (d *dashboard) obstacle() string {
	switch {
	case d.viewing():
		return "this is a recording: its policy is what it was"
	case d.o.ReadOnly || d.o.SetPolicy == nil:
		return "the policy cannot be changed here"
	case d.ended():
		return "the program has ended: its policy cannot be changed any more"
	case d.live == nil || d.live.Policy == "":
		return "the program has not told its policy yet"
	case modeFor(d.w, d.h) < compact:
		return "there is no room for the list of policies"
	}
	return ""
}

// listPolicies shows the list, with the cursor at the policy in force.
func (d *dashboard) listPolicies() {
	if why := d.obstacle(); why != "" {
		d.say(warnStyle, why)
		return
	}
	if d.zoom != panePolicies {
		d.policies.at = max(0, slices.IndexFunc(d.o.Policies, func(p Policy) bool { return p.Name == d.live.Policy }))
	}
	d.zoomOn(panePolicies)
}

// choosePolicy asks for the policy at the cursor and stays, so that one sees who obeys.
func (d *dashboard) choosePolicy() {
	why := d.obstacle()
	b := &d.policies
	switch {
	case why != "":
		d.say(warnStyle, why)
	case b.at >= len(d.o.Policies):
	case d.o.Policies[b.at].Name == d.live.Policy && b.asked == "":
		d.say(dim, "the policy is "+d.live.Policy+" already")
	default:
		name := d.o.Policies[b.at].Name
		if err := d.o.SetPolicy(name); err != nil {
			d.say(badStyle, "✗ "+err.Error())
			return
		}
		b.ask(name, name, d.live)
	}
}
