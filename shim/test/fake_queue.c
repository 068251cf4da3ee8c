/* fake_queue.c: queues, events, and what orders commands. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <stdlib.h>
#include <string.h>

static cl_command_queue queues; /* alive, latest first */
static uint64_t visit;

static bool inorder(cl_command_queue queue)
{
	return !(queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

void fake_queue_ends(cl_command_queue queue)
{
	cl_command_queue *at = &queues;
	while (*at != queue)
		at = &(*at)->sibling;
	*at = queue->sibling;
	fake.livequeues--;
	fake_drop(queue->context);
}

static void complete(struct fake_command *c)
{
	cl_command_queue queue = c->queue;
	*(c->previous ? &c->previous->next : &queue->first) = c->next;
	*(c->next ? &c->next->previous : &queue->last) = c->previous;
	for (unsigned i = 0; i < c->memories; i++) {
		fake_root(c->memory[i])->pending--;
		fake_drop(c->memory[i]);
	}
	for (cl_uint i = 0; i < c->waits; i++)
		fake_drop(c->wait[i]);
	c->event->command = NULL;
	c->event->status = CL_COMPLETE;
	fake_drop(c->event);
	free(c->wait);
	free(c);
	fake.pending--;
	fake_drop(queue);
}

static bool run(struct fake_command *c);

static bool run_before(struct fake_command *c)
{
	bool all = c->after_all || inorder(c->queue);
	for (;;) {
		struct fake_command *p = c->queue->first;
		while (p != c && !all && !p->barrier)
			p = p->next;
		if (p == c)
			return true;
		if (!run(p))
			return false;
	}
}

/* Completes a command and all that it depends on; false when a user event holds it up. */
static bool run(struct fake_command *c)
{
	for (cl_uint i = 0; i < c->waits; i++) {
		cl_event e = c->wait[i];
		if (e->command ? !run(e->command) : e->status > CL_COMPLETE)
			return false;
	}
	if (!run_before(c))
		return false;
	complete(c);
	return true;
}

/* Whether target has to complete before c may run. */
static bool behind(struct fake_command *c, const struct fake_command *target)
{
	if (c == target)
		return true;
	if (c->visited == visit)
		return false;
	c->visited = visit;
	for (cl_uint i = 0; i < c->waits; i++)
		if (c->wait[i]->command && behind(c->wait[i]->command, target))
			return true;
	bool all = c->after_all || inorder(c->queue);
	for (struct fake_command *p = c->previous; p; p = p->previous)
		if ((all || p->barrier) && behind(p, target))
			return true;
	return false;
}

/* Whether p, which used root for an earlier owner as its i-th object, may still run when c does. */
static bool hazard(struct fake_command *c, const struct fake_command *p, unsigned i, cl_mem root)
{
	if (p == c || p->owner[i] >= root->owner || fake_root(p->memory[i]) != root)
		return false;
	if (p->queue == c->queue && inorder(c->queue))
		return false;
	visit++;
	return !behind(c, p);
}

static void look_for_hazards(struct fake_command *c, cl_mem root)
{
	if (root->pending == 0)
		return;
	for (cl_command_queue q = queues; q; q = q->sibling)
		for (struct fake_command *p = q->first; p; p = p->next)
			for (unsigned i = 0; i < p->memories; i++)
				fake.hazards += hazard(c, p, i, root);
}

static cl_int check_waits(cl_uint waits, const cl_event *list)
{
	if ((waits == 0) != (list == NULL))
		return CL_INVALID_EVENT_WAIT_LIST;
	for (cl_uint i = 0; i < waits; i++)
		if (!fake_alive(list[i], FAKE_EVENT))
			return CL_INVALID_EVENT_WAIT_LIST;
	return CL_SUCCESS;
}

static cl_event new_event(void)
{
	cl_event event = fake_new(FAKE_EVENT, sizeof *event);
	event->status = CL_QUEUED;
	fake.liveevents++;
	return event;
}

static struct fake_command *append(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct fake_command *c = calloc(1, sizeof *c);
	cl_event *copy = waits ? malloc(waits * sizeof(cl_event)) : NULL;
	if (!c || (waits && !copy))
		fake_fail("out of memory");
	c->queue = queue;
	c->waits = waits;
	c->wait = copy;
	for (cl_uint i = 0; i < waits; i++) {
		copy[i] = list[i];
		fake_hold(list[i]);
	}
	c->event = new_event();
	c->event->command = c;
	fake_hold(c->event);
	c->previous = queue->last;
	*(queue->last ? &queue->last->next : &queue->first) = c;
	queue->last = c;
	fake_hold(queue);
	fake.commands++;
	fake.pending++;
	if (event)
		*event = c->event;
	else
		fake_release(c->event, FAKE_EVENT, CL_INVALID_EVENT);
	return c;
}

static bool refused(unsigned memories)
{
	if (memories == 0)
		return false;
	if (fake.lazycap && fake.livebytes > fake.lazycap)
		return true;
	if (fake.failenqueues == 0)
		return false;
	fake.failenqueues--;
	return true;
}

cl_int fake_submit(cl_command_queue queue, cl_bool blocking, unsigned count, const cl_mem *memories, cl_uint waits,
		   const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	if (!fake_alive(queue, FAKE_QUEUE))
		return CL_INVALID_COMMAND_QUEUE;
	for (unsigned i = 0; i < count; i++)
		if (!fake_alive(memories[i], FAKE_MEMORY))
			return CL_INVALID_MEM_OBJECT;
	cl_int err = check_waits(waits, list);
	if (err != CL_SUCCESS)
		return err;
	if (refused(count))
		return fake.enqueueerror;
	struct fake_command *c = append(queue, waits, list, event);
	for (unsigned i = 0; i < count && i < FAKE_USES; i++) {
		cl_mem root = fake_root(memories[i]);
		look_for_hazards(c, root);
		c->memory[i] = memories[i];
		c->owner[i] = root->owner;
		c->memories++;
		root->pending++;
		fake_hold(memories[i]);
	}
	if (blocking && !run(c))
		fake_fail("a blocking command waits for ever");
	return CL_SUCCESS;
}

unsigned fake_complete(cl_command_queue queue, unsigned count)
{
	FAKE_LOCKED;
	unsigned done = 0;
	while (done < count && queue->first && run(queue->first))
		done++;
	return done;
}

void fake_complete_all(void)
{
	FAKE_LOCKED;
	cl_command_queue q = queues;
	while (q) {
		bool ran = q->first && run(q->first);
		q = ran ? queues : q->sibling; /* the queue itself may have died with its last command */
	}
}

static cl_command_queue new_queue(cl_context context, cl_command_queue_properties properties, cl_int *errcode)
{
	FAKE_LOCKED;
	cl_command_queue queue = NULL;
	if (fake_alive(context, FAKE_CONTEXT)) {
		queue = fake_new(FAKE_QUEUE, sizeof *queue);
		queue->context = context;
		queue->properties = properties;
		queue->sibling = queues;
		queues = queue;
		fake_hold(context);
		fake.livequeues++;
	}
	if (errcode)
		*errcode = queue ? CL_SUCCESS : CL_INVALID_CONTEXT;
	return queue;
}

GMT_HOOK cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device, cl_command_queue_properties properties,
					       cl_int *errcode)
{
	(void)device;
	return new_queue(context, properties, errcode);
}

GMT_HOOK cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
							     const cl_queue_properties *properties, cl_int *errcode)
{
	(void)device;
	cl_command_queue_properties bits = 0;
	for (; properties && *properties; properties += 2)
		if (*properties == CL_QUEUE_PROPERTIES)
			bits = properties[1];
	return new_queue(context, bits, errcode);
}

