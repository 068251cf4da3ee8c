/* pair.c: see pair.h. */
#define _GNU_SOURCE
#include "pair.h"

#include "context.h"

#include <stdlib.h>

#define STAND_IN 64 /* bytes */

cl_int gmt_spill_wait_list_error(cl_command_queue queue, cl_uint waits, const cl_event *list)
{
	if (!queue)
		return CL_INVALID_COMMAND_QUEUE;
	return (waits == 0) == (list == NULL) ? CL_SUCCESS : CL_INVALID_EVENT_WAIT_LIST;
}

void gmt_spill_pair_begin(struct gmt_spill_pair *pair, cl_command_queue queue, const char *name, cl_uint waits, const cl_event *list)
{
	gmt_spill_queue_note_gate(queue, waits, list);
	pair->command = (struct gmt_spill_command){.name = name, .queue = gmt_spill_queue_find(queue), .handle = queue, .uses = pair->use};
	pair->handles = 0;
	pair->outside = pair->stand_ins = false;
	pair->refused = gmt_spill_wait_list_error(queue, waits, list);
	pair->err = CL_SUCCESS;
}

void gmt_spill_pair_add(struct gmt_spill_pair *pair, cl_mem handle, bool writes)
{
	struct gmt_spill_object *object = gmt_spill_find(handle);
	if (object)
		pair->use[pair->command.count++] = (struct gmt_spill_use){object, writes};
	else if (gmt_spill_is_ours(handle))
		pair->err = CL_INVALID_MEM_OBJECT;
	pair->handle[pair->handles++] = handle;
}

void gmt_spill_pair_add_image(struct gmt_spill_pair *pair, cl_mem handle, bool writes)
{
	const struct gmt_spill_object *object = gmt_spill_find(handle);
	if (object && !object->image)
		pair->err = CL_INVALID_MEM_OBJECT;
	gmt_spill_pair_add(pair, handle, writes);
}

/* Not of a sub-buffer: some drivers let commands reach beyond its end. */
void gmt_spill_pair_check_range(struct gmt_spill_pair *pair, uint32_t which, size_t offset, size_t size)
{
	const struct gmt_spill_object *object = gmt_spill_find(pair->handle[which]);
	if (object && !object->parent && (offset > object->size || size > object->size - offset))
		pair->outside = true;
}

void gmt_spill_pair_check_rect(struct gmt_spill_pair *pair, uint32_t which, const size_t *origin, const size_t *region, size_t row,
			 size_t slice)
{
	size_t last, lines, layers, end;
	if (!origin || !region || !region[0] || !region[1] || !region[2])
		return;
	row = row ? row : region[0];
	bool over = __builtin_mul_overflow(row, region[1], &last);
	slice = slice ? slice : last;
	over |= __builtin_add_overflow(origin[1], region[1] - 1, &lines) || __builtin_mul_overflow(lines, row, &lines);
	over |= __builtin_add_overflow(origin[2], region[2] - 1, &layers) || __builtin_mul_overflow(layers, slice, &layers);
	over |= __builtin_add_overflow(lines, layers, &end) || __builtin_add_overflow(end, origin[0], &end);
	gmt_spill_pair_check_range(pair, which, over ? SIZE_MAX : end, region[0]);
}

void gmt_spill_pair_check_host(struct gmt_spill_pair *pair, const void *address, cl_mem_flags flags)
{
	for (uint32_t i = 0; i < pair->command.count; i++)
		if ((pair->use[i].object->flags | pair->use[i].object->root->flags) & flags)
			pair->refused = CL_INVALID_OPERATION;
	if (!address && pair->refused == CL_SUCCESS)
		pair->refused = CL_INVALID_VALUE;
}

cl_mem gmt_spill_create_stand_in(struct gmt_spill_object *object, size_t size)
{
	cl_int err = CL_SUCCESS;
	struct gmt_spill_context *context = object->context;
	size = size < object->size ? size : object->size;
	cl_mem_flags flags = object->root->flags;
	void *bytes = flags & CL_MEM_COPY_HOST_PTR ? calloc(1, size) : NULL; /* without the flag a driver may give another access */
	cl_mem buffer = gmt_bare.clCreateBuffer((cl_context)atomic_load(&context->object.handle), flags, size, bytes, &err);
	free(bytes);
	return buffer;
}

/* What ends behind a buffer ends behind a smaller one, too, so the driver's error is the same. */
static bool use_stand_ins(struct gmt_spill_pair *pair)
{
	bool all = true;
	for (uint32_t i = 0; i < pair->handles; i++) {
		struct gmt_spill_object *object = gmt_spill_find(pair->handle[i]);
		bool again = i && pair->handle[i] == pair->handle[0];
		pair->real[i] = again ? pair->real[0] : !object ? pair->handle[i] : object->image ? NULL : gmt_spill_create_stand_in(object, STAND_IN);
		all = all && pair->real[i];
	}
	pair->stand_ins = true;
	pair->command.count = 0;
	return all;
}

static void release_stand_ins(struct gmt_spill_pair *pair)
{
	for (uint32_t i = 0; i < pair->handles; i++)
		if (pair->real[i] && gmt_spill_is_ours(pair->handle[i]) && !(i && pair->real[i] == pair->real[0]))
			gmt_bare.clReleaseMemObject(pair->real[i]);
}

bool gmt_spill_pair_make_resident(struct gmt_spill_pair *pair)
{
	if (gmt_unlikely(pair->err != CL_SUCCESS))
		return false;
	pair->command.may_split |= pair->outside;
	pair->err = gmt_spill_begin_or_refuse(&pair->command, pair->refused);
	if (gmt_likely(pair->err == CL_SUCCESS)) {
		for (uint32_t i = 0; i < pair->handles; i++)
			pair->real[i] = gmt_spill_real_handle(pair->handle[i]);
		return true;
	}
	if (!pair->outside || use_stand_ins(pair))
		return pair->outside;
	release_stand_ins(pair);
	return false;
}

cl_int gmt_spill_pair_end(struct gmt_spill_pair *pair)
{
	if (gmt_likely(!pair->stand_ins)) {
		gmt_spill_end_command(&pair->command, pair->err);
		return pair->err;
	}
	release_stand_ins(pair);
	return pair->err == CL_SUCCESS ? CL_MEM_OBJECT_ALLOCATION_FAILURE : pair->err;
}
