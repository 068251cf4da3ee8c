/* fake_queue.c: queues, and what orders commands. */
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

void fake_complete_with(struct fake_command *c, cl_int status)
{
	cl_command_queue queue = c->queue;
	c->ends = true;
	if (c->action.kind >= FAKE_POINTERS)
		fake_act_on_pointers(c, status == CL_COMPLETE);
	else if (status == CL_COMPLETE)
		fake_act(c);
	*(c->previous ? &c->previous->next : &queue->first) = c->next;
	*(c->next ? &c->next->previous : &queue->last) = c->previous;
	for (unsigned i = 0; i < c->memories; i++) {
		fake_root(c->memory[i])->pending--;
		fake_drop(c->memory[i]);
	}
	for (cl_uint i = 0; i < c->waits; i++)
		fake_drop(c->wait[i]);
	c->event->command = NULL;
	c->event->status = status;
	fake_event_ended(c->event);
	fake_drop(c->event);
	free(c->wait);
	free(c);
	fake.pending--;
	fake_drop(queue);
}

static bool run_before(struct fake_command *c)
{
	bool all = c->after_all || inorder(c->queue);
	for (;;) {
		struct fake_command *p = c->queue->first;
		while (p != c && !all && !p->barrier)
			p = p->next;
		if (p == c)
			return true;
		if (!fake_run(p))
			return false;
	}
}

/* Completes a command and all that it depends on; false when a user event holds it up. Its event may be gone then. */
bool fake_run(struct fake_command *c)
{
	cl_int status = CL_COMPLETE;
	if (c->ends)
		return false;
	for (cl_uint i = 0; i < c->waits; i++) {
		cl_event e = c->wait[i];
		if (e->command ? !fake_run(e->command) : e->status > CL_COMPLETE)
			return false;
		if (e->status < 0)
			status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
	}
	if (!run_before(c))
		return false;
	fake_complete_with(c, status == CL_COMPLETE ? c->event->doom : status);
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

/* Whether older was released before newer, of the same bytes, was created. */
static bool outlived(cl_mem older, cl_mem newer)
{
	bool same = older->parent && older->parent == newer->parent && older->origin < newer->origin + newer->size &&
		    newer->origin < older->origin + older->size;
	return same && older->died && older->died < newer->born;
}

/* Whether p, which used root for an earlier owner as its i-th object, may still run when c does. */
static bool hazard(struct fake_command *c, const struct fake_command *p, unsigned i, cl_mem root)
{
	if (p == c || fake_root(p->memory[i]) != root)
		return false;
	if (!outlived(p->memory[i], c->memory[c->memories]) && p->owner[i] >= root->owner)
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

struct fake_command *fake_append(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event)
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
	c->event = fake_new_event();
	c->event->command = c;
	c->event->batch = fake.batch;
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

cl_int fake_check(cl_command_queue queue, unsigned count, const cl_mem *memories, cl_uint waits, const cl_event *list)
{
	FAKE_LOCKED;
	if (!fake_alive(queue, FAKE_QUEUE))
		return CL_INVALID_COMMAND_QUEUE;
	if (queue->context->terminated)
		return CL_CONTEXT_TERMINATED_KHR;
	for (unsigned i = 0; i < count; i++)
		if (!fake_alive(memories[i], FAKE_MEMORY))
			return CL_INVALID_MEM_OBJECT;
	for (unsigned i = 0; i < count && !fake.anycontext; i++)
		if (memories[i]->context != queue->context)
			return CL_INVALID_CONTEXT;
	return check_waits(waits, list);
}

static void use_memory(struct fake_command *c, cl_mem memory)
{
	cl_mem root = fake_root(memory);
	c->memory[c->memories] = memory;
	look_for_hazards(c, root);
	c->owner[c->memories++] = root->owner;
	root->pending++;
	fake_hold(memory);
	if (!fake.keepsqueues)
		return;
	fake_hold(c->queue);
	if (memory->last)
		fake_drop(memory->last);
	memory->last = c->queue;
}

cl_int fake_submit_action(cl_command_queue queue, cl_bool blocking, unsigned count, const cl_mem *memories,
			  const struct fake_action *action, cl_uint waits, const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	cl_int err = fake_check(queue, count, memories, waits, list);
	if (err != CL_SUCCESS)
		return err;
	if (refused(count))
		return fake.enqueueerror;
	struct fake_command *c = fake_append(queue, waits, list, event);
	if (action) {
		c->action = *action;
		fake_hold_pointers(action);
	}
	for (unsigned i = 0; i < count && i < FAKE_USES; i++)
		use_memory(c, memories[i]);
	fake_defer(atomic_exchange(&fake.aftersubmit, NULL));
	if (blocking && !fake_run(c))
		fake_fail("a blocking command waits for ever");
	return CL_SUCCESS;
}

cl_int fake_submit(cl_command_queue queue, cl_bool blocking, unsigned count, const cl_mem *memories, cl_uint waits,
		   const cl_event *list, cl_event *event)
{
	return fake_submit_action(queue, blocking, count, memories, NULL, waits, list, event);
}

unsigned fake_complete(cl_command_queue queue, unsigned count)
{
	FAKE_LOCKED;
	unsigned done = 0;
	while (done < count && queue->first && fake_run(queue->first))
		done++;
	return done;
}

void fake_complete_all(void)
{
	FAKE_LOCKED;
	cl_command_queue q = queues;
	while (q) {
		bool ran = q->first && fake_run(q->first);
		q = ran ? queues : q->sibling; /* the queue itself may have died with its last command */
	}
}

unsigned fake_fail_markers(cl_command_queue queue, cl_int status)
{
	FAKE_LOCKED;
	unsigned count = 0;
	for (struct fake_command *c = queue->first, *next; c; c = next) {
		next = c->next;
		if (c->marker) {
			fake_complete_with(c, status);
			count++;
		}
	}
	return count;
}

void fake_fail_context(cl_context context, cl_int status)
{
	for (cl_command_queue q = queues, next; q; q = next) {
		fake_hold(q);
		while (q->context == context && q->first)
			fake_complete_with(q->first, status);
		next = q->sibling;
		fake_drop(q);
	}
}

static cl_command_queue new_queue(cl_context context, cl_command_queue_properties properties, cl_int *errcode)
{
	FAKE_LOCKED;
	cl_command_queue queue = NULL;
	if (fake_alive(context, FAKE_CONTEXT) && !context->terminated) {
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

cl_command_queue fake_unseen_queue(cl_context context)
{
	return new_queue(context, 0, NULL);
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
	cl_uint references = fake_references(&queue->object, fake.countcommands);
	if (what == CL_QUEUE_REFERENCE_COUNT)
		return fake_answer(&references, sizeof references, room, out, needed);
	return fake_answer(&queue->properties, sizeof queue->properties, room, out, needed);
}
