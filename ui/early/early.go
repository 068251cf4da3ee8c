// Package early keeps Bubble Tea v1 from questioning the terminal while the process starts.
//
// The package init of Bubble Tea v1 asks the terminal for its background colour and waits up to five seconds for the
// answer, in every process that links it, even for --version. Giving Lip Gloss the answer beforehand avoids both the
// wait and the bytes. Go initialises packages that are ready in the order of their import paths, so this works for as
// long as the path of this package sorts before github.com/charmbracelet/bubbletea; a test holds it to that.
//
// Import it for its effect from every main package that links Bubble Tea.
package early

import "github.com/charmbracelet/lipgloss"

func init() {
	lipgloss.SetHasDarkBackground(true)
}
