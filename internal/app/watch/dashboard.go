package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/colorprofile"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// DashboardOptions say whether there is a dashboard and how it looks.
type DashboardOptions struct {
	Headless bool
	Piped    bool // a dashboard though standard output is a pipe
	ASCII    bool
	Charts   string // one of Charts; empty: auto
	NoColor  bool
	Mouse    bool
	Guide    bool          // a line says what to press next
	Theme    string        // one of Themes, or a file; empty: auto
	Refresh  time.Duration // between two frames, 20 ms to 10 s

	own *ui.Colors // of the file, from Check on
}

// DefaultRefresh is the usual time between two frames, and slowRefresh that over a network.
const (
	DefaultRefresh = 250 * time.Millisecond
	slowRefresh    = 500 * time.Millisecond
)

// UsualRefreshInterval returns the time between two frames on this terminal: sshd sets SSH_TTY.
func UsualRefreshInterval() time.Duration {
	if os.Getenv("SSH_TTY") != "" {
		return slowRefresh
	}
	return DefaultRefresh
}

// Themes are the values of --theme; auto is the first.
var Themes = []string{"auto", "dark", "light", "high-contrast", "mono"}

// Charts are the values of --charts; auto is the first.
var Charts = []string{"auto", "braille", "blocks", "ascii"}

// themeEnd is how the name of a theme's file ends, and themeMax how long it may be.
const (
	themeEnd = ".toml"
	themeMax = 64 << 10
)

// policiesToSwitchTo are those that a run may switch to.
func policiesToSwitchTo() []ui.Policy {
	var list []ui.Policy
	for _, name := range allocator.PolicyNames() {
		description, _ := allocator.DescribePolicy(name)
		list = append(list, ui.Policy{Name: name, Summary: description.Summary})
	}
	return list
}

// Check checks the options, and reads the theme.
func (o *DashboardOptions) Check() error {
	switch {
	case strings.HasSuffix(o.Theme, themeEnd):
		if err := o.readTheme(); err != nil {
			return err
		}
	case o.Theme != "" && !slices.Contains(Themes, o.Theme):
		return fmt.Errorf("bad value %q for --theme: want %s, or a file FILE%s", o.Theme, strings.Join(Themes, ", "), themeEnd)
	}
	switch {
	case o.Charts != "" && !slices.Contains(Charts, o.Charts):
		return fmt.Errorf("bad value %q for --charts: want %s", o.Charts, strings.Join(Charts, ", "))
	case o.ASCII && (o.Charts == "braille" || o.Charts == "blocks"):
		return fmt.Errorf("--ascii and --charts %s contradict each other: leave one out", o.Charts)
	}
	if !isRefreshAllowed(o.Refresh) {
		return fmt.Errorf("bad value %v for --refresh: want 20ms to 10s", o.Refresh)
	}
	return nil
}

// isRefreshAllowed reports whether the time between two frames neither keeps a processor busy nor lets the dashboard look dead.
func isRefreshAllowed(t time.Duration) bool { return t >= 20*time.Millisecond && t <= 10*time.Second }

func (o *DashboardOptions) readTheme() error {
	text, err := files.ReadBoundedFile(o.Theme, themeMax)
	if err != nil {
		return fmt.Errorf("read theme: %w", err)
	}
	if o.own, err = ui.ParseColors(string(text)); err != nil {
		return fmt.Errorf("%s, %w", o.Theme, err)
	}
	if o.own.Base != "" && !slices.Contains(Themes, o.own.Base) {
		return fmt.Errorf("%s: bad base %q: want %s", o.Theme, o.own.Base, strings.Join(Themes, ", "))
	}
	return nil
}

// Screen is the terminal that a dashboard draws on. A nil Screen is no dashboard.
type Screen struct {
	Cols, Rows int

	options DashboardOptions
	tty     *os.File
}

