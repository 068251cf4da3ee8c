/*
 * simulate_command.c: the steps of a simulated program that enqueue commands.
 *
 * Programs are free of races: a command waits for the latest one on the same memory, unless both are on one queue in order. So what
 * they read does not depend on when commands run, except where a command fails: memory is spoiled then, and its bytes are not compared.
 */
#include "simulate_world.h"

#include <string.h>

static void CL_CALLBACK event_ended(cl_event event, cl_int status, void *data)
{
	(void)event, (void)status;
	uintptr_t step = (uintptr_t)data;
	world.called[step / 2]++;
	cl_mem buffer = step % 2 && world.context[0] ? CALL(clCreateBuffer)(world.context[0], 0, 256, NULL, NULL) : NULL;
	if (buffer)
		CALL(clReleaseMemObject)(buffer);
}

int64_t set_user_events(uint32_t gates)
{
	int64_t result = NOTHING;
	for (unsigned i = 0; i < USERS; i++) {
		cl_event event = world.user[i].event;
		if (!event || !(gates & 1u << i))
			continue;
		world.user[i].event = NULL;
		result = CALL(clSetUserEventStatus)(event, world.user[i].fails ? -7 : CL_COMPLETE);
		CALL(clReleaseEvent)(event);
		for (unsigned q = 0; q < QUEUES; q++)
			world.queue[q].gates &= ~(1u << i);
		for (unsigned store = 0; store < world.stores; store++)
			world.store[store].gates &= ~(1u << i);
	}
	return result;
}

/* A command that a step is about to enqueue. */
struct command {
	cl_command_queue queue;
	uint64_t number;
	struct store *store[4];
	unsigned stores;
	cl_event wait[5], event;
	cl_uint waits;
	uint32_t how, gates, *queue_gates;
	bool spoils;
};

static void uses(struct command *c, struct store *store)
{
	for (unsigned i = 0; i < c->stores; i++)
		if (c->store[i] == store)
			return;
	c->store[c->stores++] = store;
	c->gates |= store->gates;
	if (!store->last || (c->number && store->queue == c->number))
		return;
	c->wait[c->waits++] = store->last;
	c->spoils |= store->spoiled;
}

static bool begins(struct command *c, uint32_t queue, uint32_t how)
{
	*c = (struct command){.queue = world.queue[queue % QUEUES].handle, .number = world.queue[queue % QUEUES].number, .how = how,
			      .queue_gates = &world.queue[queue % QUEUES].gates};
	c->gates = *c->queue_gates;
	unsigned user = how & HOW_BLOCKS ? 0 : how & HOW_USER;
	bool there = user && user <= USERS && world.user[user - 1].event && world.user[user - 1].context == world.queue[queue % QUEUES].context;
	if (there) {
		c->wait[c->waits++] = world.user[user - 1].event;
		c->spoils = world.user[user - 1].fails;
		c->gates |= 1u << (user - 1);
	}
	c->spoils |= how & HOW_FAILS && !(how & HOW_BLOCKS);
	return c->queue != NULL;
}

/* The last before the call: whether it blocks. */
static cl_bool blocks(struct command *c)
{
	if (c->how & HOW_BLOCKS)
		set_user_events(c->gates);
	return c->how & HOW_BLOCKS ? CL_TRUE : CL_FALSE;
}
#define WAITS(c) (c).waits, (c).waits ? (c).wait : NULL, &(c).event

static int64_t ends(struct command *c, cl_int err)
{
	if (err != CL_SUCCESS)
		return err;
	if (c->how & HOW_FAILS && !fake.eager) /* else it may have run by now */
		fake_doom_event(c->event, -5);
	*c->queue_gates = c->how & HOW_BLOCKS ? *c->queue_gates : c->gates;
	for (unsigned i = 0; i < c->stores; i++) {
		struct store *store = c->store[i];
		if (store->last)
			CALL(clReleaseEvent)(store->last);
		store->last = c->event;
		store->queue = c->number;
		store->gates = *c->queue_gates;
		store->spoiled |= c->spoils;
		store->defined &= !store->spoiled;
		CALL(clRetainEvent)(c->event);
	}
	if (c->how & HOW_CALLS)
		CALL(clSetEventCallback)(c->event, CL_COMPLETE, event_ended, (void *)(uintptr_t)(sim_step * 2 + (c->how & HOW_CREATES ? 1 : 0)));
	CALL(clReleaseEvent)(c->event);
	return err;
}

