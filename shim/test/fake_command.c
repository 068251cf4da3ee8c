/* fake_command.c: commands on buffers, and what they do to contents. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <stdlib.h>
#include <string.h>

#define STORAGE_MAX (1u << 20) /* larger buffers have no contents and cannot be mapped */

unsigned char *fake_bytes(cl_mem memory, size_t offset)
{
	for (; memory->parent; memory = memory->parent)
		offset += memory->origin;
	if (memory->host)
		return memory->host + offset;
	if (memory->size > STORAGE_MAX)
		return NULL;
	if (!memory->storage) {
		memory->storage = malloc(memory->size);
		if (!memory->storage)
			fake_fail("out of memory");
		memset(memory->storage, fake.clean ? 0 : FAKE_FRESH, memory->size);
	}
	return memory->storage + offset;
}

const unsigned char *fake_contents(cl_mem memory)
{
	FAKE_LOCKED;
	return fake_alive(memory, FAKE_MEMORY) ? fake_bytes(memory, 0) : NULL;
}

static void copy_rectangle(const struct fake_command *c)
{
	const struct fake_action *a = &c->action;
	for (size_t z = 0; z < a->region[2]; z++)
		for (size_t y = 0; y < a->region[1]; y++)
			memmove(fake_bytes(c->memory[1], a->to + z * a->toslice + y * a->torow),
				fake_bytes(c->memory[0], a->from + z * a->slice + y * a->row), a->region[0]);
}

static unsigned char *bytes_for(enum fake_wrong kind, cl_mem memory, size_t offset)
{
	return fake_bytes(fake.wrongparts & kind && !memory->element ? fake_root(memory) : memory, offset);
}

static void fill(unsigned char *to, const struct fake_action *a)
{
	size_t done = a->patternsize < a->size ? a->patternsize : a->size;
	memcpy(to, a->pattern, done);
	for (size_t part; done > 0 && done < a->size; done += part) {
		part = done < a->size - done ? done : a->size - done; /* of whole patterns, except at the end */
		memcpy(to + done, to, part);
	}
}

void fake_act(const struct fake_command *c)
{
	const struct fake_action *a = &c->action;
	bool two = a->kind == FAKE_COPY || a->kind == FAKE_RECTANGLE;
	if (a->kind == FAKE_NOTHING || !fake_bytes(c->memory[0], 0) || (two && !fake_bytes(c->memory[1], 0)))
		return;
	switch (a->kind) {
	case FAKE_READ:
		memcpy(a->host.out, bytes_for(FAKE_READS, c->memory[0], a->from), a->size);
		break;
	case FAKE_WRITE:
		for (size_t y = 0; y < (a->row ? a->region[1] : 1); y++) /* rows of an image, or all of it */
			memcpy(bytes_for(FAKE_WRITES, c->memory[0], a->to + y * a->size), (const char *)a->host.in + y * a->row, a->size);
		break;
	case FAKE_RECTANGLE:
		copy_rectangle(c);
		break;
	case FAKE_COPY:
		memmove(bytes_for(FAKE_COPIES_TO, c->memory[1], a->to), bytes_for(FAKE_COPIES_FROM, c->memory[0], a->from), a->size);
		break;
	default:
		fill(bytes_for(FAKE_FILLS, c->memory[0], a->to), a);
	}
}

/* Whether a range ends in a buffer; some drivers look where the buffer ends that this one is a part of. */
static bool in_range(cl_mem buffer, size_t offset, size_t size)
{
	size_t whole = buffer->size;
	if (fake.fragile && buffer->parent) {
		whole = fake_root(buffer)->size;
		size_t end;
		if (offset > whole && __builtin_add_overflow(offset, size, &end))
			abort(); /* as rusticl does; without a part it finds the offset first */
		offset = offset > whole ? offset : offset + buffer->origin;
	}
	return offset <= whole && size <= whole - offset;
}

