/* hook_buffer.c: commands on buffers. A block larger than the request must still refuse what lies beyond the request. */
#define _GNU_SOURCE
#include "command.h"

#define READS GMT_FLAG_READS
#define WRITES GMT_FLAG_WRITES

static bool outside(cl_mem handle, size_t offset, size_t bytes)
{
	return gmt_outside(gmt_memory_find(handle), offset, bytes);
}

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

static bool rect_outside(cl_mem handle, const size_t *origin, const size_t *region, size_t row, size_t slice)
{
	if (!origin || !region)
		return false; /* the driver has an error for that */
	size_t line = row ? row : region[0];
	size_t plane = slice ? slice : line * region[1];
	return outside(handle, origin[2] * plane + origin[1] * line + origin[0], span(region, row, slice));
}

static uint64_t volume(const size_t *region)
{
	return region ? (uint64_t)region[0] * region[1] * region[2] : 0;
}

/* For padded blocks only: how many bytes of a buffer a copy from or to an image touches. */
static bool image_copy_outside(cl_mem image, cl_mem buffer, size_t offset, const size_t *region)
{
	struct gmt_memory *memory = gmt_memory_find(buffer);
	size_t element = 0;
	if (!memory || memory->granted <= memory->size || !region ||
	    gmt_next.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, NULL) != CL_SUCCESS)
		return false;
	return gmt_outside(memory, offset, (size_t)volume(region) * element);
}

GMT_HOOK cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				    void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_READ))
		return gmt_next.clEnqueueReadBuffer(queue, buffer, blocking, offset, size, pointer, waits, list, event);
	cl_int err = CL_INVALID_VALUE;
	if (!outside(buffer, offset, size))
		GMT_TRY(err, gmt_next.clEnqueueReadBuffer(queue, buffer, blocking, offset, size, pointer, waits, list, event));
	gmt_command_end(&command, err, blocking);
	gmt_command_use(&command, buffer, READS, size);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				     const void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_WRITE))
		return gmt_next.clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, pointer, waits, list, event);
	cl_int err = CL_INVALID_VALUE;
	if (!outside(buffer, offset, size))
		GMT_TRY(err, gmt_next.clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, pointer, waits, list, event));
	gmt_command_end(&command, err, false);
	gmt_command_use(&command, buffer, WRITES, size);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
					const size_t *hostorigin, const size_t *region, size_t row, size_t slice, size_t hostrow,
					size_t hostslice, void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_READ))
		return gmt_next.clEnqueueReadBufferRect(queue, buffer, blocking, origin, hostorigin, region, row, slice, hostrow,
							hostslice, pointer, waits, list, event);
	cl_int err = CL_INVALID_VALUE;
	if (!rect_outside(buffer, origin, region, row, slice))
		GMT_TRY(err, gmt_next.clEnqueueReadBufferRect(queue, buffer, blocking, origin, hostorigin, region, row, slice,
							      hostrow, hostslice, pointer, waits, list, event));
	gmt_command_end(&command, err, blocking);
	gmt_command_use(&command, buffer, READS, volume(region));
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
					 const size_t *hostorigin, const size_t *region, size_t row, size_t slice, size_t hostrow,
					 size_t hostslice, const void *pointer, cl_uint waits, const cl_event *list,
					 cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_WRITE))
		return gmt_next.clEnqueueWriteBufferRect(queue, buffer, blocking, origin, hostorigin, region, row, slice, hostrow,
							 hostslice, pointer, waits, list, event);
	cl_int err = CL_INVALID_VALUE;
	if (!rect_outside(buffer, origin, region, row, slice))
		GMT_TRY(err, gmt_next.clEnqueueWriteBufferRect(queue, buffer, blocking, origin, hostorigin, region, row, slice,
							       hostrow, hostslice, pointer, waits, list, event));
	gmt_command_end(&command, err, false);
	gmt_command_use(&command, buffer, WRITES, volume(region));
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem source, cl_mem destination, size_t from, size_t to,
				    size_t size, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY))
		return gmt_next.clEnqueueCopyBuffer(queue, source, destination, from, to, size, waits, list, event);
	cl_int err = CL_INVALID_VALUE;
	if (!outside(source, from, size) && !outside(destination, to, size))
		GMT_TRY(err, gmt_next.clEnqueueCopyBuffer(queue, source, destination, from, to, size, waits, list, event));
	gmt_command_end(&command, err, false);
	gmt_command_use(&command, source, READS, size);
	gmt_command_use(&command, destination, WRITES, size);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem source, cl_mem destination, const size_t *from,
					const size_t *to, const size_t *region, size_t row, size_t slice, size_t torow,
					size_t toslice, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY))
		return gmt_next.clEnqueueCopyBufferRect(queue, source, destination, from, to, region, row, slice, torow, toslice,
							waits, list, event);
	cl_int err = CL_INVALID_VALUE;
	if (!rect_outside(source, from, region, row, slice) && !rect_outside(destination, to, region, torow, toslice))
		GMT_TRY(err, gmt_next.clEnqueueCopyBufferRect(queue, source, destination, from, to, region, row, slice, torow,
							      toslice, waits, list, event));
	gmt_command_end(&command, err, false);
	gmt_command_use(&command, source, READS, volume(region));
	gmt_command_use(&command, destination, WRITES, volume(region));
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t patternsize, size_t offset,
				    size_t size, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_FILL))
		return gmt_next.clEnqueueFillBuffer(queue, buffer, pattern, patternsize, offset, size, waits, list, event);
	cl_int err = CL_INVALID_VALUE;
	if (!outside(buffer, offset, size))
		GMT_TRY(err, gmt_next.clEnqueueFillBuffer(queue, buffer, pattern, patternsize, offset, size, waits, list, event));
	gmt_command_end(&command, err, false);
	gmt_command_use(&command, buffer, WRITES, size);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem image, cl_mem buffer, const size_t *origin,
					   const size_t *region, size_t offset, cl_uint waits, const cl_event *list,
					   cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY))
		return gmt_next.clEnqueueCopyImageToBuffer(queue, image, buffer, origin, region, offset, waits, list, event);
	cl_int err = CL_INVALID_VALUE;
	if (!image_copy_outside(image, buffer, offset, region))
		GMT_TRY(err, gmt_next.clEnqueueCopyImageToBuffer(queue, image, buffer, origin, region, offset, waits, list, event));
	gmt_command_end(&command, err, false);
	gmt_command_use(&command, image, READS, 0);
	gmt_command_use(&command, buffer, WRITES, 0);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem buffer, cl_mem image, size_t offset,
					   const size_t *origin, const size_t *region, cl_uint waits, const cl_event *list,
					   cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY))
		return gmt_next.clEnqueueCopyBufferToImage(queue, buffer, image, offset, origin, region, waits, list, event);
	cl_int err = CL_INVALID_VALUE;
	if (!image_copy_outside(image, buffer, offset, region))
		GMT_TRY(err, gmt_next.clEnqueueCopyBufferToImage(queue, buffer, image, offset, origin, region, waits, list, event));
	gmt_command_end(&command, err, false);
	gmt_command_use(&command, buffer, READS, 0);
	gmt_command_use(&command, image, WRITES, 0);
	gmt_leave();
	return err;
}
