/* chain.c: what makes a command wait for those before it, what holds commands back, and waiting for them. */
#include "soak.h"

#include <stdlib.h>

/* Does not wait. A command without an event went to an in-order queue: a marker stands for it. */
cl_event storage_event(struct thread *t, struct storage *storage)
{
	if (!storage->last && storage->behind)
		MUST(t, clEnqueueMarkerWithWaitList(storage->behind->handle, 0, NULL, &storage->last));
	return storage->last;
}

void command_wait_for(struct command *command, cl_event event)
{
	for (cl_uint i = 0; i < command->waits; i++)
		if (command->wait[i] == event)
			return;
	command->wait[command->waits++] = event;
	command->list = command->wait;
}

static void wait_for(struct command *command, struct storage *storage)
{
	struct queue *queue = command->queue, *behind = storage->behind;
	if (!storage->last && !behind)
		return;
	bool ordered = behind == queue && (queue->inorder || queue->epoch > storage->epoch);
	if (ordered && !once_in(command->t, 3))
		return;
	cl_event event = storage_event(command->t, storage);
	if (behind && behind != queue) /* what another queue waits for must be flushed */
		MUST(command->t, clFlush(behind->handle));
	command_wait_for(command, event);
}

/* Sometimes the command waits for a user event, which some later operation sets. */
static void maybe_gate(struct command *command)
{
	struct thread *t = command->t;
	if (!t->style->gates || (!t->hold && !once_in(t, 6)))
		return;
	t->hold = false;
	cl_event *gate = &t->gate[below(t, GATES)];
	cl_int status = CL_SUCCESS;
	if (!*gate)
		*gate = clCreateUserEvent(t->world->context, &status);
	MUST(t, status);
	command_wait_for(command, *gate);
	note(t, "held back");
}

void command_begin_map(struct command *command, struct thread *t, struct queue *queue, struct storage *a, bool blocking)
{
	*command = (struct command){.t = t, .queue = queue, .use = {a}, .blocking = blocking};
	wait_for(command, a);
	if (!blocking)
		maybe_gate(command);
	else
		gates_open(t);
	if (!queue->inorder || once_in(t, 2))
		command_want_event(command);
}

void command_begin(struct command *command, struct thread *t, struct queue *queue, struct storage *a, struct storage *b,
		   bool blocking)
{
	maps_end(t, a, NULL, queue);
	if (b)
		maps_end(t, b, NULL, queue);
	command_begin_map(command, t, queue, a, blocking);
	if (b && b != a) {
		command->use[1] = b;
		wait_for(command, b);
	}
}

void command_want_event(struct command *command)
{
	command->out = &command->event;
}

void storage_forget(struct thread *t, struct storage *storage)
{
	if (storage->last)
		MUST(t, clReleaseEvent(storage->last));
	storage->last = NULL;
	storage->behind = NULL;
}

void command_end(struct command *command)
{
	struct thread *t = command->t;
	for (int i = 0; i < 2; i++) {
		struct storage *storage = command->use[i];
		if (!storage)
			continue;
		storage_forget(t, storage);
		if (command->blocking)
			continue;
		if (command->out)
			MUST(t, clRetainEvent(command->event));
		storage->last = command->out ? command->event : NULL;
		storage->behind = command->queue;
		storage->epoch = command->queue->epoch;
	}
	if (command->out)
		MUST(t, clReleaseEvent(command->event));
	if (once_in(t, 3))
		MUST(t, clFlush(command->queue->handle));
}

/* Host memory that no command uses now. */
static void host_over(const struct thread *t, unsigned op, unsigned char *host, unsigned char *want, size_t size)
{
	if (want)
		compare(t, op, host, want, size);
	free(host);
	free(want);
}

void keep(struct command *command, unsigned char *host, unsigned char *want, size_t size)
{
	struct thread *t = command->t;
	if (command->blocking) {
		host_over(t, atomic_load(&t->op), host, want, size);
		return;
	}
	struct pending *pending = allocate(sizeof *pending);
	*pending = (struct pending){command->event, host, want, size, atomic_load(&t->op), t->pending};
	MUST(t, clRetainEvent(command->event));
	t->pending = pending;
}