static void wrote(const struct command *c, struct store *store, size_t offset, size_t size)
{
	if (!c->spoils && !store->spoiled && offset == 0 && size >= store->size)
		store->defined = true;
}

struct thing *thing(uint32_t place)
{
	struct thing *t = &world.thing[place % PLACES];
	return t->handle ? t : NULL;
}

static int64_t on_buffer(const uint32_t *a, enum operation operation)
{
	struct command c;
	struct thing *t = thing(a[1]);
	if (!t || t->image || !begins(&c, a[0], operation == OP_fill ? a[4] & ~(uint32_t)HOW_BLOCKS : a[4]))
		return NOTHING;
	size_t offset = a[2], size = a[3] ? a[3] : t->size;
	cl_int err = CL_SUCCESS;
	uses(&c, t->store);
	if (operation == OP_fill) {
		err = CALL(clEnqueueFillBuffer)(c.queue, t->handle, sim_bytes + sim_step, 1, offset, size, WAITS(c));
	} else if (operation == OP_write) {
		err = CALL(clEnqueueWriteBuffer)(c.queue, t->handle, blocks(&c), offset, size, sim_bytes + sim_step, WAITS(c));
	} else {
		size = size < BYTES ? size : BYTES;
		err = CALL(clEnqueueReadBuffer)(c.queue, t->handle, blocks(&c), offset, size, world.read[sim_step], WAITS(c));
	}
	int64_t result = ends(&c, err);
	if (err == CL_SUCCESS && operation == OP_read)
		world.reads[sim_step] = t->store->defined ? size : 0;
	else if (err == CL_SUCCESS && !t->part)
		wrote(&c, t->store, offset, size);
	return result;
}

int64_t do_fill(const uint32_t *a) { return on_buffer(a, OP_fill); }
int64_t do_write(const uint32_t *a) { return on_buffer(a, OP_write); }
int64_t do_read(const uint32_t *a) { return on_buffer(a, OP_read); }

int64_t do_copy(const uint32_t *a)
{
	struct command c;
	struct thing *to = thing(a[1]), *from = thing(a[2]);
	if (!to || !from || to->image || from->image || !begins(&c, a[0], a[4] & ~(uint32_t)HOW_BLOCKS))
		return NOTHING;
	size_t size = a[3] ? a[3] : from->size < to->size ? from->size : to->size;
	uses(&c, to->store);
	uses(&c, from->store);
	int64_t result = ends(&c, CALL(clEnqueueCopyBuffer)(c.queue, from->handle, to->handle, 0, 0, size, WAITS(c)));
	if (result == CL_SUCCESS && !from->store->defined)
		to->store->defined = false;
	else if (result == CL_SUCCESS && !to->part)
		wrote(&c, to->store, 0, size);
	return result;
}

int64_t do_map(const uint32_t *a)
{
	struct command c;
	struct thing *t = thing(a[1]);
	if (!t || t->image || !begins(&c, a[0], HOW_BLOCKS))
		return NOTHING;
	cl_int err = CL_SUCCESS;
	size_t size = a[3] ? a[3] : t->size;
	uses(&c, t->store);
	unsigned char *bytes = CALL(clEnqueueMapBuffer)(c.queue, t->handle, blocks(&c), CL_MAP_READ | CL_MAP_WRITE, a[2], size, WAITS(c), &err);
	if (!bytes)
		return err;
	ends(&c, err);
	if (t->store->defined)
		digest(bytes, size);
	memcpy(bytes, sim_bytes + sim_step, size);
	begins(&c, a[0], a[4] & ~(uint32_t)HOW_BLOCKS);
	uses(&c, t->store);
	return ends(&c, CALL(clEnqueueUnmapMemObject)(c.queue, t->handle, bytes, WAITS(c)));
}

int64_t do_argument(const uint32_t *a)
{
	struct thing *t = thing(a[1]);
	if (!world.kernel)
		world.kernel = CALL(clCreateKernel)(fake_program(), "kernel", NULL);
	if (!t)
		return NOTHING;
	world.argument[a[0] % 3] = *t;
	return CALL(clSetKernelArg)(world.kernel, a[0] % 3, sizeof t->handle, &t->handle);
}

