/* hook_context.c: contexts. They limit how long a pooled block may live. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../base/idle.h"
#include "../entry/sites.h"
#include "../entry/start.h"
#include "../order/queue.h"
#include "../pool/budget.h"
#include "../pool/release.h"
#include "../pool/trial.h"
#include "../registry/object.h"
#include "../registry/objects.h"
#include "context_holds.h"
#include "hidden_references.h"
#include "identity.h"

#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 64

static void write_device(const struct gmt_context *context, cl_device_id device, size_t count)
{
	char text[512];
	size_t length = 0;
	const cl_device_info asked[] = {CL_DEVICE_NAME, CL_DRIVER_VERSION};
	for (int i = 0; i < 2; i++) {
		size_t room = 224, bytes = 0;
		if (gmt_driver.clGetDeviceInfo(device, asked[i], room, text + length, &bytes) != CL_SUCCESS || bytes > room)
			bytes = 0;
		length += strnlen(text + length, bytes);
		text[length++] = 0;
	}
	length += gmt_identity_of_device(device, text + length, sizeof text - length);
	struct gmtevent event = GMT_EVENT_DEVICE(.time = gmt_now(), .device = context->object.id, .memory = context->devices.heap,
						 .largest_alloc = context->devices.largest, .align = context->devices.align,
						 .constant = context->devices.constant, .unified = !context->devices.discrete,
						 .devices = (uint16_t)count);
	gmt_ring_write_payload(&event, text, length);
}

/* Whether one queue can be made to wait for another. */
static bool can_order_queues(const struct gmt_context *context)
{
	return context->devices.old ? gmt_driver.clEnqueueMarker && gmt_driver.clEnqueueWaitForEvents
			    : gmt_driver.clEnqueueMarkerWithWaitList && gmt_driver.clEnqueueBarrierWithWaitList;
}

/* Alignment of sub-buffers in bytes, a power of two; 0: too large for us. Devices report it in bits. */
static uint32_t subbuffer_alignment(cl_device_id device)
{
	cl_uint bits = 0;
	gmt_driver.clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
	uint32_t align = 1;
	while (align && align < bits / 8)
		align *= 2;
	return align;
}

static void learn_device(struct gmt_context *context, cl_device_id device)
{
	cl_ulong largest = 0, constant = 0, heap = 0;
	gmt_driver.clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof heap, &heap, NULL);
	if (!context->devices.heap || (heap && heap < context->devices.heap))
		context->devices.heap = heap;
	gmt_driver.clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
	gmt_driver.clGetDeviceInfo(device, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, sizeof constant, &constant, NULL);
	if (largest > context->devices.largest)
		context->devices.largest = largest;
	if (!context->devices.constant || (constant && constant < context->devices.constant))
		context->devices.constant = constant;
	if (gmt_budget_is_discrete(device))
		context->devices.discrete = true;
	else
		gmt_budget_note_host_memory();
	context->devices.old |= gmt_device_is_before(device, '2');
}

static void note_context_created(cl_context handle, const struct gmt_caller *caller)
{
	struct gmt_context *context = gmt_context_add(handle);
	gmt_session_note_context();
	gmt_count_object(context ? &context->object : NULL, GMT_HELD_CONTEXT, caller);
	if (!context)
		return;
	cl_device_id devices[DEVICES_MAX];
	size_t bytes = 0;
	if (gmt_driver.clGetContextInfo(handle, CL_CONTEXT_DEVICES, sizeof devices, devices, &bytes) != CL_SUCCESS)
		bytes = 0;
	for (size_t i = 0; i < bytes / sizeof devices[0]; i++)
		learn_device(context, devices[i]);
	if (!can_order_queues(context))
		atomic_store(&context->order.unordered, 1);
	context->devices.largest = gmt_budget_cap(context->devices.largest);
	context->devices.heap = gmt_budget_cap(context->devices.heap);
	/* With several devices the driver would move a slab as a whole, with all its sub-allocations. */
	if (bytes == sizeof devices[0] && gmt_driver.clCreateSubBuffer && !gmt_device_is_before(devices[0], '1')) /* OpenCL 1.0 has no sub-buffers */
		context->devices.align = subbuffer_alignment(devices[0]);
	if (bytes >= sizeof devices[0]) {
		context->devices.first = devices[0];
		/* Tried for replays, which ask what slabs could have served. */
		if (context->devices.align && gmt_session.config.uses && !gmt_trial(context))
			context->devices.align = 0;
		write_device(context, devices[0], bytes / sizeof devices[0]);
	}
	gmt_context_write_event(context, GMT_LIFE_CREATE);
}

