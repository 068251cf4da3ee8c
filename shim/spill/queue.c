/*
 * queue.c: see queue.h. A command fails when one that it waits for does, while others that it waits for may still run: a marker
 * that failed says nothing. Some drivers never end the rest. And in PoCL a command of an in-order queue waits only for the one
 * before it, so one that comes after a failure overtakes what still runs: there only a marker from before the failure counts, or
 * the end of a clFinish.
 */
#define _GNU_SOURCE
#include "queue.h"

#include "../base/lock.h"
#include "../base/clock.h"
#include "../order/queue.h"
#include "../registry/table.h"
#include "context.h"
#include "short.h"
#include "user_event.h"

GMT_TABLE(spill_queues, gmt_spill_queue, 256, offsetof(struct gmt_spill_queue, lock), 0);

#define PATIENCE 100000000u /* ns */
#define MOMENT 20000u

static _Atomic uint64_t closing; /* released queues with commands that are not known to have completed */

static void add_queue(cl_command_queue handle, cl_context context, cl_command_queue_properties properties)
{
	struct gmt_spill_queue *queue = (struct gmt_spill_queue *)gmt_table_add(&spill_queues, handle, false);
	if (!queue)
		return;
	queue->ordered = !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	const struct gmt_spill_context *its = gmt_spill_context_find(context);
	queue->old = its && its->old;
	queue->hasty = its && its->hasty;
	atomic_store(&queue->references, 1);
}

struct gmt_spill_queue *gmt_spill_queue_find(cl_command_queue handle)
{
	return (struct gmt_spill_queue *)gmt_table_find(&spill_queues, handle);
}

/* Whether a command in it may wait for a user event. */
static bool may_wait_for_user(const struct gmt_spill_queue *queue)
{
	return gmt_spill_gated() && atomic_load(&queue->epoch) == gmt_spill_gate_epoch() && atomic_load(&queue->held) > atomic_load(&queue->done);
}

uint64_t gmt_spill_queue_count_command(struct gmt_spill_queue *queue, bool native)
{
	uint64_t position = atomic_fetch_add(&queue->enqueued, 1) + 1;
	if (gmt_unlikely(native))
		gmt_raise_position(&queue->native, position);
	if (may_wait_for_user(queue))
		gmt_raise_position(&queue->held, position);
	return position;
}

void gmt_spill_queue_note_native(struct gmt_spill_queue *queue)
{
	if (queue)
		gmt_raise_position(&queue->native, atomic_load(&queue->enqueued) + 1);
}

bool gmt_spill_queue_is_over(const struct gmt_spill_queue *queue, uint64_t id, uint64_t position)
{
	return atomic_load(&queue->done) >= position || atomic_load(&queue->object.id) != id;
}

bool gmt_spill_queue_goes_on(const struct gmt_spill_queue *queue, uint64_t position)
{
	uint64_t done = atomic_load(&queue->done);
	return atomic_load(&queue->native) <= done && atomic_load(&queue->failed) <= done &&
	       (!may_wait_for_user(queue) || position < atomic_load(&queue->held_from));
}

bool gmt_spill_queue_may_go_on(const struct gmt_spill_queue *queue)
{
	return atomic_load(&queue->failed) <= atomic_load(&queue->done);
}

/* CL_QUEUED where the driver does not say. */
static cl_int event_status(cl_event event)
{
	cl_int status = CL_QUEUED;
	cl_int err = gmt_bare.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
	return err == CL_SUCCESS ? status : CL_QUEUED;
}

/* Whether a marker that is put now reports the end of all before it. */
static bool can_marker_report_all(const struct gmt_spill_queue *queue)
{
	return !queue->ordered || atomic_load(&queue->failed) <= atomic_load(&queue->done);
}

/* The next four under the queue's lock. */
static void drop_marker(struct gmt_spill_queue *queue)
{
	if (queue->marker)
		gmt_bare.clReleaseEvent(queue->marker);
	queue->marker = NULL;
}

static void poll_marker(struct gmt_spill_queue *queue)
{
	cl_int status = queue->marker ? event_status(queue->marker) : CL_QUEUED;
	if (status > CL_COMPLETE)
		return;
	gmt_raise_position(status == CL_COMPLETE ? &queue->done : &queue->failed, queue->position);
	drop_marker(queue);
}

