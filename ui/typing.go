package ui

import tea "github.com/charmbracelet/bubbletea"

// typingText is the message while keys go to the program.
const typingText = "what you type goes to the program, ctrl+c too; ctrl+\\ ends"

// beginTyping lets keys go to the program.
func (d *dashboard) beginTyping() {
	if d.ended() {
		d.say(dim, "the program has ended")
		return
	}
	d.typing = true
	if d.zoom == noPane {
		d.zoomOn(paneOutput)
	}
}

// typeInto gives a key to the program.
func (d *dashboard) typeInto(msg tea.KeyMsg) {
	keys := keyBytes(msg)
	switch {
	case msg.Type == tea.KeyCtrlBackslash || d.ended():
		d.typing = false
	case len(keys) == 0:
	default:
		if err := d.o.Type(keys); err != nil {
			d.typing = false
			d.say(badStyle, "✗ "+err.Error())
		}
	}
}

// sequences are what keys of no letter send (xterm's ctlseqs, normal cursor keys).
var sequences = map[tea.KeyType]string{
	tea.KeyUp: "\x1b[A", tea.KeyDown: "\x1b[B", tea.KeyRight: "\x1b[C", tea.KeyLeft: "\x1b[D", tea.KeyHome: "\x1b[H", tea.KeyEnd: "\x1b[F",
	tea.KeyInsert: "\x1b[2~", tea.KeyDelete: "\x1b[3~", tea.KeyPgUp: "\x1b[5~", tea.KeyPgDown: "\x1b[6~", tea.KeyShiftTab: "\x1b[Z", tea.KeySpace: " ",
}

// keyBytes returns what a terminal sends for a key, empty if that is not known.
func keyBytes(msg tea.KeyMsg) []byte {
	text := sequences[msg.Type]
	switch {
	case msg.Type == tea.KeyRunes:
		text = string(msg.Runes)
	case msg.Type >= 0 && msg.Type < ' ', msg.Type == tea.KeyBackspace: // control characters are their own codes
		text = string(rune(msg.Type))
	}
	if msg.Alt && text != "" {
		text = "\x1b" + text
	}
	return []byte(text)
}
