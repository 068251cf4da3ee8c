/* hook_context.c: contexts and queues. They decide how long a pooled block may live and what orders its uses. */
#define _GNU_SOURCE
#include "callback.h"
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 64

static void write_device(const struct gmt_context *context, cl_device_id device)
{
	char text[512];
	size_t name = 0, driver = 0;
	if (gmt_next.clGetDeviceInfo(device, CL_DEVICE_NAME, 256, text, &name) != CL_SUCCESS || name == 0)
		text[name++] = 0;
	if (gmt_next.clGetDeviceInfo(device, CL_DRIVER_VERSION, sizeof text - name, text + name, &driver) != CL_SUCCESS)
		driver = 0;
	struct gmtevent event = {
		.time = gmt_now(),
		.kind = GMT_KIND_DEVICE,
		.object = context->object.number,
		.granted = context->heap,
		.duration = (uint32_t)(context->constant >> 32),
		.cost = (uint32_t)context->constant,
		.link = context->largest,
		.tag = context->align,
	};
	gmt_ring_write_payload(&event, text, name + driver);
}

static void write_context(const struct gmt_context *context, enum gmtlife life, uint64_t link)
{
	struct gmtevent event = {
		.time = gmt_now(),
		.kind = GMT_KIND_CONTEXT,
		.op = (uint8_t)life,
		.scope = gmt_scope(context),
		.object = context->object.number,
		.link = link,
	};
	gmt_ring_write(&event);
}

static bool says(cl_device_id device, const char *prefix)
{
	char version[256] = "";
	return gmt_next.clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof version, version, NULL) == CL_SUCCESS &&
	       strncmp(version, prefix, strlen(prefix)) == 0;
}

/* OpenCL 1.0 has no sub-buffers. */
static bool is_first(cl_device_id device)
{
	return says(device, "OpenCL 1.0");
}

/* Before OpenCL 1.2 there are no markers to order by. */
static bool has_markers(cl_device_id device)
{
	return !is_first(device) && !says(device, "OpenCL 1.1");
}

/* Of sub-buffers, in bytes, a power of two: devices say it in bits. 0: too large for us. */
static uint32_t alignment(cl_device_id device)
{
	cl_uint bits = 0;
	gmt_next.clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
	uint32_t align = 1;
	while (align && align < bits / 8)
		align *= 2;
	return align;
}

static void learn_device(struct gmt_context *context, cl_device_id device)
{
	cl_ulong largest = 0, constant = 0, heap = 0;
	gmt_next.clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof heap, &heap, NULL);
	if (!context->heap || (heap && heap < context->heap))
		context->heap = heap;
	gmt_next.clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
	gmt_next.clGetDeviceInfo(device, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, sizeof constant, &constant, NULL);
	if (largest > context->largest)
		context->largest = largest;
	if (!context->constant || (constant && constant < context->constant))
		context->constant = constant;
	if (!has_markers(device)) {
		context->old = true;
		atomic_store(&context->unordered, 1);
	}
}

static void context_created(cl_context handle)
{
	struct gmt_context *context = gmt_context_add(handle);
	if (!context)
		return;
	cl_device_id devices[DEVICES_MAX];
	size_t bytes = 0;
	if (gmt_next.clGetContextInfo(handle, CL_CONTEXT_DEVICES, sizeof devices, devices, &bytes) != CL_SUCCESS)
		bytes = 0;
	for (size_t i = 0; i < bytes / sizeof devices[0]; i++)
		learn_device(context, devices[i]);
	context->largest = gmt_budget_cap(context->largest);
	context->heap = gmt_budget_cap(context->heap);
	/* Between devices a slab moves as a whole, with everybody's parts. */
	if (bytes == sizeof devices[0] && gmt_next.clCreateSubBuffer && !is_first(devices[0]))
		context->align = alignment(devices[0]);
	if (bytes >= sizeof devices[0]) {
		context->device = devices[0];
		write_device(context, devices[0]);
	}
	write_context(context, GMT_LIFE_CREATE, context->object.number);
}

GMT_HOOK cl_context clCreateContext(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
				    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
				    cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_next.clCreateContext(properties, count, devices, notify, data, errcode);
	cl_context handle = gmt_next.clCreateContext(properties, count, devices, notify, data, errcode);
	if (handle)
		context_created(handle);
	gmt_leave();
	return handle;
}

GMT_HOOK cl_context clCreateContextFromType(const cl_context_properties *properties, cl_device_type type,
					    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
					    cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_next.clCreateContextFromType(properties, type, notify, data, errcode);
	cl_context handle = gmt_next.clCreateContextFromType(properties, type, notify, data, errcode);
	if (handle)
		context_created(handle);
	gmt_leave();
	return handle;
}

