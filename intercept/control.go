package main

// #include "../shim/core.h"
//
// static void call_evicted(struct gmt_callbacks c, struct gmt_evictions *e) { c.evicted(e); }
// static void call_limit(struct gmt_callbacks c, uint64_t sequence, int32_t status, const char *text, uint64_t length)
// {
// 	c.limit(sequence, status, text, length);
// }
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

// obey carries a message out, releases what it evicts, and acknowledges it through the ring.
func obey(message wire.Control, callbacks C.struct_gmt_callbacks) {
	var evictions C.struct_gmt_evictions
	var scratch [C.GMT_EVICTIONS_MAX]broker.Eviction
	reply, out, err := core.Control(message.Text, int64(now()), scratch[:0])
	give(&evictions, out)
	C.call_evicted(callbacks, &evictions)
	result := ok
	if err != nil {
		reply, result = err.Error(), failed
	}
	data := []byte(reply + "\x00")
	C.call_limit(callbacks, C.uint64_t(message.Sequence), result, (*C.char)(unsafe.Pointer(&data[0])), C.uint64_t(len(reply)))
}

// expire gives up what is too old. It returns how many milliseconds it is until more may be, -1 for never.
func expire(callbacks C.struct_gmt_callbacks) int {
	var evictions C.struct_gmt_evictions
	var scratch [C.GMT_EVICTIONS_MAX]broker.Eviction
	time := int64(now())
	out, next, err := core.Expire(time, scratch[:0])
	give(&evictions, out)
	C.call_evicted(callbacks, &evictions)
	if err != nil || next == 0 {
		return -1
	}
	const least, most = 10, 1000 // so that nobody can keep a processor busy with it, nor put it off for long
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
