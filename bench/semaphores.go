package main

import (
	"fmt"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/allocator/semaphore"
)

// batch is how many units whoever finds none brings: that of seed 001 §5.1, and of its unaligned allocator.
const batch = 512

// semaphores compares bulk semaphores with counting ones (seed 001 §5.1).
func (b *bench) semaphores() error {
	b.row("threads", "bulk", "counting", "counting / bulk", "slow growth: bulk", "counting", "counting / bulk")
	for _, threads := range []int{1, 4, 16, 64, 1024, 4096} {
		figures := inTurns(b.runs, []func() (float64, error){
			longEnough(bulkUnits, threads, func() {}),
			longEnough(countedUnits, threads, func() {}),
			longEnough(bulkUnits, threads, driverCreate),
			longEnough(countedUnits, threads, driverCreate),
		})
		cells := []any{threads}
		for i := 0; i < len(figures); i += 2 {
			bulk, counting := figures[i], figures[i+1]
			cells = append(cells, counted(bulk.value), counted(counting.value), counting.over(bulk))
		}
		b.row(cells...)
	}
	b.flush()
	fmt.Println("\nns for one unit, all threads together, and in brackets the lowest and highest of one turn; each figure is of 0.4 s or\n" +
		"more. Whoever finds no unit brings 512. That is one addition, or for slow growth a sleep of 0.1 ms, as long as drivers\n" +
		"need for a create; some systems make 1 ms of it. While one thread brings 512 units no more than 511 others need another:\n" +
		"only above 512 threads do bulk semaphores let several grow at once, and below that keeping three counters instead of one\n" +
		"is all that can be seen of them.")
	return nil
}

// longEnough takes as many units as are needed for the start of thousands of threads to be of no account.
func longEnough(from func(units, threads int, grow func()) (float64, error), threads int, grow func()) func() (float64, error) {
	return func() (float64, error) {
		return lasting(4*lasts, 1<<17, func(units int) (float64, error) { return from(units, threads, grow) })
	}
}

// driverCreate takes as long as a driver needs for a block.
func driverCreate() { time.Sleep(100 * time.Microsecond) }

func bulkUnits(units, threads int, grow func()) (float64, error) {
	s := semaphore.NewBulk(0)
	return takeUnits(units, threads, func() {
		if !s.Wait(1, batch) {
			grow()
			s.Signal(batch-1, batch-1)
		}
	})
}

func countedUnits(units, threads int, grow func()) (float64, error) {
	s := semaphore.NewCounting(0)
	return takeUnits(units, threads, func() {
		if s.Wait(1) < 1 {
			grow()
			s.Grown(batch - 1)
		}
	})
}

// takeUnits has threads take one unit at a time.
func takeUnits(units, threads int, take func()) (float64, error) {
	steps := make([]step, threads)
	for i := range steps {
		steps[i] = func(n int) error {
			for range n {
				take()
			}
			return nil
		}
	}
	return share(units, steps)
}
