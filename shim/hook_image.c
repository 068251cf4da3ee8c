/* hook_image.c: images, pipes and their commands: tracked, never pooled. Their size is what the driver says. */
#define _GNU_SOURCE
#include "command.h"

static cl_mem created(struct gmt_call *call, const void *caller, enum gmtmemory kind, cl_context context, cl_mem base,
		      cl_mem handle, cl_int error)
{
	size_t size = 0;
	if (handle && gmt_next.clGetMemObjectInfo(handle, CL_MEM_SIZE, sizeof size, &size, NULL) != CL_SUCCESS)
		size = 0;
	struct gmt_created c = {
		.handle = handle,
		.kind = kind,
		.context = gmt_context_find(context),
		.size = size,
		.tag = gmt_tag(call, caller, size),
		.parent = gmt_memory_find(base),
		.served = {.outcome = handle ? GMT_OUTCOME_DRIVER : GMT_OUTCOME_FAILED},
	};
	if (!c.parent)
		c.served.granted = size; /* an image of a buffer owns no memory */
	gmt_memory_report(call, &c, error);
	return handle;
}

#define CREATE_IMAGE(kind, context, base, failed, expression)                                                          \
	cl_int error = CL_SUCCESS;                                                                                     \
	cl_mem handle;                                                                                                 \
	do {                                                                                                           \
		handle = (expression);                                                                                 \
		gmt_driver_returned(&call);                                                                            \
	} while (!handle && gmt_pool_drain(error, 0));                                                                 \
	created(&call, __builtin_return_address(0), kind, context, base, handle, error);                               \
	if (failed)                                                                                                    \
		*(failed) = error;                                                                                     \
	gmt_leave();                                                                                                   \
	return handle

GMT_HOOK cl_mem clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc,
			      void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clCreateImage(context, flags, format, desc, host, errcode);
	CREATE_IMAGE(GMT_MEMORY_IMAGE, context, desc ? desc->mem_object : NULL, errcode,
		     gmt_next.clCreateImage(context, flags, format, desc, host, &error));
}

GMT_HOOK cl_mem clCreateImageWithProperties(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
					    const cl_image_format *format, const cl_image_desc *desc, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clCreateImageWithProperties(context, properties, flags, format, desc, host, errcode);
	CREATE_IMAGE(GMT_MEMORY_IMAGE, context, desc ? desc->mem_object : NULL, errcode,
		     gmt_next.clCreateImageWithProperties(context, properties, flags, format, desc, host, &error));
}

GMT_HOOK cl_mem clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width,
				size_t height, size_t pitch, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clCreateImage2D(context, flags, format, width, height, pitch, host, errcode);
	CREATE_IMAGE(GMT_MEMORY_IMAGE, context, NULL, errcode,
		     gmt_next.clCreateImage2D(context, flags, format, width, height, pitch, host, &error));
}

GMT_HOOK cl_mem clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width,
				size_t height, size_t depth, size_t row, size_t slice, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clCreateImage3D(context, flags, format, width, height, depth, row, slice, host, errcode);
	CREATE_IMAGE(GMT_MEMORY_IMAGE, context, NULL, errcode,
		     gmt_next.clCreateImage3D(context, flags, format, width, height, depth, row, slice, host, &error));
}

GMT_HOOK cl_mem clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet, cl_uint packets,
			     const cl_pipe_properties *properties, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clCreatePipe(context, flags, packet, packets, properties, errcode);
	CREATE_IMAGE(GMT_MEMORY_PIPE, context, NULL, errcode,
		     gmt_next.clCreatePipe(context, flags, packet, packets, properties, &error));
}

GMT_HOOK cl_int clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin,
				   const size_t *region, size_t row, size_t slice, void *pointer, cl_uint waits,
				   const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_READ))
		return gmt_next.clEnqueueReadImage(queue, image, blocking, origin, region, row, slice, pointer, waits, list, event);
	cl_int err;
	GMT_TRY(err, gmt_next.clEnqueueReadImage(queue, image, blocking, origin, region, row, slice, pointer, waits, list, event));
	gmt_command_end(&command, err, blocking);
	gmt_command_use(&command, image, GMT_FLAG_READS, 0);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin,
				    const size_t *region, size_t row, size_t slice, const void *pointer, cl_uint waits,
				    const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_WRITE))
		return gmt_next.clEnqueueWriteImage(queue, image, blocking, origin, region, row, slice, pointer, waits, list, event);
	cl_int err;
	GMT_TRY(err, gmt_next.clEnqueueWriteImage(queue, image, blocking, origin, region, row, slice, pointer, waits, list, event));
	gmt_command_end(&command, err, false);
	gmt_command_use(&command, image, GMT_FLAG_WRITES, 0);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueCopyImage(cl_command_queue queue, cl_mem source, cl_mem destination, const size_t *from,
				   const size_t *to, const size_t *region, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY))
		return gmt_next.clEnqueueCopyImage(queue, source, destination, from, to, region, waits, list, event);
	cl_int err;
	GMT_TRY(err, gmt_next.clEnqueueCopyImage(queue, source, destination, from, to, region, waits, list, event));
	gmt_command_end(&command, err, false);
	gmt_command_use(&command, source, GMT_FLAG_READS, 0);
	gmt_command_use(&command, destination, GMT_FLAG_WRITES, 0);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void *colour, const size_t *origin,
				   const size_t *region, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_FILL))
		return gmt_next.clEnqueueFillImage(queue, image, colour, origin, region, waits, list, event);
	cl_int err;
	GMT_TRY(err, gmt_next.clEnqueueFillImage(queue, image, colour, origin, region, waits, list, event));
	gmt_command_end(&command, err, false);
	gmt_command_use(&command, image, GMT_FLAG_WRITES, 0);
	gmt_leave();
	return err;
}
