package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab/plan"
)

// planCapacity is that of MiniMalloc's challenging instances, planPatience the time for each.
const (
	planCapacity = 1 << 20
	planPatience = 30 * time.Second
)

// plan places the instances of MiniMalloc that are in the repository.
func (b *bench) plan() error {
	files, err := filepath.Glob(filepath.Join(b.root, "internal/lab/plan/testdata/*.1048576.csv"))
	if err != nil {
		return fmt.Errorf("find the instances: %w", err)
	}
	b.row("instance", "buffers", "bound / capacity", "one goroutine: ms", "slowest seed", "one for each core: ms", "slowest seed")
	for _, file := range files {
		buffers, bound, err := readInstance(file)
		if err != nil {
			return err
		}
		cells := []any{strings.TrimSuffix(filepath.Base(file), ".1048576.csv"), len(buffers), fmt.Sprintf("%.3f", float64(bound)/planCapacity)}
		for _, workers := range []int{1, 0} {
			var times []float64
			for seed := range max(b.runs, 3) {
				ms, err := placeOnce(buffers, workers, uint64(seed))
				if err != nil {
					return err
				}
				times = append(times, ms)
			}
			slices.Sort(times)
			cells = append(cells, fmt.Sprintf("%.0f", times[len(times)/2]), fmt.Sprintf("%.0f", times[len(times)-1]))
		}
		b.row(cells...)
	}
	b.flush()
	fmt.Println("\nTime until the first placement within 1 MiB, the median of several seeds. MiniMalloc's authors report 5.5, 0.85, 3.9, 5.7\n" +
		"and 1.4 s for A, C, D, F and J, on their machine.")
	return nil
}

// readInstance reads a problem, and finds its bound.
func readInstance(path string) ([]plan.Buffer, uint64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("read an instance: %w", err)
	}
	table, err := plan.Read(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, 0, err
	}
	s, err := plan.Solve(context.Background(), table.Buffers, plan.Options{Capacity: planCapacity, Steps: 1})
	if err != nil {
		return nil, 0, err
	}
	return table.Buffers, s.Bound, nil
}

// placeOnce returns how many ms a placement within the capacity took.
func placeOnce(buffers []plan.Buffer, workers int, seed uint64) (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), planPatience)
	defer cancel()
	start := time.Now()
	s, err := plan.Solve(ctx, buffers, plan.Options{Capacity: planCapacity, Workers: workers, Seed: seed})
	if err == nil && s.Height > planCapacity {
		err = fmt.Errorf("no placement in %v: the lowest needs %d bytes", planPatience, s.Height)
	}
	return float64(time.Since(start)) / float64(time.Millisecond), err
}
