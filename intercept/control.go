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

// listen obeys the session's messages until the session is gone. It sleeps in poll, so it costs the program nothing.
func listen(socket int, callbacks C.struct_gmt_callbacks) {
	var buffer [wire.SizeofControl]byte
	for {
		n, err := unix.Read(socket, buffer[:])
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			poll := []unix.PollFd{{Fd: int32(socket), Events: unix.POLLIN}}
			if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
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

// now reads the clock that the shim's events use.
func now() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return uint64(t.Nano())
}
