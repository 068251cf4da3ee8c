/*
 * queue.c: which commands of a queue have completed.
 *
 * A queue counts the commands whose enqueue has returned; that count is a command's position. Counting after the
 * return, and noting the count before a clFinish, makes what is known here a lower bound at any interleaving. What
 * the program learns it tells us: clFinish, blocking calls, events that it waits for, asks about or has callbacks on.
 * A marker of ours, polled and never waited for, comes last.
 */
#define _GNU_SOURCE
#include "pool.h"

static _Atomic uint64_t *word_of(struct gmt_queue *queue, uint64_t position)
{
	return &queue->after[position % GMT_WINDOW / 64];
}

static uint64_t bit_of(uint64_t position)
{
	return 1ull << (position % 64);
}

/* A bit may have gone because done has passed it: then the answer is a late one, never a wrong one. */
bool gmt_queue_reached(const struct gmt_queue *queue, uint64_t position)
{
	uint64_t done = atomic_load_explicit(&queue->done, memory_order_acquire);
	if (done >= position)
		return true;
	/* Less than: the slot of done itself may not have been cleared yet. */
	return position - done < GMT_WINDOW && atomic_load(word_of((struct gmt_queue *)queue, position)) & bit_of(position);
}

/* Moves done to position and on over what is known to follow. Under the queue's lock. */
static void slide(struct gmt_queue *queue, uint64_t position)
{
	uint64_t done = atomic_load(&queue->done);
	while (done < position || atomic_load(word_of(queue, done + 1)) & bit_of(done + 1)) {
		if (done < position && position - done > GMT_WINDOW)
			done = position - GMT_WINDOW - 1; /* no bit can be set before */
		done++;
		/* done first: whoever finds the bit gone then finds it passed, or takes it for pending. */
		atomic_store_explicit(&queue->done, done, memory_order_release);
		if (atomic_load_explicit(word_of(queue, done), memory_order_relaxed) & bit_of(done))
			atomic_fetch_and(word_of(queue, done), ~bit_of(done));
	}
}

/* Under the queue's lock. */
static void one_done(struct gmt_queue *queue, uint64_t position)
{
	uint64_t done = atomic_load(&queue->done);
	if (position <= done || position - done >= GMT_WINDOW)
		return;
	atomic_fetch_or(word_of(queue, position), bit_of(position));
	slide(queue, done);
}

/* What cannot be noted, because a callback comes here from inside a call of ours, is asked of a marker later. */
void gmt_queue_done(struct gmt_queue *queue, uint64_t position)
{
	if (atomic_load(&queue->done) >= position || !gmt_lock_driver(&queue->lock))
		return;
	if (atomic_load(&queue->done) < position)
		slide(queue, position);
	gmt_unlock_driver(&queue->lock);
}

/* The number is looked at under the lock, which recycling takes, too: these positions must not be another queue's. */
static void done(const struct gmt_cover *what)
{
	struct gmt_queue *queue = what->queue;
	if (!gmt_lock_driver(&queue->lock))
		return;
	if (queue->object.number == what->queuenumber) {
		if (atomic_load(&queue->done) < what->before)
			slide(queue, what->before);
		one_done(queue, what->position);
	}
	gmt_unlock_driver(&queue->lock);
}

void gmt_queue_learn(const struct gmt_completion *of)
{
	if (!of->what.queue)
		return;
	done(&of->what);
	for (uint32_t i = 0; i < of->waits; i++)
		done(&of->wait[i]);
}

static void drop_first_marker(struct gmt_queue *queue)
{
	cl_event event = queue->marker[0].event;
	queue->markers--;
	for (uint32_t i = 0; i < queue->markers; i++)
		queue->marker[i] = queue->marker[i + 1];
	gmt_next.clReleaseEvent(event);
}

/*
 * A marker that ended with an error is no answer: it may have been given up because one command failed while others
 * still run. It is kept as it is, since nothing more can be learned there.
 */
