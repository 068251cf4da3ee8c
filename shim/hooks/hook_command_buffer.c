/*
 * hook_command_buffer.c: command buffers (cl_khr_command_buffer). We do not follow what the program records into one: while
 * a context has any, its memory is not recycled, and executing one counts as a use of all of it.
 */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/sites.h"
#include "command.h"

#define DRIVER(name) atomic_load_explicit(&gmt_driver.name, memory_order_acquire)

cl_command_buffer_khr clCreateCommandBufferKHR(cl_uint count, const cl_command_queue *queues,
					       const cl_command_buffer_properties_khr *properties, cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return DRIVER(clCreateCommandBufferKHR)(count, queues, properties, errcode);
	struct gmt_queue *queue = count && queues ? gmt_queue_find(queues[0]) : NULL;
	struct gmt_context *context = queue ? queue->context : NULL;
	if (context)
		atomic_fetch_add(&context->order.command_buffers, 1);
	cl_command_buffer_khr handle = DRIVER(clCreateCommandBufferKHR)(count, queues, properties, errcode);
	struct gmt_command_buffer *ours = handle ? gmt_command_buffer_add(handle) : NULL;
	if (handle)
		gmt_count_object(ours ? &ours->object : NULL, GMT_HELD_COMMAND_BUFFER, &GMT_CALLER);
	if (ours) { /* else the context stays marked as having a command buffer, which is safe */
		ours->context = context;
		ours->queue = count && queues ? queues[0] : NULL;
		ours->queues = count;
	} else if (context && !handle) {
		atomic_fetch_sub(&context->order.command_buffers, 1);
	}
	gmt_leave();
	return handle;
}

cl_int clRetainCommandBufferKHR(cl_command_buffer_khr handle)
{
	if (!gmt_enter_untimed())
		return DRIVER(clRetainCommandBufferKHR)(handle);
	cl_int err = DRIVER(clRetainCommandBufferKHR)(handle);
	struct gmt_command_buffer *ours = err == CL_SUCCESS ? gmt_command_buffer_find(handle) : NULL;
	if (ours)
		atomic_fetch_add(&ours->references, 1);
	gmt_leave();
	return err;
}

cl_int clReleaseCommandBufferKHR(cl_command_buffer_khr handle)
{
	if (!gmt_enter_untimed())
		return DRIVER(clReleaseCommandBufferKHR)(handle);
	struct gmt_command_buffer *ours = gmt_command_buffer_find(handle);
	struct gmt_context *context = ours ? ours->context : NULL;
	bool last = ours && gmt_last_reference(&ours->references);
	if (last)
		gmt_command_buffer_remove(ours);
	cl_int err = DRIVER(clReleaseCommandBufferKHR)(handle);
	if (last && context)
		atomic_fetch_sub(&context->order.command_buffers, 1);
	gmt_leave();
	return err;
}

/* The queues are those that the command buffer was created for, or compatible ones. */
cl_int clEnqueueCommandBufferKHR(cl_uint count, cl_command_queue *queues, cl_command_buffer_khr buffer, cl_uint waits,
				 const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	const struct gmt_command_buffer *ours = gmt_command_buffer_find(buffer);
	cl_command_queue first = count && queues ? queues[0] : ours ? ours->queue : NULL;
	if (!gmt_command_begin(&command, first, GMT_COMMAND_OTHER, __func__))
		return DRIVER(clEnqueueCommandBufferKHR)(count, queues, buffer, waits, list, event);
	command.uncounted = true;
	bool several = count > 1 || !ours || (count == 0 && ours->queues > 1);
	if (command.queue && command.queue->context && several) /* nothing reports when it has completed */
		atomic_fetch_add(&command.queue->context->order.command_buffers, 1);
	cl_int err;
	GMT_TRY(err, command, DRIVER(clEnqueueCommandBufferKHR)(count, queues, buffer, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}
