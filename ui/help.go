package ui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// helpPage collects the lines of the help.
type helpPage struct {
	lines [][]span
	w     int
	theme *theme
}

func (p *helpPage) head(text string) {
	if len(p.lines) > 0 {
		p.lines = append(p.lines, nil)
	}
	p.lines = append(p.lines, []span{{text, titleStyle}})
}

// entry adds a name in w columns, and its meaning.
func (p *helpPage) entry(name, text string, w int) {
	for i, part := range wrap(text, p.w-w-6) {
		if i > 0 {
			name = ""
		}
		pad := strings.Repeat(" ", max(1, w-width(name)))
		p.lines = append(p.lines, []span{{"  " + name, keyStyle}, {pad + part, plain}})
	}
}

// keys adds the keys of a section.
func (p *helpPage) keys(commands []command, section string) {
	first := true
	for i := range commands {
		c := &commands[i]
		if c.section != section || c.shown == "" {
			continue
		}
		if first {
			p.head("keys: " + section)
		}
		first = false
		p.entry(p.theme.keyText(c.shown), c.help, 12)
	}
}

// topic is what the help of a pane has.
type topic struct {
	pane     string // how paneHelp names it
	sections []string
	words    []string
}

var topics = [paneCount]topic{
	paneMemory:    {"1", []string{sectionTime}, []string{"in use", "cached", "cooling", "reserved"}},
	paneRates:     {"2", nil, []string{"hit, miss", "steady", "avoided"}},
	paneTags:      {"3", []string{sectionMove}, []string{"tag", "holds", "in use", "cached", "hit, miss", "waste"}},
	paneFree:      {"4", []string{sectionMove}, []string{"block", "slab", "class", "cached", "cooling"}},
	paneMisses:    {"5", nil, []string{"cold", "too small", "too wasteful", "other class", "cooling", "limit", "tag cap", "drained", "policy"}},
	paneLimits:    {"6", []string{sectionLimits}, []string{"limit", "tag cap"}},
	paneOutput:    {"7", []string{sectionMove, sectionApp}, nil},
	paneProcesses: {"P", []string{sectionMove, sectionApp}, nil},
	panePolicies:  {"a", []string{sectionLimits}, nil},
	paneGhosts:    {"w", []string{sectionWhatIf}, nil},
	paneCurve:     {"c", []string{sectionWhatIf, sectionLimits}, nil},
	paneFailures:  {"m", []string{sectionMove}, nil},
	paneTransfers: {"b", []string{sectionMove}, nil},
	paneObjects:   {"n", []string{sectionMove}, nil},
	paneHeap:      {"H", []string{sectionMove}, []string{"slab", "class", "cooling", "fragmentation"}},
	panePoints:    {"!", []string{sectionMove, sectionWhatIf}, []string{"mistakes", "lost"}},
}

// help is the screen that explains keys, panes and words.
type help struct {
	d   *dashboard
	top int  // first line
	all bool // else only what concerns the pane in focus
}

// lines are those of the help: of the pane in focus, or of everything.
func (h *help) lines() [][]span {
	d := h.d
	p := &helpPage{w: d.w, theme: d.theme}
	if h.all {
		for _, section := range sections {
			p.keys(d.mode.keys, section)
		}
		p.head("panes")
		for _, pane := range d.mode.panes {
			p.entry(pane.term, pane.meaning, 14)
		}
		for _, list := range []struct {
			head  string
			words []word
		}{{"signs", signs}, {"words", d.mode.words}} {
			p.head(list.head)
			for _, w := range list.words {
				p.entry(w.term, w.meaning, 15)
			}
		}
		p.head("mouse")
		p.entry("click", "on a key or its label: that key; on a title: zoom; on a row: choose it, once more: enter; on a slider, a column's title, a time", 14)
		p.entry("drag", "on the memory chart: that span of time", 14)
		p.entry("wheel", "scroll; on charts: zoom", 14)
		p.entry("shift", "held: the terminal selects text; --mouse=off leaves it the mouse", 14)
		return p.lines
	}
	t := &topics[d.focus]
	for _, pane := range d.mode.panes {
		if id, name, _ := strings.Cut(pane.term, " "); id == t.pane {
			p.head(name)
			p.entry("", pane.meaning, 0)
		}
	}
	for _, section := range t.sections {
		p.keys(d.mode.keys, section)
	}
	p.head("words")
	for _, w := range d.mode.words {
		if slices.Contains(t.words, w.term) {
			p.entry(w.term, w.meaning, 15)
		}
	}
	p.head("? again: all keys, panes, signs and words")
	return p.lines
}

func (h *help) open() { h.d.overlay, h.top, h.all = helpOverlay, 0, false }

// more goes from the help of a pane to that of everything, and then closes it.
func (h *help) more() {
	if h.all {
		h.d.closeOverlay()
		return
	}
	h.all, h.top = true, 0
}

func (h *help) move(m motion) {
	h.top = max(0, min(h.top+m.rows(max(1, h.d.h-4)), len(h.lines())-1))
}

// movesHelp makes what a key does that moves in the help.
func movesHelp(m motion) func(*dashboard, string) tea.Cmd {
	return does(func(d *dashboard) { d.help.move(m) })
}

func (h *help) draw(r region) {
	r.wipe()
	hint := []span{{" j k", keyStyle}, {" scroll ", dim}, {"?", keyStyle}, {" all ", dim}, {"esc", keyStyle}, {" back ", dim}}
	inside := r.box([]span{{" help ", titleStyle}}, hint, focusStyle)
	lines := h.lines()
	h.top = max(0, min(h.top, len(lines)-inside.h))
	for y := range min(inside.h, len(lines)-h.top) {
		inside.spans(1, y, lines[h.top+y]...)
	}
}
