// Package console is how commands talk to people: messages, the progress line, the terminal, signals and exit statuses.
package console

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Exit statuses of our own failures, as env(1), timeout(1) and nohup(1) use them: few programs end with these.
const (
	StatusUnmet         = 1 // check: a rule is broken; plan, tune: nothing keeps to the bound; doctor: programs cannot run
	StatusFailed        = 125
	StatusNotExecutable = 126
	StatusNotFound      = 127
)

// ExitError ends gpumemtop with a status of its own.
type ExitError struct {
	Status session.Status
	Err    error // the reason, nil when the user has seen it
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return e.Status.String()
}

// Unwrap returns the reason.
func (e *ExitError) Unwrap() error { return e.Err }

// NewExit returns the error that ends gpumemtop with a code, after an error message unless err is nil.
func NewExit(code int, err error) error { return &ExitError{session.Status{Code: code}, err} }

// NewExitWithStatus returns the error that ends gpumemtop as a program ended.
func NewExitWithStatus(status session.Status) error { return &ExitError{Status: status} }

// NewSilentExit returns the error that ends gpumemtop with a status, and says nothing.
func NewSilentExit(code int) error { return NewExitWithStatus(session.Status{Code: code}) }

// IsSilent reports whether there is nothing left to say about an error.
func IsSilent(err error) bool {
	var exit *ExitError
	return errors.As(err, &exit) && exit.Err == nil
}

// ExitStatus returns the status that gpumemtop ends with.
func ExitStatus(err error) session.Status {
	var exit *ExitError
	switch {
	case err == nil:
		return session.Status{}
	case errors.As(err, &exit):
		return exit.Status
	case errors.Is(err, session.ErrNotFound):
		return session.Status{Code: StatusNotFound}
	case errors.Is(err, session.ErrNotExecutable):
		return session.Status{Code: StatusNotExecutable}
	}
	return session.Status{Code: StatusFailed}
}

// Meter returns the progress line on stderr. It is nil, which shows nothing, where stderr is no terminal. Tests replace it.
var Meter = sync.OnceValue(func() *Line { return newTerminalLine(os.Stderr, os.LookupEnv) })

// SayLine writes one line to stderr.
func SayLine(format string, a ...any) { SayLineTo(os.Stderr, fmt.Sprintf(format, a...)) }

// SayLineTo writes one line, below the progress line if there is one.
func SayLineTo(w io.Writer, text string) {
	Meter().Clear()
	_, _ = io.WriteString(w, messageLine(w, text))
}

// messageLine is a text as one line, which a terminal breaks between words.
func messageLine(w io.Writer, text string) string { return WrapForTerminal(w, joinToOneLine(text)) }

// WrapForTerminal returns a text of several lines; a terminal breaks long lines between words.
func WrapForTerminal(w io.Writer, text string) string {
	if width, ok := terminalWidth(w); ok {
		return wrapLines(text, max(width, narrow))
	}
	return text
}

// Paged writes texts as WrapForTerminal returns them: each is written at once.
type Paged struct{ io.Writer }

func (p Paged) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.Writer, WrapForTerminal(p.Writer, string(text))); err != nil {
		return 0, err //nolint:wrapcheck // a writer's error is the underlying one's
	}
	return len(text), nil
}

// labelled matches an indent, and a label with the spaces that follow it up to its text.
var labelled = regexp.MustCompile(`^ *([!-~]( ?[!-~]){0,12}  +|at the end )?`)

// wrapLines breaks lines that are longer than a width. What follows is below the text of its line.
func wrapLines(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if ansi.StringWidth(line) > width {
			begin := len(labelled.FindString(line))
			indent := max(begin, 2)
			line = line[:begin] + WrapIndented(strings.TrimSuffix(line[begin:], "\n"), indent, width) + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

func joinToOneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	return fmt.Sprintf("gpumemtop: %s\n", strings.Join(lines, "; "))
}

// Notes are messages that wait while a dashboard covers the terminal.
type Notes struct {
	mu      sync.Mutex
	held    bool
	waiting []string
}

// Add writes a message, or keeps it until Release.
func (n *Notes) Add(text string) { n.writeOrHold(messageLine(os.Stderr, text)) }

// AddPage is Add for a text of several lines, each with its end.
func (n *Notes) AddPage(text string) { n.writeOrHold(WrapForTerminal(os.Stderr, "gpumemtop: "+text)) }

func (n *Notes) writeOrHold(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held {
		n.waiting = append(n.waiting, text)
		return
	}
	writeWhole(text)
}

// writeWhole writes a whole text at once, so that it is not mixed with what the program writes.
func writeWhole(text string) {
	Meter().Clear()
	_, _ = os.Stderr.WriteString(text)
}

// HoldMessages keeps messages from now on.
func (n *Notes) HoldMessages() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = true
}

// Release writes what was kept, and no longer keeps messages.
func (n *Notes) Release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, text := range n.waiting {
		writeWhole(text)
	}
	n.held, n.waiting = false, nil
}

// WriteJSON writes a result for scripts.
func WriteJSON(w io.Writer, result any) error {
	return wrapWriteError(units.WriteJSON(w, result))
}

// WriteText writes a result for people.
func WriteText(w io.Writer, text string) error {
	_, err := io.WriteString(Paged{Writer: w}, text)
	return wrapWriteError(err)
}

func wrapWriteError(err error) error {
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// ExactSizeText writes a size for people and in bytes.
func ExactSizeText(n uint64) string {
	if n < 1024 {
		return units.FormatLong(n)
	}
	return fmt.Sprintf("%s (%d bytes)", units.FormatLong(n), n)
}

// IsTerminal reports whether an output, "-" for standard output, is a terminal or may be one.
func IsTerminal(output string) bool {
	if output == "-" {
		_, err := unix.IoctlGetTermios(int(os.Stdout.Fd()), unix.TCGETS)
		return err == nil
	}
	info, err := os.Stat(output)
	return err == nil && info.Mode()&fs.ModeCharDevice != 0 && output != os.DevNull
}

// narrow and wide bound the width of text.
const narrow, wide = 40, 120

// TextWidth returns the width of text: that of the terminal, 40 to 120, and 80 without one.
func TextWidth(w io.Writer) int {
	if width, ok := terminalWidth(w); ok {
		return max(narrow, min(width, wide))
	}
	return usualWidth
}

// WidthWithin returns the width of a text that may have most columns, 0 for any: no more than the terminal has, if there is one.
func WidthWithin(w io.Writer, most int) int {
	if width, ok := terminalWidth(w); ok {
		return max(narrow, min(width, cmp.Or(most, width)))
	}
	return most
}

// terminalWidth returns the width of the terminal that w writes to, false if it is none.
func terminalWidth(w io.Writer) (int, bool) {
	if file, ok := w.(*os.File); ok {
		return terminalColumns(file)
	}
	return 0, false
}

// WrapIndented breaks text between words so that it fits between an indent and a width, both in columns. All lines but the first
// are indented. A word that is longer than a line stays whole.
func WrapIndented(text string, indent, width int) string {
	const unbreakable = "\u2011" // Wordwrap breaks at hyphens, and so within flags
	text = strings.NewReplacer("-", unbreakable, " %", "\u00a0%").Replace(text)
	text = ansi.Wordwrap(text, width-indent, "")
	return strings.NewReplacer(unbreakable, "-", "\u00a0%", " %", "\n", "\n"+strings.Repeat(" ", indent)).Replace(text)
}
