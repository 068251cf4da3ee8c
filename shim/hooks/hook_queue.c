/* hook_queue.c: queues. They decide what orders the uses of a block. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/sites.h"
#include "../entry/start.h"
#include "../order/closed_queues.h"
#include "../order/handout.h"
#include "../order/queue.h"
#include "../registry/object.h"
#include "../registry/objects.h"
#include "context_holds.h"
#include "hidden_references.h"

/* The root device of a sub-device, which has the root's memory. */
static cl_device_id root_device(cl_device_id device)
{
	cl_device_id parent = NULL;
	while (gmt_driver.clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL) == CL_SUCCESS && parent)
		device = parent;
	return device;
}

#define DEVICES_MAX 64
/* 1 + the index of a device in its context; 0: unknown. */
static uint8_t device_place(cl_device_id device, cl_context context)
{
	cl_device_id devices[DEVICES_MAX];
	size_t bytes = 0;
	if (gmt_session.config.uses == GMT_USES_NEVER ||
	    gmt_driver.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices, devices, &bytes) != CL_SUCCESS)
		return 0;
	if (bytes == sizeof devices[0])
		return 1;
	device = root_device(device);
	for (size_t i = 0; i < bytes / sizeof devices[0]; i++)
		if (root_device(devices[i]) == device)
			return (uint8_t)(i + 1);
	return 0;
}

static void write_queue_event(const struct gmt_queue *queue, enum gmtlife life)
{
	struct gmtevent event = GMT_EVENT_QUEUE(.time = gmt_now(), .life = life, .out_of_order = !queue->inorder,
						.scope = gmt_context_id(queue->context), .queue = queue->object.id, .device = queue->device);
	gmt_ring_write(&event);
}

static void note_queue_created(cl_command_queue handle, cl_context contexthandle, cl_device_id device, cl_command_queue_properties properties,
			  const struct gmt_caller *caller)
{
	struct gmt_context *context = gmt_context_find(contexthandle);
	struct gmt_queue *queue = gmt_queue_add(handle);
	gmt_count_object(queue ? &queue->object : NULL, GMT_HELD_QUEUE, caller);
	if (!queue) {
		/* The queue has no entry, so the order of its commands is unknown. */
		if (context)
			atomic_store(&context->order.unordered, 1);
		return;
	}
	queue->context = context;
	queue->device = device_place(device, contexthandle);
	queue->profiled = properties & CL_QUEUE_PROFILING_ENABLE;
	queue->inorder = !(properties & (CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_ON_DEVICE));
	if (context) {
		gmt_context_hold(context);
		atomic_fetch_add(&context->order.queues, 1);
		if (gmt_pooling() && !(properties & CL_QUEUE_ON_DEVICE))
			gmt_queue_order_behind(queue);
	}
	write_queue_event(queue, GMT_LIFE_CREATE);
}

static cl_command_queue_properties queue_property_bits(const cl_queue_properties *p)
{
	for (; p && *p; p += 2)
		if (*p == CL_QUEUE_PROPERTIES)
			return (cl_command_queue_properties)p[1];
	return 0;
}

GMT_HOOK cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device, cl_command_queue_properties properties,
					       cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clCreateCommandQueue(context, device, properties, errcode);
	cl_int *status = GMT_STATUS(errcode);
	cl_command_queue handle = gmt_driver.clCreateCommandQueue(context, device, properties, status);
	if (handle)
		note_queue_created(handle, context, device, properties, &GMT_CALLER);
	else
		gmt_call_failed(__func__, *status, &GMT_CALLER);
	gmt_leave();
	return handle;
}

cl_command_queue clCreateCommandQueueWithPropertiesKHR(cl_context context, cl_device_id device,
						       const cl_queue_properties_khr *properties, cl_int *errcode)
{
	__typeof__(&clCreateCommandQueueWithPropertiesKHR) driver = atomic_load(&gmt_driver.clCreateCommandQueueWithPropertiesKHR);
	if (!gmt_enter_untimed())
		return driver(context, device, properties, errcode);
	cl_int *status = GMT_STATUS(errcode);
	cl_command_queue handle = driver(context, device, properties, status);
	if (handle)
		note_queue_created(handle, context, device, queue_property_bits(properties), &GMT_CALLER);
	else
		gmt_call_failed(__func__, *status, &GMT_CALLER);
	gmt_leave();
	return handle;
}

GMT_HOOK cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
							     const cl_queue_properties *properties, cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clCreateCommandQueueWithProperties(context, device, properties, errcode);
	cl_int *status = GMT_STATUS(errcode);
	cl_command_queue handle = gmt_driver.clCreateCommandQueueWithProperties(context, device, properties, status);
	if (handle)
		note_queue_created(handle, context, device, queue_property_bits(properties), &GMT_CALLER);
	else
		gmt_call_failed(__func__, *status, &GMT_CALLER);
	gmt_leave();
	return handle;
}

GMT_HOOK cl_int clRetainCommandQueue(cl_command_queue handle)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clRetainCommandQueue(handle);
	cl_int err = gmt_driver.clRetainCommandQueue(handle);
	struct gmt_queue *queue = err == CL_SUCCESS ? gmt_queue_find(handle) : NULL;
	if (queue) {
		atomic_fetch_add(&queue->references, 1);
		write_queue_event(queue, GMT_LIFE_RETAIN);
	}
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clReleaseCommandQueue(cl_command_queue handle)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clReleaseCommandQueue(handle);
	struct gmt_queue *queue = gmt_queue_find(handle);
	bool last = queue && gmt_last_reference(&queue->references);
	if (queue)
		write_queue_event(queue, last ? GMT_LIFE_END : GMT_LIFE_RELEASE);
	struct gmt_context *context = last ? queue->context : NULL;
	bool parked = last && gmt_queue_begin_close(queue); /* before the driver's release, after which it may reuse the handle */
	if (context)
		gmt_context_let_go(context);
	cl_int err = gmt_driver.clReleaseCommandQueue(handle);
	if (err != CL_SUCCESS)
		gmt_call_failed(__func__, err, &GMT_CALLER);
	if (last)
		gmt_queue_end_close(queue, parked);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clGetCommandQueueInfo(cl_command_queue handle, cl_command_queue_info what, size_t room, void *value, size_t *needed)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clGetCommandQueueInfo(handle, what, room, value, needed);
	struct gmt_queue *queue = what == CL_QUEUE_REFERENCE_COUNT && gmt_pooling() ? gmt_queue_find(handle) : NULL;
	if (queue)
		gmt_queue_poll_markers(queue);
	cl_int err = gmt_driver.clGetCommandQueueInfo(handle, what, room, value, needed);
	if (queue && err == CL_SUCCESS && value)
		*(cl_uint *)value = gmt_hidden_queue_references(queue, *(cl_uint *)value);
	gmt_leave();
	return err;
}
