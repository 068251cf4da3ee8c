package ui

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// pointsPane shows the findings: in one line above the panes, and as a list.
type pointsPane struct {
	basePane
	list
	found  []analysis.Diagnosis // of the last judgement
	due    time.Time            // of the next judgement
	events [3]int               // mistakes, failures and ended processes at the latest
}

// judgeSnapshot has the latest snapshot judged, at most once a second unless something happened. A frozen screen keeps its
// points.
func (p *pointsPane) judgeSnapshot() {
	s := p.d.live
	if s == nil || p.d.frozen != nil || p.d.o.Judge == nil {
		return
	}
	events := [3]int{len(s.Findings), len(s.PostMortems)}
	for i := range s.Processes {
		if s.Processes[i].State != stats.Running {
			events[2]++
		}
	}
	if p.d.now.Before(p.due) && events == p.events && !p.d.mode.recording {
		return
	}
	p.due, p.events = p.d.now.Add(time.Second), events
	if p.d.cursor.moment.Rough {
		p.d.o.Judge.Restart(nil)
		p.found = nil
		return
	}
	p.d.o.Judge.SetKnee(kneeOfCurve(p.d.curve.curve))
	p.found = p.d.o.Judge.Update(s)
}

// kneeOfCurve returns the knee of a curve of the policy in force; nil: it has none yet.
func kneeOfCurve(c *view.Curve) *analysis.Knee {
	if c == nil || c.Why != "" || !c.Limits || c.Knee.IsUnlimited() {
		return nil
	}
	return &analysis.Knee{Policy: c.Policy, Limit: c.Knee.Limit}
}

// restartJudge makes the judge forget what happened before a snapshot.
func (p *pointsPane) restartJudge(s *stats.Snapshot) {
	if p.d.o.Judge != nil {
		p.d.o.Judge.Restart(s)
	}
	p.due = time.Time{}
}

// markOfRow is the sign of a row that stands out now: of what was found there, or that many of its requests miss.
func (p *pointsPane) markOfRow(t *stats.Tag) span {
	if at := slices.IndexFunc(p.found, func(f analysis.Diagnosis) bool { return f.Tag == t.Name && f.Severity != analysis.Note }); at >= 0 {
		return span{signOfSeverity(p.found[at].Severity), styleOfSeverity(p.found[at].Severity)}
	}
	if p.d.mode.pool && p.d.o.Judge != nil && p.d.o.Judge.IsRowSuspicious(t) {
		return span{signOfSeverity(analysis.Advice), styleOfSeverity(analysis.Advice)}
	}
	return span{}
}

func styleOfSeverity(s analysis.Severity) style {
	switch s {
	case analysis.Problem:
		return badStyle
	case analysis.Advice:
		return warnStyle
	}
	return dim
}

// actionText says what y does about a point. named: the line begins with the point, and need not name its limit again.
func (p *pointsPane) actionText(point *analysis.Diagnosis, named bool) string {
	l, to := limitToChange(p.d.live, point)
	if l == nil {
		leader, _ := p.d.ghosts.leaderToAdopt()
		policy, limits, _ := strings.Cut(leader.Name, " ")
		if policy == p.d.live.Policy {
			return limits
		}
		return "policy " + policy
	}
	text := p.d.limits.valueText(l, l.Value) + " → " + p.d.limits.valueText(l, to) + p.promisedRates(l, to)
	if named && strings.HasPrefix(point.Title, l.Name) {
		return text
	}
	return l.Name + " " + text
}

// promisedRates writes the hit rate now, and that of the curve at a new value of the limit of cached bytes. It is empty where
// the curve has none.
func (p *pointsPane) promisedRates(l *stats.Limit, to float64) string {
	c := plotted{p.d.curve.curve}
	if l.Name != stats.MaxCachedBytes || p.d.curve.missingText() != "" || !c.IsKnown() || c.Policy != p.d.live.Policy {
		return ""
	}
	at := func(limit float64) string {
		return c.rateText(view.CurvePoint{Limit: uint64(limit), HitRate: c.hitRateAt(limit)})
	}
	now := at(l.Value)
	if hits, misses := recentHitsAndMisses(p.d.live); saturatingSum(hits, misses) >= fewRequests && p.d.isLiveRun(p.d.live) { // which is counted, not estimated
		now = formatRatio(hits, saturatingSum(hits, misses)) + " %"
	}
	return ": hit " + now + " → " + at(to)
}

