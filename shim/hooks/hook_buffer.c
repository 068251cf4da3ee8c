/* hook_buffer.c: commands on buffers. In a block that is larger than the request, ranges beyond the request must fail. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../pool/suballoc.h"
#include "image_range.h"

#define READS GMT_FLAG_READS
#define WRITES GMT_FLAG_WRITES

GMT_HOOK cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				    void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_READ, __func__))
		return gmt_driver.clEnqueueReadBuffer(queue, buffer, blocking, offset, size, pointer, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, READS, GMT_EXTENT(offset, size));
	gmt_command_transfers(&command, &GMT_CALLER, pointer, size);
	offset = gmt_command_range(memory, offset, size, &size);
	cl_int err;
	gmt_command_note_blocking(&command, blocking);
	GMT_TRY(err, command,
		gmt_driver.clEnqueueReadBuffer(queue, buffer, blocking, offset, size, pointer, waits, list, event));
	return gmt_command_end(&command, err, blocking, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				     const void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_WRITE, __func__))
		return gmt_driver.clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, pointer, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, WRITES, GMT_EXTENT(offset, size));
	gmt_command_transfers(&command, &GMT_CALLER, pointer, size);
	offset = gmt_command_range(memory, offset, size, &size);
	cl_int err;
	gmt_command_note_blocking(&command, blocking);
	GMT_TRY(err, command,
		gmt_driver.clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, pointer, waits, list, event));
	if (blocking && err == CL_SUCCESS)
		gmt_command_done(&command);
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem source, cl_mem destination, size_t from, size_t to,
				    size_t size, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY, __func__))
		return gmt_driver.clEnqueueCopyBuffer(queue, source, destination, from, to, size, waits, list, event);
	struct gmt_memory *in = gmt_command_uses(&command, source, READS, GMT_EXTENT(from, size));
	struct gmt_memory *out = gmt_command_uses(&command, destination, WRITES, GMT_EXTENT(to, size));
	gmt_command_copies(&command, &GMT_CALLER);
	size_t given = size;
	from = gmt_command_range(in, from, size, &given);
	to = gmt_command_range(out, to, size, &given);
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueCopyBuffer(queue, source, destination, from, to, given, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t patternsize, size_t offset,
				    size_t size, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_FILL, __func__))
		return gmt_driver.clEnqueueFillBuffer(queue, buffer, pattern, patternsize, offset, size, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, WRITES, GMT_EXTENT(offset, size));
	gmt_command_transfers(&command, &GMT_CALLER, NULL, size);
	offset = gmt_command_range(memory, offset, size, &size);
	cl_int err;
	GMT_TRY(err, command,
		gmt_driver.clEnqueueFillBuffer(queue, buffer, pattern, patternsize, offset, size, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem image, cl_mem buffer, const size_t *origin,
					   const size_t *region, size_t offset, cl_uint waits, const cl_event *list,
					   cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY, __func__))
		return gmt_driver.clEnqueueCopyImageToBuffer(queue, image, buffer, origin, region, offset, waits, list, event);
	uint64_t bytes = gmt_command_uses_image(&command, image, READS, region);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, WRITES, GMT_EXTENT(offset, bytes));
	gmt_command_copies(&command, &GMT_CALLER);
	offset = gmt_image_range(&command, image, memory, offset, region);
	buffer = gmt_suballoc_to_slab(memory, buffer, &offset);
	cl_int err;
	GMT_TRY(err, command,
		gmt_driver.clEnqueueCopyImageToBuffer(queue, image, buffer, origin, region, offset, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem buffer, cl_mem image, size_t offset,
					   const size_t *origin, const size_t *region, cl_uint waits, const cl_event *list,
					   cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY, __func__))
		return gmt_driver.clEnqueueCopyBufferToImage(queue, buffer, image, offset, origin, region, waits, list, event);
	const struct gmt_memory *to = gmt_memory_find(image);
	uint64_t bytes = to ? gmt_region_volume(region) * to->element : 0;
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, READS, GMT_EXTENT(offset, bytes));
	gmt_command_uses_image(&command, image, WRITES, region);
	gmt_command_copies(&command, &GMT_CALLER);
	offset = gmt_image_range(&command, image, memory, offset, region);
	buffer = gmt_suballoc_to_slab(memory, buffer, &offset);
	cl_int err;
	GMT_TRY(err, command,
		gmt_driver.clEnqueueCopyBufferToImage(queue, buffer, image, offset, origin, region, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}
