/*
 * closed_queues.c: queues that the program has released while commands were pending. The driver is never called with the
 * list's lock held: a callback of the program may run inside that call, and need the lock.
 */
#define _GNU_SOURCE
#include "closed_queues.h"

#include "../base/lock.h"
#include "../base/session.h"
#include "inflight.h"
#include "queue.h"

static struct gmt_queue *closed; /* linked by next_closed */
static _Atomic uint32_t closed_lock;

static void poll_closed_queues(void)
{
	struct gmt_queue *some[64];
	uint32_t count, skip = 0;
	do {
		uint32_t at = 0;
		count = 0;
		gmt_lock(&closed_lock);
		for (struct gmt_queue *queue = closed; queue && count < 64; queue = queue->next_closed)
			if (at++ >= skip)
				some[count++] = queue;
		gmt_unlock(&closed_lock);
		for (uint32_t i = 0; i < count; i++) /* a queue that another thread has recycled meanwhile has no markers */
			gmt_queue_poll_markers(some[i]);
		skip += count;
	} while (count == 64);
}

/*
 * Removes queues whose commands have completed and, with a context that was terminated, all queues of it. A queue without
 * a marker never completes: its uses stay pending. Contexts that sleep need no queues.
 */
static struct gmt_queue *take_completed_queues(const struct gmt_context *context)
{
	struct gmt_queue *completed = NULL;
	gmt_lock(&closed_lock);
	for (struct gmt_queue **at = &closed; *at;) {
		struct gmt_queue *queue = *at;
		const struct gmt_context *its = queue->context;
		bool gone = its && ((its == context && atomic_load(&its->pool.closed)) || atomic_load(&its->life.asleep));
		if (!gone && atomic_load(&queue->done) < atomic_load(&queue->enqueued)) {
			at = &queue->next_closed;
			continue;
		}
		*at = queue->next_closed;
		queue->next_closed = completed;
		completed = queue;
	}
	gmt_unlock(&closed_lock);
	return completed;
}

static void add_closed_queue(struct gmt_queue *queue)
{
	gmt_lock(&closed_lock);
	queue->next_closed = closed;
	closed = queue;
	gmt_unlock(&closed_lock);
}

/* Recycles the queues that take_completed_queues removes. */
static void recycle_completed_queues(const struct gmt_context *context)
{
	poll_closed_queues();
	for (struct gmt_queue *queue = take_completed_queues(context), *next; queue; queue = next) {
		next = queue->next_closed;
		if (gmt_queue_drop_markers(queue))
			gmt_queue_recycle(queue);
		else
			add_closed_queue(queue); /* this is a callback inside the call that polls it: retry later */
	}
}

/*
 * A queue with pending commands enters the list before it leaves its table, so that a queue that appears meanwhile finds it
 * in one of the two.
 */
bool gmt_queue_begin_close(struct gmt_queue *queue)
{
	if (gmt_pooling())
		gmt_queue_ensure_marker(queue);
	bool locked = gmt_lock_driver(&queue->lock);
	queue->closed = true; /* another thread may be about to put a marker into it */
	if (locked)
		gmt_unlock_driver(&queue->lock);
	bool listed = queue->markers || (gmt_pooling() && atomic_load(&queue->done) < atomic_load(&queue->enqueued));
	if (listed) {
		gmt_lock(&closed_lock);
		queue->next_closed = closed;
		closed = queue;
	}
	if (queue->context)
		atomic_fetch_sub(&queue->context->order.queues, 1);
	gmt_queue_remove(queue);
	if (listed)
		gmt_unlock(&closed_lock);
	return listed;
}

void gmt_queue_end_close(struct gmt_queue *queue, bool listed)
{
	if (!listed)
		gmt_queue_recycle(queue);
	recycle_completed_queues(NULL);
}

void gmt_queue_each_alive(void (*visit)(struct gmt_queue *, void *), void *arg)
{
	gmt_lock(&closed_lock); /* first, because queues move from the table to the list */
	gmt_queue_each(visit, arg);
	for (struct gmt_queue *queue = closed; queue; queue = queue->next_closed)
		visit(queue, arg);
	gmt_unlock(&closed_lock);
}

struct pending {
	const struct gmt_context *context;
	struct gmt_use *out;
	uint32_t room, count;
};

static void add_pending_queue(struct gmt_queue *queue, void *arg)
{
	struct pending *p = arg;
	uint64_t enqueued = atomic_load(&queue->enqueued);
	if (queue->context != p->context || atomic_load(&queue->done) >= enqueued)
		return;
	if (p->count < p->room)
		p->out[p->count] = gmt_use_of(queue, enqueued, true);
	p->count++;
}

uint32_t gmt_queue_list_pending(const struct gmt_context *context, struct gmt_use *out, uint32_t room)
{
	struct pending p = {context, out, room, 0};
	gmt_queue_each_alive(add_pending_queue, &p);
	return p.count;
}

#define QUEUES_MAX 64

/* Queues of a context with markers. */
struct marked {
	const struct gmt_context *context;
	struct gmt_queue *queue[QUEUES_MAX];
	uint32_t count;
};

static void add_marked_queue(struct gmt_queue *queue, void *arg)
{
	struct marked *m = arg;
	if (m->count < QUEUES_MAX && queue->context == m->context && queue->markers)
		m->queue[m->count++] = queue;
}

void gmt_context_drop_markers(struct gmt_context *context)
{
	struct marked m = {.context = context};
	/*
	 * A context that falls asleep has no queues. If a thread wakes it meanwhile, its new queues keep their markers, since
	 * further queues are ordered after these.
	 */
	bool more = atomic_load(&context->pool.closed);
	while (more) {
		m.count = 0;
		gmt_queue_each(add_marked_queue, &m);
		for (uint32_t i = 0; i < m.count; i++)
			more = more && gmt_queue_drop_markers(m.queue[i]);
		more = more && m.count == QUEUES_MAX;
	}
	recycle_completed_queues(context);
}
