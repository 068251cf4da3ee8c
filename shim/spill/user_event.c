/* user_event.c: see user_event.h. */
#define _GNU_SOURCE
#include "user_event.h"


static _Atomic uint64_t open_events;
static _Atomic uint64_t epoch;
static __thread uint64_t open_here __attribute__((tls_model("initial-exec"))); /* made by this thread and not set by it */

bool gmt_spill_gated(void)
{
	return gmt_unlikely(atomic_load_explicit(&open_events, memory_order_relaxed) != 0);
}

bool gmt_spill_gated_here(void)
{
	if (!gmt_spill_gated())
		open_here = 0;
	return open_here != 0;
}

uint64_t gmt_spill_gate_epoch(void)
{
	return atomic_load(&epoch);
}

static cl_event create_user_event(cl_context context, cl_int *errcode)
{
	if (atomic_fetch_add(&open_events, 1) == 0)
		atomic_fetch_add(&epoch, 1);
	cl_event event = gmt_bare.clCreateUserEvent(context, errcode);
	if (event)
		open_here++;
	else
		atomic_fetch_sub(&open_events, 1);
	return event;
}

void gmt_spill_gate_opened(void)
{
	atomic_fetch_sub(&open_events, 1);
	open_here -= open_here > 0;
}

/* Whether it is a user event that was not set, with one reference: no command waits for it. */
static bool is_given_up(cl_event event)
{
	cl_command_type type = 0;
	cl_int status = CL_COMPLETE;
	cl_uint references = 0;
	gmt_bare.clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL);
	if (type != CL_COMMAND_USER)
		return false;
	gmt_bare.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
	gmt_bare.clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof references, &references, NULL);
	return status > CL_COMPLETE && references == 1;
}

static cl_int release_event(cl_event event)
{
	bool given_up = gmt_spill_gated() && is_given_up(event);
	cl_int err = gmt_bare.clReleaseEvent(event);
	if (given_up && err == CL_SUCCESS)
		gmt_spill_gate_opened();
	return err;
}

void gmt_spill_override_user_events(struct gmt_functions *over)
{
	GMT_SPILL_OVER(over, clCreateUserEvent, create_user_event);
	GMT_SPILL_OVER(over, clReleaseEvent, release_event);
}
