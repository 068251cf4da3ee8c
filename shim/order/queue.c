/*
 * queue.c: see queue.h.
 *
 * Commands are counted after their enqueue has returned, and the count is read before a clFinish. So what we know is a
 * lower bound at any interleaving. We learn from what the program learns: clFinish, blocking calls, and events that it
 * waits for, queries or has callbacks on. Last comes a marker of ours, which is polled and never waited for.
 */
#define _GNU_SOURCE
#include "queue.h"

#include "../base/dispatch.h"
#include "../base/leak_check.h"
#include "../base/lock.h"
#include "../base/ring.h"
#include "../base/session.h"

#include <string.h>

_Atomic uint32_t gmt_gates_outside;
_Atomic bool gmt_flushed;

void gmt_context_note_failed(struct gmt_context *context)
{
	if (context && !atomic_exchange(&context->pool.closed, 1))
		gmt_diag(GMT_DIAG_TRANSPARENT, "a command has failed: memory of its context is no longer recycled");
}

static _Atomic uint64_t *completion_word(struct gmt_queue *queue, uint64_t position)
{
	return &queue->after[position % GMT_WINDOW / 64];
}

static uint64_t completion_bit(uint64_t position)
{
	return 1ull << (position % 64);
}

/* A bit may be cleared because done has passed its position: then the answer is late, never wrong. */
bool gmt_queue_has_reached(const struct gmt_queue *queue, uint64_t position)
{
	uint64_t done = atomic_load_explicit(&queue->done, memory_order_acquire);
	if (done >= position)
		return true;
	/* Less than GMT_WINDOW: the bit of done itself, which shares its slot, may not have been cleared yet. */
	return position - done < GMT_WINDOW && atomic_load(completion_word((struct gmt_queue *)queue, position)) & completion_bit(position);
}

/* Moves done to position, if that is further, and on over the completed commands that follow. Under the queue's lock. */
static void slide_done(struct gmt_queue *queue, uint64_t position)
{
	uint64_t done = atomic_load(&queue->done);
	while (done < position || atomic_load(completion_word(queue, done + 1)) & completion_bit(done + 1)) {
		if (done < position && position - done > GMT_WINDOW)
			done = position - GMT_WINDOW - 1; /* earlier positions have no bit */
		done++;
		/* done before the bit: a thread that finds the bit cleared then sees that done has passed it. */
		atomic_store_explicit(&queue->done, done, memory_order_release);
		if (atomic_load_explicit(completion_word(queue, done), memory_order_relaxed) & completion_bit(done))
			atomic_fetch_and(completion_word(queue, done), ~completion_bit(done));
	}
}

/* Under the queue's lock. */
static void note_one_done(struct gmt_queue *queue, uint64_t position)
{
	uint64_t done = atomic_load(&queue->done);
	if (position <= done || position - done >= GMT_WINDOW)
		return;
	atomic_fetch_or(completion_word(queue, position), completion_bit(position));
	slide_done(queue, done);
}

/* In a callback from inside our own call the lock may fail. Then a marker reports the completion later. */
void gmt_queue_note_completed(struct gmt_queue *queue, uint64_t position)
{
	if (atomic_load(&queue->done) >= position || !gmt_lock_driver(&queue->lock))
		return;
	slide_done(queue, position);
	gmt_unlock_driver(&queue->lock);
}

/* Checks the id under the lock that gmt_queue_recycle takes, so that the positions are not another queue's. */
static void complete_command(const struct gmt_cover *what)
{
	struct gmt_queue *queue = what->queue;
	if (!gmt_lock_driver(&queue->lock))
		return;
	if (queue->object.id == what->queue_id) {
		slide_done(queue, what->before);
		note_one_done(queue, what->position);
	}
	gmt_unlock_driver(&queue->lock);
}

void gmt_queue_learn_completion(const struct gmt_completion *of)
{
	if (!of->what.queue)
		return;
	complete_command(&of->what);
	for (uint32_t i = 0; i < of->waits; i++)
		complete_command(&of->wait[i]);
}

static void drop_first_marker(struct gmt_queue *queue)
{
	cl_event event = queue->marker[0].event;
	queue->markers--;
	for (uint32_t i = 0; i < queue->markers; i++)
		queue->marker[i] = queue->marker[i + 1];
	gmt_driver.clReleaseEvent(event);
}

/*
 * A marker that ended with an error proves nothing: the driver may have given it up because one command failed while
 * others still run. It stays, since later markers would prove nothing either.
 */
void gmt_queue_poll_markers(struct gmt_queue *queue)
{
	if (!queue->markers || !gmt_lock_driver(&queue->lock))
		return;
	while (queue->markers) {
		struct gmt_marker *first = &queue->marker[0];
		cl_int status = CL_QUEUED;
		if (first->position > atomic_load(&queue->done)) {
			if (gmt_driver.clGetEventInfo(first->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL) !=
			    CL_SUCCESS)
				status = -1;
			if (status > CL_COMPLETE)
				break;
			if (status < 0) {
				gmt_context_note_failed(queue->context);
				break;
			}
			slide_done(queue, first->position);
		}
		drop_first_marker(queue);
	}
	gmt_unlock_driver(&queue->lock);
}

bool gmt_device_is_before(cl_device_id device, char minor)
{
	static const char first[] = "OpenCL 1.";
	const size_t at = sizeof first - 1;
	char version[256] = "";
	return gmt_driver.clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof version, version, NULL) == CL_SUCCESS &&
	       strncmp(version, first, at) == 0 && version[at] < minor;
}

