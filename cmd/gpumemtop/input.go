package main

import (
	"errors"
	"fmt"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/cut"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// input is a recording as a command reads it.
type input struct {
	Source trace.Source // the part that --since, --until and --process ask for
	path   string
	reader *trace.Reader
	part   cut.Options
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
	options, err := c.part(reader)
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return &input{Source: cut.Range(watch(reader, path), options), path: path, reader: reader, part: options}, nil
}

// part finds what --since, --until and --process mean in a recording.
func (c *config) part(reader *trace.Reader) (cut.Options, error) {
	var options cut.Options
	start := reader.Header().ClockNS
	if c.since > 0 {
		options.Since = start + uint64(c.since)
	}
	if c.until > 0 {
		options.Until = start + uint64(c.until)
	}
	if footer, whole := reader.Footer(); whole && options.Since > footer.EndedNS {
		lasts := time.Duration(footer.EndedNS - start).Round(time.Millisecond)
		return options, fmt.Errorf("--since %v is behind the end: the recording lasts %v", c.since, lasts)
	}
	if c.process == "" {
		return options, nil
	}
	var err error
	options.Process, err = chooseProcess(reader, c.process)
	return options, err
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
