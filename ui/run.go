package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
)

// framesPerSecond bounds how often Bubble Tea writes, and so how long what a key does waits. With 60, 95 of 100 keys showed in 36 ms,
// not 25, for 0.4 % of a core less.
const framesPerSecond = 120

// keepTitle has the terminal keep the title of its window, and formerTitle brings it back.
const keepTitle, formerTitle = "\x1b[22;2t", "\x1b[23;2t"

// Run shows the dashboard until the user leaves it or ctx ends, and always restores the terminal. The error is that of
// ctx, or the failure of the dashboard, which leaves the program undisturbed.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Terminal == nil {
		return Quit, errors.New("open dashboard: no terminal to draw on; use --headless")
	}
	g := &guarded{inner: newDashboard(o, themeOf(&o))}
	p := tea.NewProgram(g, tea.WithInput(o.Input), tea.WithOutput(o.Terminal), tea.WithColorProfile(o.Colors),
		tea.WithoutSignalHandler(), tea.WithoutCatchPanics(), tea.WithFPS(framesPerSecond))
	_, _ = io.WriteString(o.Terminal, keepTitle)
	defer io.WriteString(o.Terminal, formerTitle) //nolint:errcheck // of a terminal that is gone, it does not matter
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
func (g *guarded) View() (v tea.View) {
	nothing := tea.View{AltScreen: true}
	if g.failure != nil {
		return nothing
	}
	defer func() {
		if reason := recover(); reason != nil {
			g.fail(reason)
			v = nothing
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
