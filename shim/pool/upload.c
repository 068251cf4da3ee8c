/*
 * upload.c: fills blocks on a queue of our own, with a blocking command that depends on nothing, so it cannot wait for the
 * program. For the same reason the block must not be in use by any enqueued command.
 */
#define _GNU_SOURCE
#include "upload.h"

#include "../base/dispatch.h"
#include "../base/session.h"

#include <stdlib.h>
#include <string.h>

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

/* What scrubbed memory is filled with. */
static unsigned char filler(void)
{
	return gmt_session.config.scrub == GMT_SCRUB_POISON ? GMT_POISON : 0;
}

bool gmt_scrub(struct gmt_context *context, cl_mem handle, size_t size)
{
	unsigned char byte = filler();
	cl_command_queue queue = context->old ? NULL : queue_of(context); /* the command came with OpenCL 1.2 */
	cl_event done;
	if (!queue || gmt_driver.clEnqueueFillBuffer(queue, handle, &byte, 1, 0, size, 0, NULL, &done) != CL_SUCCESS)
		return false;
	return finished(done);
}

bool gmt_scrub_pointer(struct gmt_context *context, enum gmtmemory kind, void *pointer, size_t size)
{
	unsigned char byte = filler();
	if (kind != GMT_MEMORY_SVM) {
		memset(pointer, byte, size);
		return true;
	}
	cl_command_queue queue = gmt_driver.clEnqueueSVMMemFill ? queue_of(context) : NULL;
	cl_event done;
	if (!queue || gmt_driver.clEnqueueSVMMemFill(queue, pointer, &byte, 1, size, 0, NULL, &done) != CL_SUCCESS)
		return false;
	return finished(done);
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

static bool write_image(struct gmt_context *context, cl_mem handle, const struct region *region, size_t row, size_t slice,
			const void *host)
{
	cl_command_queue queue = queue_of(context);
	const size_t origin[3] = {0, 0, 0};
	cl_event done;
	if (!queue || gmt_driver.clEnqueueWriteImage(queue, handle, CL_TRUE, origin, region->size, row, slice, host, 0, NULL, &done) != CL_SUCCESS)
		return false;
	return finished(done);
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
	memset(host, filler(), bytes);
	bool ok = write_image(context, handle, &region, 0, 0, host);
	free(host);
	return ok;
}

void gmt_upload_drop_queue(struct gmt_context *context)
{
	cl_command_queue queue = atomic_exchange(&context->upload, NULL);
	if (queue)
		gmt_driver.clReleaseCommandQueue(queue);
}
