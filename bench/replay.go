package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// replay shows how fast one core plays recordings, loaded once, through each policy.
func (b *bench) replay() error {
	programs := []struct {
		name string
		args []string
	}{
		{"churn 1000000", []string{b.example("churn"), "1000000", "4K", "2"}},
		{"train 2000", []string{b.example("train"), "2000"}},
	}
	cells := []any{"million events/s"}
	var tapes []*lab.Tape
	for _, p := range programs {
		r, err := b.once(none, p.args...)
		if err != nil {
			return err
		}
		tape, err := load(r.file)
		if err != nil {
			return err
		}
		tapes = append(tapes, tape)
		cells = append(cells, fmt.Sprintf("%s (%d)", p.name, tape.Events()))
	}
	b.row(cells...)
	for _, policy := range allocator.Names() {
		cells := []any{policy}
		for _, tape := range tapes {
			var rates []float64
			for range b.runs {
				rate, err := played(tape, policy)
				if err != nil {
					return err
				}
				rates = append(rates, rate)
			}
			cells = append(cells, fixed(middle(rates)/1e6, 1))
		}
		b.row(cells...)
	}
	b.flush()
	fmt.Println("\nEvents are those that a policy is told of: requests, releases, ends of commands. In brackets: how many a recording has.\n" +
		"Seconds are those of the processor.")
	return nil
}

func load(file string) (*lab.Tape, error) {
	reader, err := trace.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	return lab.Load(reader)
}

// played returns the events that a policy takes in a second of the processor.
func played(tape *lab.Tape, policy string) (float64, error) {
	const long = 300 * time.Millisecond
	start, err := processorTime()
	if err != nil {
		return 0, err
	}
	for times := 1; ; times++ {
		if _, err := tape.Run(lab.ReplayOptions{Policy: policy}); err != nil {
			return 0, err
		}
		now, err := processorTime()
		if err != nil {
			return 0, err
		}
		if taken := now - start; taken >= long {
			return float64(times*tape.Events()) / taken.Seconds(), nil
		}
	}
}

// processorTime is what this process has used.
func processorTime() (time.Duration, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("look at the processor time: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
