package ui

import (
	"cmp"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// typingText is the message while keys go to the program.
const typingText = "what you type goes to the program, ctrl+c too; ctrl+\\ ends"

// beginTyping lets keys go to the program.
func (d *dashboard) beginTyping() {
	if d.hasProgramEnded() {
		d.sayMessage(dim, "the program has ended")
		return
	}
	d.typing = true
	if d.zoom == noPane {
		d.showPaneAlone(paneOutput)
	}
}

// typeKey gives a key to the program. ctrl+\ ends typing instead.
func (d *dashboard) typeKey(msg tea.KeyPressMsg) {
	if msg.String() == "ctrl+\\" || d.hasProgramEnded() {
		d.typing = false
		return
	}
	d.typeIntoProgram(terminalInput(msg))
}

// typeIntoProgram gives text to the program.
func (d *dashboard) typeIntoProgram(text string) {
	if text == "" {
		return
	}
	if err := d.o.Type([]byte(text)); err != nil {
		d.typing = false
		d.sayMessage(badStyle, "✗ "+err.Error())
	}
}

// sequences are what a terminal sends for keys without a letter (xterm's ctlseqs, normal cursor keys).
var sequences = map[string]string{
	"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F", "insert": "\x1b[2~",
	"delete": "\x1b[3~", "pgup": "\x1b[5~", "pgdown": "\x1b[6~", "shift+tab": "\x1b[Z", "space": " ", "ctrl+space": "\x00",
	"enter": "\r", "tab": "\t", "backspace": "\x7f", "esc": "\x1b",
}

// terminalInput returns what a terminal sends for a key, empty if that is not known.
func terminalInput(msg tea.KeyPressMsg) string {
	name, alt := strings.CutPrefix(msg.Keystroke(), "alt+")
	text := cmp.Or(msg.Text, sequences[name])
	letter, control := strings.CutPrefix(name, "ctrl+")
	switch {
	case text != "":
	case control && len(letter) == 1: // letters and @ [ \ ] ^ _ lose the bits above the fifth
		text = string(rune(letter[0] & 0x1f))
	case utf8.RuneCountInString(name) == 1:
		text = name
	}
	if alt && text != "" {
		text = "\x1b" + text
	}
	return text
}