GMT_HOOK cl_int clRetainContext(cl_context handle)
{
	if (!gmt_enter_untimed())
		return gmt_next.clRetainContext(handle);
	cl_int err = gmt_next.clRetainContext(handle);
	struct gmt_context *context = err == CL_SUCCESS ? gmt_context_find(handle) : NULL;
	if (context) {
		atomic_fetch_add(&context->references, 1);
		write_context(context, GMT_LIFE_RETAIN, 0);
	}
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clReleaseContext(cl_context handle)
{
	if (!gmt_enter_untimed())
		return gmt_next.clReleaseContext(handle);
	struct gmt_context *context = gmt_context_find(handle);
	if (context && gmt_last_reference(&context->references)) {
		/* Each cached block would keep the context alive in the driver. */
		gmt_pool_drop_context(context);
		write_context(context, GMT_LIFE_END, 0);
		gmt_context_remove(context);
	} else if (context) {
		write_context(context, GMT_LIFE_RELEASE, 0);
	}
	cl_int err = gmt_next.clReleaseContext(handle);
	gmt_leave();
	return err;
}

struct context_callback {
	void(CL_CALLBACK *notify)(cl_context, void *);
	void *data;
};

static void CL_CALLBACK context_ended(cl_context handle, void *data)
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
		return gmt_next.clSetContextDestructorCallback(handle, notify, data);
	struct context_callback *ours = notify ? malloc(sizeof *ours) : NULL;
	cl_int err;
	if (ours) {
		*ours = (struct context_callback){notify, data};
		err = gmt_next.clSetContextDestructorCallback(handle, context_ended, ours);
		if (err != CL_SUCCESS)
			free(ours);
	} else {
		err = gmt_next.clSetContextDestructorCallback(handle, notify, data);
	}
	gmt_leave();
	return err;
}

static void write_queue(const struct gmt_queue *queue, enum gmtlife life)
{
	struct gmtevent event = {
		.time = gmt_now(),
		.kind = GMT_KIND_QUEUE,
		.op = (uint8_t)life,
		.flags = queue->inorder ? 0 : GMT_FLAG_OUT_OF_ORDER,
		.scope = gmt_scope(queue->context),
		.object = queue->object.number,
	};
	gmt_ring_write(&event);
}

static void queue_created(cl_command_queue handle, cl_context contexthandle, cl_command_queue_properties properties)
{
	struct gmt_context *context = gmt_context_find(contexthandle);
	struct gmt_queue *queue = gmt_queue_add(handle);
	if (!queue) {
		/* A queue that we cannot follow: no order can be relied on. */
		if (context)
			atomic_store(&context->unordered, 1);
		return;
	}
	queue->context = context;
	queue->inorder = !(properties & (CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_ON_DEVICE));
	if (context) {
		atomic_fetch_add(&context->queues, 1);
		if (gmt_pooling() && !(properties & CL_QUEUE_ON_DEVICE))
			gmt_queue_order_behind(queue);
	}
	write_queue(queue, GMT_LIFE_CREATE);
}

static cl_command_queue_properties bits_of(const cl_queue_properties *p)
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
		return gmt_next.clCreateCommandQueue(context, device, properties, errcode);
	cl_command_queue handle = gmt_next.clCreateCommandQueue(context, device, properties, errcode);
	if (handle)
		queue_created(handle, context, properties);
	gmt_leave();
	return handle;
}

cl_command_queue clCreateCommandQueueWithPropertiesKHR(cl_context context, cl_device_id device,
						       const cl_queue_properties_khr *properties, cl_int *errcode)
{
	__typeof__(&clCreateCommandQueueWithPropertiesKHR) next = atomic_load(&gmt_next.clCreateCommandQueueWithPropertiesKHR);
	if (!gmt_enter_untimed())
		return next(context, device, properties, errcode);
	cl_command_queue handle = next(context, device, properties, errcode);
	if (handle)
		queue_created(handle, context, bits_of(properties));
	gmt_leave();
	return handle;
}

GMT_HOOK cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
							     const cl_queue_properties *properties, cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_next.clCreateCommandQueueWithProperties(context, device, properties, errcode);
	cl_command_queue handle = gmt_next.clCreateCommandQueueWithProperties(context, device, properties, errcode);
	if (handle)
		queue_created(handle, context, bits_of(properties));
	gmt_leave();
	return handle;
}

GMT_HOOK cl_int clRetainCommandQueue(cl_command_queue handle)
{
	if (!gmt_enter_untimed())
		return gmt_next.clRetainCommandQueue(handle);
	cl_int err = gmt_next.clRetainCommandQueue(handle);
	struct gmt_queue *queue = err == CL_SUCCESS ? gmt_queue_find(handle) : NULL;
	if (queue) {
		atomic_fetch_add(&queue->references, 1);
		write_queue(queue, GMT_LIFE_RETAIN);
	}
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clReleaseCommandQueue(cl_command_queue handle)
{
	if (!gmt_enter_untimed())
		return gmt_next.clReleaseCommandQueue(handle);
	struct gmt_queue *queue = gmt_queue_find(handle);
	bool last = queue && gmt_last_reference(&queue->references);
	if (queue)
		write_queue(queue, last ? GMT_LIFE_END : GMT_LIFE_RELEASE);
	bool parked = last && gmt_queue_closing(queue); /* first: the driver may give the handle out again at once */
	cl_int err = gmt_next.clReleaseCommandQueue(handle);
	if (last)
		gmt_queue_closed(queue, parked);
	gmt_leave();
	return err;
}
