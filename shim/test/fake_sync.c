/* fake_sync.c: waiting, markers and barriers. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <string.h>

/* A driver's thread takes the next batch when all of the one before say that they have run. */
static void show(cl_event event)
{
	event->shown = true;
	if (fake.shown < event->batch)
		fake.shown = event->batch;
}

static void finish_last(cl_command_queue queue)
{
	struct fake_command *last = queue->last;
	if (!last || last->event->batch < fake.batch)
		return;
	show(last->event);
	if (!fake_run(last))
		fake_fail("clFinish waits for ever");
}

GMT_HOOK cl_int clFinish(cl_command_queue queue)
{
	FAKE_LOCKED;
	fake.finishes++;
	if (!fake_alive(queue, FAKE_QUEUE))
		return CL_INVALID_COMMAND_QUEUE;
	if (fake.rusticl)
		finish_last(queue);
	fake.batch++;
	while (queue->first && !fake.hasty && !fake.rusticl)
		if (!fake_run(queue->first))
			fake_fail("clFinish waits for ever");
	return CL_SUCCESS;
}

GMT_HOOK cl_int clFlush(cl_command_queue queue)
{
	FAKE_LOCKED;
	fake.flushes++;
	fake.batch++;
	if (fake.eager)
		fake_complete_all();
	return fake_alive(queue, FAKE_QUEUE) ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
}

GMT_HOOK cl_int clWaitForEvents(cl_uint count, const cl_event *list)
{
	FAKE_LOCKED;
	fake.waits++;
	if (count == 0 || !list)
		return CL_INVALID_VALUE;
	bool failed = false;
	for (cl_uint i = 0; i < count; i++) {
		if (!fake_alive(list[i], FAKE_EVENT))
			return CL_INVALID_EVENT;
		if (list[i]->command ? !fake_run(list[i]->command) : list[i]->status > CL_COMPLETE)
			fake_fail("clWaitForEvents waits for ever");
		show(list[i]);
		failed |= list[i]->status < 0;
	}
	return failed ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

/* Before OpenCL 1.2 there is no such function, and an ICD loader calls a null pointer. */
static void check_version(void)
{
	const char *version = fake.version;
	if (version && (strncmp(version, "OpenCL 1.0", 10) == 0 || strncmp(version, "OpenCL 1.1", 10) == 0))
		fake_fail("a function of OpenCL 1.2 was called");
}

static cl_int between(cl_command_queue queue, bool barrier, cl_uint waits, const cl_event *list, cl_event *event)
{
	if (!fake_alive(queue, FAKE_QUEUE))
		return CL_INVALID_COMMAND_QUEUE;
	cl_int err = fake_check(queue, 0, NULL, waits, list);
	if (err != CL_SUCCESS)
		return err;
	struct fake_command *c = fake_append(queue, waits, list, event);
	c->barrier = barrier;
	c->marker = !barrier;
	c->after_all = waits == 0;
	return CL_SUCCESS;
}

GMT_HOOK cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	fake.markers++;
	check_version();
	if (fake.eager)
		fake_complete_all();
	return fake.failmarkers ? CL_OUT_OF_HOST_MEMORY : between(queue, false, waits, list, event);
}

GMT_HOOK cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	fake.barriers++;
	check_version();
	return between(queue, true, waits, list, event);
}

GMT_HOOK cl_int clEnqueueMarker(cl_command_queue queue, cl_event *event)
{
	FAKE_LOCKED;
	fake.markers++;
	return event ? between(queue, false, 0, NULL, event) : CL_INVALID_VALUE;
}

GMT_HOOK cl_int clEnqueueWaitForEvents(cl_command_queue queue, cl_uint count, const cl_event *list)
{
	FAKE_LOCKED;
	fake.barriers++;
	return count && list ? between(queue, true, count, list, NULL) : CL_INVALID_VALUE;
}

GMT_HOOK cl_int clEnqueueBarrier(cl_command_queue queue)
{
	FAKE_LOCKED;
	return between(queue, true, 0, NULL, NULL);
}