// OpenScreen returns the controlling terminal, wherever the streams go. It returns nil where no dashboard is wanted or possible:
// without a terminal, in the background, with TERM=dumb, or under CI.
func OpenScreen(o DashboardOptions) *Screen {
	ci := os.Getenv("CI")
	term := os.Getenv("TERM")
	if o.Headless || term == "" || term == "dumb" || (ci != "" && ci != "false" && ci != "0") {
		return nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	size, err := unix.IoctlGetWinsize(int(tty.Fd()), unix.TIOCGWINSZ)
	if err != nil || !session.MayUseTerminal(tty) { // the kernel stops background processes that touch it
		_ = tty.Close()
		return nil
	}
	return &Screen{Cols: int(size.Col), Rows: int(size.Row), options: o, tty: tty}
}

// Close closes the terminal.
func (s *Screen) Close() {
	if s != nil {
		_ = s.tty.Close()
	}
}

// Show shows the dashboard until the user leaves it or ctx ends, which is the error context.Cause(ctx) unless that was a
// plain cancel.
func (s *Screen) Show(ctx context.Context, o ui.Options) error {
	ctx, stop := s.untilHangup(ctx)
	defer stop()
	o.Input, o.Terminal = s.tty, s.tty
	o.PostMortem, o.JobControl = postMortemLines, hasJobControl()
	o.Judge = &analysis.Live{Still: o.Moment != nil, Attached: o.Attached, Replay: o.Replay}
	o.Mouse, o.Guide = s.options.Mouse, s.options.Guide
	o.Write, o.Export = writePrivateFile, func(path string, s *stats.Snapshot) error { return exportSnapshot(path, s, o.Attached) }
	o.Refresh, o.Charts, o.Own = s.options.Refresh, s.chartCharacters(), s.options.own
	o.State, o.Keep = readDashboardState(), saveDashboardState
	if o.State.Refresh > 0 && o.Refresh == UsualRefreshInterval() { // no option names another
		o.Refresh = o.State.Refresh
	}
	o.Theme, o.AskTheme = s.options.chosenTheme()
	o.Colors = terminalColorsFor(o.Theme)
	_, err := ui.Run(ctx, o)
	if !errors.Is(err, context.Canceled) {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// untilHangup returns a context that ends when the terminal is gone: after nohup(1) no signal says so.
func (s *Screen) untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(s.tty.Fd())}}, 0); n > 0 { // only POLLHUP and errors are left to report
				cancel()
			}
		}
	}()
	return ctx, cancel
}

// chartCharacters returns the characters to draw with: those asked for, else what the terminal has.
func (s *Screen) chartCharacters() ui.Charts {
	charts := ui.ChartsOf(os.Environ())
	switch o := &s.options; {
	case o.ASCII || o.Charts == "ascii":
		return ui.ASCII
	case o.Charts == "braille":
		return ui.Braille
	case o.Charts == "blocks" && charts == ui.Braille:
		return ui.Blocks
	case o.Charts == "blocks":
		return ui.HalfBlocks
	case charts == ui.HalfBlocks && session.ConsoleLacks(s.tty, '▄'):
		return ui.ASCII
	}
	return charts
}

// chosenTheme returns the theme, and whether the terminal is asked whether it is dark or light. Until it answers, which it may
// never do, a variable says so.
func (o *DashboardOptions) chosenTheme() (chosenTheme ui.Theme, ask bool) {
	// rxvt, Konsole and others set it: "foreground;background", colours of the ANSI palette.
	colors := os.Getenv("COLORFGBG")
	background, err := strconv.Atoi(colors[strings.LastIndexByte(colors, ';')+1:])
	light := err == nil && (background == 7 || background > 8)
	name := o.Theme
	if o.own != nil {
		name = o.own.Base
	}
	switch {
	case o.NoColor, name == "mono":
		return ui.Mono, false
	case name == "high-contrast" && light:
		return ui.HighContrastLight, true
	case name == "high-contrast":
		return ui.HighContrast, true
	case name == "dark":
		return ui.Dark, false
	case name == "light":
		return ui.Light, false
	case light:
		return ui.Light, true
	case err == nil:
		return ui.Dark, true
	}
	return ui.AnyBackground, true
}

// terminalColorsFor returns the colours that the terminal has for a theme.
func terminalColorsFor(name ui.Theme) colorprofile.Profile {
	if name == ui.Mono {
		return colorprofile.ASCII
	}
	return ui.ColorsOf(os.Environ())
}

// hasJobControl reports whether a shell waits that can continue our process group once it has stopped: the kernel ignores stop
// signals of the terminal for a group without one (POSIX: orphaned process group).
func hasJobControl() bool {
	parent, group, session, err := readParentAndGroup(os.Getpid())
	for err == nil && parent > 1 {
		var itsGroup, itsSession int
		if parent, itsGroup, itsSession, err = readParentAndGroup(parent); err == nil && itsGroup != group {
			return itsSession == session
		}
	}
	return false
}

// readParentAndGroup reads the parent, the process group and the session of a process (proc_pid_stat(5)).
func readParentAndGroup(pid int) (parent, group, session int, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, 0, err
	}
	var state rune
	_, err = fmt.Sscanf(string(b[bytes.LastIndexByte(b, ')')+1:]), " %c %d %d %d", &state, &parent, &group, &session)
	return parent, group, session, err
}

// postMortemLines is the page that is also written to stderr.
func postMortemLines(p *stats.PostMortem, started uint64) []ui.PostMortemLine {
	page := report.NewPostMortem(p, started)
	lines := []ui.PostMortemLine{{Text: page.Title}}
	for _, line := range page.Lines {
		lines = append(lines, ui.PostMortemLine{Label: line[0], Text: line[1]})
	}
	return lines
}