GMT_HOOK cl_int clRetainCommandQueue(cl_command_queue queue)
{
	return fake_retain(queue, FAKE_QUEUE, CL_INVALID_COMMAND_QUEUE);
}

GMT_HOOK cl_int clReleaseCommandQueue(cl_command_queue queue)
{
	return fake_release(queue, FAKE_QUEUE, CL_INVALID_COMMAND_QUEUE);
}

GMT_HOOK cl_int clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info what, size_t room, void *out, size_t *needed)
{
	FAKE_LOCKED;
	if (!fake_alive(queue, FAKE_QUEUE))
		return CL_INVALID_COMMAND_QUEUE;
	if (what == CL_QUEUE_CONTEXT)
		return fake_answer(&queue->context, sizeof queue->context, room, out, needed);
	return fake_answer(&queue->properties, sizeof queue->properties, room, out, needed);
}

GMT_HOOK cl_int clFinish(cl_command_queue queue)
{
	FAKE_LOCKED;
	fake.finishes++;
	if (!fake_alive(queue, FAKE_QUEUE))
		return CL_INVALID_COMMAND_QUEUE;
	while (queue->first)
		if (!run(queue->first))
			fake_fail("clFinish waits for ever");
	return CL_SUCCESS;
}

GMT_HOOK cl_int clFlush(cl_command_queue queue)
{
	FAKE_LOCKED;
	fake.flushes++;
	return fake_alive(queue, FAKE_QUEUE) ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
}

