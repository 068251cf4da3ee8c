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

enum { TRIED = 8 };

/*
 * rusticl of Mesa 22.3 waits for what clFinish itself submits: behind a clFlush it returns at once, though commands still use
 * what the program then releases. So the first ones of a context behind any flush are tried out, with a marker that was flushed,
 * and all of them where one has returned too early. NULL: the driver is believed.
 */
static cl_event doubt(struct gmt_queue *queue, uint64_t enqueued)
{
	struct gmt_context *context = queue ? queue->context : NULL;
	if (!context || !atomic_load(&gmt_flushed) || !gmt_pooling() || atomic_load(&queue->done) >= enqueued)
		return NULL;
	if (!atomic_load(&context->tried.hasty) && atomic_load(&context->tried.finishes) >= TRIED)
		return NULL;
	atomic_fetch_add(&context->tried.finishes, 1);
	if (!gmt_lock_driver(&queue->lock))
		return NULL;
	cl_event marker = gmt_queue_marker_behind(queue, enqueued);
	gmt_unlock_driver(&queue->lock);
	return marker;
}

/* Waits for what the driver should have waited for. False if nothing is known then. */
static bool settle(struct gmt_context *context, cl_event marker)
{
	cl_int status = CL_COMPLETE;
	cl_int err = gmt_driver.clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
	if (err == CL_SUCCESS && status > CL_COMPLETE) {
		atomic_store(&context->tried.hasty, true);
		err = gmt_driver.clWaitForEvents(1, &marker);
		status = CL_COMPLETE;
	}
	gmt_driver.clReleaseEvent(marker);
	return err == CL_SUCCESS && status == CL_COMPLETE;
}

static void failed(const char *function, cl_int err, const struct gmt_caller *caller)
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
	cl_event marker = doubt(queue, enqueued);
	cl_int err;
	struct gmt_shortage shortage = gmt_shortage();
	do
		err = gmt_driver.clFinish(handle);
	while (gmt_unlikely(err != CL_SUCCESS) && gmt_oom_drain(&shortage, err, 0));
	bool all = !marker || settle(queue->context, marker);
	if (queue && err == CL_SUCCESS) {
		if (all)
			gmt_queue_completed(queue, enqueued);
		gmt_queue_poll(queue);
		gmt_cooling_collect(256, false);
	}
	if (gmt_unlikely(err != CL_SUCCESS))
		failed(__func__, err, &GMT_CALLER);
	gmt_held_tick(call.start);
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
		failed(__func__, err, &GMT_CALLER);
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
