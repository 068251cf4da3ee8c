/*
 * late.c: parts of slabs with destructor callbacks. A driver may make these when the sub-buffer is released, though commands
 * still use it, so its release waits for markers behind them; the program may wait for nothing but the callback, so
 * nothing is polled.
 */
#define _GNU_SOURCE
#include "pool.h"

#include <stdlib.h>

struct late {
	struct gmt_cooled what;
	_Atomic uint32_t left; /* markers that have not been told of, and 1 for whoever puts them */
};

static void one_less(struct late *late)
{
	if (atomic_fetch_sub(&late->left, 1) != 1)
		return;
	if (!gmt_session_is_quiet())
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

/* It is flushed, because the program may have flushed its own commands for the last time. */
static bool put_marker(const struct gmt_use *use, struct late *late)
{
	struct gmt_queue *queue = use->queue;
	cl_event event = NULL;
	if (!gmt_lock_driver(&queue->lock))
		return false;
	cl_command_queue handle = (cl_command_queue)atomic_load(&queue->object.handle);
	bool put = handle && !queue->closed && queue->object.number == use->queuenumber && gmt_next.clEnqueueMarkerWithWaitList &&
		   gmt_next.clEnqueueMarkerWithWaitList(handle, 0, NULL, &event) == CL_SUCCESS;
	if (put)
		gmt_next.clFlush(handle);
	gmt_unlock_driver(&queue->lock);
	if (!put)
		return false;
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
	if (!late) {
		gmt_part_late(what);
		return;
	}
	late->what = *what;
	atomic_store(&late->left, 1);
	for (uint32_t i = 0; i < uses->count; i++)
		put_marker(&uses->use[i], late);
	one_less(late); /* at once, where no marker could be put */
}