/* A command on one range of a buffer, with the driver's own checks: of its range last. */
static cl_int on_range(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, const void *pointer,
		       const struct fake_action *action, cl_uint waits, const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	cl_int err = fake_check(queue, 1, &buffer, waits, list);
	if (err != CL_SUCCESS)
		return err;
	if (!pointer || !in_range(buffer, offset, size))
		return CL_INVALID_VALUE;
	return fake_submit_action(queue, blocking, 1, &buffer, action, waits, list, event);
}

static size_t last_byte(const size_t *origin, const size_t *region, size_t row, size_t slice)
{
	row = row ? row : region[0];
	slice = slice ? slice : row * region[1];
	size_t planes, lines, end;
	if (__builtin_mul_overflow(origin[2] + region[2] - 1, slice, &planes) ||
	    __builtin_mul_overflow(origin[1] + region[1] - 1, row, &lines) || __builtin_add_overflow(planes, lines, &end) ||
	    __builtin_add_overflow(end, origin[0], &end) || __builtin_add_overflow(end, region[0], &end))
		return SIZE_MAX;
	return end;
}

GMT_HOOK cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				    void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct fake_action action = {.kind = FAKE_READ, .from = offset, .size = size, .host.out = pointer};
	void (*before)(void *) = atomic_load(&fake.beforeread);
	if (before)
		before(pointer);
	return on_range(queue, buffer, blocking, offset, size, pointer, &action, waits, list, event);
}

GMT_HOOK cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				     const void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct fake_action action = {.kind = FAKE_WRITE, .to = offset, .size = size, .host.in = pointer};
	return on_range(queue, buffer, blocking, offset, size, pointer, &action, waits, list, event);
}

GMT_HOOK cl_int clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
					const size_t *hostorigin, const size_t *region, size_t row, size_t slice, size_t hostrow,
					size_t hostslice, void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)hostrow, (void)hostslice;
	if (!origin || !hostorigin || !region)
		return CL_INVALID_VALUE;
	return on_range(queue, buffer, blocking, 0, last_byte(origin, region, row, slice), pointer, NULL, waits, list, event);
}

GMT_HOOK cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
					 const size_t *hostorigin, const size_t *region, size_t row, size_t slice, size_t hostrow,
					 size_t hostslice, const void *pointer, cl_uint waits, const cl_event *list,
					 cl_event *event)
{
	(void)hostrow, (void)hostslice;
	if (!origin || !hostorigin || !region)
		return CL_INVALID_VALUE;
	return on_range(queue, buffer, blocking, 0, last_byte(origin, region, row, slice), pointer, NULL, waits, list, event);
}

GMT_HOOK cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem source, cl_mem destination, size_t from, size_t to,
				    size_t size, cl_uint waits, const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	cl_mem both[] = {source, destination};
	struct fake_action action = {.kind = FAKE_COPY, .from = from, .to = to, .size = size};
	cl_int err = fake_check(queue, 2, both, waits, list);
	if (err != CL_SUCCESS)
		return err;
	if (!in_range(source, from, size) || !in_range(destination, to, size))
		return CL_INVALID_VALUE;
	size_t first = from + source->origin, second = to + destination->origin;
	if (fake_root(source) == fake_root(destination) && first < second + size && second < first + size)
		return CL_MEM_COPY_OVERLAP;
	return fake_submit_action(queue, CL_FALSE, 2, both, &action, waits, list, event);
}

