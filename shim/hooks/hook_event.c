/* hook_event.c: events. When the program learns that a command has completed, so do we. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/sites.h"
#include "../order/handout.h"
#include "../order/queue.h"
#include "../pool/cooling.h"
#include "../registry/finding.h"
#include "command.h"

#include <stdlib.h>

static void learn_completion(const struct gmt_completion *of, cl_int status)
{
	if (status == CL_COMPLETE)
		gmt_queue_learn_completion(of);
	if (status >= 0 || !of->context)
		return;
	gmt_context_note_failed(of->context);
	gmt_cooling_release_deferred(of->context);
}

/* The program holds the event, so its entry stays valid. */
static void learn_event_status(cl_event handle, cl_int status)
{
	const struct gmt_event *event = status <= CL_COMPLETE && gmt_pooling() ? gmt_event_find(handle) : NULL;
	if (event)
		learn_completion(&event->of, status);
}

/*
 * Writes that the program has learned, without a wait, that a command has completed: as a wait that took no time. Where uses
 * are not written, only of the last command of its queue: the device is then not behind the program.
 */
static void write_learned(const struct gmt_completion *of, uint64_t time, enum gmtawait await)
{
	const struct gmt_cover *what = &of->what;
	if (!what->queue || gmt_queue_has_reached(what->queue, what->position))
		return;
	uint64_t now = gmt_now();
	if (gmt_uses() && time) {
		struct gmtevent event = GMT_EVENT_AWAIT(.time = now, .await = await, .awaited_queue = what->queue_id, .awaited_time = time);
		gmt_ring_write(&event);
	} else if (gmt_uses() || !gmt_session.config.transfers || what->queue->object.id != what->queue_id ||
		   what->position < atomic_load(&what->queue->enqueued)) {
		return;
	}
	struct gmtevent event = GMT_EVENT_SYNC(.time = now, .sync = GMT_SYNC_WAIT);
	gmt_ring_write(&event);
	gmt_queue_learn_completion(of); /* so that this is written once */
}

/* The program has asked for a command's status. */
static void learn_queried_status(cl_event handle, cl_int status)
{
	const struct gmt_event *event = status == CL_COMPLETE && gmt_follows_events() ? gmt_event_find(handle) : NULL;
	if (event)
		write_learned(&event->of, event->time, (enum gmtawait)event->await);
	learn_event_status(handle, status);
}

/*
 * Reports a command that failed for lack of memory: drivers that allocate late say so in its event. The status of a user
 * event is the program's own.
 */
static bool report_failed_command(const char *function, cl_event event)
{
	cl_command_type type;
	cl_int status;
	if (gmt_driver.clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL) != CL_SUCCESS || type == CL_COMMAND_USER ||
	    gmt_driver.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL) != CL_SUCCESS || status >= 0)
		return false;
	gmt_finding_out_of_memory(function, NULL, 0, status);
	return true;
}

static void report_failed_wait(const char *function, cl_int err, cl_uint count, const cl_event *events, const struct gmt_caller *caller)
{
	gmt_call_failed(function, err, caller);
	gmt_finding_out_of_memory(function, NULL, 0, err);
	for (cl_uint i = 0; err == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST && i < count; i++)
		if (report_failed_command(function, events[i]))
			return;
}

/*
 * Writes how long a transfer that did not block took, by the device's profiling. Called when the program queries the event's
 * profile or releases the event: by then its command has usually completed.
 */
static void write_transfer_time(struct gmt_event *event, cl_event handle)
{
	cl_ulong start = 0, end = 0;
	if (gmt_likely(!event || !atomic_load_explicit(&event->moves, memory_order_relaxed)))
		return;
	if (gmt_driver.clGetEventProfilingInfo(handle, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) != CL_SUCCESS ||
	    gmt_driver.clGetEventProfilingInfo(handle, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL) != CL_SUCCESS || end <= start)
		return;
	enum gmtcommand command = atomic_exchange(&event->moves, GMT_COMMAND_OTHER);
	if (command == GMT_COMMAND_OTHER) /* another thread was faster */
		return;
	struct gmtevent timed = GMT_EVENT_TRANSFER(.time = gmt_now(), .profiled = command, .site = event->moved_at, .moved = event->moved,
						   .took = end - start);
	gmt_ring_write(&timed);
}

GMT_HOOK cl_int clWaitForEvents(cl_uint count, const cl_event *events)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_driver.clWaitForEvents(count, events);
	cl_int err = gmt_driver.clWaitForEvents(count, events);
	bool failed = err == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
	for (cl_uint i = 0; (err == CL_SUCCESS || failed) && i < count; i++)
		learn_event_status(events[i], failed ? -1 : CL_COMPLETE);
	if (gmt_unlikely(err != CL_SUCCESS))
		report_failed_wait(__func__, err, count, events, &GMT_CALLER);
	gmt_cooling_collect(64, false);
	gmt_held_write_due(call.start);
	if (err == CL_SUCCESS && gmt_uses())
		gmt_command_write_awaits(call.start, NULL, count, events);
	atomic_store_explicit(&gmt_flushed, true, memory_order_relaxed);
	gmt_command_write_sync(&call, GMT_SYNC_WAIT, NULL);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clGetEventInfo(cl_event handle, cl_event_info what, size_t room, void *value, size_t *needed)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clGetEventInfo(handle, what, room, value, needed);
	cl_int err = gmt_driver.clGetEventInfo(handle, what, room, value, needed);
	if (err == CL_SUCCESS && what == CL_EVENT_COMMAND_EXECUTION_STATUS && value)
		learn_queried_status(handle, *(cl_int *)value);
	gmt_leave();
	return err;
}

