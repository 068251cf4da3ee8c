/*
 * upload.c: fills blocks on a queue of our own, with a blocking command that depends on nothing, so it cannot wait for the
 * program. For the same reason the block must not be in use by any enqueued command.
 */
#define _GNU_SOURCE
#include "upload.h"

#include "../base/dispatch.h"
#include "../base/session.h"

static cl_command_queue queue_of(struct gmt_context *context)
{
	cl_command_queue queue = atomic_load(&context->upload), none = NULL;
	cl_context handle = (cl_context)atomic_load(&context->object.handle);
	if (gmt_likely(queue != NULL) || !context->device || !handle)
		return queue;
	cl_int err = CL_SUCCESS;
	queue = gmt_driver.clCreateCommandQueue(handle, context->device, 0, &err);
	if (!queue)
		return NULL;
	if (atomic_compare_exchange_strong(&context->upload, &none, queue))
		return queue;
	gmt_driver.clReleaseCommandQueue(queue); /* another thread was first */
	return none;
}

static bool finished(cl_event done)
{
	bool ok = gmt_driver.clWaitForEvents(1, &done) == CL_SUCCESS;
	gmt_driver.clReleaseEvent(done);
	return ok;
}

bool gmt_upload(struct gmt_context *context, cl_mem handle, size_t size, const void *host)
{
	cl_command_queue queue = queue_of(context);
	cl_event done;
	if (!queue || gmt_driver.clEnqueueWriteBuffer(queue, handle, CL_TRUE, 0, size, host, 0, NULL, &done) != CL_SUCCESS)
		return false;
	return finished(done); /* before OpenCL 2.0 a blocking write may return when the host's data has been read */
}

bool gmt_scrub(struct gmt_context *context, cl_mem handle, size_t size)
{
	unsigned char byte = gmt_session.config.scrub == GMT_SCRUB_POISON ? GMT_POISON : 0;
	cl_command_queue queue = context->old ? NULL : queue_of(context); /* the command came with OpenCL 1.2 */
	cl_event done;
	if (!queue || gmt_driver.clEnqueueFillBuffer(queue, handle, &byte, 1, 0, size, 0, NULL, &done) != CL_SUCCESS)
		return false;
	return finished(done);
}

void gmt_upload_drop_queue(struct gmt_context *context)
{
	cl_command_queue queue = atomic_exchange(&context->upload, NULL);
	if (queue)
		gmt_driver.clReleaseCommandQueue(queue);
}
