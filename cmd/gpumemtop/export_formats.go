package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/memviz"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/minimalloc"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/pprof"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/rmm"
)

// formatsOf are the settings of export that only some formats know.
var formatsOf = map[string][]string{
	"at": {"pprof"}, "table": {"csv"}, "max-events": {"chrome", "memviz"},
	"min-size": {"chrome"}, "counters-every": {"chrome"}, "lifetimes": {"chrome"}, "no-lifetimes": {"chrome"}, "flows": {"chrome"},
}

// checkFormatFlags refuses flags that the format would ignore.
func checkFormatFlags(flags *pflag.FlagSet, format string) error {
	if format == "ndjson" && flags.Changed("tag") {
		return errors.New("--tag is not for --format ndjson: leave it out")
	}
	for _, name := range slices.Sorted(maps.Keys(formatsOf)) {
		if formats := formatsOf[name]; flags.Changed(name) && !slices.Contains(formats, format) {
			return fmt.Errorf("--%s is for --format %s, not %s: leave it out", name, strings.Join(formats, " or "), format)
		}
	}
	return nil
}

// moment returns what --at asks for, which lies in the part.
func (c *config) moment() (pprof.Moment, error) {
	at, err := pprof.ParseMoment(c.at)
	if err != nil {
		return at, fmt.Errorf("bad value %q for --at: want peak, end, or a time after the start such as 2.5s", c.at)
	}
	after, timed := at.After()
	switch {
	case timed && after < c.since:
		return at, fmt.Errorf("--at %v is before --since %v: nothing is known of it", after, c.since)
	case timed && c.until > 0 && after > c.until:
		return at, fmt.Errorf("--at %v is after --until %v: nothing is known of it", after, c.until)
	}
	return at, nil
}

func checkPprof(c *config) error {
	_, err := c.moment()
	return err
}

func checkMemviz(c *config) error {
	if c.maxEvents < 0 {
		return fmt.Errorf("bad value %d for --max-events: want a number of events, or 0 for %d", c.maxEvents, memviz.DefaultMaxEvents)
	}
	return nil
}

func exportPprof(w io.Writer, in *input, c *config) error {
	tag, err := c.tagPattern()
	if err != nil {
		return err
	}
	at, err := c.moment()
	if err != nil {
		return err
	}
	start := in.reader.Header().ClockNS
	if after, timed := at.After(); timed {
		if footer, whole := in.reader.Footer(); whole && footer.EndedNS > start && after > time.Duration(footer.EndedNS-start) {
			lasts := time.Duration(footer.EndedNS - start).Round(time.Millisecond)
			return fmt.Errorf("--at %v is behind the end: the recording lasts %v", after, lasts)
		}
	}
	return pprof.Write(w, in.Source, pprof.Options{Header: in.reader.Header(), At: at, Tag: tag})
}

func exportMemviz(w io.Writer, in *input, c *config) error {
	tag, err := c.tagPattern()
	if err != nil {
		return err
	}
	report, err := memviz.Write(w, in.Source, memviz.Options{Header: in.reader.Header(), MaxEvents: uint64(c.maxEvents), Tag: tag})
	if err == nil && report.Dropped > 0 {
		say(os.Stderr, fmt.Sprintf("of %d events the last %d were kept; --max-events N keeps more", report.Events, report.Events-report.Dropped))
	}
	return err
}

func exportRMM(w io.Writer, in *input, c *config) error {
	tag, err := c.tagPattern()
	if err != nil {
		return err
	}
	return rmm.Write(w, in.Source, rmm.Options{Header: in.reader.Header(), Tag: tag})
}

func exportMinimalloc(w io.Writer, in *input, c *config) error {
	tag, err := c.tagPattern()
	if err != nil {
		return err
	}
	return minimalloc.Write(w, in.Source, minimalloc.Options{Tag: tag})
}
