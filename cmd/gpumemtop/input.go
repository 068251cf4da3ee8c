package main

import (
	"fmt"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/cut"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// input is a recording as a command reads it: as a Source it gives the part that --since, --until and --process ask
// for.
type input struct {
	trace.Source
	path   string
	reader *trace.Reader
}

// openInput opens a recording and chooses the part.
func openInput(path string, c *config) (*input, error) {
	if err := c.checkPart(); err != nil {
		return nil, err
	}
	reader, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	var options cut.Options
	start := reader.Header().ClockNS
	if c.since > 0 {
		options.Since = start + uint64(c.since)
	}
	if c.until > 0 {
		options.Until = start + uint64(c.until)
	}
	return &input{Source: cut.Range(watch(reader, path), options), path: path, reader: reader}, nil
}

func (in *input) close() error { return in.reader.Close() }

// checkPart checks the part that was asked for.
func (c *config) checkPart() error {
	for name, value := range map[string]time.Duration{"since": c.since, "until": c.until} {
		if value < 0 {
			return fmt.Errorf("bad value %v for --%s: want a time after the start", value, name)
		}
	}
	if c.until > 0 && c.until < c.since {
		return fmt.Errorf("--until %v is before --since %v: nothing lies between", c.until, c.since)
	}
	return nil
}
