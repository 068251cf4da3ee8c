/*
 * upload.c: fills blocks on a queue of our own, with a blocking command that depends on nothing, so it cannot wait for the
 * program. For the same reason the block must not be in use by any enqueued command.
 */
#define _GNU_SOURCE
#include "upload.h"

#include "../base/dispatch.h"
#include "../base/lock.h"
#include "../base/session.h"

#include <stdlib.h>
#include <string.h>

/* The context's queue; more becomes its queue if it has none. The caller uses the queue until it calls leave. */
static cl_command_queue use_upload_queue(struct gmt_context *context, cl_command_queue more)
{
	gmt_lock(&context->lock);
	cl_command_queue queue = atomic_load(&context->upload.queue);
	if (!queue && more)
		atomic_store(&context->upload.queue, queue = more);
	context->upload.uses += queue != NULL;
	gmt_unlock(&context->lock);
	return queue;
}

cl_command_queue gmt_upload_queue(struct gmt_context *context)
{
	cl_command_queue queue = use_upload_queue(context, NULL);
	cl_context handle = (cl_context)atomic_load(&context->object.handle);
	if (gmt_likely(queue != NULL) || !context->devices.first || !handle)
		return queue;
	cl_int err = CL_SUCCESS;
	cl_command_queue more = gmt_driver.clCreateCommandQueue(handle, context->devices.first, 0, &err);
	if (!more)
		return NULL;
	queue = use_upload_queue(context, more);
	if (queue != more)
		gmt_driver.clReleaseCommandQueue(more); /* another thread was first */
	return queue;
}

/* Ends this many uses of the queue, and then the queue itself if nothing uses it and the context no longer has a pool. */
static void end_queue_uses(struct gmt_context *context, uint32_t uses)
{
	gmt_lock(&context->lock);
	context->upload.uses -= uses;
	bool needed = context->upload.uses || (atomic_load(&context->life.holds) && !atomic_load(&context->pool.closed));
	cl_command_queue queue = needed ? NULL : atomic_exchange(&context->upload.queue, NULL);
	gmt_unlock(&context->lock);
	if (queue)
		gmt_driver.clReleaseCommandQueue(queue);
}

void gmt_upload_leave(struct gmt_context *context)
{
	end_queue_uses(context, 1);
}

/* Waits for a command on the queue if it could be enqueued, and ends this use of the queue. */
static bool wait_finished(struct gmt_context *context, cl_int enqueued, cl_event done)
{
	bool ok = enqueued == CL_SUCCESS && gmt_driver.clWaitForEvents(1, &done) == CL_SUCCESS;
	if (enqueued == CL_SUCCESS)
		gmt_driver.clReleaseEvent(done);
	end_queue_uses(context, 1);
	return ok;
}

bool gmt_upload_buffer(struct gmt_context *context, cl_mem handle, size_t size, const void *host)
{
	cl_command_queue queue = gmt_upload_queue(context);
	cl_event done = NULL;
	if (!queue)
		return false;
	cl_int err = gmt_driver.clEnqueueWriteBuffer(queue, handle, CL_TRUE, 0, size, host, 0, NULL, &done);
	return wait_finished(context, err, done); /* before OpenCL 2.0 a blocking write may return when the host's data has been read */
}

/* The byte that scrubbed memory is filled with. */
static unsigned char scrub_byte(void)
{
	return gmt_session.config.scrub == GMT_SCRUB_POISON ? GMT_POISON : 0;
}

/* Fills the buffer handle, or if that is NULL the shared memory at pointer. */
static bool fill_memory(struct gmt_context *context, cl_mem handle, char *pointer, size_t size)
{
	const unsigned char byte = scrub_byte();
	cl_command_queue queue = gmt_upload_queue(context);
	cl_event done = NULL;
	cl_int err = CL_SUCCESS;
	if (!queue)
		return false;
	for (size_t at = 0; at < size && err == CL_SUCCESS; at += GMT_FILL_MOST) {
		size_t length = size - at < GMT_FILL_MOST ? size - at : GMT_FILL_MOST;
		cl_event *last = at + length == size ? &done : NULL;
		err = handle ? gmt_driver.clEnqueueFillBuffer(queue, handle, &byte, 1, at, length, 0, NULL, last)
			     : gmt_driver.clEnqueueSVMMemFill(queue, pointer + at, &byte, 1, length, 0, NULL, last);
		if (err != CL_SUCCESS && at > 0)
			gmt_driver.clFinish(queue);
	}
	return wait_finished(context, err, done);
}

