/* hook_sync.c: the program waits for a queue, flushes it, or orders its commands. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../base/lock.h"
#include "../entry/sites.h"
#include "../order/queue.h"
#include "../pool/cooling.h"
#include "../registry/finding.h"
#include "../registry/held.h"
#include "command.h"

enum { TRIED = 8, MS = 1000000, GATED_MOST = 1000 * MS };

/*
 * Whether clFinish may return too early, so that we must wait after it. In rusticl of Mesa 22.3 it waits only for the last
 * command that it submits itself. After a clFlush it returns at once, though commands still use memory that the program then
 * releases. After a marker of ours it returns before the program's own command, though it has run, reports that. So with
 * rusticl we wait after each clFinish that follows a flush or marker. With other drivers we test the first calls in a context,
 * with a flushed marker, and wait after all if one of them has returned too early.
 */
static bool may_finish_return_early(const struct gmt_queue *queue, uint64_t enqueued)
{
	struct gmt_context *context = queue ? queue->context : NULL;
	if (!context || !gmt_pooling() || atomic_load(&queue->settled) >= enqueued)
		return false;
	if (!atomic_load(&context->tried.hasty) && atomic_load(&context->tried.finishes) >= TRIED)
		return false;
	return atomic_load(&queue->ours) >= enqueued || (atomic_load(&gmt_flushed) && atomic_load(&queue->done) < enqueued);
}

/* A flushed marker after everything enqueued, with a reference for the caller; NULL: there can be none. */
static cl_event put_flushed_marker(struct gmt_queue *queue)
{
	if (!gmt_lock_driver(&queue->lock))
		return NULL;
	cl_event marker = gmt_queue_flushed_marker(queue);
	gmt_unlock_driver(&queue->lock);
	return marker;
}

/* The status of a marker; CL_QUEUED if the driver does not say. */
static cl_int status_of_marker(cl_event marker)
{
	cl_int status = CL_QUEUED;
	cl_int err = gmt_driver.clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
	return err == CL_SUCCESS ? status : CL_QUEUED;
}

/*
 * Puts a flushed marker before a clFinish that tests the driver. Not with rusticl: the marker would take away its wait for the
 * program's own command, and on a busy machine the test would pass by chance, because rusticl's own thread runs before its
 * clFinish returns. The test counts if clFinish has something to wait for.
 */
static cl_event put_test_marker(struct gmt_queue *queue)
{
	struct gmt_context *context = queue->context;
	if (!atomic_load(&context->tried.finishes) && gmt_device_is_rusticl(context->devices.first))
		atomic_store(&context->tried.hasty, true);
	cl_event marker = atomic_load(&context->tried.hasty) ? NULL : put_flushed_marker(queue);
	if (marker && status_of_marker(marker) > CL_COMPLETE)
		atomic_fetch_add(&context->tried.finishes, 1);
	return marker;
}

/*
 * Waits for a marker; false: it failed. While a user event is open, the wait is bounded: another thread may have put a command
 * into the queue that waits for the user event, and the program may set that only after this clFinish.
 */
static bool wait_for_marker(const struct gmt_context *context, cl_event marker)
{
	for (uint64_t start = gmt_now(); gmt_is_gated(context) && status_of_marker(marker) > CL_COMPLETE; gmt_pause(MS / 20))
		if (gmt_now() - start > GATED_MOST)
			return false;
	return gmt_driver.clWaitForEvents(1, &marker) == CL_SUCCESS;
}

/*
 * Waits for the commands that the driver should have waited for: once a marker that is submitted only now has completed, all
 * before it have completed and report that. False: nothing is known.
 */
static bool wait_for_earlier_commands(struct gmt_queue *queue, cl_event tried)
{
	cl_int status = tried ? status_of_marker(tried) : CL_COMPLETE;
	if (tried)
		gmt_driver.clReleaseEvent(tried);
	if (status < 0)
		return false;
	if (status > CL_COMPLETE)
		atomic_store(&queue->context->tried.hasty, true);
	cl_event marker = put_flushed_marker(queue);
	if (!marker)
		return !atomic_load(&queue->context->tried.hasty);
	bool reached = wait_for_marker(queue->context, marker);
	gmt_driver.clReleaseEvent(marker);
	return reached;
}

static void report_failed_wait(const char *function, cl_int err, const struct gmt_caller *caller)
{
	gmt_call_failed(function, err, caller);
	gmt_finding_out_of_memory(function, NULL, 0, err);
}

GMT_HOOK cl_int clFinish(cl_command_queue handle)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_driver.clFinish(handle);
	struct gmt_queue *queue = gmt_queue_find(handle);
	uint64_t enqueued = queue ? atomic_load(&queue->enqueued) : 0;
	bool doubtful = may_finish_return_early(queue, enqueued);
	cl_event tried = doubtful ? put_test_marker(queue) : NULL;
	cl_int err;
	struct gmt_shortage shortage = gmt_shortage();
	if (queue)
		gmt_queue_begin_wait(queue);
	do
		err = gmt_driver.clFinish(handle);
	while (gmt_unlikely(err != CL_SUCCESS) && gmt_oom_drain(&shortage, err, 0));
	if (queue)
		gmt_queue_end_wait(queue);
	bool all = !doubtful || wait_for_earlier_commands(queue, tried);
	if (queue && err == CL_SUCCESS) {
		if (all)
			gmt_queue_note_completed(queue, enqueued);
		if (all && doubtful)
			gmt_raise_position(&queue->settled, enqueued);
		gmt_queue_poll_markers(queue);
		gmt_cooling_collect(256, false);
	}
	if (gmt_unlikely(err != CL_SUCCESS))
		report_failed_wait(__func__, err, &GMT_CALLER);
	gmt_held_write_due(call.start);
	gmt_command_write_sync(&call, GMT_SYNC_FINISH, queue);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clFlush(cl_command_queue handle)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_driver.clFlush(handle);
	atomic_store_explicit(&gmt_flushed, true, memory_order_relaxed);
	cl_int err = gmt_driver.clFlush(handle);
	if (gmt_unlikely(err != CL_SUCCESS))
		report_failed_wait(__func__, err, &GMT_CALLER);
	gmt_command_write_sync(&call, GMT_SYNC_FLUSH, gmt_queue_find(handle));
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_OTHER, __func__))
		return gmt_driver.clEnqueueMarkerWithWaitList(queue, waits, list, event);
	cl_int err = gmt_driver.clEnqueueMarkerWithWaitList(queue, waits, list, event);
	return gmt_command_end_fence(&command, err, false, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_OTHER, __func__))
		return gmt_driver.clEnqueueBarrierWithWaitList(queue, waits, list, event);
	cl_int err = gmt_driver.clEnqueueBarrierWithWaitList(queue, waits, list, event);
	return gmt_command_end_fence(&command, err, true, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueMarker(cl_command_queue queue, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_OTHER, __func__))
		return gmt_driver.clEnqueueMarker(queue, event);
	cl_int err = gmt_driver.clEnqueueMarker(queue, event);
	return gmt_command_end_fence(&command, err, false, &(struct gmt_wait_list){0, NULL, event, &GMT_CALLER});
}

GMT_HOOK cl_int clEnqueueBarrier(cl_command_queue queue)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_OTHER, __func__))
		return gmt_driver.clEnqueueBarrier(queue);
	cl_int err = gmt_driver.clEnqueueBarrier(queue);
	return gmt_command_end_fence(&command, err, true, &(struct gmt_wait_list){.caller = &GMT_CALLER});
}
