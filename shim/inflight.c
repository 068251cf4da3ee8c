/*
 * inflight.c: which queued commands still use which memory.
 *
 * A queue counts the commands whose enqueue has returned. A use is (queue, count); it is over once the queue is
 * known to have completed that many. Counting after the return, and noting the count before a clFinish, makes
 * completion a lower bound at any interleaving. Completion is learned from the program's own waits, and from a
 * marker of ours behind memory that was released while in use; a marker is polled, never waited for.
 */
#define _GNU_SOURCE
#include "shim.h"

#include <pthread.h>
#include <stdlib.h>

void gmt_use_add(struct gmt_memory *memory, struct gmt_queue *queue, uint64_t position)
{
	struct gmt_uses *uses = &memory->uses;
	struct gmt_use *free_slot = NULL;
	gmt_lock(&memory->lock);
	for (uint32_t i = 0; i < uses->count; i++) {
		struct gmt_use *use = &uses->use[i];
		if (use->queue == queue) {
			if (use->queuenumber != queue->object.number || use->position < position)
				*use = (struct gmt_use){queue, queue->object.number, position};
			gmt_unlock(&memory->lock);
			return;
		}
		if (use->queue->object.number != use->queuenumber || atomic_load(&use->queue->done) >= use->position)
			free_slot = use; /* over */
	}
	if (!free_slot && uses->count < GMT_USES)
		free_slot = &uses->use[uses->count++];
	if (free_slot)
		*free_slot = (struct gmt_use){queue, queue->object.number, position};
	else
		uses->many = true;
	gmt_unlock(&memory->lock);
}

static bool over(const struct gmt_use *use)
{
	return use->queue->object.number != use->queuenumber ||
	       atomic_load_explicit(&use->queue->done, memory_order_acquire) >= use->position;
}

/* True when whatever the context does next runs behind everything that this queue has been given. */
static bool orders_all(const struct gmt_queue *queue, const struct gmt_context *context)
{
	return queue->inorder && queue->context == context && atomic_load(&queue->references) > 0 &&
	       atomic_load(&context->queues) == 1 && !atomic_load(&context->unordered);
}

enum gmt_flight gmt_uses_state(struct gmt_uses *uses, struct gmt_context *context)
{
	if (uses->many)
		return GMT_FLIGHT_BUSY;
	enum gmt_flight state = GMT_FLIGHT_DONE;
	for (uint32_t i = 0; i < uses->count; i++) {
		struct gmt_use *use = &uses->use[i];
		if (over(use))
			continue;
		gmt_queue_poll(use->queue);
		if (over(use))
			continue;
		if (!context || !orders_all(use->queue, context))
			return GMT_FLIGHT_BUSY;
		state = GMT_FLIGHT_ORDERED;
	}
	return state;
}

void gmt_queue_done(struct gmt_queue *queue, uint64_t position)
{
	uint64_t done = atomic_load(&queue->done);
	while (done < position && !atomic_compare_exchange_weak(&queue->done, &done, position))
		;
}

static bool complete(cl_event event)
{
	cl_int status = CL_QUEUED;
	cl_int err = gmt_next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
	return err != CL_SUCCESS || status <= CL_COMPLETE; /* negative: ended with an error, but ended */
}

static void drop_first_marker(struct gmt_queue *queue)
{
	cl_event event = queue->marker[0].event;
	queue->markers--;
	for (uint32_t i = 0; i < queue->markers; i++)
		queue->marker[i] = queue->marker[i + 1];
	gmt_next.clReleaseEvent(event);
}

void gmt_queue_poll(struct gmt_queue *queue)
{
	if (!queue->markers)
		return;
	gmt_lock(&queue->lock);
	while (queue->markers) {
		struct gmt_marker *first = &queue->marker[0];
		if (first->position > atomic_load(&queue->done)) {
			if (!complete(first->event))
				break;
			gmt_queue_done(queue, first->position);
		}
		drop_first_marker(queue);
	}
	gmt_unlock(&queue->lock);
}

