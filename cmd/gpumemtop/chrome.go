package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

// exportChrome writes a Chrome trace, and says what the settings left out of it.
func exportChrome(w io.Writer, in *input, c *config) error {
	options, err := c.chrome()
	if err != nil {
		return err
	}
	facts := export.FactsOf(in.reader.Header())
	facts.Since, facts.Until = c.since, c.until
	report, err := export.Chrome(w, in.Source, facts, options)
	if dropped := report.Dropped(); err == nil && dropped != "" {
		say(os.Stderr, "left out of the trace, whose counters are complete: "+dropped)
	}
	return err
}

func checkChrome(c *config) error {
	_, err := c.chrome()
	return err
}

// chrome returns the settings of a Chrome trace.
func (c *config) chrome() (export.ChromeOptions, error) {
	options := export.ChromeOptions{
		CountersEvery: c.countersEvery, NoLifetimes: c.noLifetimes, Lifetimes: c.lifetimes, Flows: c.flows,
	}
	var err error
	switch {
	case c.countersEvery <= 0:
		return options, fmt.Errorf("bad value %v for --counters-every: want a time above 0, for example 10ms", c.countersEvery)
	case c.maxEvents < 0:
		return options, fmt.Errorf("bad value %d for --max-events: want a number of lines, or 0 for no bound", c.maxEvents)
	case c.lifetimes < 0:
		return options, fmt.Errorf("bad value %d for --lifetimes: want a number of call sites, or 0 for all", c.lifetimes)
	case c.lifetimes > 0 && c.noLifetimes:
		return options, errors.New("--lifetimes and --no-lifetimes contradict each other: leave one out")
	}
	options.MaxEvents = uint64(c.maxEvents)
	if c.minSize != "" {
		if options.MinSize, err = size.Parse(c.minSize); err != nil {
			return options, fmt.Errorf("--min-size: %w", err)
		}
	}
	options.Tag, err = c.tagPattern()
	return options, err
}
