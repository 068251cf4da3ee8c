package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/probe"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/tracer"
	targets "codeberg.org/gpumemtop/gpumemtop/tracer/target"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// feed is what attach watches programs through; *tracer.Tracer is one.
type feed interface {
	session.Feed
	// Open returns the path by which we can open a file that a watched process knows by another.
	Open(process uint32, path string) string
}

// startFeed begins to watch programs.
type startFeed func(tracer.Options) (feed, error)

func startTracer(o tracer.Options) (feed, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	t, err := tracer.Start(o)
	if err != nil {
		return nil, err // not t: a nil tracer would make a feed that is not nil
	}
	return t, nil
}

func newAttach(start startFeed) *cobra.Command {
	return command(onAttach, &cobra.Command{
		Use:   "attach [flags]",
		Short: "Watch programs that run already",
		Long: "Watches the OpenCL calls of programs that were not started under gpumemtop, without stopping or changing them:\n" +
			"dashboard, recording and figures are those of a program without a pool. Needs Linux 5.15, and root or the\n" +
			"capabilities that 'gpumemtop doctor' names. It ends with q or Ctrl-C, after --duration, or when nothing is left to\n" +
			"watch; the programs go on as if nothing had been. Of buffers that were there before, the size is known as far as\n" +
			"their use tells it.",
		Annotations: map[string]string{usageKey: "gpumemtop attach (-p PID | --comm NAME | --cgroup PATH | --all)... [flags]"},
		Example: "  gpumemtop attach -p 4711                       dashboard over a program that runs\n" +
			"  gpumemtop attach -p 4711 --duration 1m -o a.gmt --headless\n" +
			"                                                 records a minute of it\n" +
			"  gpumemtop attach --comm train --follow         all programs of that name, and their children\n" +
			"  gpumemtop attach --all -o %h-%p.gmt            a file for each process that uses OpenCL",
		Args: cobra.ArbitraryArgs,
	}, func(_ *cobra.Command, c *config, args []string) error {
		if err := refuse(args); err != nil {
			return err
		}
		return attach(c, start)
	})
}

// refuse says what to do instead of naming a program or, without -p, its process id.
func refuse(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if _, err := strconv.Atoi(args[0]); err == nil {
		return fmt.Errorf("a process id takes -p before it: gpumemtop attach -p %s", args[0])
	}
	return fmt.Errorf("attach takes no program, but what says which ones run, such as -p PID: gpumemtop %s starts one", args[0])
}

// attacher watches programs that run already.
type attacher struct {
	job
	start   startFeed
	targets []target // that were asked for by process id
	session *session.Attached
	screen  *screen // nil without a dashboard
}

// attach watches programs until it is told to let go of them, or none is left, and reports.
func attach(c *config, start startFeed) error {
	a := &attacher{job: job{config: c, attached: true}, start: start}
	if err := a.check(); err != nil {
		return err
	}
	// To the end: whoever asks twice shall not lose the recording.
	signals := session.Catch()
	defer close(signals)
	defer signal.Stop(signals)
	signal.Ignore(unix.SIGPIPE) // a recording shall be whole although nobody reads what we say
	a.screen = newScreen(c)
	defer a.screen.close()
	if err := a.checkGhosts(a.screen != nil); err != nil {
		return err
	}
	if err := a.begin(); err != nil {
		return err
	}
	ctx, leave := a.untilTold(signals)
	if a.screen != nil {
		a.notes.hold()
		a.showDashboard(ctx)
		a.curve.Leave()
		a.notes.release()
		leave()
	} else {
		a.notes.add(a.watching())
	}
	watch := a.session.Wait()
	leave()
	a.report(&watch)
	if watch.Err == nil && a.partial { // there is no program whose status would be ours
		return errTold
	}
	return watch.Err
}

// check finds everything that is wrong before anything is touched.
func (a *attacher) check() error {
	c := a.config
	if len(c.pids) == 0 && len(c.comms) == 0 && len(c.cgroups) == 0 && !c.all {
		return errors.New("nothing to attach to: name processes with -p PID, --comm NAME, --cgroup PATH or --all")
	}
	if c.duration < 0 {
		return fmt.Errorf("bad value %v for --duration: want a time, for example 30s or 10m", c.duration)
	}
	for flag, values := range map[string][]string{"comm": c.comms, "cgroup": c.cgroups} {
		for _, value := range values {
			if value == "" {
				return fmt.Errorf("bad value %q for --%s: want a name", value, flag)
			}
		}
	}
	var err error
	if a.targets, err = findTargets(c.pids); err != nil {
		return err
	}
	for i := range a.targets {
		if t := &a.targets[i]; t.stopped {
			a.notes.add(fmt.Sprintf("%s (pid %d) is stopped: it calls nothing until it is continued", t.comm, t.pid))
		}
	}
	c.policy = "none" // nothing is put into the programs that could serve their buffers
	if a.plan, err = newPlan(c); err != nil {
		return err
	}
	a.christen()
	return a.checkFiles()
}