func (p *pointsPane) title(*stats.Snapshot) (title, hint []span) {
	title = []span{{"findings ", titleStyle}, {strconv.Itoa(len(p.found)), dim}}
	hint = []span{{" ", dim}}
	point := p.currentPoint()
	if point != nil && (point.Tag != "" || point.About != analysis.AboutRun) {
		hint = append(hint, span{"enter", keyStyle}, span{" go there ", dim})
	}
	if point != nil && p.isApplicable(point) {
		hint = append(hint, span{"y", keyStyle}, span{" apply ", dim})
	}
	if p.d.zoom == panePoints {
		hint = append(hint, span{"esc", keyStyle}, span{" back ", dim})
	}
	return title, hint
}

func (p *pointsPane) move(m motion) { p.list.moveCursor(m, len(p.found)) }

// currentPoint returns the finding at the cursor, nil if there is none.
func (p *pointsPane) currentPoint() *analysis.Diagnosis {
	if p.at >= len(p.found) {
		return nil
	}
	return &p.found[p.at]
}

// handleEnter goes to the call site, the failure or the pane that the finding is about.
func (p *pointsPane) handleEnter() {
	d, point := p.d, p.currentPoint()
	switch {
	case point == nil:
	case point.About == analysis.AboutFailure:
		d.showPaneAlone(paneFailures)
	case point.About == analysis.AboutGhost:
		d.showPaneAlone(paneGhosts)
	case point.About == analysis.AboutChange:
		d.showPaneAlone(paneLimits)
	case point.Tag == "":
		d.sayMessage(dim, "it concerns the whole run")
	case d.tags.chooseTag(point.Tag):
		d.showPaneAlone(paneTags)
	default:
		d.sayMessage(dim, point.Tag+" is not in the table")
	}
}

func (p *pointsPane) draw(r region, s *stats.Snapshot) {
	points := p.found
	if len(points) == 0 {
		p.drawVerdictLine(r, s)
		return
	}
	p.setPageAndScroll(min(len(points), max(r.h-policyRest, r.h/2)), len(points))
	for y := range min(p.page, len(points)-p.top) {
		p.drawRow(r.subRegion(0, y, r.w, 1), &points[p.top+y], p.top+y == p.at)
	}
	r = r.withoutRows(p.page + 1)
	for i := p.at; i < len(p.found) && r.h > 0; i++ {
		r = r.withoutRows(p.drawDetails(r, s, &p.found[i]) + 1)
	}
}

func (p *pointsPane) drawRow(r region, point *analysis.Diagnosis, chosen bool) {
	st, rest := styleOfSeverity(point.Severity), dim
	if chosen {
		r.markChosenRow(0)
		st, rest = cursorStyle, cursorStyle
	}
	if point.Severity != analysis.Note {
		r.putCluster(1, 0, signOfSeverity(point.Severity), st)
	}
	r.writeTextInColumns(3, 0, r.w-4, point.Title, st)
	if x := 5 + textWidth(point.Title); x < r.w {
		r.writeTextInColumns(x, 0, r.w-x-1, point.Text, rest)
	}
}

// drawDetails draws all of a point: why, what to try, what y does, and where. It returns how many rows it took.
func (p *pointsPane) drawDetails(r region, s *stats.Snapshot, point *analysis.Diagnosis) int {
	y := r.writeLines(1, 0, signOfSeverity(point.Severity)+" "+point.Title+": "+point.Text, styleOfSeverity(point.Severity))
	for _, text := range p.remedyTexts(s, point) {
		y = r.writeLines(3, y, text, plain)
	}
	if text := p.keysText(point); text != "" {
		end := r.writeLines(3, y, text, plain)
		r.writeText(3, y, text[:1], keyStyle)
		y = end
	}
	if at := slices.IndexFunc(s.Tags, func(t stats.Tag) bool { return t.Name == point.Tag }); point.Tag != "" && at >= 0 {
		for _, frame := range s.Tags[at].Stack {
			r.writeTextInColumns(3, y, r.w-4, frame, dim)
			y++
		}
	}
	return y
}