void gmt_queue_poll(struct gmt_queue *queue)
{
	if (!queue->markers || !gmt_lock_driver(&queue->lock))
		return;
	while (queue->markers) {
		struct gmt_marker *first = &queue->marker[0];
		cl_int status = CL_QUEUED;
		if (first->position > atomic_load(&queue->done)) {
			if (gmt_next.clGetEventInfo(first->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL) !=
			    CL_SUCCESS)
				status = -1;
			if (status > CL_COMPLETE)
				break;
			if (status < 0) {
				gmt_context_failed(queue->context);
				break;
			}
			slide(queue, first->position);
		}
		drop_first_marker(queue);
	}
	gmt_unlock_driver(&queue->lock);
}

static bool can_mark(const struct gmt_queue *queue, uint64_t position)
{
	const struct gmt_context *context = queue->context;
	/* One would keep a context alive that the program has released, and say nothing in one that has failed. */
	bool wanted = context && !context->old && !atomic_load(&context->closed) && atomic_load(&context->references) > 0;
	return wanted && !queue->closed && atomic_load(&queue->done) < position && gmt_next.clEnqueueMarkerWithWaitList &&
	       !(queue->markers && queue->marker[queue->markers - 1].position >= position);
}

/* Behind everything that the queue has been given; gated: also behind what waits for a user event. Under its lock. */
static void add_marker(struct gmt_queue *queue, bool gated)
{
	cl_command_queue handle = (cl_command_queue)atomic_load(&queue->object.handle);
	uint64_t position = atomic_load(&queue->enqueued);
	bool full = queue->markers == GMT_MARKERS;
	cl_event event;
	/* In a full list the new one says what the newest would have said, later: unless that one must come before it. */
	if (!handle || !can_mark(queue, position) || (full && gated) ||
	    gmt_next.clEnqueueMarkerWithWaitList(handle, 0, NULL, &event) != CL_SUCCESS)
		return;
	if (full)
		gmt_next.clReleaseEvent(queue->marker[--queue->markers].event);
	queue->marker[queue->markers++] = (struct gmt_marker){event, position, gated};
}

void gmt_queue_mark(struct gmt_queue *queue)
{
	gmt_queue_poll(queue);
	if (atomic_load(&queue->done) >= atomic_load(&queue->enqueued) || !gmt_lock_driver(&queue->lock))
		return;
	struct gmt_context *context = queue->context;
	add_marker(queue, !context || gmt_gated(context));
	gmt_unlock_driver(&queue->lock);
}

/*
 * Queues that the program has released while commands were pending, linked by zombies. The driver is never called with
 * the lock held: a callback of the program may run inside that call, and need the lock.
 */
static struct gmt_queue *zombies;
static _Atomic uint32_t zombie_lock;

static void poll_zombies(void)
{
	struct gmt_queue *some[64];
	uint32_t count, skip = 0;
	do {
		uint32_t at = 0;
		count = 0;
		gmt_lock(&zombie_lock);
		for (struct gmt_queue *z = zombies; z && count < 64; z = z->zombies)
			if (at++ >= skip)
				some[count++] = z;
		gmt_unlock(&zombie_lock);
		for (uint32_t i = 0; i < count; i++) /* one that another thread has recycled meanwhile has no markers */
			gmt_queue_poll(some[i]);
		skip += count;
	} while (count == 64);
}

/*
 * Takes out what has completed; with a context, everything of it. One without a marker is never known to be done: its
 * uses count as pending for ever.
 */
static struct gmt_queue *take_buried(const struct gmt_context *context)
{
	struct gmt_queue *buried = NULL;
	gmt_lock(&zombie_lock);
	for (struct gmt_queue **at = &zombies; *at;) {
		struct gmt_queue *queue = *at;
		const struct gmt_context *its = queue->context;
		bool gone = its && (its == context || atomic_load(&its->references) == 0);
		if (!gone && atomic_load(&queue->done) < atomic_load(&queue->enqueued)) {
			at = &queue->zombies;
			continue;
		}
		*at = queue->zombies;
		queue->zombies = buried;
		buried = queue;
	}
	gmt_unlock(&zombie_lock);
	return buried;
}