bool gmt_scrub_buffer(struct gmt_context *context, cl_mem handle, size_t size)
{
	return !context->devices.old && fill_memory(context, handle, NULL, size); /* the command came with OpenCL 1.2 */
}

bool gmt_scrub_pointer(struct gmt_context *context, enum gmtmemory kind, void *pointer, size_t size)
{
	if (kind == GMT_MEMORY_SVM)
		return gmt_driver.clEnqueueSVMMemFill && fill_memory(context, NULL, pointer, size);
	memset(pointer, scrub_byte(), size);
	return true;
}

struct region {
	size_t size[3]; /* elements in each dimension; arrays have one more */
};

static struct region region_of(const cl_image_desc *desc)
{
	switch (desc->image_type) {
	case CL_MEM_OBJECT_IMAGE1D:
		return (struct region){{desc->image_width, 1, 1}};
	case CL_MEM_OBJECT_IMAGE1D_ARRAY:
		return (struct region){{desc->image_width, desc->image_array_size, 1}};
	case CL_MEM_OBJECT_IMAGE2D:
		return (struct region){{desc->image_width, desc->image_height, 1}};
	case CL_MEM_OBJECT_IMAGE2D_ARRAY:
		return (struct region){{desc->image_width, desc->image_height, desc->image_array_size}};
	default:
		return (struct region){{desc->image_width, desc->image_height, desc->image_depth}};
	}
}

static size_t image_extent(cl_mem image, cl_image_info what)
{
	size_t extent = 0;
	gmt_driver.clGetImageInfo(image, what, sizeof extent, &extent, NULL);
	return extent;
}

bool gmt_image_region(cl_mem handle, size_t region[3])
{
	cl_image_desc desc = {
		.image_width = image_extent(handle, CL_IMAGE_WIDTH), .image_height = image_extent(handle, CL_IMAGE_HEIGHT),
		.image_depth = image_extent(handle, CL_IMAGE_DEPTH), .image_array_size = image_extent(handle, CL_IMAGE_ARRAY_SIZE),
	};
	gmt_driver.clGetMemObjectInfo(handle, CL_MEM_TYPE, sizeof desc.image_type, &desc.image_type, NULL);
	struct region all = region_of(&desc);
	memcpy(region, all.size, sizeof all.size);
	return region[0] && region[1] && region[2];
}

static bool write_image(struct gmt_context *context, cl_mem handle, const struct region *region, size_t row, size_t slice,
			const void *host)
{
	cl_command_queue queue = gmt_upload_queue(context);
	const size_t origin[3] = {0, 0, 0};
	cl_event done = NULL;
	if (!queue)
		return false;
	cl_int err = gmt_driver.clEnqueueWriteImage(queue, handle, CL_TRUE, origin, region->size, row, slice, host, 0, NULL, &done);
	return wait_finished(context, err, done);
}

bool gmt_upload_image(struct gmt_context *context, cl_mem handle, const cl_image_desc *desc, const void *host)
{
	struct region region = region_of(desc);
	return write_image(context, handle, &region, desc->image_row_pitch, desc->image_slice_pitch, host);
}

/* Written, not filled: a colour is not bytes in each format. */
bool gmt_scrub_image(struct gmt_context *context, cl_mem handle, const cl_image_desc *desc)
{
	struct region region = region_of(desc);
	size_t element = 0;
	gmt_driver.clGetImageInfo(handle, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, NULL);
	size_t bytes = region.size[0] * region.size[1] * region.size[2] * element;
	unsigned char *host = bytes ? malloc(bytes) : NULL;
	if (!host)
		return false;
	memset(host, scrub_byte(), bytes);
	bool ok = write_image(context, handle, &region, 0, 0, host);
	free(host);
	return ok;
}

void gmt_upload_drop_queue(struct gmt_context *context)
{
	end_queue_uses(context, 0);
}