GMT_HOOK cl_int clWaitForEvents(cl_uint count, const cl_event *list)
{
	FAKE_LOCKED;
	fake.waits++;
	if (count == 0 || !list)
		return CL_INVALID_VALUE;
	for (cl_uint i = 0; i < count; i++) {
		if (!fake_alive(list[i], FAKE_EVENT))
			return CL_INVALID_EVENT;
		if (list[i]->command ? !run(list[i]->command) : list[i]->status > CL_COMPLETE)
			fake_fail("clWaitForEvents waits for ever");
	}
	return CL_SUCCESS;
}

static cl_int between(cl_command_queue queue, bool barrier, cl_uint waits, const cl_event *list, cl_event *event)
{
	if (!fake_alive(queue, FAKE_QUEUE))
		return CL_INVALID_COMMAND_QUEUE;
	cl_int err = check_waits(waits, list);
	if (err != CL_SUCCESS)
		return err;
	struct fake_command *c = append(queue, waits, list, event);
	c->barrier = barrier;
	c->after_all = waits == 0;
	return CL_SUCCESS;
}

GMT_HOOK cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	fake.markers++;
	return fake.failmarkers ? CL_OUT_OF_HOST_MEMORY : between(queue, false, waits, list, event);
}

GMT_HOOK cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	fake.barriers++;
	return between(queue, true, waits, list, event);
}

GMT_HOOK cl_event clCreateUserEvent(cl_context context, cl_int *errcode)
{
	FAKE_LOCKED;
	cl_event event = NULL;
	if (fake_alive(context, FAKE_CONTEXT)) {
		event = new_event();
		event->status = CL_SUBMITTED;
		event->context = context;
		fake_hold(context);
	}
	if (errcode)
		*errcode = event ? CL_SUCCESS : CL_INVALID_CONTEXT;
	return event;
}

GMT_HOOK cl_int clSetUserEventStatus(cl_event event, cl_int status)
{
	FAKE_LOCKED;
	if (!fake_alive(event, FAKE_EVENT) || !event->context)
		return CL_INVALID_EVENT;
	event->status = status;
	return CL_SUCCESS;
}

GMT_HOOK cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t room, void *out, size_t *needed)
{
	FAKE_LOCKED;
	if (!fake_alive(event, FAKE_EVENT))
		return CL_INVALID_EVENT;
	if (what != CL_EVENT_COMMAND_EXECUTION_STATUS)
		return CL_INVALID_VALUE;
	return fake_answer(&event->status, sizeof event->status, room, out, needed);
}

GMT_HOOK cl_int clRetainEvent(cl_event event)
{
	return fake_retain(event, FAKE_EVENT, CL_INVALID_EVENT);
}

GMT_HOOK cl_int clReleaseEvent(cl_event event)
{
	return fake_release(event, FAKE_EVENT, CL_INVALID_EVENT);
}
