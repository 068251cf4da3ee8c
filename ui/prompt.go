package ui

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// prompt asks the user for a line of text.
type prompt struct {
	label   string
	text    string
	allowed string            // characters; empty: all that can be seen
	keys    []word            // what the line of keys says
	changed func(text string) // after each key; nil: nothing
	done    func(text string) // enter
	leave   func()            // esc; nil: nothing
	moved   func(m motion)    // up and down; nil: nothing
}

// typedMax bounds the length of what is typed, in bytes.
const typedMax = 256

// cancelPrompt ends typing without using the text.
func (d *dashboard) cancelPrompt() {
	p := d.prompt
	d.prompt = nil
	if p.leave != nil {
		p.leave()
	}
}

// acceptPrompt ends typing. The palette has a command to run.
func (d *dashboard) acceptPrompt() tea.Cmd {
	p := d.prompt
	d.prompt = nil
	p.done(p.text)
	command := d.palette.command
	d.palette.command = nil
	return command
}

// promptMoveAction returns the action of a key that moves in a list under a prompt.
func promptMoveAction(m motion) func(*dashboard, string) tea.Cmd {
	return actionOf(func(d *dashboard) {
		if d.prompt.moved != nil {
			d.prompt.moved(m)
		}
	})
}

func (p *prompt) appendTyped(typed string) {
	text := p.text
	for _, r := range typed {
		if len(text) < typedMax && unicode.IsPrint(r) && (p.allowed == "" || strings.ContainsRune(p.allowed, r)) {
			text += string(r)
		}
	}
	p.setText(text)
}

func (p *prompt) removeLastRune() {
	if r := []rune(p.text); len(r) > 0 {
		p.setText(string(r[:len(r)-1]))
	}
}

func (p *prompt) setText(text string) {
	p.text = text
	if p.changed != nil {
		p.changed(text)
	}
}

// promptLine returns the label and the text. Where the text is too long, only its end is shown.
func (p *prompt) promptLine(w int) string {
	text := p.text
	for len(text) > 0 && textWidth(p.label)+textWidth(text)+3 > w {
		_, _, text = nextCluster(text)
	}
	return p.label + text + "_"
}

// drawTyping draws the keys of the prompt, and what was typed if there is no message line for it.
func (d *dashboard) drawTyping(r region) {
	var items []item
	if l := d.arrangePanes(); !l.message && d.overlay != paletteOverlay {
		items = append(items, item{0, []span{{d.prompt.promptLine(r.w), strong}}})
	}
	for i, k := range d.prompt.keys {
		items = append(items, item{i + 1, []span{{d.theme.keysInTheme(k.term), keyStyle}, {" " + k.meaning, dim}}})
	}
	r.writeAllItems(1, 0, 2, fitItems(items, r.w-2, 2))
}
