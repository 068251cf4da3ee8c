/* call.h: one call of the program: its times, and the guard that marks a thread as being inside a hook. */
#ifndef GMT_CALL_H
#define GMT_CALL_H

#include "clock.h"
#include "opencl.h"

struct gmt_call {
	uint64_t start;  /* CLOCK_MONOTONIC, ns */
	uint64_t last;   /* the latest reading, used several times, as it costs as much as a lock. 0: too long ago, see gmt_call_driver_begins */
	uint64_t driver; /* ns inside the driver */
};

/* Reads the clock, never before the start: a replay computes the start from the end and the duration. */
static inline void gmt_call_read_clock(struct gmt_call *call)
{
	uint64_t now = gmt_now();
	call->last = now > call->start ? now : call->start;
}

/* Reads the clock before the driver is called, so that our own work since the latest reading does not count as the driver's time. */
static inline void gmt_call_driver_begins(struct gmt_call *call)
{
	if (!call->last)
		gmt_call_read_clock(call);
}

/* Adds to the driver's time: it has returned from a call that began right after the latest reading. */
static inline void gmt_driver_returned(struct gmt_call *call)
{
	uint64_t before = call->last;
	gmt_call_read_clock(call);
	call->driver += gmt_elapsed(before, call->last);
}

/*
 * 1 while this thread is inside a hook: OpenCL calls of the driver and of the shim are not the program's.
 * Initial-exec, so that reading it never allocates.
 */
extern __thread int gmt_inside __attribute__((tls_model("initial-exec")));
/* 1 while this thread runs a callback of the program that the driver called. */
extern __thread int gmt_in_callback __attribute__((tls_model("initial-exec")));

/* Where the program called a hook: the return address, and rsp and rbp after the return. */
struct gmt_caller {
	uintptr_t address, sp, bp;
};

/* To be used in the hook itself. The frame address makes the compiler keep a frame, which begins with the caller's rbp. */
#define GMT_CALLER                                                                                                     \
	((struct gmt_caller){(uintptr_t)__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa(),                      \
			     *(const uintptr_t *)__builtin_frame_address(0)})

static inline void gmt_leave(void)
{
	gmt_inside = 0;
}

/*
 * Lifts the guard while the driver calls a function of the program, even inside a call of the program on the same thread:
 * OpenCL calls in that function are the program's.
 */
struct gmt_callback {
	int inside, in_callback;
};

static inline struct gmt_callback gmt_callback_begin(void)
{
	struct gmt_callback before = {gmt_inside, gmt_in_callback};
	gmt_inside = 0;
	gmt_in_callback = 1;
	return before;
}

static inline void gmt_callback_end(struct gmt_callback before)
{
	gmt_inside = before.inside;
	gmt_in_callback = before.in_callback;
}

#endif