static void park(struct gmt_queue *queue)
{
	gmt_lock(&zombie_lock);
	queue->zombies = zombies;
	zombies = queue;
	gmt_unlock(&zombie_lock);
}

static bool drop_markers(struct gmt_queue *queue)
{
	if (!gmt_lock_driver(&queue->lock))
		return false;
	while (queue->markers)
		drop_first_marker(queue);
	gmt_unlock_driver(&queue->lock);
	return true;
}

/* Recycles what has completed; with a context, everything of it. */
static void bury(const struct gmt_context *context)
{
	poll_zombies();
	for (struct gmt_queue *queue = take_buried(context), *next; queue; queue = next) {
		next = queue->zombies;
		if (drop_markers(queue))
			gmt_queue_recycle(queue);
		else
			park(queue); /* a callback inside the call that polls it: another time */
	}
}

/* With commands pending it is parked before it leaves its table, so that a queue that appears meanwhile finds it in
 * one of the two. */
bool gmt_queue_closing(struct gmt_queue *queue)
{
	if (gmt_pooling())
		gmt_queue_mark(queue);
	bool locked = gmt_lock_driver(&queue->lock);
	queue->closed = true; /* another thread may be about to put a marker behind memory that it releases */
	if (locked)
		gmt_unlock_driver(&queue->lock);
	bool parked = queue->markers || (gmt_pooling() && atomic_load(&queue->done) < atomic_load(&queue->enqueued));
	if (parked) {
		gmt_lock(&zombie_lock);
		queue->zombies = zombies;
		zombies = queue;
	}
	if (queue->context)
		atomic_fetch_sub(&queue->context->queues, 1);
	gmt_queue_remove(queue);
	if (parked)
		gmt_unlock(&zombie_lock);
	return parked;
}

void gmt_queue_closed(struct gmt_queue *queue, bool parked)
{
	if (!parked)
		gmt_queue_recycle(queue);
	bury(NULL);
}

void gmt_queue_hand(struct gmt_queue *queue, uint64_t position)
{
	uint64_t handed = atomic_load(&queue->handed);
	while (handed < position && !atomic_compare_exchange_weak(&queue->handed, &handed, position))
		;
}

static bool handed_pending(struct gmt_queue *queue, const struct gmt_context *context)
{
	uint64_t handed = atomic_load(&queue->handed);
	if (queue->context != context || atomic_load(&queue->done) >= handed)
		return false;
	gmt_queue_poll(queue);
	return atomic_load(&queue->done) < handed;
}

/* The first marker that covers what was handed out, and waits for no user event that is open. Under the queue's lock. */
static const struct gmt_marker *handed_marker(const struct gmt_queue *queue)
{
	uint64_t handed = atomic_load(&queue->handed);
	const struct gmt_context *context = queue->context;
	bool open = context && gmt_gated(context);
	for (uint32_t i = 0; i < queue->markers; i++)
		if (queue->marker[i].position >= handed && !(open && queue->marker[i].gated))
			return &queue->marker[i];
	return NULL;
}

#define QUEUES_MAX 64

/* Queues of a context with commands pending that blocks were handed out behind. */
struct handed {
	const struct gmt_context *context;
	struct gmt_queue *queue[QUEUES_MAX];
	uint32_t count;
};

static void add_handed(struct gmt_queue *queue, void *arg)
{
	struct handed *h = arg;
	bool its = !h->context || queue->context == h->context;
	if (its && h->count < QUEUES_MAX && atomic_load(&queue->handed) > atomic_load(&queue->done))
		h->queue[h->count++] = queue;
}

/* Of all contexts when there is none. */
static void secure(struct gmt_context *context)
{
	struct handed h = {.context = context};
	if (gmt_pooling())
		gmt_queue_each(add_handed, &h);
	for (uint32_t i = 0; i < h.count; i++) {
		if (!handed_pending(h.queue[i], h.queue[i]->context) || !gmt_lock_driver(&h.queue[i]->lock))
			continue;
		if (!handed_marker(h.queue[i])) /* else a later one, in its place, could be behind another user event */
			add_marker(h.queue[i], false);
		gmt_unlock_driver(&h.queue[i]->lock);
	}
}

