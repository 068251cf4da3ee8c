/* hook_image_command.c: commands on images. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "command.h"

GMT_HOOK cl_int clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin,
				   const size_t *region, size_t row, size_t slice, void *pointer, cl_uint waits,
				   const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_READ, __func__))
		return gmt_driver.clEnqueueReadImage(queue, image, blocking, origin, region, row, slice, pointer, waits, list, event);
	uint64_t bytes = gmt_command_uses_image(&command, image, GMT_FLAG_READS, region);
	gmt_command_transfers(&command, &GMT_CALLER, pointer, row || slice ? 0 : bytes);
	cl_int err;
	gmt_command_note_blocking(&command, blocking);
	GMT_TRY(err, command,
		gmt_driver.clEnqueueReadImage(queue, image, blocking, origin, region, row, slice, pointer, waits, list, event));
	return gmt_command_end(&command, err, blocking, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin,
				    const size_t *region, size_t row, size_t slice, const void *pointer, cl_uint waits,
				    const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_WRITE, __func__))
		return gmt_driver.clEnqueueWriteImage(queue, image, blocking, origin, region, row, slice, pointer, waits, list, event);
	uint64_t bytes = gmt_command_uses_image(&command, image, GMT_FLAG_WRITES, region);
	gmt_command_transfers(&command, &GMT_CALLER, pointer, row || slice ? 0 : bytes);
	cl_int err;
	gmt_command_note_blocking(&command, blocking);
	GMT_TRY(err, command,
		gmt_driver.clEnqueueWriteImage(queue, image, blocking, origin, region, row, slice, pointer, waits, list, event));
	if (blocking && err == CL_SUCCESS)
		gmt_command_done(&command);
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueCopyImage(cl_command_queue queue, cl_mem source, cl_mem destination, const size_t *from,
				   const size_t *to, const size_t *region, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY, __func__))
		return gmt_driver.clEnqueueCopyImage(queue, source, destination, from, to, region, waits, list, event);
	gmt_command_uses_image(&command, source, GMT_FLAG_READS, region);
	gmt_command_uses_image(&command, destination, GMT_FLAG_WRITES, region);
	gmt_command_copies(&command, &GMT_CALLER);
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueCopyImage(queue, source, destination, from, to, region, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void *colour, const size_t *origin,
				   const size_t *region, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_FILL, __func__))
		return gmt_driver.clEnqueueFillImage(queue, image, colour, origin, region, waits, list, event);
	gmt_command_uses_image(&command, image, GMT_FLAG_WRITES, region);
	gmt_command_transfers(&command, &GMT_CALLER, NULL, 0);
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueFillImage(queue, image, colour, origin, region, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}
