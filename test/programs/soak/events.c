/* events.c: callbacks of objects and events, events kept and let go in odd orders, and the times that they tell. */
#include "soak.h"

#include <stdlib.h>

/* The destructor callbacks of one object: the last registered is called first. */
struct group {
	atomic_uint left;
};

struct mark {
	struct group *group;
	unsigned index;
};

static atomic_uint callbacks_due, callbacks_wrong;

static void CL_CALLBACK destroyed(cl_mem mem, void *data)
{
	(void)mem;
	struct mark *mark = data;
	unsigned left = atomic_fetch_sub(&mark->group->left, 1) - 1;
	if (left != mark->index)
		atomic_fetch_add(&callbacks_wrong, 1);
	if (left == 0)
		free(mark->group);
	free(mark);
	atomic_fetch_sub(&callbacks_due, 1);
}

void op_destructor(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	if (slot->kind == SLOT_EMPTY || !t->style->destructors || slot->storage->leaked)
		return;
	slot->storage->destructors = true;
	if (!slot->group)
		slot->group = calloc(1, sizeof *slot->group);
	struct mark *mark = allocate(sizeof *mark);
	if (!slot->group)
		broken(t, "out of memory");
	*mark = (struct mark){slot->group, atomic_fetch_add(&slot->group->left, 1)};
	atomic_fetch_add(&callbacks_due, 1);
	MUST(t, clSetMemObjectDestructorCallback(slot->mem, destroyed, mark));
}

/* What an event's callback releases, in whatever thread of the driver's. */
struct farewell {
	cl_mem mem; /* may be NULL */
	unsigned references;
};

static void CL_CALLBACK completed(cl_event event, cl_int status, void *data)
{
	(void)event;
	struct farewell *farewell = data;
	if (status != CL_COMPLETE)
		atomic_fetch_add(&callbacks_wrong, 1);
	while (farewell->mem && farewell->references-- > 0)
		CHECK(clReleaseMemObject(farewell->mem));
	free(farewell);
	atomic_fetch_sub(&callbacks_due, 1);
}

void op_event_callback(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	if (slot->kind == SLOT_EMPTY || !t->style->callbacks)
		return;
	cl_event event = storage_event(t, slot->storage);
	if (event)
		MUST(t, clRetainEvent(event));
	else
		MUST(t, clEnqueueMarkerWithWaitList(t->queue[op->queue].handle, 0, NULL, &event));
	struct farewell *farewell = allocate(sizeof *farewell);
	*farewell = (struct farewell){0};
	if (!once_in(t, 3)) {
		farewell->references = slot->extra + 1;
		farewell->mem = slot_take(t, slot);
	}
	atomic_fetch_add(&callbacks_due, 1);
	MUST(t, clSetEventCallback(event, CL_COMPLETE, completed, farewell));
	MUST(t, clReleaseEvent(event));
}

void callbacks_wait(void)
{
	while (atomic_load(&callbacks_due) > 0)
		pause_us(100);
	if (atomic_load(&callbacks_wrong) > 0)
		fail("soak: %u callbacks were made in the wrong order or with an error", atomic_load(&callbacks_wrong));
}

/* --- events */

/* Each requested status is called back once, and never with an error: nothing fails here. */
static void CL_CALLBACK status_told(cl_event event, cl_int status, void *data)
{
	(void)event;
	(void)data;
	if (status < CL_COMPLETE)
		atomic_fetch_add(&callbacks_wrong, 1);
	atomic_fetch_sub(&callbacks_due, 1);
}

static void ask_for_callbacks(struct thread *t, cl_event event)
{
	static const cl_int statuses[] = {CL_SUBMITTED, CL_RUNNING, CL_COMPLETE};
	for (int i = 0; i < 3; i++) {
		if (once_in(t, 2))
			continue;
		atomic_fetch_add(&callbacks_due, 1);
		MUST(t, clSetEventCallback(event, statuses[i], status_told, NULL));
	}
}

/* There are times once the command is over, and they are in order. */
static void times_check(struct thread *t, cl_event event)
{
	static const cl_profiling_info what[] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
						 CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
	cl_ulong before = 0;
	for (int i = 0; i < 4; i++) {
		cl_ulong now = 0;
		MUST(t, clGetEventProfilingInfo(event, what[i], sizeof now, &now, NULL));
		if (now < before)
			broken(t, "profiling time %d is %llu ns before the one before it", i, (unsigned long long)(before - now));
		before = now;
	}
}

/* The last command's event gets more references, which go one by one: before it is over and after. */
void op_events(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	cl_event event = slot->kind == SLOT_EMPTY ? NULL : storage_event(t, slot->storage);
	if (!event)
		return;
	size_t references = 1 + below(t, 4), early = below(t, references);
	for (size_t i = 0; i < references; i++)
		MUST(t, clRetainEvent(event));
	if (t->style->callbacks)
		ask_for_callbacks(t, event);
	for (size_t i = 0; i < early; i++)
		MUST(t, clReleaseEvent(event));
	if (once_in(t, 2)) {
		storage_wait(t, slot->storage); /* the storage lets go of it */
		if (t->style->profiling)
			times_check(t, event);
	} else if (once_in(t, 2)) {
		slot_release(t, slot);
	}
	for (size_t i = early; i < references; i++)
		MUST(t, clReleaseEvent(event));
}