/* Puts a marker behind what is queued, so that gmt_queue_poll can tell when it is done. */
static void mark(struct gmt_queue *queue)
{
	cl_command_queue handle = (cl_command_queue)atomic_load(&queue->object.handle);
	uint64_t position = atomic_load(&queue->enqueued);
	if (!handle || atomic_load(&queue->done) >= position)
		return;
	gmt_lock(&queue->lock);
	bool covered = queue->markers && queue->marker[queue->markers - 1].position >= position;
	if (!covered && !queue->closed && gmt_next.clEnqueueMarkerWithWaitList) {
		cl_event event;
		if (gmt_next.clEnqueueMarkerWithWaitList(handle, 0, NULL, &event) == CL_SUCCESS) {
			if (queue->markers == GMT_MARKERS) /* the newest says what it said, later */
				gmt_next.clReleaseEvent(queue->marker[--queue->markers].event);
			queue->marker[queue->markers++] = (struct gmt_marker){event, position};
		}
	}
	gmt_unlock(&queue->lock);
}

/* Queues that the program has released while commands were pending, linked by zombies. */
static struct gmt_queue *zombies;
static _Atomic uint32_t zombie_lock;

/* Recycles what has completed; with a context, everything of it. */
static void bury(const struct gmt_context *context)
{
	gmt_lock(&zombie_lock);
	for (struct gmt_queue **at = &zombies; *at;) {
		struct gmt_queue *queue = *at;
		bool gone = context && queue->context == context;
		gmt_queue_poll(queue);
		if (!gone && queue->markers && atomic_load(&queue->done) < atomic_load(&queue->enqueued)) {
			at = &queue->zombies;
			continue;
		}
		*at = queue->zombies;
		while (queue->markers)
			drop_first_marker(queue);
		gmt_queue_recycle(queue);
	}
	gmt_unlock(&zombie_lock);
}

void gmt_queue_closing(struct gmt_queue *queue)
{
	if (gmt_pooling())
		mark(queue);
	gmt_lock(&queue->lock);
	queue->closed = true; /* another thread may be about to put a marker behind memory that it releases */
	gmt_unlock(&queue->lock);
}

void gmt_queue_closed(struct gmt_queue *queue)
{
	if (queue->context)
		atomic_fetch_sub(&queue->context->queues, 1);
	gmt_queue_poll(queue);
	bool done = atomic_load(&queue->done) >= atomic_load(&queue->enqueued);
	if (!queue->markers && (done || !gmt_pooling())) {
		gmt_queue_recycle(queue);
	} else if (queue->markers) { /* without one nobody can tell: its uses count as pending for ever */
		gmt_lock(&zombie_lock);
		queue->zombies = zombies;
		zombies = queue;
		gmt_unlock(&zombie_lock);
	}
	bury(NULL);
}

/* Makes fresh wait for everything that queue has been given. What others wait for must be flushed. */
static void order_behind(struct gmt_queue *queue, void *arg)
{
	struct gmt_queue *fresh = arg;
	if (queue == fresh || queue->context != fresh->context)
		return;
	cl_command_queue handle = (cl_command_queue)atomic_load(&queue->object.handle);
	cl_event event;
	if (!handle || gmt_next.clEnqueueMarkerWithWaitList(handle, 0, NULL, &event) != CL_SUCCESS)
		return;
	gmt_next.clFlush(handle);
	gmt_next.clEnqueueBarrierWithWaitList((cl_command_queue)atomic_load(&fresh->object.handle), 1, &event, NULL);
	gmt_next.clReleaseEvent(event);
}

void gmt_queue_order_behind(struct gmt_queue *fresh)
{
	if (!gmt_next.clEnqueueMarkerWithWaitList || !gmt_next.clEnqueueBarrierWithWaitList)
		return;
	gmt_queue_each(order_behind, fresh);
	cl_command_queue handle = (cl_command_queue)atomic_load(&fresh->object.handle);
	gmt_lock(&zombie_lock);
	for (struct gmt_queue *z = zombies; z; z = z->zombies) {
		gmt_lock(&z->lock); /* keeps the event alive */
		if (z->context == fresh->context && z->markers)
			gmt_next.clEnqueueBarrierWithWaitList(handle, 1, &z->marker[z->markers - 1].event, NULL);
		gmt_unlock(&z->lock);
	}
	gmt_unlock(&zombie_lock);
}

