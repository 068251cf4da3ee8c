package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
)

// modesPerSecond is how often Bubble Tea looks whether a mode of the terminal, its title or the clipboard is to change.
const modesPerSecond = 5

type (
	resizedMsg tea.WindowSizeMsg // Bubble Tea, which does not learn of it, would erase the screen
	redrawMsg  struct{}          // the screen is to be written whole
)

// keepTitle has the terminal keep the title of its window, and formerTitle brings it back.
const keepTitle, formerTitle = "\x1b[22;2t", "\x1b[23;2t"

// Run shows the dashboard until the user leaves it or ctx ends, and always restores the terminal. The error is that of
// ctx, or the failure of the dashboard, which leaves the program undisturbed.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Terminal == nil {
		return Quit, errors.New("open dashboard: no terminal to draw on; use --headless")
	}
	g := &guarded{inner: newDashboard(o, themeOf(&o)), painter: &painter{File: o.Terminal, colors: o.Colors}}
	p := tea.NewProgram(g, tea.WithInput(o.Input), tea.WithOutput(g.painter), tea.WithColorProfile(o.Colors), tea.WithFilter(replaceResizeMessage),
		tea.WithoutSignalHandler(), tea.WithoutCatchPanics(), tea.WithFPS(modesPerSecond))
	g.painter.entered = func() { go p.Send(struct{}{}) } // after any message the frame is written
	_, _ = io.WriteString(o.Terminal, keepTitle)
	defer io.WriteString(o.Terminal, formerTitle) //nolint:errcheck // of a terminal that is gone, it does not matter
	// Not tea.WithContext: it returns while the terminal is still being read.
	defer context.AfterFunc(ctx, p.Quit)()
	if o.JobControl {
		defer catchStopSignal(p)()
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

func replaceResizeMessage(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, is := msg.(tea.WindowSizeMsg); is {
		return resizedMsg(size)
	}
	return msg
}

// guarded turns a panic of the dashboard into an error and an orderly end. Bubble Tea's own recovery prints to stdout,
// which belongs to the program.
type guarded struct {
	inner   *dashboard
	painter *painter
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
			g.recordPanic(v)
			cmd = tea.Quit
		}
	}()
	switch of := msg.(type) {
	case resizedMsg:
		msg = tea.WindowSizeMsg(of)
	case tea.EnvMsg:
		g.inner.o.Mouse = g.inner.o.Mouse && !isScreen(of)
	case redrawMsg:
		g.painter.forgetScreen()
	}
	_, cmd = g.inner.Update(msg)
	return g, cmd
}

// View writes the frame, and returns the modes of the terminal.
func (g *guarded) View() (v tea.View) {
	nothing := tea.View{AltScreen: true}
	if g.failure != nil {
		return nothing
	}
	defer func() {
		if reason := recover(); reason != nil {
			g.recordPanic(reason)
			v = nothing
		}
	}()
	v = g.inner.View()
	if g.inner.canvas != nil {
		g.painter.paint(g.inner.canvas, g.inner.theme)
	}
	return v
}

func (g *guarded) recordPanic(v any) {
	if err, ok := v.(error); ok {
		g.failure = fmt.Errorf("panic: %w\n%s", err, debug.Stack())
		return
	}
	g.failure = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
}
