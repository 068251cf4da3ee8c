// Package heaplimit ends a process that imports it, with status 99, once what it holds takes more than 512 MiB. Garbage does not count
// with GODEBUG=gcstoptheworld=1: another collector takes for held what was let go while it ran. test/fuzz.sh puts the package into
// each fuzz target.
package heaplimit

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	most   = 512 << 20 // bytes of Go's heap
	status = 99        // Go itself never ends a program with it
)

// interval is how long more may be held unseen. Then only the shell's limit in test/fuzz.sh bounds it.
const interval = 5 * time.Millisecond

func init() {
	debug.SetMemoryLimit(most / 8 * 9) // without, garbage takes as much again; with less, the collector hardly stops near most
	go watchHeap()
}

func watchHeap() {
	for range time.Tick(interval) {
		if readMetric("/memory/classes/heap/objects:bytes") <= most {
			continue
		}
		runtime.GC()
		if held := readMetric("/gc/heap/live:bytes"); held > most {
			_, _ = fmt.Fprintf(os.Stderr, "%d bytes are held, more than %d\n", held, most)
			os.Exit(status)
		}
	}
}

// readMetric returns a number of bytes that package metrics knows.
func readMetric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
