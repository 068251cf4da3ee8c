package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/curve"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/live"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// curve shows what the hit rate by limit costs while a program runs, and how far it is off.
func (b *bench) curve() error {
	b.row("program", "policy", "records", "ns of each", "exact points", "said to be off", "off")
	for _, program := range []struct {
		name string
		args []string
	}{
		{"churn", []string{b.example("churn"), "30000", "4K", "2"}},
		{"train", []string{b.example("train"), "1000"}},
		{"threads", []string{b.example("threads")}},
	} {
		r, err := b.once(none, program.args...)
		if err != nil {
			return err
		}
		for _, policy := range []string{"futhark", "pow2"} {
			cells, err := b.followed(r.file, policy)
			if err != nil {
				return err
			}
			b.row(append([]any{program.name, policy}, cells...)...)
		}
	}
	b.flush()
	fmt.Println("\nns of the processor, with the goroutine that collects a run and the curve's own, for each record that says anything to\n" +
		"a policy. What is said to be off, and what is where replays were made besides, are points of hit rate, on average.")
	return nil
}

// followed follows a recording under a policy, and compares the curve with replays.
func (b *bench) followed(file, policy string) ([]any, error) {
	reader, err := trace.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	records, err := spoken(reader)
	if err != nil {
		return nil, err
	}
	var costs []float64
	var v *curve.View
	for range b.runs {
		ns, err := costOf(len(records), func() (err error) {
			v, err = follow(records, policy)
			return err
		})
		if err != nil {
			return nil, err
		}
		costs = append(costs, ns)
	}
	m, err := curve.Measure(reader, policy, nil)
	if err != nil {
		return nil, err
	}
	return []any{len(records), fixed(middle(costs), 0), len(v.Exact), fixed(100*v.Error, 1), fixed(100*v.Off(m.Exact), 1)}, nil
}

// costOf returns the ns of this process for each of some records that something is done with.
func costOf(records int, do func() error) (float64, error) {
	runtime.GC() // what was done before
	start, err := processorTime()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	end, err := processorTime()
	return float64((end - start).Nanoseconds()) / float64(records), err
}

// spoken returns the records that say anything to a policy, no more than may wait without any being lost.
func spoken(src trace.Source) ([]wire.Record, error) {
	var records []wire.Record
	var record wire.Record
	for len(records) < ghostRoom {
		err := src.Next(&record)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the recording: %w", err)
		}
		if lab.Hears(&record.Event) {
			record.Payload = nil
			records = append(records, record)
		}
	}
	return records, nil
}

// follow gives records to a curve, and returns it.
func follow(records []wire.Record, policy string) (*curve.View, error) {
	l, err := curve.NewLive(policy, nil, curve.Options{})
	if err != nil {
		return nil, err
	}
	tap := live.Start(l)
	for i := range records {
		tap.Take(&records[i])
	}
	tap.Close()
	return l.View(), nil
}
