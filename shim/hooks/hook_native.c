/*
 * hook_native.c: host code in a queue. The driver replaces handles in its arguments by pointers. For a sub-allocation we
 * pass the slab and add the offset ourselves (PoCL 3.1 forgets the offsets of sub-buffers).
 */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../order/handout.h"
#include "../pool/suballoc.h"
#include "command.h"

#include <stdlib.h>
#include <string.h>

/* Precedes the program's arguments; the driver copies both. */
struct native {
	void(CL_CALLBACK *function)(void *);
	size_t arguments; /* where these begin, in bytes */
	size_t count;
	struct {
		size_t place, offset; /* place of a pointer in the arguments, and the bytes to add to it */
	} pointer[];
};

static void CL_CALLBACK run_native(void *block)
{
	const struct native *n = block;
	char *arguments = (char *)block + n->arguments;
	for (size_t i = 0; i < n->count; i++) {
		char *pointer;
		memcpy(&pointer, arguments + n->pointer[i].place, sizeof pointer);
		pointer += n->pointer[i].offset;
		memcpy(arguments + n->pointer[i].place, &pointer, sizeof pointer);
	}
	n->function(arguments);
}

/* The program's call. */
struct native_call {
	void(CL_CALLBACK *function)(void *);
	void *arguments;
	size_t bytes;
	cl_uint count;
	const cl_mem *memories;
	const void **places;
};

/* Like gmt_suballoc_to_slab, also for the program's sub-buffer of a sub-allocation. */
static cl_mem slab_and_offset_of(cl_mem handle, size_t *offset)
{
	const struct gmt_memory *memory = gmt_memory_find(handle);
	*offset = 0;
	if (!memory || memory->kind != GMT_MEMORY_SUBBUFFER || !memory->parent || !memory->parent->slab)
		return gmt_suballoc_to_slab(memory, handle, offset);
	*offset = (size_t)memory->offset;
	return gmt_suballoc_to_slab(memory->parent, handle, offset);
}

static bool has_suballocs(const struct native_call *n)
{
	if (!n->function || !n->arguments || !n->memories || !n->places)
		return false;
	bool some = false;
	size_t offset;
	for (cl_uint i = 0; i < n->count; i++) {
		size_t place = (size_t)((const char *)n->places[i] - (const char *)n->arguments);
		if (place > n->bytes || n->bytes - place < sizeof(void *))
			return false; /* the driver has an error for that */
		some |= slab_and_offset_of(n->memories[i], &offset) != n->memories[i];
	}
	return some;
}

static cl_int enqueue_on_slabs(cl_command_queue queue, const struct native_call *n, cl_uint waits, const cl_event *list, cl_event *event)
{
	size_t head = (sizeof(struct native) + n->count * sizeof(((struct native *)0)->pointer[0]) + 15) & ~(size_t)15;
	struct native *block = malloc(head + n->bytes);
	cl_mem *memories = calloc(n->count, sizeof *memories);
	const void **places = calloc(n->count, sizeof *places);
	cl_int err = CL_OUT_OF_HOST_MEMORY;
	if (block && memories && places) {
		*block = (struct native){.function = n->function, .arguments = head};
		memcpy((char *)block + head, n->arguments, n->bytes);
		for (cl_uint i = 0; i < n->count; i++) {
			size_t place = (size_t)((const char *)n->places[i] - (const char *)n->arguments), offset;
			memories[i] = slab_and_offset_of(n->memories[i], &offset);
			places[i] = (char *)block + head + place;
			block->pointer[i].place = place;
			block->pointer[i].offset = offset;
		}
		block->count = n->count;
		err = gmt_driver.clEnqueueNativeKernel(queue, run_native, block, head + n->bytes, n->count, memories, places, waits,
						     list, event);
	}
	free(places);
	free(memories);
	free(block);
	return err;
}

/* Host code may wait for anything, so from here on the order of the queue proves nothing. */
GMT_HOOK cl_int clEnqueueNativeKernel(cl_command_queue queue, void(CL_CALLBACK *function)(void *), void *arguments, size_t bytes,
				      cl_uint count, const cl_mem *memories, const void **places, cl_uint waits,
				      const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_NATIVE, __func__))
		return gmt_driver.clEnqueueNativeKernel(queue, function, arguments, bytes, count, memories, places, waits, list, event);
	struct gmt_context *context = command.queue ? command.queue->context : NULL;
	if (context && !atomic_exchange(&context->order.unordered, 1))
		gmt_queue_note_gate(context); /* never undone */
	gmt_command_uses_all(&command, count, memories);
	struct native_call native = {function, arguments, bytes, count, memories, places};
	cl_int err;
	if (gmt_unlikely(has_suballocs(&native)))
		GMT_TRY(err, command, enqueue_on_slabs(queue, &native, waits, list, event));
	else
		GMT_TRY(err, command,
			gmt_driver.clEnqueueNativeKernel(queue, function, arguments, bytes, count, memories, places, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}
