/* hook_buffer.c: commands on buffers. A block larger than the request must still refuse what lies beyond the request. */
#define _GNU_SOURCE
#include "command.h"

#define READS GMT_FLAG_READS
#define WRITES GMT_FLAG_WRITES

/* The bytes that a rectangle spans from its first to its last; pitches of 0 mean tightly packed (clEnqueueReadBufferRect). */
static size_t span(const size_t *region, size_t row, size_t slice)
{
	if (!row)
		row = region[0];
	if (!slice)
		slice = row * region[1];
	if (!region[0] || !region[1] || !region[2])
		return 0;
	return (region[2] - 1) * slice + (region[1] - 1) * row + region[0];
}

/* The origin to give to the driver: see gmt_command_range. moved has room for another. */
static const size_t *rect_range(const struct gmt_memory *memory, const size_t *origin, const size_t *region, size_t row,
				size_t slice, size_t *moved)
{
	if (!origin || !region)
		return origin; /* the driver has an error for that */
	size_t line = row ? row : region[0];
	size_t plane = slice ? slice : line * region[1];
	size_t offset = origin[2] * plane + origin[1] * line + origin[0];
	size_t given = gmt_command_range(memory, offset, span(region, row, slice));
	if (given == offset)
		return origin;
	moved[0] = given;
	moved[1] = origin[1];
	moved[2] = origin[2];
	return moved;
}

static uint64_t volume(const size_t *region)
{
	return region ? (uint64_t)region[0] * region[1] * region[2] : 0;
}

/* For padded blocks only: how many bytes of a buffer a copy from or to an image touches. */
static size_t image_range(cl_mem image, const struct gmt_memory *buffer, size_t offset, const size_t *region)
{
	size_t element = 0;
	if (!buffer || buffer->granted <= buffer->size || !region ||
	    gmt_next.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, NULL) != CL_SUCCESS)
		return offset;
	return gmt_command_range(buffer, offset, (size_t)volume(region) * element);
}

GMT_HOOK cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				    void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_READ, __func__))
		return gmt_next.clEnqueueReadBuffer(queue, buffer, blocking, offset, size, pointer, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, READS, size);
	offset = gmt_command_range(memory, offset, size);
	cl_int err;
	GMT_TRY(err, command,
		gmt_next.clEnqueueReadBuffer(queue, buffer, blocking, offset, size, pointer, waits, list, event));
	return gmt_command_end(&command, err, blocking, GMT_ORDER);
}

GMT_HOOK cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				     const void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_WRITE, __func__))
		return gmt_next.clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, pointer, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, WRITES, size);
	offset = gmt_command_range(memory, offset, size);
	cl_int err;
	GMT_TRY(err, command,
		gmt_next.clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, pointer, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_ORDER);
}

GMT_HOOK cl_int clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
					const size_t *hostorigin, const size_t *region, size_t row, size_t slice, size_t hostrow,
					size_t hostslice, void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_READ, __func__))
		return gmt_next.clEnqueueReadBufferRect(queue, buffer, blocking, origin, hostorigin, region, row, slice, hostrow,
							hostslice, pointer, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, READS, volume(region));
	size_t moved[3];
	origin = rect_range(memory, origin, region, row, slice, moved);
	cl_int err;
	GMT_TRY(err, command,
		gmt_next.clEnqueueReadBufferRect(queue, buffer, blocking, origin, hostorigin, region, row, slice, hostrow,
						 hostslice, pointer, waits, list, event));
	return gmt_command_end(&command, err, blocking, GMT_ORDER);
}

GMT_HOOK cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
					 const size_t *hostorigin, const size_t *region, size_t row, size_t slice, size_t hostrow,
					 size_t hostslice, const void *pointer, cl_uint waits, const cl_event *list,
					 cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_WRITE, __func__))
		return gmt_next.clEnqueueWriteBufferRect(queue, buffer, blocking, origin, hostorigin, region, row, slice, hostrow,
							 hostslice, pointer, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, WRITES, volume(region));
	size_t moved[3];
	origin = rect_range(memory, origin, region, row, slice, moved);
	cl_int err;
	GMT_TRY(err, command,
		gmt_next.clEnqueueWriteBufferRect(queue, buffer, blocking, origin, hostorigin, region, row, slice, hostrow,
						  hostslice, pointer, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_ORDER);
}

GMT_HOOK cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem source, cl_mem destination, size_t from, size_t to,
				    size_t size, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY, __func__))
		return gmt_next.clEnqueueCopyBuffer(queue, source, destination, from, to, size, waits, list, event);
	struct gmt_memory *in = gmt_command_uses(&command, source, READS, size);
	struct gmt_memory *out = gmt_command_uses(&command, destination, WRITES, size);
	from = gmt_command_range(in, from, size);
	to = gmt_command_range(out, to, size);
	cl_int err;
	GMT_TRY(err, command, gmt_next.clEnqueueCopyBuffer(queue, source, destination, from, to, size, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_ORDER);
}

GMT_HOOK cl_int clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem source, cl_mem destination, const size_t *from,
					const size_t *to, const size_t *region, size_t row, size_t slice, size_t torow,
					size_t toslice, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY, __func__))
		return gmt_next.clEnqueueCopyBufferRect(queue, source, destination, from, to, region, row, slice, torow, toslice,
							waits, list, event);
	struct gmt_memory *in = gmt_command_uses(&command, source, READS, volume(region));
	struct gmt_memory *out = gmt_command_uses(&command, destination, WRITES, volume(region));
	size_t moved[2][3];
	from = rect_range(in, from, region, row, slice, moved[0]);
	to = rect_range(out, to, region, torow, toslice, moved[1]);
	cl_int err;
	GMT_TRY(err, command,
		gmt_next.clEnqueueCopyBufferRect(queue, source, destination, from, to, region, row, slice, torow, toslice,
						 waits, list, event));
	return gmt_command_end(&command, err, false, GMT_ORDER);
}

GMT_HOOK cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t patternsize, size_t offset,
				    size_t size, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_FILL, __func__))
		return gmt_next.clEnqueueFillBuffer(queue, buffer, pattern, patternsize, offset, size, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, WRITES, size);
	offset = gmt_command_range(memory, offset, size);
	cl_int err;
	GMT_TRY(err, command,
		gmt_next.clEnqueueFillBuffer(queue, buffer, pattern, patternsize, offset, size, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_ORDER);
}

GMT_HOOK cl_int clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem image, cl_mem buffer, const size_t *origin,
					   const size_t *region, size_t offset, cl_uint waits, const cl_event *list,
					   cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY, __func__))
		return gmt_next.clEnqueueCopyImageToBuffer(queue, image, buffer, origin, region, offset, waits, list, event);
	gmt_command_uses(&command, image, READS, 0);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, WRITES, 0);
	offset = image_range(image, memory, offset, region);
	cl_int err;
	GMT_TRY(err, command,
		gmt_next.clEnqueueCopyImageToBuffer(queue, image, buffer, origin, region, offset, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_ORDER);
}

GMT_HOOK cl_int clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem buffer, cl_mem image, size_t offset,
					   const size_t *origin, const size_t *region, cl_uint waits, const cl_event *list,
					   cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY, __func__))
		return gmt_next.clEnqueueCopyBufferToImage(queue, buffer, image, offset, origin, region, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, READS, 0);
	gmt_command_uses(&command, image, WRITES, 0);
	offset = image_range(image, memory, offset, region);
	cl_int err;
	GMT_TRY(err, command,
		gmt_next.clEnqueueCopyBufferToImage(queue, buffer, image, offset, origin, region, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_ORDER);
}