/* The driver has the times only once the command has completed. */
GMT_HOOK cl_int clGetEventProfilingInfo(cl_event handle, cl_profiling_info what, size_t room, void *value, size_t *needed)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clGetEventProfilingInfo(handle, what, room, value, needed);
	cl_int err = gmt_driver.clGetEventProfilingInfo(handle, what, room, value, needed);
	if (err == CL_SUCCESS && what == CL_PROFILING_COMMAND_END && value && *(cl_ulong *)value) {
		learn_queried_status(handle, CL_COMPLETE);
		write_transfer_time(gmt_event_find(handle), handle);
	}
	gmt_leave();
	return err;
}

/* A callback with a copy of its event's entry: the program may release the event before the callback runs. */
struct event_callback {
	void(CL_CALLBACK *notify)(cl_event, cl_int, void *);
	void *data;
	struct gmt_completion of;
	uint64_t time;
	uint8_t await;
};

static void CL_CALLBACK call_event_callback(cl_event handle, cl_int status, void *data)
{
	struct event_callback *callback = data;
	struct gmt_callback before = gmt_callback_begin();
	if (status == CL_COMPLETE && !gmt_session_is_quiet())
		write_learned(&callback->of, callback->time, (enum gmtawait)callback->await);
	if (gmt_pooling())
		learn_completion(&callback->of, status);
	callback->notify(handle, status, callback->data);
	gmt_callback_end(before);
	free(callback);
}

GMT_HOOK cl_int clSetEventCallback(cl_event handle, cl_int type, void(CL_CALLBACK *notify)(cl_event, cl_int, void *), void *data)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clSetEventCallback(handle, type, notify, data);
	struct event_callback *ours = notify ? malloc(sizeof *ours) : NULL;
	cl_int err;
	if (ours) {
		const struct gmt_event *event = gmt_event_find(handle);
		*ours = (struct event_callback){.notify = notify, .data = data};
		if (event && gmt_follows_events()) {
			ours->of = event->of;
			ours->time = event->time;
			ours->await = event->await;
		}
		err = gmt_driver.clSetEventCallback(handle, type, call_event_callback, ours);
		if (err != CL_SUCCESS)
			free(ours);
	} else {
		err = gmt_driver.clSetEventCallback(handle, type, notify, data);
	}
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clRetainEvent(cl_event handle)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clRetainEvent(handle);
	cl_int err = gmt_driver.clRetainEvent(handle);
	struct gmt_event *event = err == CL_SUCCESS ? gmt_event_find(handle) : NULL;
	if (event)
		atomic_fetch_add(&event->references, 1);
	gmt_leave();
	return err;
}

/* Removes the entry first: the driver may reuse the handle at once. A user event that was never set keeps its gate. */
GMT_HOOK cl_int clReleaseEvent(cl_event handle)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clReleaseEvent(handle);
	struct gmt_event *event = gmt_event_find(handle);
	/* The only reference has one holder: no other thread counts at the same time. */
	bool only = event && atomic_load_explicit(&event->references, memory_order_relaxed) == 1;
	if (event && (gmt_likely(only) || gmt_last_reference(&event->references))) {
		write_transfer_time(event, handle);
		gmt_event_remove(event);
	}
	cl_int err = gmt_driver.clReleaseEvent(handle);
	if (gmt_unlikely(err != CL_SUCCESS))
		gmt_call_failed(__func__, err, &GMT_CALLER);
	gmt_leave();
	return err;
}

/* Commands that wait for a user event wait for the program. Until it is set, we must not make other commands wait for them. */
GMT_HOOK cl_event clCreateUserEvent(cl_context context_handle, cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clCreateUserEvent(context_handle, errcode);
	struct gmt_context *context = gmt_follows_events() ? gmt_context_find(context_handle) : NULL;
	if (context)
		gmt_queue_note_gate(context);
	cl_event handle = gmt_driver.clCreateUserEvent(context_handle, errcode);
	struct gmt_event *event = gmt_event_add(handle);
	if (handle)
		gmt_count_event(event, &GMT_CALLER, 0);
	if (event && context) {
		event->of.context = context;
		atomic_store(&event->open, 1);
	} else if (context && !handle) {
		atomic_fetch_sub(&context->order.gates, 1);
	}
	gmt_leave();
	return handle;
}

GMT_HOOK cl_int clSetUserEventStatus(cl_event handle, cl_int status)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clSetUserEventStatus(handle, status);
	struct gmt_event *event = gmt_follows_events() ? gmt_event_find(handle) : NULL;
	struct gmt_context *context = event ? event->of.context : NULL; /* a callback may release the event */
	uint64_t number = event ? atomic_load(&event->object.id) : 0;
	if (status < 0)
		gmt_context_note_failed(context); /* before the driver, which at once gives up the commands that wait for it */
	cl_int err = gmt_driver.clSetUserEventStatus(handle, status);
	bool same = event && atomic_load(&event->object.id) == number;
	if (err == CL_SUCCESS && context && (!same || atomic_exchange(&event->open, 0)))
		atomic_fetch_sub(&context->order.gates, 1);
	if (status < 0 && context)
		gmt_cooling_release_deferred(context);
	gmt_leave();
	return err;
}
