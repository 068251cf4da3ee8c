/* hook_sync.c: where the program waits for a queue, hands it over, or orders what is in it. */
#define _GNU_SOURCE
#include "command.h"

void gmt_write_sync(const struct gmt_call *call, enum gmtsync op, const struct gmt_queue *queue)
{
	if (!gmt_session.config.uses)
		return;
	struct gmtevent event = {
		.time = call->start,
		.duration = gmt_clamp32(gmt_now() - call->start),
		.kind = GMT_KIND_SYNC,
		.op = (uint8_t)op,
		.scope = queue ? gmt_scope(queue->context) : 0,
		.link = queue ? queue->object.number : 0,
	};
	gmt_ring_write(&event);
}

GMT_HOOK cl_int clFinish(cl_command_queue handle)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clFinish(handle);
	struct gmt_queue *queue = gmt_queue_find(handle);
	uint64_t enqueued = queue ? atomic_load(&queue->enqueued) : 0;
	cl_int err;
	struct gmt_shortage shortage = gmt_shortage();
	do
		err = gmt_next.clFinish(handle);
	while (gmt_unlikely(err != CL_SUCCESS) && gmt_pool_drain(&shortage, err, 0));
	if (queue && err == CL_SUCCESS) {
		gmt_queue_done(queue, enqueued);
		gmt_queue_poll(queue);
		gmt_pool_settle(256, false);
	}
	gmt_write_sync(&call, GMT_SYNC_FINISH, queue);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clFlush(cl_command_queue handle)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clFlush(handle);
	cl_int err = gmt_next.clFlush(handle);
	gmt_write_sync(&call, GMT_SYNC_FLUSH, gmt_queue_find(handle));
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_OTHER, __func__))
		return gmt_next.clEnqueueMarkerWithWaitList(queue, waits, list, event);
	cl_int err = gmt_next.clEnqueueMarkerWithWaitList(queue, waits, list, event);
	return gmt_command_end_fence(&command, err, false, GMT_ORDER);
}

GMT_HOOK cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_OTHER, __func__))
		return gmt_next.clEnqueueBarrierWithWaitList(queue, waits, list, event);
	cl_int err = gmt_next.clEnqueueBarrierWithWaitList(queue, waits, list, event);
	return gmt_command_end_fence(&command, err, true, GMT_ORDER);
}

GMT_HOOK cl_int clEnqueueMarker(cl_command_queue queue, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_OTHER, __func__))
		return gmt_next.clEnqueueMarker(queue, event);
	cl_int err = gmt_next.clEnqueueMarker(queue, event);
	return gmt_command_end_fence(&command, err, false, (struct gmt_order){0, NULL, event});
}

GMT_HOOK cl_int clEnqueueBarrier(cl_command_queue queue)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_OTHER, __func__))
		return gmt_next.clEnqueueBarrier(queue);
	cl_int err = gmt_next.clEnqueueBarrier(queue);
	return gmt_command_end_fence(&command, err, true, (struct gmt_order){0});
}
