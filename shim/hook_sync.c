/* hook_sync.c: where the program itself learns that commands are done, and user events, which undo any order. */
#define _GNU_SOURCE
#include "command.h"

static void write_sync(const struct gmt_call *call, enum gmtsync op, const struct gmt_queue *queue)
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
	GMT_TRY(err, gmt_next.clFinish(handle));
	if (queue && err == CL_SUCCESS) {
		gmt_queue_done(queue, enqueued);
		gmt_queue_poll(queue);
		gmt_pool_settle(256);
	}
	write_sync(&call, GMT_SYNC_FINISH, queue);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clFlush(cl_command_queue handle)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clFlush(handle);
	cl_int err = gmt_next.clFlush(handle);
	write_sync(&call, GMT_SYNC_FLUSH, gmt_queue_find(handle));
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clWaitForEvents(cl_uint count, const cl_event *events)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clWaitForEvents(count, events);
	cl_int err = gmt_next.clWaitForEvents(count, events);
	gmt_pool_settle(64);
	write_sync(&call, GMT_SYNC_WAIT, NULL);
	gmt_leave();
	return err;
}

GMT_HOOK cl_event clCreateUserEvent(cl_context handle, cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_next.clCreateUserEvent(handle, errcode);
	struct gmt_context *context = gmt_context_find(handle);
	if (context)
		atomic_store(&context->unordered, 1);
	cl_event event = gmt_next.clCreateUserEvent(handle, errcode);
	gmt_leave();
	return event;
}