// christen says after whom summaries, headers and files are named.
func (a *attacher) christen() {
	switch c := a.config; {
	case len(a.targets) > 0:
		a.command = a.targets[0].command
		a.name = a.command[0]
	case len(c.comms) > 0:
		a.name = c.comms[0]
	case len(c.cgroups) > 0:
		a.name = filepath.Clean(c.cgroups[0])
	default:
		a.name = "all"
	}
}

// begin attaches.
func (a *attacher) begin() error {
	selection := tracer.Options{
		Selection: targets.Selection{
			Comms: a.config.comms, Cgroups: a.config.cgroups, All: a.config.all, Follow: a.config.follow,
		},
		// What was there before is found by its uses alone.
		Tags: a.plan.tags, Depth: a.plan.depth, Uses: true, Clock: session.Now, Warn: a.notes.add, Ask: probe.Run,
	}
	for i := range a.targets {
		selection.PIDs = append(selection.PIDs, a.targets[i].pid)
	}
	from, err := a.start(selection)
	if err != nil {
		return err
	}
	a.model = model.New(model.Options{
		Program: a.program(), Arguments: a.arguments(), Policy: a.plan.policy.Name(), Started: session.Now(),
	})
	// Not before: a file that is to be overwritten stays when attaching fails.
	if err := a.record(); err != nil {
		return errors.Join(err, from.Detach(), from.Close())
	}
	options := session.AttachOptions{Feed: from, Model: a.model, Resolve: symbol.New().Frames, Open: from.Open}
	if len(a.outlets) > 0 {
		options.Recorder, options.Recording = a.outlets, a.recording.String()
	}
	if options.Tap, err = a.raise(a.screen != nil); err != nil {
		a.discard()
		return errors.Join(err, from.Detach(), from.Close())
	}
	a.session = session.Attach(options)
	return nil
}

// untilTold returns a context that ends when somebody wants the end: by a signal, by --duration, or because the session
// failed; or by the function that it returns. The session ends with it.
func (a *attacher) untilTold(signals <-chan os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	context.AfterFunc(ctx, a.session.Stop)
	if a.config.duration > 0 {
		time.AfterFunc(a.config.duration, cancel)
	}
	go func() {
		for range signals { // a second one has nothing to add
			cancel()
		}
	}()
	go func() {
		if a.session.Wait().Err != nil {
			cancel()
		}
	}()
	return ctx, cancel
}

// watching says in a line what is watched, and until when.
func (a *attacher) watching() string {
	text := "watching " + a.chosen()
	if a.config.duration > 0 {
		return fmt.Sprintf("%s for %v; Ctrl-C ends it earlier", text, a.config.duration)
	}
	return text + "; Ctrl-C ends"
}

// chosen names what is watched. Which processes belong to an open selection shows when they call something.
func (a *attacher) chosen() string {
	c := a.config
	if c.all {
		return "every process that uses OpenCL"
	}
	var parts []string
	if len(a.targets) > 0 {
		parts = append(parts, listed(a.targets))
	}
	if len(c.comms) > 0 {
		parts = append(parts, "processes named "+strings.Join(c.comms, ", "))
	}
	if len(c.cgroups) > 0 {
		parts = append(parts, "processes in "+strings.Join(c.cgroups, ", "))
	}
	if c.follow {
		parts = append(parts, "their children")
	}
	return strings.Join(parts, " and ")
}

// showDashboard shows the dashboard until it is left, which ends the session.
func (a *attacher) showDashboard(ctx context.Context) {
	_, err := ui.Run(ctx, ui.Options{
		Source:   a.model.Published,
		App:      a.app,
		Curve:    a.hitRates,
		Attached: true,
		Input:    a.screen.tty,
		Terminal: a.screen.tty,
		Refresh:  a.config.refresh,
		ASCII:    a.config.ascii,
		NoColor:  a.config.noColor,
		ReadOnly: true,
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		a.notes.add(err.Error())
	}
}

// app tells the dashboard whether there still is something to watch.
func (a *attacher) app() ui.App {
	app := ui.App{Status: -1}
	select {
	case <-a.session.Ended():
		app.State = model.Exited
	default:
	}
	return app
}

// report completes the recording and says what there is to say about the watch.
func (a *attacher) report(watch *session.Watch) {
	summary := export.NewWatchSummary(a.shown(watch.Snapshot), watch.Running)
	footer := trace.Footer{
		Lost: watch.Snapshot.Lost, EndedNS: watch.Snapshot.Time, Status: summary.Exit.Status, Signal: summary.Exit.Signal,
		Cut: watch.Running > 0,
	}
	broken := a.close(footer)
	a.write(&summary)
	if text := ghostNote(watch.Snapshot.Ghosts); text != "" {
		a.notes.add(text)
	}
	a.told(broken)
}

// listed names the first of some targets.
func listed(targets []target) string {
	const shown = 4
	var texts []string
	for i := range targets[:min(shown, len(targets))] {
		texts = append(texts, fmt.Sprintf("%s (%d)", targets[i].comm, targets[i].pid))
	}
	text := strings.Join(texts, ", ")
	if left := len(targets) - shown; left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return text
}