void gmt_queue_gate(struct gmt_context *context)
{
	atomic_fetch_add(&context->gates, 1);
	secure(context);
}

_Atomic uint32_t gmt_gates_outside;

void gmt_queue_gate_outside(void)
{
	if (!atomic_exchange(&gmt_gates_outside, 1))
		secure(NULL);
}

/* Puts fresh behind the first marker that covers what was handed out; false when there is none. Under queue's lock. */
static bool behind_marker(const struct gmt_queue *queue, cl_command_queue fresh)
{
	const struct gmt_marker *marker = handed_marker(queue);
	return marker && gmt_next.clEnqueueBarrierWithWaitList(fresh, 1, &marker->event, NULL) == CL_SUCCESS;
}

/*
 * The one flush that is ours: what another queue waits for must be submitted, or both wait for ever. With a user
 * event open, a marker put now could wait for the program, and the program for fresh: gmt_queue_gate has put one.
 */
static void order_behind(struct gmt_queue *queue, struct gmt_queue *fresh)
{
	cl_command_queue behind = (cl_command_queue)atomic_load(&fresh->object.handle);
	struct gmt_context *context = fresh->context;
	if (!handed_pending(queue, context) || !gmt_lock_driver(&queue->lock))
		return;
	if (!behind_marker(queue, behind) && !gmt_gated(context)) {
		add_marker(queue, false);
		behind_marker(queue, behind);
	}
	cl_command_queue handle = (cl_command_queue)atomic_load(&queue->object.handle);
	if (handle && !queue->closed) /* else flushed by its release */
		gmt_next.clFlush(handle);
	gmt_unlock_driver(&queue->lock);
}

void gmt_queue_order_behind(struct gmt_queue *fresh)
{
	if (!gmt_next.clEnqueueMarkerWithWaitList || !gmt_next.clEnqueueBarrierWithWaitList)
		return;
	struct handed h = {.context = fresh->context};
	gmt_lock(&zombie_lock); /* first: a queue moves from the table to the zombies */
	gmt_queue_each(add_handed, &h);
	for (struct gmt_queue *z = zombies; z; z = z->zombies)
		add_handed(z, &h);
	gmt_unlock(&zombie_lock);
	for (uint32_t i = 0; i < h.count; i++)
		if (h.queue[i] != fresh)
			order_behind(h.queue[i], fresh);
}

struct pending {
	const struct gmt_context *context;
	struct gmt_use *out;
	uint32_t room, count;
};

static void add_pending(struct gmt_queue *queue, void *arg)
{
	struct pending *p = arg;
	uint64_t enqueued = atomic_load(&queue->enqueued);
	if (queue->context != p->context || atomic_load(&queue->done) >= enqueued)
		return;
	if (p->count < p->room)
		p->out[p->count] = (struct gmt_use){queue, queue->object.number, enqueued, true};
	p->count++;
}

uint32_t gmt_queue_pending(const struct gmt_context *context, struct gmt_use *out, uint32_t room)
{
	struct pending p = {context, out, room, 0};
	gmt_lock(&zombie_lock); /* first: a queue moves from the table to the zombies */
	gmt_queue_each(add_pending, &p);
	for (struct gmt_queue *z = zombies; z; z = z->zombies)
		add_pending(z, &p);
	gmt_unlock(&zombie_lock);
	return p.count;
}

/* Queues of a context with markers. */
static void add_marked(struct gmt_queue *queue, void *arg)
{
	struct handed *h = arg;
	if (h->count < QUEUES_MAX && queue->context == h->context && queue->markers)
		h->queue[h->count++] = queue;
}

void gmt_queue_drop(struct gmt_context *context)
{
	struct handed h = {.context = context};
	bool some = true;
	do {
		h.count = 0;
		gmt_queue_each(add_marked, &h);
		for (uint32_t i = 0; i < h.count; i++)
			some = some && drop_markers(h.queue[i]);
	} while (h.count == QUEUES_MAX && some);
	bury(context);
}
