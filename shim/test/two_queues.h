/* two_queues.h: what tests start with that must not be served in order: a second queue. */
#ifndef TWO_QUEUES_H
#define TWO_QUEUES_H

#include "harness.h"

/* Two queues, so that nothing is reused as merely ordered. */
static cl_command_queue second;

static inline void start(cl_command_queue_properties properties)
{
	begin((struct options){0});
	second = new_queue(world.context, properties);
}

static inline void finish(void)
{
	OK(clReleaseCommandQueue(second));
	end_clean();
}

static inline cl_mem used(cl_command_queue queue, cl_event *event)
{
	cl_mem buffer = new_buffer(100);
	*event = fill(queue, buffer, 0, NULL);
	return buffer;
}

static int called;

static inline void CL_CALLBACK count_call(cl_event event, cl_int status, void *data)
{
	CHECK(event);
	called++;
	*(cl_int *)data = status;
}

#endif
