package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"

	"codeberg.org/gpumemtop/gpumemtop/internal/tune"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// shown bounds the lines of text for one program. JSON has all.
const shown = 10

// readResults returns the results of all programs as JSON, in the order of the programs' names.
func (w *work) readResults(ctx context.Context) ([][]byte, error) {
	names, err := w.State.listFiles(ctx, w.Run+"/found")
	if err != nil {
		return nil, err
	}
	type named struct {
		Application string `json:"application"`
		text        []byte
	}
	var list []named
	for _, name := range names {
		n := named{}
		if n.text, err = readFile(ctx, w.State.pathOf(name)); err == nil {
			err = json.Unmarshal(n.text, &n)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b named) int { return cmp.Compare(a.Application, b.Application) })
	var texts [][]byte
	for i := range list {
		texts = append(texts, list[i].text)
	}
	return texts, nil
}

// document is the JSON of a run. Scripts rely on its keys.
type document struct {
	Applications []json.RawMessage `json:"applications"`
	Skipped      []skip            `json:"skipped"`
}

func writeJSON(w io.Writer, found [][]byte, skips []skip) error {
	d := document{Applications: []json.RawMessage{}, Skipped: skips}
	for _, text := range found {
		d.Applications = append(d.Applications, text)
	}
	return units.WriteJSON(w, &d)
}

func writeTunedText(w io.Writer, text []byte) error {
	t := new(tuned)
	if err := json.Unmarshal(text, t); err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s", t.Application, units.Plural(uint64(t.Recordings), "recording", "recordings"))
	if t.Error != "" {
		fmt.Fprintf(&b, ": nothing to recommend: %s\n", t.Error)
		_, err := w.Write(b.Bytes())
		return err
	}
	heading := "recommended"
	if t.Little {
		heading = "best found"
	}
	fmt.Fprintf(&b, ", %d configurations\n  %s: %s\n", t.Tried, heading, configurationFlags(&t.Recommended.ScoreDocument))
	fmt.Fprintf(&b, "  %s in the driver instead of %s without a pool, peak %s instead of %s\n", units.DurationOfComputed(t.Recommended.DriverNS),
		units.DurationOfComputed(t.None.DriverNS), units.FormatLong(t.Recommended.Peak), units.FormatLong(t.None.Peak))
	if t.Little {
		fmt.Fprintf(&b, "  that saves less than 1 %% of the %s that were recorded: too little to matter\n", units.Duration(t.RanNS))
	}
	switch bad := len(t.OverFitting); {
	case len(t.Folds) == 0:
		b.WriteString("  cross-validation: not done, too little was recorded\n")
	case bad == 0 && !t.OverFits:
		fmt.Fprintf(&b, "  cross-validation: holds in all %d parts; expected saving %s\n", len(t.Folds), units.DurationOfComputed(t.Expected))
	case bad == 0:
		b.WriteString("  cross-validation: OVER-FITS: the halves of the only recording differ\n")
	default:
		fmt.Fprintf(&b, "  cross-validation: OVER-FITS in %d of %d; expected saving %s\n", bad, len(t.Folds), units.DurationOfComputed(t.Expected))
		for _, name := range t.OverFitting[:min(bad, shown)] {
			fmt.Fprintf(&b, "    %s\n", units.Clean(name))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// configurationFlags writes a configuration as flags, its limits by name.
func configurationFlags(s *tune.ScoreDocument) string {
	var names []string
	for name := range s.Set {
		names = append(names, name)
	}
	slices.Sort(names)
	text := "--policy " + s.Policy
	for _, name := range names {
		text += " --set " + name + "=" + s.Set[name]
	}
	return text
}

func writeAdvisedText(w io.Writer, text []byte) error {
	a := new(advised)
	if err := json.Unmarshal(text, a); err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s, %s\n", a.Application, units.Plural(uint64(a.Recordings), "recording", "recordings"),
		units.Plural(uint64(len(a.Advice)), "piece of advice", "pieces of advice"))
	for _, c := range a.Advice[:min(len(a.Advice), shown)] {
		fmt.Fprintf(&b, "  in %d of %d (%s): %s\n", c.Recordings, a.Recordings, c.Verdict, c.Sentence)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func writeReportedText(w io.Writer, text []byte) error {
	r := new(reported)
	if err := json.Unmarshal(text, r); err != nil {
		return err
	}
	var b bytes.Buffer
	saved := ""
	if r.SavedNS > 0 {
		saved = fmt.Sprintf(", about %s of driver calls saved", units.Duration(r.SavedNS))
	}
	fmt.Fprintf(&b, "%s: %s of %s, hit rate %s%s\n", r.Application, units.Plural(uint64(r.Recordings), "recording", "recordings"),
		units.Plural(uint64(r.Jobs), "job", "jobs"), units.Percent(r.HitRate, r.Hits+r.Misses), saved)
	fmt.Fprintf(&b, "  peak in use %s to %s, median %s; the most in %s\n", units.FormatLong(r.PeakInUse.Least), units.FormatLong(r.PeakInUse.Most),
		units.FormatLong(r.PeakInUse.Median), units.Clean(r.PeakInUse.Highest))
	for _, s := range r.Shared[:min(len(r.Shared), shown)] {
		what := strings.Join(slices.DeleteFunc([]string{s.Kind, s.What, s.Tag}, func(word string) bool { return word == "" }), ", ")
		fmt.Fprintf(&b, "  in %d of %d: %s", s.Recordings, r.Recordings, what)
		if s.Bytes > 0 {
			fmt.Fprintf(&b, " (%s)", units.FormatLong(s.Bytes))
		}
		b.WriteString("\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// showProgress writes every ten seconds, on a terminal every second, how many recordings were processed. The function that it returns
// ends it.
func showProgress(w *os.File, of *work, all int) (end func()) {
	elsewhere := *runners.Runner != inside && !isRemote(string(of.State)) // then this process sees only the results in the store
	before := int64(0)
	if elsewhere {
		before = of.State.countResults(of.Command)
	}
	every, after := 10*time.Second, "\n"
	if info, err := w.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		every, after = time.Second, "\x1b[K\r"
	}
	line := func() {
		done, again := progress.done.Load(), progress.kept.Load()
		if elsewhere && progress.looked.Load() == 0 {
			fmt.Fprintf(w, "%d of %d done%s", of.State.countResults(of.Command)-before, all, after)
			return
		}
		fmt.Fprintf(w, "%d of %d looked at, %d done, %d by an earlier run, %d skipped%s", progress.looked.Load(), all, done, again, progress.skipped.Load(), after)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				line()
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
		after = "\n"
		line()
	}
}
