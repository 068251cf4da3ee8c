/*
 * late.c: parts of slabs with destructor callbacks. A driver may make these when the sub-buffer is released, though commands
 * still use it, so its release waits for markers behind them; the program may wait for nothing but the callback, so
 * these are not polled. It cools as well, for when there can be no marker: then it ends when the pool is next looked at
 * after that, or with its context.
 */
#define _GNU_SOURCE
#include "pool.h"

#include <stdlib.h>

struct late {
	struct gmt_cooled what;
	_Atomic uint32_t left; /* markers that have not been told of, and 1 for whoever puts them */
	bool some;             /* of its commands only: who polls for all of them ends it */
};

static void one_less(struct late *late)
{
	if (atomic_fetch_sub(&late->left, 1) != 1)
		return;
	if (!late->some && !gmt_session_is_quiet())
		gmt_part_late(&late->what);
	free(late);
}

static void CL_CALLBACK marker_ended(cl_event event, cl_int status, void *data)
{
	(void)event, (void)status;
	int inside = gmt_inside;
	gmt_inside = 1;
	one_less(data);
	gmt_inside = inside;
}

/*
 * The event of a marker behind position: the first that is there, or a new one; NULL when there can be none. Under the
 * queue's lock. It is flushed, because the program may have flushed its own commands for the last time.
 */
static cl_event marker_behind(struct gmt_queue *queue, uint64_t position)
{
	cl_command_queue handle = (cl_command_queue)atomic_load(&queue->object.handle);
	cl_event event = NULL;
	for (uint32_t i = 0; i < queue->markers && !event; i++)
		if (queue->marker[i].position >= position && gmt_next.clRetainEvent(queue->marker[i].event) == CL_SUCCESS)
			event = queue->marker[i].event;
	if (!handle || queue->closed) /* flushed by its release */
		return event;
	if (!event && (!gmt_next.clEnqueueMarkerWithWaitList ||
		       gmt_next.clEnqueueMarkerWithWaitList(handle, 0, NULL, &event) != CL_SUCCESS))
		return NULL;
	gmt_next.clFlush(handle);
	return event;
}

/* False when nothing will tell that the use is over. */
static bool put_marker(const struct gmt_use *use, struct late *late)
{
	struct gmt_queue *queue = use->queue;
	if (!gmt_lock_driver(&queue->lock))
		return false;
	bool over = queue->object.number != use->queuenumber || atomic_load(&queue->done) >= use->position;
	cl_event event = over ? NULL : marker_behind(queue, use->position);
	gmt_unlock_driver(&queue->lock);
	if (!event)
		return over;
	atomic_fetch_add(&late->left, 1);
	bool told = gmt_next.clSetEventCallback(event, CL_COMPLETE, marker_ended, late) == CL_SUCCESS;
	if (!told)
		atomic_fetch_sub(&late->left, 1);
	gmt_next.clReleaseEvent(event);
	return told;
}

void gmt_part_wait(const struct gmt_cooled *what, const struct gmt_uses *uses)
{
	struct late *late = malloc(sizeof *late);
	if (!late)
		return;
	late->what = *what;
	late->some = uses->many;
	atomic_store(&late->left, 1);
	for (uint32_t i = 0; i < uses->count; i++)
		late->some |= !put_marker(&uses->use[i], late);
	one_less(late);
}
