/* hook_rect.c: commands on rectangles in buffers. Rectangles beyond the request must fail, as ranges of other commands do. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../pool/suballoc.h"
#include "command.h"

#include <stdlib.h>

#define READS GMT_FLAG_READS
#define WRITES GMT_FLAG_WRITES

static bool is_region_empty(const size_t *region)
{
	return !region[0] || !region[1] || !region[2];
}

/* The bytes that a rectangle spans from its first to its last; pitches of 0 mean tightly packed (clEnqueueReadBufferRect). */
static size_t rect_span(const size_t *region, size_t row, size_t slice)
{
	if (!row)
		row = region[0];
	if (!slice)
		slice = row * region[1];
	if (is_region_empty(region))
		return 0;
	return (region[2] - 1) * slice + (region[1] - 1) * row + region[0];
}

/* Where a rectangle ends, in bytes; SIZE_MAX if beyond all memory, 0 if it is empty. */
static size_t rect_end(const size_t *origin, const size_t *region, size_t row, size_t slice)
{
	size_t line = row ? row : region[0], plane, lines, planes, end;
	if (is_region_empty(region))
		return 0;
	if (__builtin_mul_overflow(line, region[1], &plane) || __builtin_mul_overflow(line, origin[1] + region[1] - 1, &lines) ||
	    __builtin_mul_overflow(slice ? slice : plane, origin[2] + region[2] - 1, &planes) ||
	    __builtin_add_overflow(lines, planes, &end) || __builtin_add_overflow(end, origin[0], &end) ||
	    __builtin_add_overflow(end, region[0], &end))
		return SIZE_MAX;
	return end;
}

static const size_t one[] = {1, 1, 1};

/* The origin to give to the driver, and the region in *given: see gmt_command_range. A changed origin is stored in moved. */
static const size_t *rect_range(const struct gmt_memory *memory, const size_t *origin, const size_t *region, size_t row,
				size_t slice, size_t *moved, const size_t **given)
{
	if (!origin || !region)
		return origin; /* the driver has an error for that */
	size_t line = row ? row : region[0];
	size_t plane = slice ? slice : line * region[1];
	size_t offset = origin[2] * plane + origin[1] * line + origin[0];
	size_t bytes = rect_span(region, row, slice), to = gmt_command_range(memory, offset, bytes, &bytes);
	if (memory && memory->slab) /* an overflow must not look like a small offset */
		to = rect_end(origin, region, row, slice) <= memory->size ? offset : (size_t)memory->slab->granted + 1;
	if (to == offset)
		return origin;
	*given = is_region_empty(region) ? region : one;
	moved[0] = to;
	moved[1] = origin[1];
	moved[2] = origin[2];
	return moved;
}

/* The bytes of a rectangle: contiguous if its rows and slices are full. */
static struct gmt_extent rect_extent(const size_t *origin, const size_t *region, size_t row, size_t slice)
{
	if (!origin || !region)
		return GMT_SOMEWHERE;
	size_t line = row ? row : region[0];
	size_t plane = slice ? slice : line * region[1];
	return (struct gmt_extent){
		.offset = origin[2] * plane + origin[1] * line + origin[0],
		.bytes = gmt_region_volume(region),
		.scattered = gmt_region_volume(region) != rect_span(region, row, slice),
	};
}

