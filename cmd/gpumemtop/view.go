package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/viewer"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

func newView() *cobra.Command {
	return command(onView, &cobra.Command{
		Use:   "view [flags] FILE",
		Short: "Look at a recording in the dashboard, at any time in it",
		Long: "Shows a recording in the dashboard, with a cursor in time: the arrow keys move it, home and end go to the ends,\n" +
			"t goes to a time. Every pane shows that time. A long recording opens at once and is read meanwhile.",
		Annotations: map[string]string{usageKey: "gpumemtop view [--at TIME] FILE"},
		Example:     "  gpumemtop view --at 12.5s blur.gmt",
		Args:        oneFile,
	}, func(_ *cobra.Command, c *config, args []string) error {
		return view(c, args[0])
	})
}

func view(c *config, path string) error {
	after, err := viewTime(c.viewAt)
	if err != nil {
		return err
	}
	v, err := openView(path)
	if err != nil {
		return err
	}
	defer v.Close()
	s := newScreen(c)
	if s == nil {
		return errors.New("view needs a terminal, in the foreground and not TERM=dumb, and no CI: gpumemtop report " + path + " shows the figures without one")
	}
	defer s.close()
	err = showView(c, s, v, path, after)
	if damage := v.Damage(); damage != "" {
		say(os.Stderr, path+" is not whole: "+damage)
	}
	return err
}

// viewTime reads --at; atEnd stands for the end.
func viewTime(text string) (time.Duration, error) {
	if text == "" {
		return atEnd, nil
	}
	after, err := time.ParseDuration(text)
	if err != nil || after < 0 {
		return 0, fmt.Errorf("bad value %q for --at: want a time after the start, for example 2.5s or 1m30s", text)
	}
	return after, nil
}

const atEnd = -1

// openView opens a recording with its summaries.
func openView(path string) (*viewer.Viewer, error) {
	reader, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	blocks, err := summaries(reader)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the summaries of %s: %w", path, err), reader.Close())
	}
	return viewer.New(reader, path, viewer.Options{Model: modelOptions, Blocks: blocks}), nil
}

// summaries returns what the file tells of itself without its events: nothing before format 3.
func summaries(reader *trace.Reader) ([]viewer.Block, error) {
	list, err := reader.Blocks()
	if err != nil {
		return nil, err
	}
	blocks := make([]viewer.Block, len(list))
	for i := range list {
		b := &list[i]
		if !b.HasSummary {
			return nil, nil
		}
		blocks[i] = viewer.Block{
			LastNS: b.LastNS, InUse: b.Summary.InUse, Cached: b.Summary.Cached, Cooling: b.Summary.Cooling,
			Hits: b.Summary.Hits, Misses: b.Summary.Misses, Creates: b.Summary.Creates, Releases: b.Summary.Releases,
		}
	}
	return blocks, nil
}

// showView shows the dashboard until it is left. A signal that ended it comes back as an ended.
func showView(c *config, s *screen, v *viewer.Viewer, path string, after time.Duration) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(signals)
	go func() {
		select {
		case sig := <-signals:
			number, _ := sig.(syscall.Signal)
			cancel(ended{session.Status{Signal: int(number)}})
		case <-ctx.Done():
		}
	}()
	at := uint64(ui.LastMoment)
	if after != atEnd {
		at = v.Moment(0).From + uint64(after)
	}
	hits := newMeasuring(path)
	defer hits.close()
	_, err := ui.Run(ctx, ui.Options{
		Curve:  hits.view,
		Moment: func(at uint64) ui.Moment { return ui.Moment(v.Moment(at)) }, At: at, ReadOnly: true, Attached: v.Header().Attached,
		Input: s.tty, Terminal: s.tty, Refresh: defaults().refresh, ASCII: c.ascii, NoColor: c.noColor,
	})
	if errors.Is(err, context.Canceled) {
		err = context.Cause(ctx)
	}
	return err
}

// modelOptions returns what a model of a recording knows before the first event.
func modelOptions(header trace.Header) model.Options {
	return model.Options{
		Program: header.Program, Arguments: header.Arguments, Policy: header.Policy,
		Limits: analysis.PolicyLimits(header.Policy, header.Limits), LimitsOf: analysis.DefaultLimits, Auto: header.Auto,
		Started: header.ClockNS,
	}
}
