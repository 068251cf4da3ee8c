/* context.c: see context.h. */
#define _GNU_SOURCE
#include "context.h"

#include "../base/lock.h"
#include "../order/queue.h"
#include "../pool/budget.h"
#include "../registry/table.h"

#define DEVICES_MAX 64

GMT_TABLE(spill_contexts, gmt_spill_context, 256, sizeof(struct gmt_spill_context), 0);

struct gmt_spill_context *gmt_spill_context_find(cl_context handle)
{
	return (struct gmt_spill_context *)gmt_table_find(&spill_contexts, handle);
}

static cl_context handle_of_context(const struct gmt_spill_context *context)
{
	return (cl_context)atomic_load(&context->object.handle);
}

static cl_uint context_references(cl_context handle)
{
	cl_uint count = 0;
	gmt_bare.clGetContextInfo(handle, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL);
	return count;
}

static void learn_device(struct gmt_spill_context *context, cl_device_id device)
{
	cl_ulong largest = 0;
	cl_uint bits = 0;
	gmt_bare.clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
	gmt_bare.clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
	context->old |= gmt_device_is_before(device, '2');
	context->hasty |= gmt_device_is_rusticl(device);
	context->discrete = context->discrete && gmt_budget_is_discrete(device);
	context->largest = largest < context->largest ? (size_t)largest : context->largest;
	while (context->align < bits / 8)
		context->align *= 2;
}

static void add_context(cl_context handle)
{
	struct gmt_spill_context *context = (struct gmt_spill_context *)gmt_table_add(&spill_contexts, handle, false);
	if (!context)
		return;
	memcpy(context->dispatch, (const void *)handle, sizeof context->dispatch);
	cl_device_id devices[DEVICES_MAX];
	size_t bytes = 0;
	if (gmt_bare.clGetContextInfo(handle, CL_CONTEXT_DEVICES, sizeof devices, devices, &bytes) != CL_SUCCESS)
		bytes = 0;
	context->largest = bytes ? SIZE_MAX : 0;
	context->align = 1;
	context->discrete = bytes > 0;
	context->device = bytes ? devices[0] : NULL;
	for (size_t i = 0; i < bytes / sizeof devices[0]; i++)
		learn_device(context, devices[i]);
	atomic_store(&context->references, 1);
}

uint32_t gmt_spill_context_class(struct gmt_spill_context *context, cl_mem_flags flags)
{
	uint32_t count = atomic_load_explicit(&context->classes, memory_order_acquire), i = 0;
	while (i < count && context->given[i] != flags)
		i++;
	return i < count ? i : GMT_SPILL_CLASSES;
}

cl_mem_flags gmt_spill_context_access(struct gmt_spill_context *context, cl_mem_flags flags)
{
	const cl_mem_flags access = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY;
	uint32_t class = gmt_spill_context_class(context, flags);
	return class < GMT_SPILL_CLASSES ? flags | (context->reported[class] & access) : flags;
}

void gmt_spill_context_learn(struct gmt_spill_context *context, cl_mem_flags flags, cl_mem real)
{
	cl_mem_flags reported = flags;
	void *address = NULL;
	gmt_bare.clGetMemObjectInfo(real, CL_MEM_FLAGS, sizeof reported, &reported, NULL);
	gmt_bare.clGetMemObjectInfo(real, CL_MEM_HOST_PTR, sizeof address, &address, NULL);
	gmt_lock(&context->lock);
	uint32_t count = atomic_load(&context->classes);
	if (count < GMT_SPILL_CLASSES) {
		context->given[count] = flags;
		context->reported[count] = reported;
		context->addressed[count] = address != NULL;
		atomic_store_explicit(&context->classes, count + 1, memory_order_release);
	}
	gmt_unlock(&context->lock);
}

/* A driver whose buffers keep their context sees the same of virtual ones. */
void gmt_spill_context_hold(struct gmt_spill_context *context)
{
	atomic_fetch_add(&context->live, 1);
	gmt_bare.clRetainContext(handle_of_context(context));
}

