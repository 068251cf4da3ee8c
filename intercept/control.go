package main

// #include "../shim/base/core.h"
//
// static void call_evicted(struct gmt_callbacks c, struct gmt_evictions *e) { c.evicted(e); }
// static void call_expired(struct gmt_callbacks c, uint64_t time, int64_t number) { c.expired(time, number); }
// static void call_limit(struct gmt_callbacks c, struct gmt_obeyed o) { c.limit(&o); }
import "C"

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/intercept/broker"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// listen obeys the session's messages, and gives up blocks that are too old, until the session is gone. It sleeps in
// poll, so it costs the program nothing.
func listen(socket int, callbacks C.struct_gmt_callbacks) {
	var buffer [wire.SizeofControl]byte
	for {
		n, err := unix.Read(socket, buffer[:])
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			poll := []unix.PollFd{{Fd: int32(socket), Events: unix.POLLIN}}
			if _, err := unix.Poll(poll, expire(callbacks)); err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		case err != nil || n <= 0:
			return
		default:
			if message, err := wire.DecodeControl(buffer[:n]); err == nil {
				obey(message, callbacks)
			}
		}
	}
}

// obey carries a message out, acknowledges it through the ring, and releases what it evicts: what happens comes behind
// what it happens for.
func obey(message wire.Control, callbacks C.struct_gmt_callbacks) {
	var evictions C.struct_gmt_evictions
	var scratch [C.GMT_EVICTIONS_MAX]broker.Eviction
	time := now()
	reply, n, out, err := core.Control(message.Text, int64(time), scratch[:0])
	give(&evictions, out)
	result := C.int32_t(0)
	if err != nil {
		reply, result = err.Error(), -1
	}
	data := []byte(reply + "\x00")
	C.call_limit(callbacks, C.struct_gmt_obeyed{
		sequence: C.uint64_t(message.Sequence), status: result, time: C.uint64_t(time), number: C.int64_t(n),
		text: (*C.char)(unsafe.Pointer(&data[0])), length: C.uint64_t(len(reply)),
	})
	C.call_evicted(callbacks, &evictions)
}

// expire gives up what is too old. It returns how many milliseconds it is until more may be, -1 for never.
func expire(callbacks C.struct_gmt_callbacks) int {
	var evictions C.struct_gmt_evictions
	var scratch [C.GMT_EVICTIONS_MAX]broker.Eviction
	time := int64(now())
	out, n, next, err := core.Expire(time, scratch[:0])
	give(&evictions, out)
	if n != 0 {
		C.call_expired(callbacks, C.uint64_t(time), C.int64_t(n))
	}
	C.call_evicted(callbacks, &evictions)
	if err != nil || next == 0 {
		return -1
	}
	const least, most = 10, 1000 // so that no setting keeps a processor busy or delays evictions for long
	return int(max(least, min((next-time)/1e6+1, most)))
}

// now reads the clock that the shim's events use.
func now() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return uint64(t.Nano())
}
