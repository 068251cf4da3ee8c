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

func (p *helpPage) addHead(text string) {
	if len(p.lines) > 0 {
		p.lines = append(p.lines, nil)
	}
	p.lines = append(p.lines, []span{{text, titleStyle}})
}

// addEntry adds a name in w columns, and its meaning.
func (p *helpPage) addEntry(name, text string, w int) {
	for i, part := range wrapText(text, p.w-w-6) {
		if i > 0 {
			name = ""
		}
		pad := strings.Repeat(" ", max(1, w-textWidth(name)))
		p.lines = append(p.lines, []span{{"  " + name, keyStyle}, {pad + part, plain}})
	}
}

// addKeys adds the keys of a section.
func (p *helpPage) addKeys(commands []command, section string) {
	first := true
	for i := range commands {
		c := &commands[i]
		if c.section != section || c.shown == "" {
			continue
		}
		if first {
			p.addHead("keys: " + section)
		}
		first = false
		p.addEntry(p.theme.keysInTheme(c.shown), c.help, 12)
	}
}

// topic lists what the help of one pane consists of.
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

// shownHelpLines are those of the help: of the pane in focus, or of everything.
func (h *help) shownHelpLines() [][]span {
	p := &helpPage{w: h.d.w, theme: h.d.theme}
	if h.all {
		p.addEverything(h.d.mode)
	} else {
		p.addTopic(h.d.mode, &topics[h.d.focus])
	}
	return p.lines
}

// addEverything adds all keys, panes, signs and words.
func (p *helpPage) addEverything(m *mode) {
	for _, section := range sections {
		p.addKeys(m.keys, section)
	}
	p.addWords("panes", 14, m.panes)
	p.addWords("signs", 15, signs)
	p.addWords("words", 15, m.words)
	p.addWords("mouse", 14, mouseHelp)
}

// mouseHelp says what the mouse does.
var mouseHelp = []word{
	{"click", "on a key or its label: that key; on a title: zoom; on a row: choose it, once more: enter; on a slider, a column's title, a time"},
	{"drag", "on the memory chart: that span of time"},
	{"wheel", "scroll; on charts: zoom"},
	{"shift", "held: the terminal selects text; --mouse=off leaves it the mouse"},
}

// addWords adds words under a head, each in w columns, with what they mean.
func (p *helpPage) addWords(head string, w int, words []word) {
	p.addHead(head)
	for _, one := range words {
		p.addEntry(one.term, one.meaning, w)
	}
}

// addTopic adds what concerns one pane.
func (p *helpPage) addTopic(m *mode, t *topic) {
	for _, pane := range m.panes {
		if id, name, _ := strings.Cut(pane.term, " "); id == t.pane {
			p.addHead(name)
			p.addEntry("", pane.meaning, 0)
		}
	}
	for _, section := range t.sections {
		p.addKeys(m.keys, section)
	}
	p.addWords("words", 15, slices.DeleteFunc(slices.Clone(m.words), func(w word) bool { return !slices.Contains(t.words, w.term) }))
	p.addHead("? again: all keys, panes, signs and words")
}

func (h *help) openHelp() { h.d.overlay, h.top, h.all = helpOverlay, 0, false }

// showNextHelpPage goes from the help of a pane to that of everything, and then closes it.
func (h *help) showNextHelpPage() {
	if h.all {
		h.d.closeOverlay()
		return
	}
	h.all, h.top = true, 0
}

func (h *help) moveInHelp(m motion) {
	h.top = max(0, min(h.top+m.rowsDown(max(1, h.d.h-4)), len(h.shownHelpLines())-1))
}

// helpMoveAction returns the action of a key that moves in the help.
func helpMoveAction(m motion) func(*dashboard, string) tea.Cmd {
	return actionOf(func(d *dashboard) { d.help.moveInHelp(m) })
}

func (h *help) drawHelp(r region) {
	r.blankAll()
	hint := []span{{" j k", keyStyle}, {" scroll ", dim}, {"?", keyStyle}, {" all ", dim}, {"esc", keyStyle}, {" back ", dim}}
	inside := r.drawBox([]span{{" help ", titleStyle}}, hint, focusStyle)
	lines := h.shownHelpLines()
	h.top = max(0, min(h.top, len(lines)-inside.h))
	for y := range min(inside.h, len(lines)-h.top) {
		inside.writeSpans(1, y, lines[h.top+y]...)
	}
}
