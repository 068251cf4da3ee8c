package session

import "golang.org/x/sys/unix"

// Now returns CLOCK_MONOTONIC in ns, the clock of every event. Go's own monotonic clock is the same one, but
// its readings cannot be had as a number.
func Now() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // the clock is part of every Linux that Go runs on
	}
	return uint64(t.Nano())
}