bool gmt_device_is_rusticl(cl_device_id device)
{
	cl_platform_id platform = NULL;
	char name[64] = "";
	return gmt_driver.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) == CL_SUCCESS &&
	       gmt_driver.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL) == CL_SUCCESS && strcmp(name, "rusticl") == 0;
}

/* Drivers of OpenCL 1.1 lack OpenCL 1.2's function: a loader would call a null pointer. */
cl_event gmt_enqueue_marker(cl_command_queue handle, bool old)
{
	cl_event event = NULL;
	cl_int err = CL_INVALID_OPERATION;
	gmt_leak_check_off();
	if (old && gmt_driver.clEnqueueMarker)
		err = gmt_driver.clEnqueueMarker(handle, &event);
	else if (!old && gmt_driver.clEnqueueMarkerWithWaitList)
		err = gmt_driver.clEnqueueMarkerWithWaitList(handle, 0, NULL, &event);
	gmt_leak_check_on();
	return err == CL_SUCCESS ? event : NULL;
}

static bool can_put_marker(const struct gmt_queue *queue, uint64_t position)
{
	const struct gmt_context *context = queue->context;
	/* A marker would keep alive a context that the program has given up, and prove nothing in one that has failed. */
	bool wanted = context && !atomic_load(&context->pool.closed) && atomic_load(&context->life.holds) > 0;
	return wanted && !queue->closed && atomic_load(&queue->done) < position;
}

/*
 * Whether there is a marker for the position. gated: it may wait for a user event; otherwise the caller knows that none is
 * waited for up to there.
 */
static bool has_marker(struct gmt_queue *queue, uint64_t position, bool gated)
{
	struct gmt_marker *newest = queue->markers ? &queue->marker[queue->markers - 1] : NULL;
	bool there = newest && newest->position >= position;
	if (there && !gated)
		newest->gated = false;
	return there;
}

void gmt_queue_add_marker(struct gmt_queue *queue, bool gated)
{
	cl_command_queue handle = (cl_command_queue)atomic_load(&queue->object.handle);
	uint64_t position = atomic_load(&queue->enqueued);
	bool full = queue->markers == GMT_MARKERS;
	/* In a full list a new marker replaces the newest, but a gated one is not added. */
	if (!handle || !can_put_marker(queue, position) || has_marker(queue, position, gated) || (full && gated))
		return;
	cl_event event = gmt_enqueue_marker(handle, gmt_is_old_opencl(queue->context));
	if (!event)
		return;
	if (full)
		gmt_driver.clReleaseEvent(queue->marker[--queue->markers].event);
	queue->marker[queue->markers++] = (struct gmt_marker){event, position, gated};
	gmt_queue_note_interference(queue);
}

void gmt_queue_ensure_marker(struct gmt_queue *queue)
{
	gmt_queue_poll_markers(queue);
	if (atomic_load(&queue->done) >= atomic_load(&queue->enqueued) || !gmt_lock_driver(&queue->lock))
		return;
	struct gmt_context *context = queue->context;
	if (!atomic_load(&queue->waiting))
		gmt_queue_add_marker(queue, !context || gmt_is_gated(context));
	gmt_unlock_driver(&queue->lock);
}

/* Under the lock that a marker is put under, so that none is on its way. */
void gmt_queue_begin_wait(struct gmt_queue *queue)
{
	bool locked = gmt_lock_driver(&queue->lock);
	atomic_fetch_add(&queue->waiting, 1);
	if (locked)
		gmt_unlock_driver(&queue->lock);
}

void gmt_queue_end_wait(struct gmt_queue *queue)
{
	atomic_fetch_sub(&queue->waiting, 1);
}

bool gmt_queue_drop_markers(struct gmt_queue *queue)
{
	if (!gmt_lock_driver(&queue->lock))
		return false;
	while (queue->markers)
		drop_first_marker(queue);
	gmt_unlock_driver(&queue->lock);
	return true;
}

void gmt_queue_note_interference(struct gmt_queue *queue)
{
	gmt_raise_position(&queue->ours, atomic_load(&queue->enqueued));
	atomic_store_explicit(&gmt_flushed, true, memory_order_relaxed);
}

cl_event gmt_queue_flushed_marker(struct gmt_queue *queue)
{
	cl_command_queue handle = (cl_command_queue)atomic_load(&queue->object.handle);
	bool open = handle && !queue->closed; /* its release has flushed it */
	cl_event event = open ? gmt_enqueue_marker(handle, gmt_is_old_opencl(queue->context)) : NULL;
	if (event)
		gmt_driver.clFlush(handle);
	return event;
}

cl_event gmt_queue_marker_behind(struct gmt_queue *queue, uint64_t position)
{
	cl_command_queue handle = (cl_command_queue)atomic_load(&queue->object.handle);
	cl_event event = NULL;
	for (uint32_t i = 0; i < queue->markers && !event; i++)
		if (queue->marker[i].position >= position && gmt_driver.clRetainEvent(queue->marker[i].event) == CL_SUCCESS)
			event = queue->marker[i].event;
	gmt_queue_note_interference(queue);
	if (!event)
		return gmt_queue_flushed_marker(queue);
	if (handle && !queue->closed)
		gmt_driver.clFlush(handle);
	return event;
}
