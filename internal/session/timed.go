package session

import (
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// The time that a pool saves is known only if enough releases by the driver were timed, and with a pool there are few. So in a long run
// a pool now and then releases a block that it would keep, of the size with the most hits: at most timedEach in each size class, and so
// rarely that the driver's calls and the new pages take less than 1 % of the time, if a page of 4 KiB takes less than 2.6 µs.
const (
	timedAfter = 10_000_000_000 // ns that a process has had its pool for
	timedEach  = 8              // blocks of a size class
	timedAsked = 32             // attempts at these: all blocks of a class may be in use
	timedRest  = 1_000_000_000  // ns until the next one
	timedByte  = 64             // ns for each byte besides
)

// timed is what was asked of a pool so that the driver's releases are timed.
type timed struct {
	due   uint64    // time of the next
	asked [65]uint8 // by size class, the number of bits of a size
	went  [65]uint8
	done  [65]bool
}

// askForTimedReleases asks the pools of processes for blocks whose releases are to be timed. While an experiment goes on no pool is asked, nor
// where memory is short.
func (in *intake) askForTimedReleases(now uint64) {
	for process := range in.places {
		t := in.timed[process]
		if t == nil {
			t = &timed{due: now + timedAfter}
			in.timed[process] = t
		}
		if now < t.due || in.model.IsMeasuring() {
			continue
		}
		t.due = now + timedRest
		class := in.model.ReleaseClassToTime(process, &t.done)
		room, known := in.sampler.relief.freeBytesAroundPool(process)
		if class == 0 || known && room < 2<<class {
			continue
		}
		t.asked[class]++
		t.done[class] = t.done[class] || t.asked[class] == timedAsked
		t.due += timedByte << class
		in.sampler.relief.ask(process, wire.Relief{Asked: 1 << (class - 1), Why: wire.ReliefTimed})
	}
}

// countTimedRelease counts a block that went.
func (in *intake) countTimedRelease(e wire.EvictView, process uint32) {
	if t := in.timed[process]; t != nil {
		class := bits.Len64(e.Bytes())
		t.went[class]++
		t.done[class] = t.done[class] || t.went[class] >= timedEach
	}
}
