package ui

import (
	"strings"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"
)

// prompt is a line that the user types.
type prompt struct {
	label   string
	text    string
	allowed string            // characters; empty: all that can be seen
	keys    []word            // what the line of keys says
	changed func(text string) // after each key; nil: nothing
	done    func(text string) // enter
	leave   func()            // esc; nil: nothing
	moved   func(a action)    // up and down; nil: nothing
}

// typedMax bounds the length of what is typed, in bytes.
const typedMax = 256

// moveKeys move in a list under a prompt.
var moveKeys = map[tea.KeyType]action{tea.KeyUp: actUp, tea.KeyDown: actDown, tea.KeyPgUp: actPageUp, tea.KeyPgDown: actPageDown}

// typeKey handles a key while a prompt is open.
func (d *dashboard) typeKey(msg tea.KeyMsg) {
	p := d.prompt
	switch msg.Type {
	case tea.KeyEsc:
		d.prompt = nil
		if p.leave != nil {
			p.leave()
		}
		return
	case tea.KeyEnter:
		d.prompt = nil
		p.done(p.text)
		return
	case tea.KeyBackspace:
		if r := []rune(p.text); len(r) > 0 {
			p.text = string(r[:len(r)-1])
		}
	case tea.KeyCtrlU:
		p.text = ""
	case tea.KeyRunes, tea.KeySpace:
		p.add(msg.Runes)
	default:
		if a, moves := moveKeys[msg.Type]; moves && p.moved != nil {
			p.moved(a)
		}
		return
	}
	if p.changed != nil {
		p.changed(p.text)
	}
}

func (p *prompt) add(runes []rune) {
	for _, r := range runes {
		if len(p.text) < typedMax && unicode.IsPrint(r) && (p.allowed == "" || strings.ContainsRune(p.allowed, r)) {
			p.text += string(r)
		}
	}
}

// line is what is shown of the prompt: its end, if it is long.
func (p *prompt) line(w int) string {
	text := p.text
	for len(text) > 0 && width(p.label)+width(text)+3 > w {
		_, _, text = nextCluster(text)
	}
	return p.label + text + "_"
}

// drawTyping draws the keys of the prompt, and what was typed if there is no message line for it.
func (d *dashboard) drawTyping(r region) {
	var items []item
	if l := d.arrange(); !l.message && d.overlay != paletteOverlay {
		items = append(items, item{0, []span{{d.prompt.line(r.w), strong}}})
	}
	for i, k := range d.prompt.keys {
		items = append(items, item{i + 1, []span{{k.term, keyStyle}, {" " + k.meaning, dim}}})
	}
	r.lineOf(1, 0, 2, fit(items, r.w-2, 2))
}
