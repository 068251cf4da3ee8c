/* start.h: how every hook begins. */
#ifndef GMT_START_H
#define GMT_START_H

#include "../base/call.h"
#include "../base/ring.h"
#include "../base/session.h"

/* The first OpenCL call of the process connects it; false if the process has no session. Other threads' calls wait. */
bool gmt_session_start(const char *function);
/* The process has a context: children that it forks from now on must not use OpenCL. */
void gmt_session_note_context(void);

/*
 * Reports that the program has asked for devices of a type, once for each answer. Until its first context it has no session, and
 * it may end before that, so this alone is reported then.
 */
void gmt_session_note_device_query(cl_device_type type, cl_int status, cl_uint found);

/*
 * Begins a hook that writes no timed event. False: the hook only calls the driver. After true it must call gmt_leave. function:
 * its name.
 */
static inline bool gmt_enter_untimed_from(const char *function)
{
	if (gmt_inside)
		return false;
	int state = atomic_load_explicit(&gmt_session.state, memory_order_acquire);
	if (gmt_unlikely(state != GMT_STATE_ON) && (state == GMT_STATE_OFF || !gmt_session_start(function)))
		return false;
	gmt_inside = 1;
	return true;
}

/* The same, with a reading of a clock. */
static inline bool gmt_enter_timed_from(const char *function, struct gmt_call *call, uint64_t (*clock)(void))
{
	if (!gmt_enter_untimed_from(function))
		return false;
	gmt_ring_prepare();
	call->start = call->last = clock();
	call->driver = 0;
	return true;
}

#define gmt_enter_untimed() gmt_enter_untimed_from(__func__)
#define gmt_enter(call) gmt_enter_timed_from(__func__, call, gmt_now)
/* For a call whose event has the time of the call's end. */
#define gmt_enter_until(call) gmt_enter_timed_from(__func__, call, gmt_about_now)

#endif
