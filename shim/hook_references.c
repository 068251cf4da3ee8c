/*
 * hook_references.c: the reference counts of contexts and queues, without what the pool keeps alive.
 *
 * Some drivers count objects in their context's references. Some let a buffer keep the event of its last command, and
 * that event its queue, and that its context. A block in the pool, or handed out again and not used yet, does so for
 * an owner who would have let go of all of it. Nobody asks often, so the books are searched when somebody does.
 */
#define _GNU_SOURCE
#include "memory.h"

#include <stdlib.h>

/* The last command on one piece of memory. */
struct last {
	const struct gmt_queue *queue;
	uint64_t queuenumber, position;
	bool live; /* the program holds the memory, and the command was its own */
	bool real; /* a driver may keep the event: parts leave that to their slab */
};

struct search {
	const struct gmt_context *context;
	struct last *list;
	size_t count, room;
};

static void add(struct gmt_memory *memory, void *arg)
{
	struct search *s = arg;
	if (memory->context != s->context || memory->parent)
		return;
	gmt_lock(&memory->lock);
	const struct gmt_uses *uses = &memory->uses;
	struct gmt_use use = uses->count ? uses->use[uses->count - 1] : (struct gmt_use){0};
	gmt_unlock(&memory->lock);
	if (!use.queue)
		return;
	if (s->count < s->room)
		s->list[s->count] = (struct last){
			use.queue, use.queuenumber, use.position, !atomic_load(&memory->idle) && !atomic_load(&memory->fresh),
			memory->slab == NULL,
		};
	s->count++;
}

static int compare(const void *a, const void *b)
{
	const struct last *x = a, *y = b;
	if (x->queuenumber != y->queuenumber)
		return x->queuenumber < y->queuenumber ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

/* All last commands in the context by queue and position; the caller frees the list. */
static struct search search(const struct gmt_context *context)
{
	struct search s = {.context = context, .room = 1024};
	for (;;) {
		s.count = 0;
		s.list = malloc(s.room * sizeof *s.list);
		if (!s.list)
			return s;
		gmt_memory_each(add, &s);
		if (s.count <= s.room)
			break;
		s.room = 2 * s.count;
		free(s.list);
	}
	qsort(s.list, s.count, sizeof *s.list, compare);
	return s;
}

/* Events of a queue that the pool alone keeps, less those that buffers of their own would keep. */
static int64_t hidden_events(const struct gmt_queue *queue)
{
	struct search s = search(queue->context);
	int64_t hidden = 0;
	for (size_t i = 0; s.list && i < s.count;) {
		size_t first = i;
		bool live = false, real = false;
		for (; i < s.count && compare(&s.list[i], &s.list[first]) == 0; i++) {
			live |= s.list[i].live;
			real |= s.list[i].real;
		}
		if (s.list[first].queuenumber == queue->object.number)
			hidden += real - live;
	}
	free(s.list);
	return hidden;
}

/* Queues that the program has released and that the pool alone keeps, less those that buffers of their own would keep. */
static int64_t hidden_queues(const struct gmt_context *context)
{
	struct search s = search(context);
	int64_t hidden = 0;
	for (size_t i = 0; s.list && i < s.count;) {
		size_t first = i;
		bool live = false, real = false;
		bool held = atomic_load(&s.list[i].queue->object.number) == s.list[i].queuenumber &&
			    atomic_load(&s.list[i].queue->references) > 0;
		for (; i < s.count && s.list[i].queuenumber == s.list[first].queuenumber; i++) {
			live |= s.list[i].live;
			real |= s.list[i].real;
		}
		hidden += held ? 0 : real - live;
	}
	free(s.list);
	return hidden;
}

/* Whether this driver counts objects in their context's references: tried out with a buffer. */
static bool counts_objects(cl_context handle, cl_uint now)
{
	cl_uint with = now;
	cl_int err = CL_SUCCESS;
	cl_mem probe = gmt_next.clCreateBuffer(handle, CL_MEM_READ_WRITE, 1, NULL, &err);
	if (!probe)
		return false;
	gmt_next.clGetContextInfo(handle, CL_CONTEXT_REFERENCE_COUNT, sizeof with, &with, NULL);
	gmt_next.clReleaseMemObject(probe);
	return with > now;
}

static cl_uint context_references(cl_context handle, cl_uint count)
{
	const struct gmt_context *context = gmt_context_find(handle);
	cl_uint idle = context ? atomic_load(&context->idle) + (atomic_load(&context->upload) != NULL) : 0;
	if (!idle || !counts_objects(handle, count))
		return count;
	int64_t hidden = idle + hidden_queues(context), least = atomic_load(&context->references);
	return (cl_uint)(count > least + hidden ? count - hidden : least);
}

GMT_HOOK cl_int clGetContextInfo(cl_context handle, cl_context_info what, size_t room, void *value, size_t *needed)
{
	if (!gmt_enter_untimed())
		return gmt_next.clGetContextInfo(handle, what, room, value, needed);
	cl_int err = gmt_next.clGetContextInfo(handle, what, room, value, needed);
	if (err == CL_SUCCESS && what == CL_CONTEXT_REFERENCE_COUNT && value && gmt_pooling())
		*(cl_uint *)value = context_references(handle, *(cl_uint *)value);
	gmt_leave();
	return err;
}

/* A driver that does not count events answers with the program's own references, the least that there can be. */
static cl_uint queue_references(struct gmt_queue *queue, cl_uint count)
{
	cl_uint least = atomic_load(&queue->references);
	if (count <= least)
		return count;
	int64_t hidden = hidden_events(queue) + atomic_load(&queue->markers);
	return (cl_uint)(count > least + hidden ? count - hidden : least);
}

GMT_HOOK cl_int clGetCommandQueueInfo(cl_command_queue handle, cl_command_queue_info what, size_t room, void *value, size_t *needed)
{
	if (!gmt_enter_untimed())
		return gmt_next.clGetCommandQueueInfo(handle, what, room, value, needed);
	struct gmt_queue *queue = what == CL_QUEUE_REFERENCE_COUNT && gmt_pooling() ? gmt_queue_find(handle) : NULL;
	if (queue)
		gmt_queue_poll(queue);
	cl_int err = gmt_next.clGetCommandQueueInfo(handle, what, room, value, needed);
	if (queue && err == CL_SUCCESS && value)
		*(cl_uint *)value = queue_references(queue, *(cl_uint *)value);
	gmt_leave();
	return err;
}
