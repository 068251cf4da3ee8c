/* start.h: the beginning of every hook. */
#ifndef GMT_START_H
#define GMT_START_H

#include "../base/call.h"
#include "../base/ring.h"
#include "../base/session.h"

/* The first OpenCL call of the process connects it; false if the process has no session. Other threads' calls wait. */
bool gmt_session_start(void);

/*
 * The program has asked for devices of a type. Until its first context it has no session, and it may end before; so this alone
 * is reported, once for each answer.
 */
void gmt_session_asked(cl_device_type type, cl_int status, cl_uint found);

/* Begins a hook that writes no timed event; false: only forward. Every true is followed by gmt_leave. */
static inline bool gmt_enter_untimed(void)
{
	if (gmt_inside)
		return false;
	int state = atomic_load_explicit(&gmt_session.state, memory_order_acquire);
	if (gmt_unlikely(state != GMT_STATE_ON) && (state == GMT_STATE_OFF || !gmt_session_start()))
		return false;
	gmt_inside = 1;
	return true;
}

/* The same, with a reading of a clock. */
static inline bool gmt_enter_timed(struct gmt_call *call, uint64_t (*clock)(void))
{
	if (!gmt_enter_untimed())
		return false;
	gmt_ring_prepare();
	call->start = call->last = clock();
	call->driver = 0;
	return true;
}

static inline bool gmt_enter(struct gmt_call *call)
{
	return gmt_enter_timed(call, gmt_now);
}

/* For a call whose event has the time of its end. */
static inline bool gmt_enter_until(struct gmt_call *call)
{
	return gmt_enter_timed(call, gmt_about_now);
}

#endif
