package model

import (
	"fmt"
	"strings"
	"unicode"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// marks keeps the last MarksMax things worth a line, oldest first.
type marks struct {
	list []Mark
	lost uint64 // events of the last mark, while that is of kind Lost
}

func (m *marks) add(time uint64, kind wire.Kind, text string) {
	if len(m.list) == MarksMax {
		copy(m.list, m.list[1:])
		m.list = m.list[:MarksMax-1]
	}
	m.list = append(m.list, Mark{Time: time, Kind: kind, Text: text})
	m.lost = 0
}

// lose marks lost events. Under overload they come many times a second: they extend the last mark if that was one,
// so that they do not push everything else out.
func (m *marks) lose(time, events uint64) {
	if events == 0 {
		return
	}
	if m.lost == 0 {
		m.add(time, wire.KindLost, "")
	}
	m.lost += events
	last := &m.list[len(m.list)-1]
	last.Text = fmt.Sprintf("%d events lost", m.lost)
}

// Clean makes text from a target safe to show on a terminal: valid UTF-8 without control characters or characters
// that change the writing direction.
func Clean(text []byte) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(text), "�"))
}