GMT_HOOK cl_context clCreateContext(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
				    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
				    cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clCreateContext(properties, count, devices, notify, data, errcode);
	cl_int *status = GMT_STATUS(errcode);
	cl_context handle = gmt_driver.clCreateContext(properties, count, devices, notify, data, status);
	if (handle)
		note_context_created(handle, &GMT_CALLER);
	else
		gmt_call_failed(__func__, *status, &GMT_CALLER);
	gmt_leave();
	return handle;
}

GMT_HOOK cl_context clCreateContextFromType(const cl_context_properties *properties, cl_device_type type,
					    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
					    cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clCreateContextFromType(properties, type, notify, data, errcode);
	cl_int *status = GMT_STATUS(errcode);
	cl_context handle = gmt_driver.clCreateContextFromType(properties, type, notify, data, status);
	if (handle)
		note_context_created(handle, &GMT_CALLER);
	else
		gmt_call_failed(__func__, *status, &GMT_CALLER);
	gmt_leave();
	return handle;
}

GMT_HOOK cl_int clRetainContext(cl_context handle)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clRetainContext(handle);
	cl_int err = gmt_driver.clRetainContext(handle);
	struct gmt_context *context = err == CL_SUCCESS ? gmt_context_find(handle) : NULL;
	if (context) {
		if (atomic_fetch_add(&context->references, 1) == 0)
			gmt_context_hold(context);
		gmt_context_write_event(context, GMT_LIFE_RETAIN);
	}
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clReleaseContext(cl_context handle)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clReleaseContext(handle);
	struct gmt_context *context = gmt_context_find(handle);
	bool last = context && gmt_last_reference(&context->references);
	if (last) {
		gmt_idle_stop();
		gmt_context_uncount(context);
	}
	if (context && !(last && gmt_context_let_go(context)))
		gmt_context_write_event(context, GMT_LIFE_RELEASE);
	cl_int err = gmt_driver.clReleaseContext(handle);
	if (last)
		gmt_idle_go();
	if (err != CL_SUCCESS)
		gmt_call_failed(__func__, err, &GMT_CALLER);
	gmt_leave();
	return err;
}

struct context_callback {
	void(CL_CALLBACK *notify)(cl_context, void *);
	void *data;
};

static void CL_CALLBACK call_context_callback(cl_context handle, void *data)
{
	struct context_callback callback = *(struct context_callback *)data;
	free(data);
	struct gmt_callback before = gmt_callback_begin();
	callback.notify(handle, callback.data);
	gmt_callback_end(before);
}

GMT_HOOK cl_int clSetContextDestructorCallback(cl_context handle, void(CL_CALLBACK *notify)(cl_context, void *), void *data)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clSetContextDestructorCallback(handle, notify, data);
	struct context_callback *ours = notify ? malloc(sizeof *ours) : NULL;
	cl_int err;
	if (ours) {
		*ours = (struct context_callback){notify, data};
		err = gmt_driver.clSetContextDestructorCallback(handle, call_context_callback, ours);
		if (err != CL_SUCCESS)
			free(ours);
	} else {
		err = gmt_driver.clSetContextDestructorCallback(handle, notify, data);
	}
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clGetContextInfo(cl_context handle, cl_context_info what, size_t room, void *value, size_t *needed)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clGetContextInfo(handle, what, room, value, needed);
	cl_int err = gmt_driver.clGetContextInfo(handle, what, room, value, needed);
	if (err == CL_SUCCESS && what == CL_CONTEXT_REFERENCE_COUNT && value && gmt_pooling())
		*(cl_uint *)value = gmt_hidden_context_references(handle, *(cl_uint *)value);
	gmt_leave();
	return err;
}

/* The memory of a terminated context is undefined and its creates must fail, so its pooling ends. */
cl_int clTerminateContextKHR(cl_context handle)
{
	if (!gmt_enter_untimed())
		return atomic_load_explicit(&gmt_driver.clTerminateContextKHR, memory_order_acquire)(handle);
	struct gmt_context *context = gmt_context_find(handle);
	if (context && !atomic_exchange(&context->pool.closed, 1))
		gmt_release_context(context);
	cl_int err = atomic_load_explicit(&gmt_driver.clTerminateContextKHR, memory_order_acquire)(handle);
	gmt_leave();
	return err;
}
