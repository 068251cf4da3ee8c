/* handout.c: see handout.h. */
#define _GNU_SOURCE
#include "handout.h"

#include "../base/dispatch.h"
#include "../base/lock.h"
#include "../base/session.h"
#include "closed_queues.h"
#include "queue.h"

static bool pending_before_handout(struct gmt_queue *queue, const struct gmt_context *context)
{
	uint64_t handed = atomic_load(&queue->handed);
	if (queue->context != context || atomic_load(&queue->done) >= handed)
		return false;
	gmt_queue_poll_markers(queue);
	return atomic_load(&queue->done) < handed;
}

/* The first marker after the latest hand-out that waits for no open user event. Under the queue's lock. */
static const struct gmt_marker *marker_after_handout(const struct gmt_queue *queue)
{
	uint64_t handed = atomic_load(&queue->handed);
	const struct gmt_context *context = queue->context;
	bool open = context && gmt_is_gated(context);
	for (uint32_t i = 0; i < queue->markers; i++)
		if (queue->marker[i].position >= handed && !(open && queue->marker[i].gated))
			return &queue->marker[i];
	return NULL;
}

#define QUEUES_MAX 64

/* Queues of one or all contexts with pending commands after which blocks were handed out: as many as fit, each once in a round. */
struct handed {
	const struct gmt_context *context;
	uint64_t round;
	struct gmt_queue *queue[QUEUES_MAX];
	uint32_t count;
};

static struct handed new_round(const struct gmt_context *context)
{
	static _Atomic uint64_t rounds;
	return (struct handed){.context = context, .round = atomic_fetch_add(&rounds, 1) + 1};
}

/* Takes the context's lock: a thread that hands out without seeing the new queue or user event notes that before it unlocks. */
static void add_handed_queue(struct gmt_queue *queue, void *arg)
{
	struct handed *h = arg;
	struct gmt_context *context = queue->context;
	if (!context || (h->context && context != h->context) || h->count == QUEUES_MAX || atomic_load(&queue->round) == h->round)
		return;
	gmt_lock(&context->lock);
	uint64_t handed = atomic_load(&queue->handed);
	gmt_unlock(&context->lock);
	if (handed <= atomic_load(&queue->done))
		return;
	atomic_store(&queue->round, h->round);
	h->queue[h->count++] = queue;
}

/* Takes the next of a round, with visit_all of all queues or of those that are alive. False: none is left. */
static bool next_handed(struct handed *h, void (*visit_all)(void (*)(struct gmt_queue *, void *), void *))
{
	h->count = 0;
	visit_all(add_handed_queue, h);
	return h->count > 0;
}

/* Puts a marker after the latest hand-out of a queue. */
static void mark_one(struct gmt_queue *queue)
{
	if (!pending_before_handout(queue, queue->context) || !gmt_lock_driver(&queue->lock))
		return;
	if (!marker_after_handout(queue)) /* now, because a later marker could come after another user event */
		gmt_queue_add_marker(queue, false);
	gmt_unlock_driver(&queue->lock);
}

/* Puts a marker after the latest hand-out of each queue. context: NULL: of all contexts. */
static void mark_handed_out(struct gmt_context *context)
{
	struct handed h = new_round(context);
	while (gmt_pooling() && next_handed(&h, gmt_queue_each))
		for (uint32_t i = 0; i < h.count; i++)
			mark_one(h.queue[i]);
}

void gmt_queue_note_gate(struct gmt_context *context)
{
	atomic_fetch_add(&context->order.gates, 1);
	mark_handed_out(context);
}

void gmt_queue_note_gate_outside(void)
{
	if (!atomic_exchange(&gmt_gates_outside, 1))
		mark_handed_out(NULL);
}

/* Has fresh wait for the first marker after the latest hand-out; false: there is none. Under queue's lock. */
static bool order_behind_marker(const struct gmt_queue *queue, cl_command_queue fresh)
{
	const struct gmt_marker *marker = marker_after_handout(queue);
	if (!marker)
		return false;
	if (gmt_is_old_opencl(queue->context))
		return gmt_driver.clEnqueueWaitForEvents(fresh, 1, &marker->event) == CL_SUCCESS;
	return gmt_driver.clEnqueueBarrierWithWaitList(fresh, 1, &marker->event, NULL) == CL_SUCCESS;
}

/*
 * Has fresh wait for the commands of queue after which blocks were handed out. Flushes queue: unless the commands are submitted,
 * both wait forever. The marker waits for no user event: nothing is handed out while one is open, and a user event that is
 * created later either put a marker before the program got its handle, or finds this one.
 */
static void order_behind(struct gmt_queue *queue, struct gmt_queue *fresh)
{
	cl_command_queue behind = (cl_command_queue)atomic_load(&fresh->object.handle);
	struct gmt_context *context = fresh->context;
	if (!pending_before_handout(queue, context) || !gmt_lock_driver(&queue->lock))
		return;
	bool pending = atomic_load(&queue->done) < atomic_load(&queue->handed); /* again: a user event that found none put no marker */
	cl_command_queue handle = (cl_command_queue)atomic_load(&queue->object.handle);
	if (pending && !order_behind_marker(queue, behind)) {
		gmt_queue_add_marker(queue, false);
		if (!order_behind_marker(queue, behind) && handle && !queue->closed && !gmt_is_gated(context))
			gmt_driver.clFinish(handle); /* the driver lacks memory for a marker */
	}
	gmt_queue_note_interference(queue);
	if (handle && !queue->closed) /* a closed queue was flushed by its release */
		gmt_driver.clFlush(handle);
	gmt_unlock_driver(&queue->lock);
}

void gmt_queue_order_behind(struct gmt_queue *fresh)
{
	struct handed h = new_round(fresh->context);
	while (next_handed(&h, gmt_queue_each_alive))
		for (uint32_t i = 0; i < h.count; i++)
			if (h.queue[i] != fresh)
				order_behind(h.queue[i], fresh);
}
