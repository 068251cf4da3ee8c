/* fake_event.c: events, what is asked of them, and callbacks. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <pthread.h>
#include <stdlib.h>

struct fake_deferred {
	struct fake_deferred *next;
	void (*function)(void); /* or a callback: */
	void(CL_CALLBACK *notify)(cl_event, cl_int, void *);
	cl_event event;
	cl_int status;
	void *data;
};

static struct fake_deferred *deferred, **deferred_end = &deferred; /* under the driver's lock */

static struct fake_deferred *put_off(void)
{
	struct fake_deferred *d = calloc(1, sizeof *d);
	if (!d)
		fake_fail("out of memory");
	*deferred_end = d;
	deferred_end = &d->next;
	return d;
}

void fake_defer(void (*function)(void))
{
	if (function)
		put_off()->function = function;
}

struct fake_deferred *fake_take_deferred(void)
{
	struct fake_deferred *list = deferred;
	deferred = NULL;
	deferred_end = &deferred;
	return list;
}

static void let_go(cl_event event)
{
	FAKE_LOCKED;
	fake_drop(event);
}

static void *call_back(void *arg)
{
	struct fake_deferred *d = arg;
	d->notify(d->event, d->status, d->data);
	return NULL;
}

static void run_one(struct fake_deferred *d)
{
	if (d->function) {
		d->function();
		return;
	}
	pthread_t thread;
	if (!fake.callbackthread)
		call_back(d);
	else if (pthread_create(&thread, NULL, call_back, d) != 0 || pthread_join(thread, NULL) != 0)
		fake_fail("no thread for a callback");
	let_go(d->event);
}

void fake_run_deferred(struct fake_deferred *list)
{
	while (list) {
		struct fake_deferred *d = list;
		list = d->next;
		run_one(d);
		free(d);
	}
}

static void notify(cl_event event, const struct fake_event_callback *callback, cl_int status)
{
	struct fake_deferred *d = put_off();
	d->notify = callback->notify;
	d->data = callback->data;
	d->event = event;
	d->status = status;
	fake_hold(event);
}

/* Calls back for all states down to status. */
static void reach(cl_event event, cl_int status)
{
	for (struct fake_event_callback **at = &event->callbacks; *at;) {
		struct fake_event_callback *callback = *at;
		if (callback->type < status || (status < 0 && fake.quietfailures)) {
			at = &callback->next;
			continue;
		}
		notify(event, callback, callback->type == CL_COMPLETE || status < 0 ? status : callback->type);
		*at = callback->next;
		free(callback);
	}
}

void fake_event_ended(cl_event event)
{
	reach(event, event->status);
}

void fake_event_ends(cl_event event)
{
	fake.liveevents--;
	while (event->callbacks) { /* of a user event that was never set */
		struct fake_event_callback *callback = event->callbacks;
		event->callbacks = callback->next;
		free(callback);
	}
	if (event->context)
		fake_drop(event->context);
}

cl_event fake_new_event(void)
{
	cl_event event = fake_new(FAKE_EVENT, sizeof *event);
	event->status = CL_QUEUED;
	fake.liveevents++;
	return event;
}

bool fake_complete_event(cl_event event)
{
	FAKE_LOCKED;
	return fake_alive(event, FAKE_EVENT) && (!event->command || fake_run(event->command));
}

void fake_fail_event(cl_event event, cl_int status)
{
	FAKE_LOCKED;
	if (fake_alive(event, FAKE_EVENT) && event->command)
		fake_complete_with(event->command, status);
}

void fake_doom_event(cl_event event, cl_int status)
{
	FAKE_LOCKED;
	if (fake_alive(event, FAKE_EVENT) && event->command)
		event->doom = status;
}

void fake_start_event(cl_event event)
{
	FAKE_LOCKED;
	if (!fake_alive(event, FAKE_EVENT) || !event->command)
		return;
	event->status = CL_RUNNING;
	reach(event, CL_RUNNING);
}

GMT_HOOK cl_event clCreateUserEvent(cl_context context, cl_int *errcode)
{
	FAKE_LOCKED;
	cl_event event = NULL;
	if (fake_alive(context, FAKE_CONTEXT)) {
		event = fake_new_event();
		event->status = CL_SUBMITTED;
		event->context = context;
		fake_hold(context);
	}
	if (errcode)
		*errcode = event ? CL_SUCCESS : CL_INVALID_CONTEXT;
	return event;
}

GMT_HOOK cl_int clSetUserEventStatus(cl_event event, cl_int status)
{
	FAKE_LOCKED;
	if (!fake_alive(event, FAKE_EVENT) || !event->context)
		return CL_INVALID_EVENT;
	if (status > CL_COMPLETE)
		return CL_INVALID_VALUE;
	if (event->status <= CL_COMPLETE)
		return CL_INVALID_OPERATION;
	event->status = status;
	fake_event_ended(event);
	return CL_SUCCESS;
}

GMT_HOOK cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t room, void *out, size_t *needed)
{
	FAKE_LOCKED;
	if (!fake_alive(event, FAKE_EVENT))
		return CL_INVALID_EVENT;
	if (fake.eager)
		fake_complete_all();
	if (what == CL_EVENT_REFERENCE_COUNT)
		return fake_answer(&event->object.references, sizeof(cl_uint), room, out, needed);
	cl_command_type type = event->context ? CL_COMMAND_USER : CL_COMMAND_NDRANGE_KERNEL;
	if (what == CL_EVENT_COMMAND_TYPE)
		return fake_answer(&type, sizeof type, room, out, needed);
	if (what != CL_EVENT_COMMAND_EXECUTION_STATUS)
		return CL_INVALID_VALUE;
	bool late = fake.rusticl && event->status == CL_COMPLETE && !event->context && !event->shown && event->batch >= fake.shown;
	cl_int status = late ? CL_SUBMITTED : event->status;
	return fake_answer(&status, sizeof status, room, out, needed);
}

GMT_HOOK cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t room, void *out, size_t *needed)
{
	FAKE_LOCKED;
	if (!fake_alive(event, FAKE_EVENT))
		return CL_INVALID_EVENT;
	bool over = !event->context && event->status == CL_COMPLETE;
	if (!over && !fake.lazyprofile)
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	cl_ulong time = over || what == CL_PROFILING_COMMAND_QUEUED ? what : 0;
	return fake_answer(&time, sizeof time, room, out, needed);
}

GMT_HOOK cl_int clSetEventCallback(cl_event event, cl_int type, void(CL_CALLBACK *function)(cl_event, cl_int, void *), void *data)
{
	FAKE_LOCKED;
	if (!fake_alive(event, FAKE_EVENT))
		return CL_INVALID_EVENT;
	if (!function || type < CL_COMPLETE || type > CL_SUBMITTED)
		return CL_INVALID_VALUE;
	struct fake_event_callback *callback = malloc(sizeof *callback);
	if (!callback)
		return CL_OUT_OF_HOST_MEMORY;
	*callback = (struct fake_event_callback){event->callbacks, type, function, data};
	event->callbacks = callback;
	reach(event, event->status);
	return CL_SUCCESS;
}

GMT_HOOK cl_int clRetainEvent(cl_event event)
{
	return fake_retain(event, FAKE_EVENT, CL_INVALID_EVENT);
}

GMT_HOOK cl_int clReleaseEvent(cl_event event)
{
	return fake_release(event, FAKE_EVENT, CL_INVALID_EVENT);
}
