package ui

import (
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// ghosts returns what other configurations would have done, nil where none are played.
func (d *dashboard) ghosts() *model.Ghosts {
	if d.live == nil {
		return nil
	}
	return d.live.Ghosts
}

// noGhosts says why there is nothing to compare with.
func (d *dashboard) noGhosts() string {
	if d.viewing() {
		return "this is a recording: gpumemtop tune and gpumemtop replay say what other policies would have done"
	}
	return "no policies are simulated beside this run (--ghosts usual)"
}

// listGhosts shows the list.
func (d *dashboard) listGhosts() {
	switch {
	case d.ghosts() == nil:
		d.say(warnStyle, d.noGhosts())
	case modeFor(d.w, d.h) < compact:
		d.say(warnStyle, "there is no room for the list of ghosts")
	default:
		d.zoomOn(paneGhosts)
	}
}

// adoptLeader goes over to the configuration that leads. Where the list is not there to say what will happen, it is
// shown first, and the same key again goes on.
func (d *dashboard) adoptLeader() {
	leader, why := d.adoptable()
	switch {
	case why != "":
		d.say(warnStyle, why)
	case d.zoom != paneGhosts:
		d.zoomOn(paneGhosts)
		d.say(warnStyle, "y again goes over to "+leader.Name+d.gainText())
	default:
		if err := d.o.Adopt(leader.Name); err != nil {
			d.say(badStyle, "✗ "+err.Error())
			return
		}
		d.say(warnStyle, "going over to "+leader.Name+d.gainText())
		d.policies.ask(leader.Policy, leader.Name, d.live)
	}
}

// adoptable returns the ghost that leads, or why nobody can go over to it.
func (d *dashboard) adoptable() (leader *model.Ghost, why string) {
	g := d.ghosts()
	leader = g.Leader()
	switch {
	case g == nil:
		return nil, d.noGhosts()
	case leader == nil && g.Stopped != "":
		return nil, "no ghost leads: all " + g.Stopped
	case leader == nil:
		return nil, "no ghost leads: none has seen the whole run, or there was no request yet"
	case g.Present() != nil && g.Present().Policy != d.live.Policy:
		return nil, "the policy has just changed, and the ghosts are about to follow"
	case leader.Present:
		return nil, leader.Name + " leads, and is in force"
	}
	if why := d.onlyFromTheStart(); why != "" {
		return nil, why + ": gpumemtop " + leader.Flags() + " ./app goes with the leader"
	}
	if why := d.obstacle(); why != "" {
		return nil, why
	}
	switch {
	case d.policies.asked != "":
		return nil, "policy " + d.policies.asked + " is on its way"
	case d.o.Adopt == nil:
		return nil, "the policy cannot be changed here"
	}
	return leader, ""
}

// onlyFromTheStart says why this run cannot get another policy where the next one could; empty when it can.
func (d *dashboard) onlyFromTheStart() string {
	switch {
	case d.o.Attached:
		return "attach only watches"
	case d.ended():
		return "the program has ended"
	case d.live.Policy == "none" && len(d.live.Change.Former) == 0:
		return "the program was started without a pool"
	}
	return ""
}

// gainText says what the leader would have saved, empty where that is not known.
func (d *dashboard) gainText() string {
	_, part, known := d.ghosts().Saving()
	if !known {
		return ""
	}
	return ": " + changeText(-part) + " time in the driver"
}

// changeText is a part, -1…, as a change in percent: what is nearly all shows how nearly.
func changeText(part float64) string {
	digits := 0
	if part < -0.99 && part > -1 {
		digits, part = 1, max(part, -0.999)
	}
	text := strconv.FormatFloat(100*part, 'f', digits, 64)
	switch {
	case text == "0" || text == "-0":
		return "±0 %"
	case part < 0:
		return "−" + text[1:] + " %"
	case part >= 10:
		return "×" + strconv.FormatFloat(part+1, 'f', 0, 64)
	}
	return "+" + text + " %"
}

// tellAuto says what the session has gone over to by itself.
func (d *dashboard) tellAuto() {
	if a := d.live.Auto; a != nil && a.Number != d.policies.told {
		d.policies.told = a.Number
		d.say(warnStyle, a.Said)
	}
}

// autoText says whether the session goes over by itself, and what it did last; empty where it never did.
func autoText(a *model.Auto) string {
	switch {
	case a == nil:
		return ""
	case !a.Steers:
		return "auto: off, since the policy was changed by hand"
	case a.Said == "":
		return "auto: nothing else has been clearly better for long enough"
	}
	return a.Said
}
