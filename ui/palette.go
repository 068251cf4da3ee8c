package ui

import (
	"cmp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// entry is a command that the palette offers.
type entry struct {
	name, keys string
	run        func() tea.Cmd
}

// palette is the list of all commands, searched by what is typed. Those used last come first.
type palette struct {
	list
	d       *dashboard
	used    []string // names, the latest first
	entries []entry  // those that match
	command tea.Cmd  // of the entry that was chosen
}

// askCommand asks for a command.
func (p *palette) askCommand() {
	d := p.d
	p.list = list{}
	p.entries = p.matchingEntries("")
	d.overlay = paletteOverlay
	d.prompt = &prompt{
		label: ":", keys: []word{{"enter", "do it"}, {"↑ ↓", "choose"}, {"esc", "back"}},
		changed: func(text string) { p.entries, p.at = p.matchingEntries(text), 0 },
		done:    func(string) { p.runChosenCommand() },
		leave:   func() { d.overlay = noOverlay },
		moved:   func(m motion) { p.moveCursor(m, len(p.entries)) },
	}
}

// runChosenCommand does what was chosen.
func (p *palette) runChosenCommand() {
	p.d.overlay = noOverlay
	if p.at >= len(p.entries) {
		p.d.sayMessage(dim, "no such command; ? shows all keys")
		return
	}
	e := p.entries[p.at]
	p.used = slices.Insert(slices.DeleteFunc(p.used, func(name string) bool { return name == e.name }), 0, e.name)
	p.command = e.run()
}

// matchingEntries returns the commands that a text finds, the best first.
func (p *palette) matchingEntries(text string) []entry {
	type scored struct {
		entry
		score int
	}
	var found []scored
	for _, e := range p.allEntries() {
		if score, ok := fuzzyMatch(text, e.name); ok {
			if at := slices.Index(p.used, e.name); at >= 0 && text == "" {
				score += 1000 - at
			}
			found = append(found, scored{e, score})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	entries := make([]entry, 0, len(found))
	for i := range found {
		entries = append(entries, found[i].entry)
	}
	return entries
}

// allEntries are the commands that have help, and the ways to sort and to group.
func (p *palette) allEntries() (entries []entry) {
	d := p.d
	shown := d.shownSnapshot()
	for i := range d.mode.keys {
		c := &d.mode.keys[i]
		if c.help == "" || c.rules.unlisted || !c.isUsable(d) {
			continue
		}
		entries = append(entries, entry{c.help, d.theme.keysInTheme(c.shown), func() tea.Cmd { return c.runCommand(d, c.keys[0]) }})
	}
	for n := paneMemory; n <= d.mode.lastPane; n++ {
		entries = append(entries, entry{"zoom pane " + paneNames[n], string(rune('0' + n)), func() tea.Cmd { d.showPaneAlone(n); return nil }})
	}
	for i := range tagColumns {
		if c := &tagColumns[i]; c.order != nil && (d.mode.pool || !c.pool) {
			entries = append(entries, entry{"sort by " + headingAt(shown, c.title), "", func() tea.Cmd { d.tags.sortBy(i); return nil }})
		}
	}
	for by := range groupings {
		name := "group by " + groupNames[by]
		if by == bySite {
			name = "group by call site"
		}
		entries = append(entries, entry{name, "", func() tea.Cmd { d.tags.groupBy(by); return nil }})
	}
	return entries
}

// fuzzyMatch reports whether a text has the letters of a pattern in their order, in any case. Letters that begin words or follow
// each other score.
func fuzzyMatch(pattern, text string) (score int, ok bool) {
	letters := []rune(strings.ToLower(strings.ReplaceAll(pattern, " ", "")))
	at, last := 0, -2
	before := ' '
	for i, r := range []rune(strings.ToLower(text)) {
		if at < len(letters) && r == letters[at] {
			switch {
			case i == last+1:
				score += 3
			case before == ' ':
				score += 2
			}
			if i < 20 {
				score++
			}
			at, last = at+1, i
		}
		before = r
	}
	return score, at == len(letters)
}

// listRegion returns the part of the screen that the list covers.
func (p *palette) listRegion(r region) region {
	w, h := min(r.w, 90), min(r.h-2, 18)
	return r.subRegion((r.w-w)/2, max(0, (r.h-h)/3), w, h)
}

// clickRow runs the command of a row.
func (p *palette) clickRow(r region, x, y int) tea.Cmd {
	r = p.listRegion(r)
	if at := p.top + y - r.y - 2; x > r.x && x < r.x+r.w-1 && y >= r.y+2 && y < r.y+r.h-1 && at < len(p.entries) {
		p.at = at
		return p.d.acceptPrompt()
	}
	return nil
}

// drawPalette draws the list over the panes.
func (p *palette) drawPalette(r region) {
	r = p.listRegion(r)
	r.blankAll()
	inside := r.drawBox([]span{{" commands ", titleStyle}}, nil, focusStyle)
	inside.writeTextInColumns(1, 0, inside.w-2, p.d.prompt.promptLine(inside.w-2), strong)
	body := inside.withoutRows(1)
	p.setPageAndScroll(body.h, len(p.entries))
	for y := range min(body.h, len(p.entries)-p.top) {
		e := &p.entries[p.top+y]
		st, key := plain, keyStyle
		if p.top+y == p.at {
			st, key = cursorStyle, cursorStyle
			body.markChosenRow(y)
		}
		body.writeTextInColumns(2, y, body.w-14, e.name, st)
		body.writeTextBefore(body.w-1, y, e.keys, key)
	}
}
