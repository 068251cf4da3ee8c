package ui

import (
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// drawPolicies draws the list, the summary of the policy at the cursor, and which processes obey. Like the limits it shows
// the latest state even when the screen is frozen.
func (d *dashboard) drawPolicies(r region) {
	if d.live == nil {
		return
	}
	b, all := &d.policies, len(d.o.Policies)
	names := 0
	for i := range d.o.Policies {
		names = max(names, width(d.o.Policies[i].Name))
	}
	b.page = max(1, min(all, max(r.h-policyRest, r.h/2)))
	b.move(all, 0)
	b.top = max(b.at-b.page+1, min(b.top, b.at))
	b.top = max(0, min(b.top, all-b.page))
	for y := range min(b.page, all-b.top) {
		d.drawPolicy(r.sub(0, y, r.w, 1), &d.o.Policies[b.top+y], b.top+y == b.at, names)
	}
	y := b.page + 1
	if b.at < all {
		for _, line := range wrap(d.o.Policies[b.at].Summary, r.w-2) {
			r.text(1, y, line, plain)
			y++
		}
	}
	d.drawObeying(r.rows(y + 1))
}

// policyRest are the rows under the list that are for the summary and the processes, or half of them where there are few.
const policyRest = 8

// drawPolicy draws a row: "●" in force, "…" on its way, and as much of the summary as there is room for.
func (d *dashboard) drawPolicy(r region, p *Policy, chosen bool, names int) {
	nameStyle, textStyle := plain, dim
	if chosen {
		r.repeat(0, 0, r.w, " ", cursorStyle)
		r.put(0, 0, "▸", cursorStyle)
		nameStyle, textStyle = cursorStyle, cursorStyle
	}
	switch p.Name {
	case d.policies.asked, d.live.Change.Wanted:
		r.put(1, 0, "…", warnStyle)
	case d.live.Policy:
		r.put(1, 0, "●", goodStyle)
	}
	r.text(3, 0, p.Name, nameStyle)
	r.textIn(names+5, 0, r.w-names-6, p.Summary, textStyle)
}

// drawObeying says how many of the running processes have the policy in force, and which have another.
func (d *dashboard) drawObeying(r region) {
	running, obey := 0, 0
	var others []*model.Process
	for i := range d.live.Processes {
		p := &d.live.Processes[i]
		switch {
		case p.State != model.Running:
			continue
		case p.Policy == d.live.Policy:
			obey++
		default:
			others = append(others, p)
		}
		running++
	}
	if running == 0 {
		return
	}
	r.text(1, 0, "processes under "+d.live.Policy+": "+strconv.Itoa(obey)+" of "+strconv.Itoa(running), strong)
	for y, p := range others {
		text := pidOf(p) + " " + p.Policy + "  " + commandLine(&model.Snapshot{Program: p.Program, Arguments: p.Arguments})
		r.textIn(1, y+1, r.w-2, text, warnStyle)
	}
}

func (d *dashboard) policiesTitle() (title, hint []span) {
	title = []span{{"policies ", titleStyle}, {strconv.Itoa(len(d.o.Policies)), dim}}
	return title, []span{{" enter", keyStyle}, {" go over to it ", dim}, {"esc", keyStyle}, {" back ", dim}}
}