// remedyTexts returns what else may help than what y does.
func (p *pointsPane) remedyTexts(s *stats.Snapshot, point *analysis.Diagnosis) (texts []string) {
	switch k := &point.Knob; {
	case k.Limit != "" && p.keysText(point) == "":
		texts = append(texts, "try: "+k.Limit+"="+k.Value+textIf(k.Why != "", ": "+k.Why))
	case k.Why != "" && !strings.Contains(point.Text, k.Why):
		texts = append(texts, textIf(p.keysText(point) == "", "try: ")+k.Why)
	}
	at := slices.IndexFunc(s.PostMortems, func(m stats.PostMortem) bool { return m.Tag == point.Tag })
	if point.About != analysis.AboutFailure || at < 0 || p.d.o.PostMortem == nil {
		return texts
	}
	for _, line := range p.d.o.PostMortem(&s.PostMortems[at], s.Started) {
		if line.Label == "try" {
			texts = append(texts, "try: "+line.Text)
		}
	}
	return texts
}

// keysText says what the keys do about a point: what y sets, and what u takes back.
func (p *pointsPane) keysText(point *analysis.Diagnosis) string {
	switch last := p.d.ledger.latestUndoableChange(); {
	case point.About == analysis.AboutChange && last != nil:
		return "u takes back " + last.label
	case !p.isApplicable(point):
		return ""
	case point.About == analysis.AboutGhost:
		leader, _ := p.d.ghosts.leaderToAdopt()
		return "y: policy " + p.d.live.Policy + " → " + leader.Name + p.d.ghosts.gainText() + "; then u takes it back"
	}
	return "y: " + p.actionText(point, false) + "; then u takes it back"
}

// isApplicable reports whether y does something about a point.
func (p *pointsPane) isApplicable(point *analysis.Diagnosis) bool {
	if point.About == analysis.AboutGhost {
		_, why := p.d.ghosts.leaderToAdopt()
		return why == ""
	}
	l, _ := limitToChange(p.d.live, point)
	return l != nil && p.d.mode.fixedLimits == "" && !p.d.hasProgramEnded()
}

// limitToChange returns the limit that a finding suggests to change, and the new value; nil: none.
func limitToChange(s *stats.Snapshot, point *analysis.Diagnosis) (l *stats.Limit, to float64) {
	if s == nil {
		return nil, 0
	}
	at := slices.IndexFunc(s.Limits, func(l stats.Limit) bool { return l.Name == point.Knob.Limit })
	if at < 0 {
		return nil, 0
	}
	to, ok := s.Limits[at].ParseValue(point.Knob.Value)
	if !ok {
		return nil, 0
	}
	return &s.Limits[at], to
}

// nextPointToApply returns the place of the first point from the cursor on that can be applied, or why there is none.
func (p *pointsPane) nextPointToApply() (at int, why string) {
	first := 0
	if p.d.zoom == panePoints {
		first = p.at
	}
	for i := first; i < len(p.found); i++ {
		if p.isApplicable(&p.found[i]) {
			return i, ""
		}
		if p.d.zoom == panePoints {
			break
		}
	}
	return 0, "nothing is suggested here that can be done"
}

// applySuggestion does what is suggested. If that is not on the screen, it is shown first, and the same key again does it.
func (d *dashboard) applySuggestion() {
	at, why := d.points.nextPointToApply()
	shown := d.zoom == panePoints
	switch {
	case d.zoom == paneGhosts, why != "" && !shown:
		d.ghosts.adoptLeader()
		return
	case why != "":
		d.sayMessage(dim, why)
		return
	}
	point := &d.points.found[at]
	l, to := limitToChange(d.live, point)
	switch {
	case point.About == analysis.AboutGhost:
		d.ghosts.adoptLeader()
	case !shown:
		d.points.at = at
		d.showPaneAlone(panePoints)
		d.sayMessage(warnStyle, "press y again to set "+l.Name+" to "+d.limits.valueText(l, to))
	default:
		d.limits.requestLimitValue(d.limits.indexOfLimit(l.Name), clampToLimitRange(l, to))
	}
}