static void put_marker(struct gmt_spill_queue *queue, cl_command_queue handle, uint64_t enqueued)
{
	drop_marker(queue);
	queue->marker = gmt_enqueue_marker(handle, queue->old);
	queue->position = enqueued;
}

/* A marker in front of what is held back says when the commands before it have completed. */
static void put_hold_marker(struct gmt_spill_queue *queue, cl_command_queue handle, uint64_t enqueued)
{
	poll_marker(queue);
	if (enqueued > atomic_load(&queue->done) && can_marker_report_all(queue) && !(queue->marker && queue->position == enqueued))
		put_marker(queue, handle, enqueued);
	bool seen = queue->marker && queue->position == enqueued;
	atomic_store(&queue->held_from, (seen ? enqueued : atomic_load(&queue->done)) + 1);
}

/* Whether it may end only after the program has set a user event. */
static bool is_held_by_user_event(cl_event event)
{
	cl_command_queue handle = NULL;
	if (event_status(event) <= CL_COMPLETE)
		return false;
	gmt_bare.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof handle, &handle, NULL); /* NULL of a user event */
	const struct gmt_spill_queue *queue = handle ? gmt_spill_queue_find(handle) : NULL;
	return !queue || may_wait_for_user(queue);
}

void gmt_spill_queue_note_gate(cl_command_queue handle, cl_uint waits, const cl_event *list)
{
	if (gmt_likely(!gmt_spill_gated()) || !list)
		return;
	bool held = false;
	for (cl_uint i = 0; i < waits && !held; i++)
		held = is_held_by_user_event(list[i]);
	struct gmt_spill_queue *queue = held ? gmt_spill_queue_find(handle) : NULL;
	if (!queue)
		return;
	gmt_lock(&queue->lock);
	uint64_t enqueued = atomic_load(&queue->enqueued);
	if (!may_wait_for_user(queue) && !queue->closed)
		put_hold_marker(queue, handle, enqueued);
	atomic_store(&queue->epoch, gmt_spill_gate_epoch());
	gmt_raise_position(&queue->held, enqueued + 1);
	gmt_unlock(&queue->lock);
}

static cl_command_queue handle_of_queue(const struct gmt_spill_queue *queue)
{
	return queue->closed ? NULL : (cl_command_queue)atomic_load(&queue->object.handle);
}

/* The program may release the queue meanwhile, and a flush may call its callbacks. */
static void poll_queue(struct gmt_object *object)
{
	struct gmt_spill_queue *queue = (struct gmt_spill_queue *)object;
	gmt_lock(&queue->lock);
	cl_command_queue handle = handle_of_queue(queue);
	poll_marker(queue);
	uint64_t enqueued = atomic_load(&queue->enqueued);
	if (!queue->marker && handle && enqueued > atomic_load(&queue->done) && can_marker_report_all(queue))
		put_marker(queue, handle, enqueued);
	bool kept = handle && gmt_bare.clRetainCommandQueue(handle) == CL_SUCCESS;
	gmt_unlock(&queue->lock);
	if (!kept)
		return;
	gmt_bare.clFlush(handle);
	gmt_bare.clReleaseCommandQueue(handle);
}

/* A user event is about to fail: a marker will say whether anything in the queue has waited for it. */
static void mark_before_failure(struct gmt_object *object)
{
	struct gmt_spill_queue *queue = (struct gmt_spill_queue *)object;
	gmt_lock(&queue->lock);
	cl_command_queue handle = handle_of_queue(queue);
	poll_marker(queue);
	uint64_t enqueued = atomic_load(&queue->enqueued);
	if (handle && enqueued > atomic_load(&queue->done)) {
		if (queue->ordered && can_marker_report_all(queue) && !(queue->marker && queue->position == enqueued))
			put_marker(queue, handle, enqueued);
		gmt_raise_position(&queue->failed, enqueued);
	}
	gmt_unlock(&queue->lock);
}

void gmt_spill_queues_poll(void)
{
	gmt_table_each_outside(&spill_queues, poll_queue);
}

