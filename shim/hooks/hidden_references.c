/*
 * hidden_references.c: see hidden_references.h.
 *
 * Some drivers count objects in their context's references. In some, a buffer references the event of its last
 * command, the event its queue, and the queue its context. A block in the pool, or one that was handed out and not used yet,
 * holds such references on behalf of an earlier owner, and queries must not show them. Queries are rare, so each searches the
 * whole registry.
 */
#define _GNU_SOURCE
#include "hidden_references.h"

#include "../base/dispatch.h"
#include "../base/lock.h"
#include "../registry/memory.h"

#include <stdlib.h>

/* The last command on one piece of memory. */
struct last {
	const struct gmt_queue *queue;
	uint64_t queue_id, position;
	bool live; /* the program holds the memory, and the command was its own */
	bool real; /* a driver's buffer may reference the event; false for a sub-allocation, whose slab does */
};

struct search {
	const struct gmt_context *context;
	struct last *list;
	size_t count, room;
};

static void add_last_command(struct gmt_memory *memory, void *arg)
{
	struct search *s = arg;
	if (memory->context != s->context || memory->parent || gmt_memory_is_shared(memory))
		return;
	gmt_lock(&memory->lock);
	struct gmt_use use = memory->uses ? gmt_memory_uses(memory)[memory->uses - 1] : (struct gmt_use){0};
	gmt_unlock(&memory->lock);
	if (!use.queue)
		return;
	if (s->count < s->room)
		s->list[s->count] = (struct last){
			use.queue, use.queue_id, use.position, !atomic_load(&memory->pooled) && !atomic_load(&memory->unused),
			memory->slab == NULL,
		};
	s->count++;
}

static int compare_last_commands(const void *a, const void *b)
{
	const struct last *x = a, *y = b;
	if (x->queue_id != y->queue_id)
		return x->queue_id < y->queue_id ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

/* All last commands in the context by queue and position; the caller frees the list. */
static struct search find_last_commands(const struct gmt_context *context)
{
	struct search s = {.context = context, .room = 1024};
	for (;;) {
		s.count = 0;
		s.list = malloc(s.room * sizeof *s.list);
		if (!s.list)
			return s;
		gmt_memory_each(add_last_command, &s);
		if (s.count <= s.room)
			break;
		s.room = 2 * s.count;
		free(s.list);
	}
	qsort(s.list, s.count, sizeof *s.list, compare_last_commands);
	return s;
}

/* Events of a queue that only pooled blocks reference, less those that buffers without a pool would reference. */
static int64_t hidden_events(const struct gmt_queue *queue)
{
	struct search s = find_last_commands(queue->context);
	int64_t hidden = 0;
	for (size_t i = 0; s.list && i < s.count;) {
		size_t first = i;
		bool live = false, real = false;
		for (; i < s.count && compare_last_commands(&s.list[i], &s.list[first]) == 0; i++) {
			live |= s.list[i].live;
			real |= s.list[i].real;
		}
		if (s.list[first].queue_id == queue->object.id)
			hidden += real - live;
	}
	free(s.list);
	return hidden;
}

/* Queues that the program has released and only pooled blocks reference, less those that buffers without a pool would reference. */
static int64_t hidden_queues(const struct gmt_context *context)
{
	struct search s = find_last_commands(context);
	int64_t hidden = 0;
	for (size_t i = 0; s.list && i < s.count;) {
		size_t first = i;
		bool live = false, real = false;
		bool held = atomic_load(&s.list[i].queue->object.id) == s.list[i].queue_id &&
			    atomic_load(&s.list[i].queue->references) > 0;
		for (; i < s.count && s.list[i].queue_id == s.list[first].queue_id; i++) {
			live |= s.list[i].live;
			real |= s.list[i].real;
		}
		hidden += held ? 0 : real - live;
	}
	free(s.list);
	return hidden;
}

/* Whether this driver counts objects in their context's references, tried with a buffer. */
static bool counts_objects(cl_context handle, cl_uint now)
{
	cl_uint with = now;
	cl_int err = CL_SUCCESS;
	cl_mem probe = gmt_driver.clCreateBuffer(handle, CL_MEM_READ_WRITE, 1, NULL, &err);
	if (!probe)
		return false;
	gmt_driver.clGetContextInfo(handle, CL_CONTEXT_REFERENCE_COUNT, sizeof with, &with, NULL);
	gmt_driver.clReleaseMemObject(probe);
	return with > now;
}

/* The same, tried with shared virtual memory. Drivers with unified shared memory treat that alike. */
static bool counts_pointers(cl_context handle, cl_uint now)
{
	cl_uint with = now;
	void *probe = gmt_driver.clSVMAlloc ? gmt_driver.clSVMAlloc(handle, CL_MEM_READ_WRITE, 1, 0) : NULL;
	if (!probe)
		return false;
	gmt_driver.clGetContextInfo(handle, CL_CONTEXT_REFERENCE_COUNT, sizeof with, &with, NULL);
	gmt_driver.clSVMFree(handle, probe);
	return with > now;
}

cl_uint gmt_hidden_context_references(cl_context handle, cl_uint count)
{
	const struct gmt_context *context = gmt_context_find(handle);
	cl_uint idle = context ? atomic_load(&context->pool.blocks) + (atomic_load(&context->upload.queue) != NULL) : 0;
	cl_uint pointers = context ? atomic_load(&context->pool.pointers) : 0;
	if (pointers && !counts_pointers(handle, count))
		pointers = 0;
	if (!idle && !pointers)
		return count;
	if (idle && !counts_objects(handle, count)) /* a driver that counts no buffers counts no queues either */
		return count - (pointers < count ? pointers : 0);
	int64_t hidden = idle + pointers + hidden_queues(context), least = atomic_load(&context->references);
	return (cl_uint)(count > least + hidden ? count - hidden : least);
}

/* At least the program's own references: a driver that does not count events answers with these. */
cl_uint gmt_hidden_queue_references(struct gmt_queue *queue, cl_uint count)
{
	cl_uint least = atomic_load(&queue->references);
	if (count <= least)
		return count;
	int64_t hidden = hidden_events(queue) + atomic_load(&queue->markers);
	return (cl_uint)(count > least + hidden ? count - hidden : least);
}