int64_t do_kernel(const uint32_t *a)
{
	struct command c;
	if (!world.kernel || !begins(&c, a[0], a[1] & ~(uint32_t)HOW_BLOCKS))
		return NOTHING;
	for (unsigned i = 0; i < 3; i++)
		if (world.argument[i].handle)
			uses(&c, world.argument[i].store);
	size_t one = 1;
	return ends(&c, CALL(clEnqueueNDRangeKernel)(c.queue, world.kernel, 1, NULL, &one, NULL, WAITS(c)));
}

int64_t do_marker(const uint32_t *a)
{
	struct command c;
	if (!begins(&c, a[0], 0))
		return NOTHING;
	return ends(&c, a[1] % 2 ? CALL(clEnqueueBarrierWithWaitList)(c.queue, WAITS(c)) : CALL(clEnqueueMarkerWithWaitList)(c.queue, WAITS(c)));
}

int64_t do_finish(const uint32_t *a)
{
	cl_command_queue queue = world.queue[a[0] % QUEUES].handle;
	if (!queue)
		return NOTHING;
	set_user_events(world.queue[a[0] % QUEUES].gates);
	return CALL(clFinish)(queue);
}

int64_t wait_for(struct store *store)
{
	set_user_events(store->gates);
	return store->last ? CALL(clWaitForEvents)(1, &store->last) : NOTHING;
}

int64_t do_unshare(const uint32_t *a)
{
	struct thing *t = &world.shared[a[0] % POINTERS], was = *t;
	struct command c;
	if (!was.pointer)
		return NOTHING;
	t->pointer = NULL;
	int64_t result = 0;
	if (a[1] % 2 && was.context == world.queue[a[1] / 2 % QUEUES].context && !was.store->spoiled && begins(&c, a[1] / 2, 0)) { /* it frees after the latest command */
		uses(&c, was.store);
		result = ends(&c, CALL(clEnqueueSVMFree)(c.queue, 1, &was.pointer, NULL, NULL, WAITS(c)));
	} else {
		wait_for(was.store);
		CALL(clSVMFree)(was.context, was.pointer);
	}
	CALL(clReleaseContext)(was.context);
	return result;
}

int64_t do_shared_fill(const uint32_t *a)
{
	struct thing *t = &world.shared[a[1] % POINTERS];
	struct command c;
	if (!t->pointer || t->context != world.queue[a[0] % QUEUES].context || !begins(&c, a[0], a[3] & ~(uint32_t)HOW_BLOCKS))
		return NOTHING;
	size_t size = a[2] ? a[2] : t->size;
	uses(&c, t->store);
	int64_t result = ends(&c, CALL(clEnqueueSVMMemFill)(c.queue, t->pointer, sim_bytes + sim_step, 1, size < t->size ? size : t->size, WAITS(c)));
	if (result == CL_SUCCESS)
		wrote(&c, t->store, 0, size);
	return result;
}

int64_t do_shared_read(const uint32_t *a)
{
	struct thing *t = &world.shared[a[0] % POINTERS];
	if (!t->pointer)
		return NOTHING;
	int64_t result = wait_for(t->store);
	if (t->store->defined)
		digest(t->pointer, t->size);
	return result;
}

int64_t do_wait(const uint32_t *a)
{
	struct thing *t = thing(a[0]);
	return t ? wait_for(t->store) : NOTHING;
}

int64_t do_flush(const uint32_t *a)
{
	cl_command_queue queue = world.queue[a[0] % QUEUES].handle;
	return queue ? CALL(clFlush)(queue) : NOTHING;
}

int64_t do_complete(const uint32_t *a)
{
	cl_command_queue queue = world.queue[a[0] % QUEUES].handle;
	if (!a[1])
		fake_complete_all();
	for (uint32_t left = a[1]; queue && left && queue->first;) {
		bool marker = !queue->first->memories && queue->first->action.kind == FAKE_NOTHING; /* the shim adds some */
		if (!fake_complete(queue, 1))
			break;
		left -= !marker;
	}
	return 0;
}

int64_t do_event(const uint32_t *a)
{
	struct thing *t = thing(a[0]);
	if (t && t->store->last)
		fake_complete_event(t->store->last);
	return 0;
}