/* Blocks that were freed while in use: a ring that grows, oldest first. */
static struct cooling {
	struct gmt_cooled what;
	struct gmt_context *context;
	struct gmt_uses uses;
} *cooling;
static size_t cooling_capacity /* a power of two */, cooling_first;
static _Atomic size_t cooling_count;
static pthread_mutex_t cooling_mutex = PTHREAD_MUTEX_INITIALIZER;

static struct cooling *cooling_at(size_t i)
{
	return &cooling[(cooling_first + i) & (cooling_capacity - 1)];
}

static bool cooling_grow(void)
{
	size_t count = atomic_load(&cooling_count), capacity = cooling_capacity ? 2 * cooling_capacity : 256;
	struct cooling *bigger = malloc(capacity * sizeof *bigger);
	if (!bigger)
		return false;
	for (size_t i = 0; i < count; i++)
		bigger[i] = *cooling_at(i);
	free(cooling);
	cooling = bigger;
	cooling_capacity = capacity;
	cooling_first = 0;
	return true;
}

void gmt_cooling_add(const struct gmt_cooled *what, const struct gmt_uses *uses, struct gmt_context *context)
{
	for (uint32_t i = 0; i < uses->count; i++)
		if (!over(&uses->use[i]))
			mark(uses->use[i].queue);
	pthread_mutex_lock(&cooling_mutex);
	size_t count = atomic_load(&cooling_count);
	if (count < cooling_capacity || cooling_grow()) { /* else it cools for ever, which is safe */
		*cooling_at(count) = (struct cooling){*what, context, *uses};
		atomic_store(&cooling_count, count + 1);
	}
	pthread_mutex_unlock(&cooling_mutex);
}

/* Takes the first entry out; one that is still in use goes to the end, so that no stuck block hides the others. */
static bool next_cooled(struct cooling *out)
{
	*out = *cooling_at(0);
	cooling_first = (cooling_first + 1) & (cooling_capacity - 1);
	size_t count = atomic_load(&cooling_count) - 1;
	bool done = gmt_uses_state(&out->uses, NULL) == GMT_FLIGHT_DONE;
	if (!done)
		*cooling_at(count++) = *out;
	atomic_store(&cooling_count, count);
	return done;
}

unsigned gmt_cooling_take(struct gmt_cooled *out, unsigned room, unsigned most)
{
	if (gmt_likely(atomic_load_explicit(&cooling_count, memory_order_relaxed) == 0))
		return 0;
	unsigned found = 0;
	if (pthread_mutex_trylock(&cooling_mutex) != 0)
		return 0;
	size_t count = atomic_load(&cooling_count);
	for (size_t looked = 0; looked < most && looked < count && found < room; looked++) {
		struct cooling entry;
		if (next_cooled(&entry))
			out[found++] = entry.what;
	}
	pthread_mutex_unlock(&cooling_mutex);
	return found;
}

static void drop_markers(struct gmt_queue *queue, void *context)
{
	if (queue->context != context)
		return;
	gmt_lock(&queue->lock);
	while (queue->markers)
		drop_first_marker(queue);
	gmt_unlock(&queue->lock);
}

void gmt_inflight_drop(struct gmt_context *context)
{
	pthread_mutex_lock(&cooling_mutex);
	size_t count = atomic_load(&cooling_count), kept = 0;
	for (size_t i = 0; i < count; i++) {
		struct cooling entry = *cooling_at(i);
		if (entry.context != context)
			*cooling_at(kept++) = entry;
	}
	atomic_store(&cooling_count, kept);
	pthread_mutex_unlock(&cooling_mutex);
	gmt_queue_each(drop_markers, context);
	bury(context);
}
