package main

// #include "../shim/base/core.h"
//
// static uint32_t call_idle_begin(struct gmt_callbacks c) { return c.idle_begin(); }
// static void call_idle_end(struct gmt_callbacks c) { c.idle_end(); }
// static void call_enter(struct gmt_callbacks c) { c.enter(); }
// static void call_leave(struct gmt_callbacks c) { c.leave(); }
// static void call_evicted(struct gmt_callbacks c, struct gmt_evictions *e) { c.evicted(e); }
// static void call_expired(struct gmt_callbacks c, uint64_t time, int64_t number) { c.expired(time, number); }
// static void call_limit(struct gmt_callbacks c, struct gmt_obeyed o) { c.limit(&o); }
import "C"

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/intercept/broker"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// obeySessionMessages obeys the session's messages, and evicts blocks that are too old or too many while the program makes no calls.
// While it waits, it sleeps in the kernel, which costs the program nothing. It holds no file descriptor that the program could
// close.
func obeySessionMessages(mailbox *wire.Mailbox, callbacks C.struct_gmt_callbacks) {
	for {
		for message, ok := mailbox.NextMessage(); ok; message, ok = mailbox.NextMessage() {
			obeyMessage(message, callbacks)
		}
		bell, empty := mailbox.FutexToWaitFor()
		if !waitOnFutex(bell, empty, evictExpiredBlocks(callbacks)) {
			return
		}
	}
}

// waitOnFutex sleeps while a futex has a value, until another process wakes it or the time is over; most 0: no bound. It
// returns false if it cannot sleep.
func waitOnFutex(futex *uint32, value uint32, most time.Duration) bool {
	var limit *unix.Timespec
	if most > 0 {
		limit = &unix.Timespec{Sec: int64(most / time.Second), Nsec: int64(most % time.Second)}
	}
	const futexWait = 0
	_, _, err := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(futex)), futexWait, uintptr(value),
		uintptr(unsafe.Pointer(limit)), 0, 0)
	return err == 0 || err == unix.EAGAIN || err == unix.EINTR || err == unix.ETIMEDOUT
}

// obeyMessage carries a message out, acknowledges it through the ring, and then releases the evicted blocks: the ring has an
// effect after its cause.
func obeyMessage(message wire.Control, callbacks C.struct_gmt_callbacks) {
	var evictions C.struct_gmt_evictions
	var scratch [C.GMT_EVICTIONS_MAX]broker.Eviction
	C.call_enter(callbacks)
	received := readClock()
	reply, n, out, err := core.ObeyMessage(message.Text, int64(received), scratch[:0])
	fillEvictions(&evictions, out)
	C.call_leave(callbacks)
	result := C.int32_t(0)
	if err != nil {
		reply, result = err.Error(), -1
	}
	data := []byte(reply + "\x00")
	C.call_limit(callbacks, C.struct_gmt_obeyed{
		sequence: C.uint64_t(message.Sequence), status: result, time: C.uint64_t(received), number: C.int64_t(n),
		text: (*C.char)(unsafe.Pointer(&data[0])), length: C.uint64_t(len(reply)),
	})
	C.call_evicted(callbacks, &evictions)
}

const (
	again  = 100 * time.Millisecond
	latest = 10 * time.Second // the longest sleep: calls of the program may leave blocks that expire earlier
)

// evictExpiredBlocks evicts blocks that are too old or too many. It returns the time until there may be more, 0 for never.
func evictExpiredBlocks(callbacks C.struct_gmt_callbacks) time.Duration {
	if C.call_idle_begin(callbacks) == 0 { // the program forks, ends, or releases a context
		return again
	}
	defer C.call_idle_end(callbacks)
	var evictions C.struct_gmt_evictions
	var scratch [C.GMT_EVICTIONS_MAX]broker.Eviction
	C.call_enter(callbacks)
	started := int64(readClock())
	out, n, next, err := core.Expire(started, scratch[:0])
	fillEvictions(&evictions, out)
	C.call_leave(callbacks)
	if n != 0 {
		C.call_expired(callbacks, C.uint64_t(started), C.int64_t(n))
	}
	C.call_evicted(callbacks, &evictions)
	if err != nil || next == 0 {
		return 0
	}
	return max(soonest, min(time.Duration(next-started), latest))
}

// readClock reads the clock that the shim's events use.
func readClock() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return uint64(t.Nano())
}
