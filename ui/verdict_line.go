package ui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// allPointsLine writes all points in one line, the worst first: a single one with its reason, if that fits w columns or there is no
// short title, else the short titles that fit, and how many more there are.
// "✗" is wrong, "!" could be better.
func (p *pointsPane) allPointsLine(w int) (string, style) {
	first := &p.found[0]
	text := signOfSeverity(first.Severity) + " "
	if whole := text + first.Title + ": " + first.Text; len(p.found) == 1 && (textWidth(whole) <= w || first.Brief == "") {
		return withoutLastClauses(whole, w), styleOfSeverity(first.Severity)
	}
	const between = " · "
	more := func(n int) string { return textIf(n > 0, between+strconv.Itoa(n)+" more") }
	for i, rest := 0, len(p.found); i < len(p.found); i++ {
		rest--
		title := withoutLastClauses(shortFindingTitle(&p.found[i]), w-textWidth(text+textIf(i > 0, between)+more(rest)))
		if i > 0 && textWidth(text+between+title+more(rest)) > w {
			text += more(rest + 1)
			break
		}
		text += textIf(i > 0, between) + title
	}
	return text, styleOfSeverity(first.Severity)
}

// shortFindingTitle returns the short title of a finding, with the function of its call site. The list and the table have the whole
// site.
func shortFindingTitle(point *analysis.Diagnosis) string {
	_, function, found := strings.Cut(point.Tag, " ")
	switch text := cmp.Or(point.Brief, point.Title); {
	case !found || function == "":
		return text
	case strings.Contains(text, point.Tag):
		return strings.Replace(text, point.Tag, function, 1)
	case point.Brief == "":
		return text + " at " + function
	default:
		return text
	}
}

// signOfSeverity is a sign for a severity, as colours may be off.
func signOfSeverity(s analysis.Severity) string {
	switch s {
	case analysis.Problem:
		return "✗"
	case analysis.Advice:
		return "!"
	}
	return "·"
}

// drawVerdictLine draws the verdict.
func (p *pointsPane) drawVerdictLine(r region, s *stats.Snapshot) {
	if p.d.o.Judge == nil {
		return
	}
	verdict, judged := p.d.o.Judge.Verdict()
	switch {
	case p.d.cursor.moment.Rough, len(p.found) == 0 && s.Totals.Creates == 0:
		r.writeText(1, 0, "no allocation to judge", dim)
		return
	case verdict == analysis.Fine:
		p.drawAllWell(r, judged)
		return
	case len(p.found) == 0:
		r.writeTextInColumns(1, 0, r.w-2, withoutLastClauses(judged, r.w-2), dim)
		return
	}
	text, _ := p.allPointsLine(r.w)
	keys := p.remedyKeySpans(r.w-4-textWidth(text), r.w-4-verdictLeast)
	text, st := p.allPointsLine(r.w - spansWidth(keys) - 4)
	keys = p.remedyKeySpans(r.w-4-textWidth(text), 0) // what the text is cut by leaves them room
	n := spansWidth(keys)
	r.writeSpans(r.w-1-n, 0, keys...)
	r.writeTextInColumns(1, 0, r.w-n-4, text, st)
}

// drawAllWell draws that all is well, what was judged, and how many notes there are.
func (p *pointsPane) drawAllWell(r region, judged string) {
	w := r.w - 2
	if n := len(p.found); n > 0 {
		keys := []span{{"!", keyStyle}, {" " + pluralText(uint64(n), "note"), dim}}
		w -= spansWidth(keys) + 2
		r.writeSpans(r.w-1-spansWidth(keys), 0, keys...)
	}
	r.writeTextInColumns(1, 0, w, "✓ "+withoutLastClauses(judged, w-2), goodStyle)
}

// withoutLastClauses returns a sentence without its last clauses, so that it fits w columns.
func withoutLastClauses(text string, w int) string {
	for textWidth(text) > w {
		at := max(strings.LastIndex(text, "; "), strings.LastIndex(text, ": "), strings.LastIndex(text, " ("), strings.LastIndex(text, ", "))
		if at < 0 {
			break
		}
		text = text[:at]
	}
	return text
}

// verdictLeast is the width that the verdict gets before the keys say what y does.
const verdictLeast = 70

// remedyKeySpans are what can be done about the points: with all that y does if that fits w columns, with what it sets in most columns.
func (p *pointsPane) remedyKeySpans(w, most int) []span {
	list := []span{{"!", keyStyle}, {" list", dim}}
	var undo []span
	if slices.ContainsFunc(p.found, func(point analysis.Diagnosis) bool { return point.About == analysis.AboutChange }) {
		undo = []span{{"  u", keyStyle}, {" undo", dim}}
	}
	at, why := p.nextPointToApply()
	if why != "" {
		return append(list, undo...)
	}
	deed := p.actionText(&p.found[at], at == 0)
	brief, _, _ := strings.Cut(deed, ": ")
	if before, to, found := strings.Cut(brief, " → "); found {
		if name, _, named := strings.Cut(before, " "); named {
			brief = name + " → " + to
		} else {
			brief = "set " + to
		}
	}
	for _, form := range []struct {
		text string
		w    int
	}{{deed, w}, {brief, max(w, most)}} {
		if keys := slices.Concat(list, []span{{"  y", keyStyle}, {": " + form.text, dim}}, undo); spansWidth(keys) <= form.w {
			return keys
		}
	}
	return append(list, span{"  y", keyStyle}, span{" apply", dim})
}
