/*
 * hook_recording.c: command buffers (cl_khr_command_buffer). What is recorded into one is not told apart: while a
 * context has any, its memory is not recycled; a replay counts as a use of all of it.
 */
#define _GNU_SOURCE
#include "command.h"

#define NEXT(name) atomic_load_explicit(&gmt_next.name, memory_order_acquire)

cl_command_buffer_khr clCreateCommandBufferKHR(cl_uint count, const cl_command_queue *queues,
					       const cl_command_buffer_properties_khr *properties, cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return NEXT(clCreateCommandBufferKHR)(count, queues, properties, errcode);
	struct gmt_queue *queue = count && queues ? gmt_queue_find(queues[0]) : NULL;
	struct gmt_context *context = queue ? queue->context : NULL;
	if (context)
		atomic_fetch_add(&context->recordings, 1);
	cl_command_buffer_khr handle = NEXT(clCreateCommandBufferKHR)(count, queues, properties, errcode);
	struct gmt_recording *recording = handle ? gmt_recording_add(handle) : NULL;
	if (recording) { /* else the context stays marked, which is safe */
		recording->context = context;
		recording->queue = count && queues ? queues[0] : NULL;
		recording->queues = count;
	} else if (context && !handle) {
		atomic_fetch_sub(&context->recordings, 1);
	}
	gmt_leave();
	return handle;
}

cl_int clRetainCommandBufferKHR(cl_command_buffer_khr handle)
{
	if (!gmt_enter_untimed())
		return NEXT(clRetainCommandBufferKHR)(handle);
	cl_int err = NEXT(clRetainCommandBufferKHR)(handle);
	struct gmt_recording *recording = err == CL_SUCCESS ? gmt_recording_find(handle) : NULL;
	if (recording)
		atomic_fetch_add(&recording->references, 1);
	gmt_leave();
	return err;
}

cl_int clReleaseCommandBufferKHR(cl_command_buffer_khr handle)
{
	if (!gmt_enter_untimed())
		return NEXT(clReleaseCommandBufferKHR)(handle);
	struct gmt_recording *recording = gmt_recording_find(handle);
	struct gmt_context *context = recording ? recording->context : NULL;
	bool last = recording && gmt_last_reference(&recording->references);
	if (last)
		gmt_recording_remove(recording);
	cl_int err = NEXT(clReleaseCommandBufferKHR)(handle);
	if (last && context)
		atomic_fetch_sub(&context->recordings, 1);
	gmt_leave();
	return err;
}

/* Its queues are those that it was made for, or others that are like them. */
cl_int clEnqueueCommandBufferKHR(cl_uint count, cl_command_queue *queues, cl_command_buffer_khr buffer, cl_uint waits,
				 const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	const struct gmt_recording *recording = gmt_recording_find(buffer);
	cl_command_queue first = count && queues ? queues[0] : recording ? recording->queue : NULL;
	if (!gmt_command_begin(&command, first, GMT_COMMAND_OTHER, __func__))
		return NEXT(clEnqueueCommandBufferKHR)(count, queues, buffer, waits, list, event);
	command.uncounted = true;
	bool several = count > 1 || !recording || (count == 0 && recording->queues > 1);
	if (command.queue && command.queue->context && several) /* never known to be over */
		atomic_fetch_add(&command.queue->context->recordings, 1);
	cl_int err;
	GMT_TRY(err, command, NEXT(clEnqueueCommandBufferKHR)(count, queues, buffer, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_ORDER);
}

/* The memory of a terminated context is undefined, and its creates must fail: nothing is pooled there any more. */
cl_int clTerminateContextKHR(cl_context handle)
{
	if (!gmt_enter_untimed())
		return NEXT(clTerminateContextKHR)(handle);
	struct gmt_context *context = gmt_context_find(handle);
	if (context && !atomic_exchange(&context->closed, 1))
		gmt_pool_drop_context(context);
	cl_int err = NEXT(clTerminateContextKHR)(handle);
	gmt_leave();
	return err;
}