static void check_over(struct gmt_object *object, void *all)
{
	const struct gmt_spill_queue *queue = (const struct gmt_spill_queue *)object;
	if (atomic_load(&queue->done) < atomic_load(&queue->enqueued))
		*(bool *)all = false;
}

bool gmt_spill_queues_over(void)
{
	bool all = atomic_load(&closing) == 0;
	gmt_table_each(&spill_queues, check_over, &all);
	return all;
}

static void check_goes_on(struct gmt_object *object, void *all)
{
	const struct gmt_spill_queue *queue = (const struct gmt_spill_queue *)object;
	bool open = atomic_load(&queue->done) < atomic_load(&queue->enqueued);
	if (open && !gmt_spill_queue_goes_on(queue, atomic_load(&queue->enqueued)))
		*(bool *)all = false;
}

bool gmt_spill_queues_go_on(void)
{
	bool all = atomic_load(&closing) == 0;
	gmt_table_each(&spill_queues, check_goes_on, &all);
	return all;
}

static cl_command_queue create_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int *errcode)
{
	cl_command_queue handle = gmt_bare.clCreateCommandQueue(context, device, properties, errcode);
	if (handle)
		add_queue(handle, context, properties);
	return handle;
}

static cl_command_queue create_queue_with_properties(cl_context context, cl_device_id device, const cl_queue_properties *properties, cl_int *errcode)
{
	cl_command_queue handle = gmt_bare.clCreateCommandQueueWithProperties(context, device, properties, errcode);
	while (properties && properties[0] && properties[0] != CL_QUEUE_PROPERTIES)
		properties += 2;
	if (handle)
		add_queue(handle, context, properties && properties[0] ? properties[1] : 0);
	return handle;
}

static cl_int retain_queue(cl_command_queue handle)
{
	cl_int err = gmt_bare.clRetainCommandQueue(handle);
	struct gmt_spill_queue *queue = err == CL_SUCCESS ? gmt_spill_queue_find(handle) : NULL;
	if (queue)
		atomic_fetch_add(&queue->references, 1);
	return err;
}

static void CL_CALLBACK note_closed_queue_over(cl_event marker, cl_int status, void *data)
{
	struct gmt_spill_queue *queue = data;
	if (status == CL_COMPLETE) {
		atomic_fetch_sub(&closing, 1);
		gmt_table_recycle(&spill_queues, &queue->object); /* uses that point to it see another id */
	}
	gmt_bare.clReleaseEvent(marker);
}

/* Whether nothing but a marker of ours would still be in it. */
static bool was_waited_for(const struct gmt_spill_queue *queue)
{
	bool believed = !queue->hasty || !atomic_load_explicit(&gmt_flushed, memory_order_relaxed);
	return believed && atomic_load(&queue->finished) >= atomic_load(&queue->enqueued);
}

/*
 * Waits for the marker on a sub-device, which drivers free with the program's last reference: PoCL 3.1 would still run the marker.
 * Whether it has completed.
 */
static bool wait_past_subdevice(cl_event marker, cl_command_queue handle)
{
	cl_device_id device = NULL, parent = NULL;
	gmt_bare.clGetCommandQueueInfo(handle, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
	gmt_bare.clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL);
	uint64_t start = gmt_now();
	while (parent && event_status(marker) > CL_COMPLETE && !gmt_spill_gated() && gmt_now() - start < PATIENCE)
		gmt_pause(MOMENT);
	return parent && event_status(marker) == CL_COMPLETE;
}

/*
 * Its commands may still run. A marker reports their end; where there is none, objects that it used stay, and so does the entry,
 * because their uses point to it.
 */
static void close_queue(struct gmt_spill_queue *queue, cl_command_queue handle)
{
	gmt_lock(&queue->lock);
	poll_marker(queue);
	drop_marker(queue);
	queue->closed = true;
	gmt_unlock(&queue->lock);
	bool open = atomic_load(&queue->enqueued) > atomic_load(&queue->done) && !was_waited_for(queue);
	if (open)
		atomic_fetch_add(&closing, 1);
	gmt_table_remove(&spill_queues, &queue->object, !open);
	cl_event marker = open && can_marker_report_all(queue) ? gmt_enqueue_marker(handle, queue->old) : NULL;
	if (!marker)
		return;
	gmt_bare.clFlush(handle);
	if (wait_past_subdevice(marker, handle))
		note_closed_queue_over(marker, CL_COMPLETE, queue);
	else if (!gmt_bare.clSetEventCallback || gmt_bare.clSetEventCallback(marker, CL_COMPLETE, note_closed_queue_over, queue) != CL_SUCCESS)
		gmt_bare.clReleaseEvent(marker);
}