void gmt_spill_context_drop(struct gmt_spill_context *context)
{
	cl_context handle = handle_of_context(context);
	cl_command_queue queue = NULL;
	cl_mem dummy = NULL;
	gmt_lock(&context->lock);
	bool last = atomic_fetch_sub(&context->live, 1) == 1;
	if (last) {
		queue = context->queue;
		dummy = context->dummy;
		context->queue = NULL;
		context->dummy = NULL;
	}
	gmt_unlock(&context->lock);
	if (queue)
		gmt_bare.clReleaseCommandQueue(queue);
	if (dummy)
		gmt_bare.clReleaseMemObject(dummy);
	if (last && atomic_load(&context->references) == 0)
		gmt_table_remove(&spill_contexts, &context->object, false);
	gmt_bare.clReleaseContext(handle);
}

cl_command_queue gmt_spill_context_queue(struct gmt_spill_context *context)
{
	if (context->queue)
		return context->queue;
	cl_int err = CL_SUCCESS;
	if (gmt_bare.clCreateCommandQueue)
		context->queue = gmt_bare.clCreateCommandQueue(handle_of_context(context), context->device, 0, &err);
	else if (gmt_bare.clCreateCommandQueueWithProperties)
		context->queue = gmt_bare.clCreateCommandQueueWithProperties(handle_of_context(context), context->device, NULL, &err);
	return context->queue;
}

cl_mem gmt_spill_context_dummy(struct gmt_spill_context *context)
{
	cl_int err = CL_SUCCESS;
	if (!context->dummy)
		context->dummy = gmt_bare.clCreateBuffer(handle_of_context(context), CL_MEM_READ_WRITE, 64, NULL, &err);
	return context->dummy;
}

static cl_context create_context(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
			 void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data, cl_int *errcode)
{
	cl_context handle = gmt_bare.clCreateContext(properties, count, devices, notify, data, errcode);
	if (handle)
		add_context(handle);
	return handle;
}

static cl_context create_context_from_type(const cl_context_properties *properties, cl_device_type type,
				   void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data, cl_int *errcode)
{
	cl_context handle = gmt_bare.clCreateContextFromType(properties, type, notify, data, errcode);
	if (handle)
		add_context(handle);
	return handle;
}

static cl_int retain_context(cl_context handle)
{
	cl_int err = gmt_bare.clRetainContext(handle);
	struct gmt_spill_context *context = err == CL_SUCCESS ? gmt_spill_context_find(handle) : NULL;
	if (context)
		atomic_fetch_add(&context->references, 1);
	return err;
}

static cl_int release_context(cl_context handle)
{
	struct gmt_spill_context *context = gmt_spill_context_find(handle);
	if (context && gmt_last_reference(&context->references) && atomic_load(&context->live) == 0)
		gmt_table_remove(&spill_contexts, &context->object, false);
	return gmt_bare.clReleaseContext(handle);
}

/* What is ours must not show, and virtual objects show where the driver's own would. */
static cl_int get_context_info(cl_context handle, cl_context_info what, size_t room, void *value, size_t *needed)
{
	cl_int err = gmt_bare.clGetContextInfo(handle, what, room, value, needed);
	struct gmt_spill_context *context = what == CL_CONTEXT_REFERENCE_COUNT ? gmt_spill_context_find(handle) : NULL;
	if (err != CL_SUCCESS || !value || !context || !atomic_load(&context->live))
		return err;
	cl_int err_probe = CL_SUCCESS;
	cl_uint before = context_references(handle);
	cl_mem probe = gmt_bare.clCreateBuffer(handle, CL_MEM_READ_WRITE, 64, NULL, &err_probe);
	bool counts = probe && context_references(handle) > before;
	if (probe)
		gmt_bare.clReleaseMemObject(probe);
	uint32_t live = atomic_load(&context->live);
	uint32_t ours = counts ? atomic_load(&context->made) + (context->queue != NULL) + (context->dummy != NULL) : live;
	cl_uint least = atomic_load(&context->references), seen = *(cl_uint *)value;
	*(cl_uint *)value = seen > least + ours ? seen - ours : least;
	return err;
}

void gmt_spill_override_contexts(struct gmt_functions *over)
{
	GMT_SPILL_OVER(over, clCreateContext, create_context);
	GMT_SPILL_OVER(over, clCreateContextFromType, create_context_from_type);
	GMT_SPILL_OVER(over, clRetainContext, retain_context);
	GMT_SPILL_OVER(over, clReleaseContext, release_context);
	GMT_SPILL_OVER(over, clGetContextInfo, get_context_info);
}
