/* failing.c: user events that are set to an error, and what depends on them ends with one. */
#include "soak.h"

#include <stdlib.h>

/* What the commands of one operation share. */
struct failing {
	struct queue queue; /* of this operation only */
	cl_event user, fill, after;
	unsigned char *host;
};

/* A fill that waits for the user event, and something that waits for the fill. */
static void failing_enqueue(struct thread *t, struct failing *f, struct slot *slot)
{
	cl_uint pattern = (cl_uint)draw(&t->random);
	size_t size = slot->size / 4 * 4;
	struct command command;
	command_begin(&command, t, &f->queue, slot->storage, NULL, false);
	command_want_event(&command);
	command_wait_for(&command, f->user);
	MUST(t, clEnqueueFillBuffer(f->queue.handle, slot->mem, &pattern, sizeof pattern, 0, size, command.waits, command.list,
				    command.out));
	f->fill = command.event;
	MUST(t, clRetainEvent(f->fill));
	command_end(&command);
	if (host_reads(slot) && once_in(t, 2)) {
		f->host = allocate(size);
		MUST(t, clEnqueueReadBuffer(f->queue.handle, slot->mem, CL_FALSE, 0, size, f->host, 1, &f->fill, &f->after));
	} else {
		MUST(t, clEnqueueMarkerWithWaitList(f->queue.handle, 1, &f->fill, &f->after));
	}
	MUST(t, clFlush(f->queue.handle));
}

/* An event that something waits for, kept until all is over: PoCL 3.1 aborts now and then when failed ones are released. */
struct failed {
	cl_event event;
	struct failed *next;
};

static void failed_keep(struct thread *t, cl_event event)
{
	struct failed *failed = allocate(sizeof *failed);
	*failed = (struct failed){event, t->failed};
	t->failed = failed;
}

void failed_release(struct thread *t)
{
	while (t->failed) {
		struct failed *failed = t->failed;
		t->failed = failed->next;
		MUST(t, clReleaseEvent(failed->event));
		free(failed);
	}
}

static void must_fail(struct thread *t, cl_event event)
{
	cl_int status;
	while ((status = event_status(t, event)) > CL_COMPLETE)
		pause_us(20);
	if (status == CL_COMPLETE)
		broken(t, "a command that waits for a failed event completed");
	failed_keep(t, event);
}

/*
 * The buffer is released while what will fail is held back, and one like it takes its place; or it stays, with
 * unknown contents.
 */
void op_fail(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	if (!t->style->errors || slot->kind != SLOT_BUFFER || slot->storage->refs > 1 || slot->size < 4)
		return;
	cl_int status;
	struct failing f = {.queue.inorder = false}; /* PoCL 3.1 hangs now and then after failures in an in-order queue */
	f.queue.handle = queue_new(t->world, f.queue.inorder);
	f.user = clCreateUserEvent(t->world->context, &status);
	MUST(t, status);
	/* Commands fail as soon as one thing that they wait for has, and others may run still; PoCL 3.1 may hang then. */
	storage_wait(t, slot->storage);
	failing_enqueue(t, &f, slot);
	bool replace = once_in(t, 2);
	if (replace) {
		size_t size = slot->size;
		cl_mem_flags flags = slot->flags;
		storage_forget(t, slot->storage);
		slot_release(t, slot);
		slot_create(t, slot, size, flags);
		define(t, slot, &t->queue[op->queue]);
	}
	gates_open(t); /* it may wait for what these hold back */
	MUST(t, clSetUserEventStatus(f.user, -1 - (cl_int)below(t, 20)));
	failed_keep(t, f.user);
	must_fail(t, f.fill);
	must_fail(t, f.after);
	if (!replace) {
		storage_forget(t, slot->storage);
		slot->storage->defined = 0;
		slot->serial = ++t->serial; /* for kernels that know the slot: this is not what they read */
	}
	MUST(t, clReleaseCommandQueue(f.queue.handle));
	free(f.host);
}
