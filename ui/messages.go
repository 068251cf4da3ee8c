package ui

import (
	"cmp"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// markShown is how long an event has the message line, in ns of snapshot time.
const markShown = 10e9

// drawMessage draws one line: an answer to a key, else a recent event, else a finding, else what came of a change.
func (d *dashboard) drawMessage(r region, s *stats.Snapshot) {
	text, st := d.currentMessage(s)
	if (d.prompt == nil || d.overlay == paletteOverlay) && d.note.text == "" {
		text = withoutLastClauses(text, r.w-2)
	}
	r.writeTextInColumns(1, 0, r.w-2, text, st)
}

func (d *dashboard) currentMessage(s *stats.Snapshot) (string, style) {
	if d.prompt != nil && d.overlay != paletteOverlay {
		return d.prompt.promptLine(d.w - 2), strong
	}
	if d.typing && !d.hasProgramEnded() {
		return typingText, warnStyle
	}
	if text, st := d.cursor.messageText(); text != "" && d.note.text == "" {
		return text, st
	}
	switch {
	case d.note.text != "":
		return d.note.text, d.note.style
	case s.Lost > 0 && (!d.arrangePanes().verdict || d.o.Judge == nil):
		return "✗ " + formatCount(s.Lost) + " events lost (" + formatCount(s.LostUses) + " of them uses): figures may be too high or too low", badStyle
	}
	if n := len(s.Marks); n > 0 && differenceOrZero(s.Marks[n-1].Time, s.Time) < markShown {
		m := &s.Marks[n-1]
		if !isAmongFindings(s, m.Time) && m.Kind == wire.KindDiag {
			return "• " + m.Text, warnStyle
		}
	}
	if l := d.arrangePanes(); !l.verdict && len(d.points.found) > 0 {
		return d.points.allPointsLine(d.w - 2)
	}
	if text, st := d.ledger.latestChangeLine(s); text != "" {
		return text, st
	}
	return d.nothingToReportText(s), dim
}

// isAmongFindings reports whether a failure or a mistake of that time is among the findings.
func isAmongFindings(s *stats.Snapshot, time uint64) bool {
	return slices.ContainsFunc(s.PostMortems, func(p stats.PostMortem) bool { return p.Time == time }) ||
		slices.ContainsFunc(s.Findings, func(f stats.Finding) bool { return f.First == time })
}

// mistakeCount counts distinct mistakes.
func mistakeCount(s *stats.Snapshot) string {
	switch n := len(s.Findings); {
	case s.OtherFindings > 0:
		return "over " + formatCount(uint64(n)) + " mistakes"
	case n == 1:
		return "1 mistake"
	default:
		return formatCount(uint64(n)) + " mistakes"
	}
}

// nothingToReportText is the message if there is nothing to report.
func (d *dashboard) nothingToReportText(s *stats.Snapshot) string {
	switch m := d.mode; {
	case d.live == nil, m.watches && len(d.live.Processes) == 0 && !d.hasProgramEnded():
		return m.waiting
	case d.hasProgramEnded():
		return m.over
	case s.Totals.Creates == 0:
		return m.silent
	}
	lost := "none"
	if s.Lost > 0 {
		lost = formatCount(s.Lost)
	}
	text := formatCount(s.Events) + " events, " + lost + " lost"
	if !d.mode.pool && s.TagBeforeAttach() != nil {
		text += "; sizes from before attach are lower bounds"
	}
	return text
}

// drawKeys draws the keys that fit.
func (d *dashboard) drawKeys(r region) {
	if d.prompt != nil {
		d.drawTyping(r)
		return
	}
	if d.typing && !d.hasProgramEnded() {
		r.writeSpans(1, 0, span{"ctrl+\\", keyStyle}, span{" end typing", dim})
		return
	}
	var items []item
	for i := range d.mode.keys {
		c := &d.mode.keys[i]
		if c.short == "" || !c.isUsable(d) {
			continue
		}
		items = append(items, item{i, []span{{d.theme.keysInTheme(cmp.Or(c.rules.line, c.shown)), keyStyle}, {" " + c.short, dim}}})
	}
	r.writeAllItems(1, 0, 2, fitItems(items, r.w-2, 2))
}

// drawOverlay draws help or the quit dialog over the panes.
func (d *dashboard) drawOverlay(r region) {
	switch d.overlay {
	case helpOverlay:
		d.help.drawHelp(r)
	case quitOverlay:
		d.drawQuit(r)
	case paletteOverlay:
		if d.prompt != nil {
			d.palette.drawPalette(r)
		}
	}
}

// quitText is the question of the quit dialog, short in a narrow terminal.
func (d *dashboard) quitText() string {
	var parts []string
	switch {
	case d.o.Detach != nil && d.w < compactW:
		parts = append(parts, "[d]etach")
	case d.o.Detach != nil:
		parts = append(parts, "[d]etach UI, app continues")
	}
	if d.o.Terminate != nil {
		parts = append(parts, "[t]erminate")
	}
	return strings.Join(append(parts, "[esc]"), " · ")
}

func (d *dashboard) drawQuit(r region) {
	const title = "the program is still running"
	text := d.quitText()
	w, h := min(r.w, textWidth(text)+6), min(r.h, 5)
	r = r.subRegion((r.w-w)/2, (r.h-h)/2, w, h)
	r.blankAll()
	inside := r.drawBox([]span{{" " + title + " ", titleStyle}}, nil, focusStyle)
	inside.writeText(max(0, (inside.w-textWidth(text))/2), inside.h/2, text, strong)
}

// wrapText breaks text between words into lines of at most n columns, as far as words allow.
func wrapText(text string, n int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case textWidth(line)+1+textWidth(word) <= n:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}
