/*
 * queue.h: which commands of a program's queue have certainly completed. The queue counts all commands whose enqueue has
 * returned; a position is such a count. Nothing here waits; only a flushed marker and gmt_queue_marker_behind flush. --spill
 * has spill/queue.h.
 */
#ifndef GMT_QUEUE_H
#define GMT_QUEUE_H

#include "../registry/objects.h"

/* Moves a position forward, never back. */
static inline void gmt_raise_position(_Atomic uint64_t *position, uint64_t to)
{
	uint64_t now = atomic_load(position);
	while (now < to && !atomic_compare_exchange_weak(position, &now, to))
		;
}

bool gmt_queue_has_reached(const struct gmt_queue *queue, uint64_t position);
/* Notes that all commands up to position have completed. */
void gmt_queue_note_completed(struct gmt_queue *queue, uint64_t position);
/* Notes that the program has learned that an event's command has completed without an error. */
void gmt_queue_learn_completion(const struct gmt_completion *of);
/* Notes that a command has failed: drivers then give up others early, so the order is unknown from here on. context may be NULL. */
void gmt_context_note_failed(struct gmt_context *context);

/* Whether a device is of before OpenCL 1.minor; minor: '1' or '2'. */
bool gmt_device_is_before(cl_device_id device, char minor);
/* Whether its driver is rusticl, whose clFinish may return too early: see hooks/hook_sync.c. */
bool gmt_device_is_rusticl(cl_device_id device);
/* The event of a new marker after everything enqueued, or NULL. old: the driver is of before OpenCL 1.2. */
cl_event gmt_enqueue_marker(cl_command_queue handle, bool old);
/* Asks the markers of queue which of them have completed. */
void gmt_queue_poll_markers(struct gmt_queue *queue);
/* Puts a marker after everything enqueued, unless there is one or all has completed. */
void gmt_queue_ensure_marker(struct gmt_queue *queue);
/* The same without polling, under the queue's lock; gated: the marker may come after commands that wait for a user event. */
void gmt_queue_add_marker(struct gmt_queue *queue, bool gated);
/*
 * The program begins or ends a call that waits in the driver for commands of the queue. rusticl of Mesa 22.3 then holds a lock that every
 * enqueue takes: a marker that another thread puts meanwhile would wait for the call, and the call perhaps for what that thread
 * does next. So none is put until the call ends.
 */
void gmt_queue_begin_wait(struct gmt_queue *queue);
void gmt_queue_end_wait(struct gmt_queue *queue);
/* Drops all markers. False: it could not get the lock, in a callback inside the call that polls the queue. */
bool gmt_queue_drop_markers(struct gmt_queue *queue);
/* Notes that a marker or flush of ours came after everything enqueued: see hooks/hook_sync.c. */
void gmt_queue_note_interference(struct gmt_queue *queue);
/* The event of a new, flushed marker after everything enqueued, or NULL. The caller releases it. Under the queue's lock. */
cl_event gmt_queue_flushed_marker(struct gmt_queue *queue);
/*
 * The event of a marker after position, an existing or a new one, with a reference for the caller; NULL if there can be none.
 * Under the queue's lock. Flushes, because the program may not flush again.
 */
cl_event gmt_queue_marker_behind(struct gmt_queue *queue, uint64_t position);

/* Set once something else than clFinish has submitted commands, or a marker of ours is in a queue: see hooks/hook_sync.c. */
extern _Atomic bool gmt_flushed;

/* 1: queues may wait for semaphores, in all contexts. */
extern _Atomic uint32_t gmt_gates_outside;
/* Whether commands of context may wait for the program, so that a marker may not complete for long. */
static inline bool gmt_is_gated(const struct gmt_context *context)
{
	return atomic_load(&context->order.gates) || atomic_load_explicit(&gmt_gates_outside, memory_order_relaxed);
}

#endif