GMT_HOOK cl_int clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
					const size_t *hostorigin, const size_t *region, size_t row, size_t slice, size_t hostrow,
					size_t hostslice, void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_READ, __func__))
		return gmt_driver.clEnqueueReadBufferRect(queue, buffer, blocking, origin, hostorigin, region, row, slice, hostrow,
							hostslice, pointer, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, READS, rect_extent(origin, region, row, slice));
	gmt_command_transfers(&command, &GMT_CALLER, pointer, 0);
	size_t moved[3];
	origin = rect_range(memory, origin, region, row, slice, moved, &region);
	cl_int err;
	gmt_command_note_blocking(&command, blocking);
	GMT_TRY(err, command,
		gmt_driver.clEnqueueReadBufferRect(queue, buffer, blocking, origin, hostorigin, region, row, slice, hostrow,
						 hostslice, pointer, waits, list, event));
	return gmt_command_end(&command, err, blocking, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
					 const size_t *hostorigin, const size_t *region, size_t row, size_t slice, size_t hostrow,
					 size_t hostslice, const void *pointer, cl_uint waits, const cl_event *list,
					 cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_WRITE, __func__))
		return gmt_driver.clEnqueueWriteBufferRect(queue, buffer, blocking, origin, hostorigin, region, row, slice, hostrow,
							 hostslice, pointer, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, WRITES, rect_extent(origin, region, row, slice));
	gmt_command_transfers(&command, &GMT_CALLER, pointer, 0);
	size_t moved[3];
	origin = rect_range(memory, origin, region, row, slice, moved, &region);
	cl_int err;
	gmt_command_note_blocking(&command, blocking);
	GMT_TRY(err, command,
		gmt_driver.clEnqueueWriteBufferRect(queue, buffer, blocking, origin, hostorigin, region, row, slice, hostrow,
						  hostslice, pointer, waits, list, event));
	if (blocking && err == CL_SUCCESS)
		gmt_command_done(&command);
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

/* Both sides of a copy. */
struct rectangles {
	cl_mem source, destination;
	const size_t *from, *to, *region;
	size_t row, slice, torow, toslice;
};

static cl_int copy_rect(cl_command_queue queue, const struct rectangles *r, cl_uint waits, const cl_event *list, cl_event *event)
{
	return gmt_driver.clEnqueueCopyBufferRect(queue, r->source, r->destination, r->from, r->to, r->region, r->row, r->slice,
						r->torow, r->toslice, waits, list, event);
}

/*
 * Returns the origin in the slab, and puts the slab's handle in place of the sub-allocation's: drivers carry out copies of
 * rectangles wrongly on sub-buffers (PoCL 3.1 crashes). The first dimension of the origin is in bytes and may be anything. The
 * origin of an empty rectangle stays: drivers subtract one from its end, and refuse a negative result.
 */
static const size_t *origin_in_slab(const struct gmt_memory *memory, cl_mem *handle, const size_t *origin, const size_t *region, size_t row,
			     size_t slice, size_t *moved, const size_t **given)
{
	if (!memory || !memory->slab || !origin || !region)
		return rect_range(memory, origin, region, row, slice, moved, given);
	bool fits = is_region_empty(region) ? origin[0] <= memory->size : rect_end(origin, region, row, slice) <= memory->size;
	size_t offset = 0;
	*handle = gmt_suballoc_to_slab(memory, *handle, &offset);
	if (!fits && !is_region_empty(region))
		*given = one;
	moved[0] = !fits ? (size_t)memory->slab->granted + 1 : is_region_empty(region) ? origin[0] : origin[0] + offset;
	moved[1] = origin[1];
	moved[2] = origin[2];
	return moved;
}

/* A pitch of 0 means tightly packed. */
static size_t row_pitch(const size_t *region, size_t row)
{
	return row ? row : region[0];
}

static size_t slice_pitch(const size_t *region, size_t row, size_t slice)
{
	return slice ? slice : row_pitch(region, row) * region[1];
}

static bool same_pitches(const struct rectangles *r)
{
	return row_pitch(r->region, r->row) == row_pitch(r->region, r->torow) &&
	       slice_pitch(r->region, r->row, r->slice) == slice_pitch(r->region, r->torow, r->toslice);
}

/* Whether rows of two planes that are apart bytes from each other overlap: only rows of nearly the same height can. */
static bool rows_meet(int64_t apart, int64_t row, int64_t width, int64_t rows)
{
	int64_t y = -apart / row;
	for (int64_t near = y - 1; near <= y + 1; near++)
		if (near > -rows && near < rows && llabs(apart + near * row) < width)
			return true;
	return false;
}

/*
 * Whether two rectangles of one buffer overlap, which are not empty, lie in the buffer and have the same pitches. The driver
 * refuses pitches that are too small; with others no plane is longer than its distance to the next, so only planes of nearly
 * the same depth can overlap.
 */
