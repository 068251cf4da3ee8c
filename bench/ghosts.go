package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/curve"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/ghost"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/live"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ghostBatch is how many records ghosts play at a time, and ghostRoom how many may wait for them without any ghost being
// stopped.
const (
	ghostBatch = 1024
	ghostRoom  = 200 * ghostBatch
)

// ghosts shows what policies cost that are simulated beside a run: the goroutine that collects, and their own.
func (b *bench) ghosts() error {
	present := lab.Configuration{Policy: "futhark"}
	programs := [][]string{{b.example("churn"), "200000", "4K", "2"}, {b.example("train"), "5000", "4K"}}
	cells := []any{"program", "records", "Take", "look up"}
	for _, c := range ghost.Default(present) {
		cells = append(cells, c.String())
	}
	b.row(append(cells, "all", "million records/s", "8 and the curve")...)
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
		both, err := b.besides(records, present)
		if err != nil {
			return err
		}
		b.row(append(cells, fixed(all, 1), fixed(1e3/all, 2), fixed(both, 1))...)
	}
	b.flush()
	fmt.Println("\nns of the processor for each record that says anything to a policy. Take is what the goroutine pays that collects the run;\n" +
		"the rest is another goroutine's: looking a record up once, then playing it through each policy. The last column is all of\n" +
		"that for eight ghosts with the curve of hit rates beside them, and Take, too, where a million records come in a second: below\n" +
		"1000 ns one core keeps up.")
	return nil
}

// besides returns the ns of this process for each record that eight ghosts and the curve take where a million come in a
// second.
func (b *bench) besides(records []wire.Record, present lab.Configuration) (float64, error) {
	records = slices.Clone(records[:min(len(records), ghostRoom)])
	for i := range records {
		records[i].Time = uint64(i) * uint64(time.Microsecond)
	}
	var costs []float64
	for range b.runs {
		ns, err := costOf(len(records), func() error { return together(records, present) })
		if err != nil {
			return 0, err
		}
		costs = append(costs, ns)
	}
	return middle(costs), nil
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
		tap := live.Start(g)
		start := threadTime()
		for i := range records[from:min(from+ghostRoom, len(records))] {
			tap.Take(&records[from+i])
		}
		spent += threadTime() - start
		tap.Close()
	}
	return spent, nil
}

// pace is how many records come before all are played: a program that is faster fills the queue, which is memory to be got
// and swept.
const pace = 16 * ghostBatch

// together plays records through eight ghosts with the curve of hit rates beside them, as a dashboard does.
func together(records []wire.Record, present lab.Configuration) error {
	eighth := lab.Configuration{Policy: present.Policy, Settings: []allocator.Setting{{Name: "max_cached_bytes", Value: "67108864"}}}
	g, err := ghost.New(append(ghost.Default(present), eighth), ghost.Options{Present: present})
	if err != nil {
		return err
	}
	c, err := curve.NewLive(present.Policy, present.Settings, curve.Options{})
	if err != nil {
		return err
	}
	tap := live.Start(g, c)
	for part := range slices.Chunk(records, pace) {
		for i := range part {
			tap.Take(&part[i])
		}
		before := g.Board()
		for tap.Flush(); g.Board() == before; {
			time.Sleep(50 * time.Microsecond)
		}
	}
	tap.Close()
	if rows := g.Board().Rows; len(rows) != 8 || g.Board().Leader() == nil || !c.View().Known {
		return fmt.Errorf("%d ghosts, exact points %v: not all took part", len(rows), c.View().Known)
	}
	return nil
}

// threadTime is the processor time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0 // every Linux has this clock
	}
	return time.Duration(t.Nano())
}
