package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	tea "github.com/charmbracelet/bubbletea"
)

// framesPerSecond bounds how often Bubble Tea writes.
const framesPerSecond = 30

// Run shows the dashboard until the user leaves it or ctx ends, and always restores the terminal. The error is that of
// ctx, or the failure of the dashboard, which leaves the program undisturbed.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Terminal == nil {
		return Quit, errors.New("open dashboard: no terminal to draw on; use --headless")
	}
	g := &guarded{inner: newDashboard(o, newTheme(o.Terminal, o.Theme, o.ASCII, o.FewColors))}
	options := []tea.ProgramOption{
		tea.WithInput(o.Input), tea.WithOutput(&syncTTY{o.Terminal}),
		tea.WithoutSignalHandler(), tea.WithoutCatchPanics(), tea.WithAltScreen(), tea.WithFPS(framesPerSecond),
	}
	if o.Mouse {
		options = append(options, tea.WithMouseCellMotion())
	}
	p := tea.NewProgram(g, options...)
	// Not tea.WithContext: it returns while the terminal is still being read.
	defer context.AfterFunc(ctx, p.Quit)()
	if o.JobControl {
		defer handleStop(p)()
	}
	_, err := p.Run()
	switch {
	case g.failure != nil:
		return g.inner.result, fmt.Errorf("draw dashboard: %w", g.failure)
	case ctx.Err() != nil:
		return g.inner.result, ctx.Err()
	case err != nil && !g.inner.leaving:
		return g.inner.result, fmt.Errorf("draw dashboard: %w", err)
	}
	return g.inner.result, nil
}

// guarded turns a panic of the dashboard into an error and an orderly end. Bubble Tea's own recovery prints to stdout,
// which belongs to the program.
type guarded struct {
	inner   *dashboard
	failure error
}

// Init starts the dashboard.
func (g *guarded) Init() tea.Cmd { return g.inner.Init() }

// Update passes a message on. After a panic in View the next message ends the dashboard.
func (g *guarded) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	if g.failure != nil {
		return g, tea.Quit
	}
	if f, ok := msg.(frameMsg); ok && f.failure != nil {
		g.failure = f.failure
		return g, tea.Quit
	}
	defer func() {
		if v := recover(); v != nil {
			g.fail(v)
			cmd = tea.Quit
		}
	}()
	_, cmd = g.inner.Update(msg)
	return g, cmd
}

// View returns the frame.
func (g *guarded) View() (frame string) {
	if g.failure != nil {
		return ""
	}
	defer func() {
		if v := recover(); v != nil {
			g.fail(v)
			frame = ""
		}
	}()
	return g.inner.View()
}

func (g *guarded) fail(v any) {
	if err, ok := v.(error); ok {
		g.failure = fmt.Errorf("panic: %w\n%s", err, debug.Stack())
		return
	}
	g.failure = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
}

// syncTTY makes the terminal show each write at once (mode 2026), because Bubble Tea writes a frame in one piece. Other
// terminals ignore that. Embedding the file lets Bubble Tea see that it is a terminal.
type syncTTY struct{ *os.File }

const (
	beginSync = "\x1b[?2026h"
	endSync   = "\x1b[?2026l"
)

// Write writes one frame.
func (t *syncTTY) Write(p []byte) (int, error) {
	frame := make([]byte, 0, len(beginSync)+len(p)+len(endSync))
	frame = append(append(append(frame, beginSync...), p...), endSync...)
	n, err := t.File.Write(frame)
	return max(0, min(n-len(beginSync), len(p))), err
}

// WriteString writes like Write; without it io.WriteString would bypass the frame.
func (t *syncTTY) WriteString(s string) (int, error) { return t.Write([]byte(s)) }