static cl_int release_queue(cl_command_queue handle)
{
	struct gmt_spill_queue *queue = gmt_spill_queue_find(handle);
	if (queue && gmt_last_reference(&queue->references))
		close_queue(queue, handle);
	return gmt_bare.clReleaseCommandQueue(handle);
}

/* A marker of ours may keep the queue. */
static cl_int get_queue_info(cl_command_queue handle, cl_command_queue_info what, size_t room, void *value, size_t *needed)
{
	struct gmt_spill_queue *queue = what == CL_QUEUE_REFERENCE_COUNT ? gmt_spill_queue_find(handle) : NULL;
	if (queue) {
		gmt_lock(&queue->lock);
		drop_marker(queue);
		atomic_store(&queue->held_from, 0);
		gmt_unlock(&queue->lock);
	}
	return gmt_bare.clGetCommandQueueInfo(handle, what, room, value, needed);
}

/*
 * rusticl of Mesa 22.3 returns at once behind a clFlush, so a marker says whether it has waited, and waits for the rest. It comes
 * after the driver's clFinish: hooks/hook_sync.c says why. As long as memory is not short, the first look for room puts it. Where
 * none would say anything, the driver is believed.
 */
static void check_after_finish(struct gmt_spill_queue *queue, cl_command_queue handle, uint64_t enqueued)
{
	cl_event waits = NULL;
	gmt_lock(&queue->lock);
	poll_marker(queue);
	bool put = gmt_spill_is_short() && can_marker_report_all(queue) && !may_wait_for_user(queue) && atomic_load(&queue->done) < enqueued;
	if (put)
		put_marker(queue, handle, enqueued);
	if (put && queue->marker && !gmt_spill_gated() && gmt_bare.clRetainEvent(queue->marker) == CL_SUCCESS)
		waits = queue->marker;
	gmt_raise_position(&queue->finished, enqueued);
	if (!can_marker_report_all(queue) || (gmt_spill_is_short() && !queue->marker))
		gmt_raise_position(&queue->done, enqueued);
	gmt_unlock(&queue->lock);
	if (put)
		gmt_bare.clFlush(handle);
	if (!waits)
		return;
	gmt_bare.clWaitForEvents(1, &waits);
	gmt_bare.clReleaseEvent(waits);
	gmt_lock(&queue->lock);
	poll_marker(queue);
	gmt_unlock(&queue->lock);
}

static cl_int finish_queue(cl_command_queue handle)
{
	struct gmt_spill_queue *queue = gmt_spill_queue_find(handle);
	uint64_t enqueued = queue ? atomic_load(&queue->enqueued) : 0;
	bool open = queue && atomic_load(&queue->done) < enqueued;
	cl_int err = gmt_bare.clFinish(handle);
	if (open && err == CL_SUCCESS)
		check_after_finish(queue, handle, enqueued);
	return err;
}

static cl_int set_user_event(cl_event event, cl_int status)
{
	if (status < 0)
		gmt_table_each_outside(&spill_queues, mark_before_failure);
	cl_int err = gmt_bare.clSetUserEventStatus(event, status);
	if (err == CL_SUCCESS)
		gmt_spill_gate_opened();
	return err;
}

void gmt_spill_override_queues(struct gmt_functions *functions)
{
	GMT_SPILL_OVER(functions, clCreateCommandQueue, create_queue);
	GMT_SPILL_OVER(functions, clCreateCommandQueueWithProperties, create_queue_with_properties);
	GMT_SPILL_OVER(functions, clRetainCommandQueue, retain_queue);
	GMT_SPILL_OVER(functions, clReleaseCommandQueue, release_queue);
	GMT_SPILL_OVER(functions, clGetCommandQueueInfo, get_queue_info);
	GMT_SPILL_OVER(functions, clFinish, finish_queue);
	GMT_SPILL_OVER(functions, clSetUserEventStatus, set_user_event);
}
