package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/ghost"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ghostBatch is how many records ghosts play at a time, and ghostRoom how many may wait for them without any being lost.
const (
	ghostBatch = 1024
	ghostRoom  = 100 * ghostBatch
)

// ghosts shows what policies cost that are simulated beside a run: the goroutine that collects, and their own.
func (b *bench) ghosts() error {
	present := lab.Configuration{Policy: "futhark"}
	programs := [][]string{{b.example("churn"), "200000", "4K", "2"}, {b.example("train"), "500"}}
	cells := []any{"program", "records", "Take", "look up"}
	for _, c := range ghost.Default(present) {
		cells = append(cells, c.String())
	}
	b.row(append(cells, "all", "million records/s")...)
	for i, args := range programs {
		r, err := b.once(none, args...)
		if err != nil {
			return err
		}
		records, err := heard(r.file)
		if err != nil {
			return err
		}
		costs := make([][]float64, 2+len(ghost.Default(present)))
		for range b.runs {
			once, err := haunt(records, present)
			if err != nil {
				return err
			}
			for j := range costs {
				costs[j] = append(costs[j], once[j])
			}
		}
		cells := []any{[]string{"churn", "train"}[i], len(records)}
		all := 0.0
		for j := range costs {
			ns := middle(costs[j])
			cells = append(cells, fixed(ns, 1))
			if j > 0 {
				all += ns
			}
		}
		b.row(append(cells, fixed(all, 1), fixed(1e3/all, 2))...)
	}
	b.flush()
	fmt.Println("\nns of the processor for each record that says anything to a policy. Take is what the goroutine pays that collects the run;\n" +
		"the rest is another goroutine's: looking a record up once, then playing it through each policy.")
	return nil
}

// heard returns the records of a recording that ghosts hear of.
func heard(file string) ([]wire.Record, error) {
	reader, err := trace.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	var records []wire.Record
	var record wire.Record
	for {
		err := reader.Next(&record)
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the recording: %w", err)
		}
		if lab.Hears(&record.Event) {
			record.Payload = nil
			records = append(records, record)
		}
	}
}

// haunt returns the ns for each record of Take, of looking it up, and of playing it through each of the default ghosts.
func haunt(records []wire.Record, present lab.Configuration) ([]float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	take, err := taken(records, present)
	if err != nil {
		return nil, err
	}
	chorus := lab.NewChorus()
	rivals := ghost.Default(present)
	for _, c := range rivals {
		if _, err := chorus.Add(lab.ReplayOptions{Policy: c.Policy, Settings: c.Settings, HoldSettings: true}); err != nil {
			return nil, err
		}
	}
	spent := make([]time.Duration, 2+len(rivals))
	spent[0] = take
	now := threadTime()
	lap := func(at int) {
		then := now
		now = threadTime()
		spent[at] += now - then
	}
	for from := 0; from < len(records); from += ghostBatch {
		batch := records[from:min(from+ghostBatch, len(records))]
		for i := range batch {
			chorus.Read(&batch[i])
		}
		lap(1)
		for voice := range rivals {
			if err := chorus.Play(voice); err != nil {
				return nil, err
			}
			lap(2 + voice)
		}
		chorus.Clear()
	}
	ns := make([]float64, len(spent))
	for i := range spent {
		ns[i] = float64(spent[i]) / float64(len(records))
	}
	return ns, nil
}

// taken returns the time that handing records to ghosts takes; they get so few at a time that they can keep up.
func taken(records []wire.Record, present lab.Configuration) (spent time.Duration, err error) {
	for from := 0; from < len(records); from += ghostRoom {
		g, err := ghost.New(nil, ghost.Options{Present: present})
		if err != nil {
			return 0, err
		}
		start := threadTime()
		for i := range records[from:min(from+ghostRoom, len(records))] {
			g.Take(&records[from+i])
		}
		spent += threadTime() - start
		g.Close()
	}
	return spent, nil
}

// threadTime is the processor time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0 // every Linux has this clock
	}
	return time.Duration(t.Nano())
}