GMT_HOOK cl_int clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem source, cl_mem destination, const size_t *from,
					const size_t *to, const size_t *region, size_t row, size_t slice, size_t torow,
					size_t toslice, cl_uint waits, const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	cl_mem both[] = {source, destination};
	cl_int err = fake_check(queue, 2, both, waits, list);
	if (err != CL_SUCCESS)
		return err;
	fake_not_fragile(source);
	fake_not_fragile(destination);
	if (!from || !to || !region || last_byte(from, region, row, slice) > source->size ||
	    last_byte(to, region, torow, toslice) > destination->size)
		return CL_INVALID_VALUE;
	struct fake_action a = {.kind = FAKE_RECTANGLE, .row = row ? row : region[0], .torow = torow ? torow : region[0]};
	a.slice = slice ? slice : a.row * region[1];
	a.toslice = toslice ? toslice : a.torow * region[1];
	if (source == destination && (a.row != a.torow || a.slice != a.toslice))
		return CL_INVALID_VALUE;
	memcpy(a.region, region, sizeof a.region);
	a.from = from[0] + from[1] * a.row + from[2] * a.slice;
	a.to = to[0] + to[1] * a.torow + to[2] * a.toslice;
	/* As coarse as a driver may be: by the boxes around them, and by the first dimension alone. */
	size_t end = last_byte(from, region, row, slice), toend = last_byte(to, region, torow, toslice);
	bool lines = from[0] < to[0] + region[0] && to[0] < from[0] + region[0];
	if (source == destination && ((a.from < toend && a.to < end && lines) || (fake.fragile && from[0] > 4096)))
		return CL_MEM_COPY_OVERLAP;
	return fake_submit_action(queue, CL_FALSE, 2, both, &a, waits, list, event);
}

GMT_HOOK cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t patternsize, size_t offset,
				    size_t size, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct fake_action action = {.kind = FAKE_FILL, .to = offset, .size = size, .patternsize = patternsize};
	if (pattern && patternsize <= sizeof action.pattern)
		memcpy(action.pattern, pattern, patternsize);
	return on_range(queue, buffer, CL_FALSE, offset, size, pattern, &action, waits, list, event);
}

static void *map(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t size, cl_uint waits,
		 const cl_event *list, cl_event *event, cl_int *errcode)
{
	FAKE_LOCKED;
	cl_int error = fake_check(queue, 1, &memory, waits, list);
	if (error == CL_SUCCESS && (!in_range(memory, offset, size) || !fake_bytes(memory, 0)))
		error = CL_INVALID_VALUE;
	if (error == CL_SUCCESS)
		error = fake_submit(queue, blocking, 1, &memory, waits, list, event);
	if (errcode)
		*errcode = error;
	if (error != CL_SUCCESS)
		return NULL;
	memory->maps++;
	if (fake.countparts && memory->parent)
		memory->parent->maps++;
	return bytes_for(FAKE_MAPS, memory, offset);
}

GMT_HOOK void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
				  size_t size, cl_uint waits, const cl_event *list, cl_event *event, cl_int *errcode)
{
	(void)flags;
	return map(queue, buffer, blocking, offset, size, waits, list, event, errcode);
}

GMT_HOOK void *clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking, cl_map_flags flags,
				 const size_t *origin, const size_t *region, size_t *row, size_t *slice, cl_uint waits,
				 const cl_event *list, cl_event *event, cl_int *errcode)
{
	(void)flags, (void)origin, (void)region, (void)row, (void)slice;
	return map(queue, image, blocking, 0, 0, waits, list, event, errcode);
}

static bool fake_mapped(cl_mem memory, const void *pointer)
{
	const unsigned char *bytes = fake_bytes(memory, 0), *p = pointer;
	return !bytes || (p >= bytes && p < bytes + memory->size);
}

GMT_HOOK cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void *pointer, cl_uint waits,
					const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	if (!fake_alive(memory, FAKE_MEMORY))
		return CL_INVALID_MEM_OBJECT;
	cl_mem root = fake.countparts ? fake_root(memory) : memory;
	if (!pointer || root->maps == 0 || !fake_mapped(root, pointer))
		return CL_INVALID_VALUE;
	cl_int err = fake_submit(queue, CL_FALSE, 1, &memory, waits, list, event);
	if (err != CL_SUCCESS)
		return err;
	memory->maps--;
	if (root != memory)
		root->maps--;
	return err;
}