static bool rects_overlap(const struct rectangles *r)
{
	int64_t row = (int64_t)row_pitch(r->region, r->row), slice = (int64_t)slice_pitch(r->region, r->row, r->slice);
	int64_t width = (int64_t)r->region[0], rows = (int64_t)r->region[1], slices = (int64_t)r->region[2];
	if (row < width || slice / row < rows)
		return false;
	int64_t apart = ((int64_t)r->to[0] - (int64_t)r->from[0]) + ((int64_t)r->to[1] - (int64_t)r->from[1]) * row +
			((int64_t)r->to[2] - (int64_t)r->from[2]) * slice;
	int64_t z = -apart / slice;
	for (int64_t near = z - 1; near <= z + 1; near++)
		if (near > -slices && near < slices && rows_meet(apart + near * slice, row, width, rows))
			return true;
	return false;
}

/*
 * Copies through a temporary buffer: rules about copies inside one buffer must not apply to two sub-allocations of a slab.
 * refused: the driver's answer to the direct copy, returned if the buffer cannot be created.
 */
static cl_int copy_through_buffer(cl_command_queue queue, const struct rectangles *r, cl_context context, cl_int refused, cl_uint waits,
			 const cl_event *list, cl_event *event)
{
	static const size_t zero[3];
	cl_int err = CL_OUT_OF_RESOURCES;
	cl_event first = NULL;
	cl_mem between = gmt_driver.clCreateBuffer(context, 0, r->region[0] * r->region[1] * r->region[2], NULL, &err);
	if (!between)
		return err == CL_INVALID_BUFFER_SIZE ? refused : err;
	struct rectangles out = *r, in = *r;
	out.destination = in.source = between;
	out.to = in.from = zero;
	out.torow = in.row = r->region[0];
	out.toslice = in.slice = r->region[0] * r->region[1];
	err = copy_rect(queue, &out, waits, list, &first);
	if (err == CL_SUCCESS) {
		err = copy_rect(queue, &in, 1, &first, event);
		gmt_driver.clReleaseEvent(first);
	}
	gmt_driver.clReleaseMemObject(between);
	return err;
}

/* Copies between sub-allocations. r names slabs, asked has the origins that the program gave. */
static cl_int copy_in_slabs(cl_command_queue queue, const struct rectangles *r, const struct rectangles *asked, const struct gmt_memory *in,
			 const struct gmt_memory *out, cl_uint waits, const cl_event *list, cl_event *event)
{
	bool inside = in && out && in->slab && in->slab == out->slab && r->from && r->to && r->region && !is_region_empty(r->region) &&
		      rect_end(asked->from, asked->region, asked->row, asked->slice) <= in->size &&
		      rect_end(asked->to, asked->region, asked->torow, asked->toslice) <= out->size;
	struct rectangles same = *r;
	if (inside && in == out && same_pitches(r) && rects_overlap(asked)) {
		same.to = same.from; /* every driver sees that these overlap */
		return copy_rect(queue, &same, waits, list, event);
	}
	cl_int err = copy_rect(queue, r, waits, list, event);
	bool rule = in != out && (err == CL_MEM_COPY_OVERLAP || err == CL_INVALID_VALUE);
	cl_context context = inside ? (cl_context)atomic_load(&in->context->object.handle) : NULL;
	if (gmt_likely(!inside || !rule || !context))
		return err;
	return copy_through_buffer(queue, r, context, err, waits, list, event);
}

GMT_HOOK cl_int clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem source, cl_mem destination, const size_t *from,
					const size_t *to, const size_t *region, size_t row, size_t slice, size_t torow,
					size_t toslice, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY, __func__))
		return gmt_driver.clEnqueueCopyBufferRect(queue, source, destination, from, to, region, row, slice, torow, toslice,
							waits, list, event);
	struct gmt_memory *in = gmt_command_uses(&command, source, READS, rect_extent(from, region, row, slice));
	struct gmt_memory *out = gmt_command_uses(&command, destination, WRITES, rect_extent(to, region, torow, toslice));
	gmt_command_copies(&command, &GMT_CALLER);
	size_t moved[2][3];
	struct rectangles asked = {source, destination, from, to, region, row, slice, torow, toslice}, r = asked;
	r.from = origin_in_slab(in, &r.source, from, region, row, slice, moved[0], &r.region);
	r.to = origin_in_slab(out, &r.destination, to, region, torow, toslice, moved[1], &r.region);
	cl_int err;
	GMT_TRY(err, command, copy_in_slabs(queue, &r, &asked, in, out, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}