cl_int event_status(const struct thread *t, cl_event event)
{
	cl_int status = CL_QUEUED;
	MUST(t, clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
	return status;
}

static bool event_over(const struct thread *t, cl_event event)
{
	cl_int status = event_status(t, event);
	if (status < 0)
		broken(t, "a command ended with error %d", status);
	return status == CL_COMPLETE;
}

void pending_sweep(struct thread *t, bool wait)
{
	if (wait)
		gates_open(t);
	for (struct pending **at = &t->pending; *at;) {
		struct pending *pending = *at;
		if (wait)
			MUST(t, clWaitForEvents(1, &pending->event));
		if (!event_over(t, pending->event)) {
			at = &pending->next;
			continue;
		}
		host_over(t, pending->op, pending->host, pending->want, pending->size);
		MUST(t, clReleaseEvent(pending->event));
		*at = pending->next;
		free(pending);
	}
}

static void gate_open(struct thread *t, cl_event *gate)
{
	if (!*gate)
		return;
	MUST(t, clSetUserEventStatus(*gate, CL_COMPLETE));
	MUST(t, clReleaseEvent(*gate));
	*gate = NULL;
}

/* A thread opens all its gates before it waits, so that it never waits for its own, nor long for another thread's. */
void gates_open(struct thread *t)
{
	for (int i = 0; i < GATES; i++)
		gate_open(t, &t->gate[i]);
}

/* Of slots and of shared virtual memory; some are NULL, and some there more than once. */
static struct storage *storage_at(const struct thread *t, int i)
{
	return i < SLOTS ? t->slot[i].storage : t->svm[i - SLOTS].storage;
}

void chain_leave_queue(struct thread *t, struct queue *queue)
{
	for (int i = 0; i < SLOTS + SVMS; i++) {
		struct storage *storage = storage_at(t, i);
		if (!storage || storage->behind != queue)
			continue;
		storage_event(t, storage);
		storage->behind = NULL;
	}
}

void storage_wait(struct thread *t, struct storage *storage)
{
	gates_open(t);
	if (storage->last)
		MUST(t, clWaitForEvents(1, &storage->last));
	else if (storage->behind)
		MUST(t, clFinish(storage->behind->handle));
	storage_forget(t, storage);
}

void op_open_gate(struct thread *t, const struct op *op)
{
	gate_open(t, &t->gate[op->a % GATES]);
}

void op_finish(struct thread *t, const struct op *op)
{
	gates_open(t);
	struct queue *queue = &t->queue[op->queue];
	MUST(t, clFinish(queue->handle));
	for (int i = 0; i < SLOTS + SVMS; i++) {
		struct storage *storage = storage_at(t, i);
		if (storage && storage->behind == queue)
			storage_forget(t, storage);
	}
}

void op_flush(struct thread *t, const struct op *op)
{
	MUST(t, clFlush(t->queue[op->queue].handle));
}

void op_wait(struct thread *t, const struct op *op)
{
	struct storage *a = t->slot[op->a].storage, *b = t->slot[op->b].storage;
	if (!a || !b)
		return;
	gates_open(t);
	cl_event list[2];
	cl_uint count = 0;
	if (storage_event(t, a))
		list[count++] = a->last;
	if (a != b && storage_event(t, b) && b->last != a->last)
		list[count++] = b->last;
	if (count > 0)
		MUST(t, clWaitForEvents(count, list));
	storage_forget(t, a);
	storage_forget(t, b);
}

void op_poll(struct thread *t, const struct op *op)
{
	struct storage *storage = t->slot[op->a].storage;
	if (!storage)
		return;
	gates_open(t);
	cl_event event = storage_event(t, storage);
	if (storage->behind)
		MUST(t, clFlush(storage->behind->handle));
	while (event && !event_over(t, event))
		pause_us(20);
	storage_forget(t, storage);
}

/* A marker behind the chain of a slot, in any queue, is the chain's new end. */
void op_marker(struct thread *t, const struct op *op)
{
	struct storage *storage = t->slot[op->a].storage;
	if (!storage || (!storage->last && !storage->behind))
		return;
	struct command command;
	command_begin_map(&command, t, &t->queue[op->queue], storage, false);
	command_want_event(&command);
	command_wait_for(&command, storage_event(t, storage));
	if (storage->behind)
		MUST(t, clFlush(storage->behind->handle));
	MUST(t, clEnqueueMarkerWithWaitList(command.queue->handle, command.waits, command.list, command.out));
	command_end(&command);
}

void op_barrier(struct thread *t, const struct op *op)
{
	struct queue *queue = &t->queue[op->queue];
	MUST(t, clEnqueueBarrierWithWaitList(queue->handle, 0, NULL, NULL));
	queue->epoch++;
}
