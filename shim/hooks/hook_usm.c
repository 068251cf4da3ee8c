/*
 * hook_usm.c: unified shared memory (cl_intel_unified_shared_memory): shared memory like SVM, of three kinds, by functions of
 * its own.
 */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../registry/memory.h"
#include "hook_svm.h"

#include <string.h>

#define DRIVER(name) atomic_load_explicit(&gmt_driver.name, memory_order_acquire)

static void *allocate_usm(struct gmt_call *call, const struct gmt_caller *caller, struct gmt_pointer_call p, size_t size, cl_int *errcode)
{
	cl_int error;
	void *pointer = gmt_pointer_create(call, caller, &p, size, &error);
	if (errcode)
		*errcode = error;
	return pointer;
}

void *clHostMemAllocINTEL(cl_context context, const cl_mem_properties_intel *properties, size_t size, cl_uint alignment,
			  cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return DRIVER(clHostMemAllocINTEL)(context, properties, size, alignment, errcode);
	struct gmt_pointer_call p = {
		.kind = GMT_MEMORY_USM_HOST, .context = context, .properties = properties, .alignment = alignment,
	};
	return allocate_usm(&call, &GMT_CALLER, p, size, errcode);
}

void *clDeviceMemAllocINTEL(cl_context context, cl_device_id device, const cl_mem_properties_intel *properties, size_t size,
			    cl_uint alignment, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return DRIVER(clDeviceMemAllocINTEL)(context, device, properties, size, alignment, errcode);
	struct gmt_pointer_call p = {
		.kind = GMT_MEMORY_USM_DEVICE, .context = context, .device = device, .properties = properties, .alignment = alignment,
	};
	return allocate_usm(&call, &GMT_CALLER, p, size, errcode);
}

void *clSharedMemAllocINTEL(cl_context context, cl_device_id device, const cl_mem_properties_intel *properties, size_t size,
			    cl_uint alignment, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return DRIVER(clSharedMemAllocINTEL)(context, device, properties, size, alignment, errcode);
	struct gmt_pointer_call p = {
		.kind = GMT_MEMORY_USM_SHARED, .context = context, .device = device, .properties = properties, .alignment = alignment,
	};
	return allocate_usm(&call, &GMT_CALLER, p, size, errcode);
}

cl_int clMemFreeINTEL(cl_context context, void *pointer)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return DRIVER(clMemFreeINTEL)(context, pointer);
	cl_int err = gmt_pointer_free(&call, pointer, __func__, false) ? CL_SUCCESS : DRIVER(clMemFreeINTEL)(context, pointer);
	gmt_leave();
	return err;
}

cl_int clMemBlockingFreeINTEL(cl_context context, void *pointer)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return DRIVER(clMemBlockingFreeINTEL)(context, pointer);
	cl_int err = gmt_pointer_free(&call, pointer, __func__, true) ? CL_SUCCESS : DRIVER(clMemBlockingFreeINTEL)(context, pointer);
	gmt_leave();
	return err;
}

/*
 * Corrects the driver's answer about a block to that about an allocation of the requested size. About freed memory, or bytes
 * beyond the request, a driver knows nothing: the answer is 0, or CL_MEM_TYPE_UNKNOWN_INTEL.
 */
static void correct_answer(const struct gmt_memory *memory, const void *pointer, cl_mem_info_intel what, void *value, size_t bytes)
{
	static const cl_uint unknown = CL_MEM_TYPE_UNKNOWN_INTEL;
	bool there = atomic_load(&memory->references) && gmt_memory_offset(memory, pointer) < memory->size;
	size_t size = (size_t)memory->size;
	if (!there)
		memset(value, 0, bytes);
	if (!there && what == CL_MEM_ALLOC_TYPE_INTEL && bytes == sizeof unknown)
		memcpy(value, &unknown, sizeof unknown);
	if (there && what == CL_MEM_ALLOC_SIZE_INTEL && bytes == sizeof size)
		memcpy(value, &size, sizeof size);
}

cl_int clGetMemAllocInfoINTEL(cl_context context, const void *pointer, cl_mem_info_intel what, size_t room, void *value, size_t *needed)
{
	if (!gmt_enter_untimed())
		return DRIVER(clGetMemAllocInfoINTEL)(context, pointer, what, room, value, needed);
	size_t bytes = 0;
	cl_int err = DRIVER(clGetMemAllocInfoINTEL)(context, pointer, what, room, value, &bytes);
	const struct gmt_memory *memory = gmt_memory_at(pointer);
	if (err == CL_SUCCESS && memory && memory->block && value)
		correct_answer(memory, pointer, what, value, bytes);
	if (err == CL_SUCCESS && needed)
		*needed = bytes;
	gmt_leave();
	return err;
}

cl_int clEnqueueMemcpyINTEL(cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t size, cl_uint waits,
			    const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY, __func__))
		return DRIVER(clEnqueueMemcpyINTEL)(queue, blocking, to, from, size, waits, list, event);
	gmt_command_copies_pointers(&command, to, from, size, &GMT_CALLER);
	cl_int err;
	gmt_command_note_blocking(&command, blocking);
	GMT_TRY(err, command, DRIVER(clEnqueueMemcpyINTEL)(queue, blocking, to, from, size, waits, list, event));
	return gmt_command_end(&command, err, blocking, GMT_WAIT_LIST);
}

cl_int clEnqueueMemFillINTEL(cl_command_queue queue, void *pointer, const void *pattern, size_t patternsize, size_t size,
			     cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_FILL, __func__))
		return DRIVER(clEnqueueMemFillINTEL)(queue, pointer, pattern, patternsize, size, waits, list, event);
	gmt_command_uses_pointer(&command, pointer, GMT_FLAG_WRITES, size);
	cl_int err;
	GMT_TRY(err, command, DRIVER(clEnqueueMemFillINTEL)(queue, pointer, pattern, patternsize, size, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

cl_int clEnqueueMemsetINTEL(cl_command_queue queue, void *pointer, cl_int value, size_t size, cl_uint waits, const cl_event *list,
			    cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_FILL, __func__))
		return DRIVER(clEnqueueMemsetINTEL)(queue, pointer, value, size, waits, list, event);
	gmt_command_uses_pointer(&command, pointer, GMT_FLAG_WRITES, size);
	cl_int err;
	GMT_TRY(err, command, DRIVER(clEnqueueMemsetINTEL)(queue, pointer, value, size, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

cl_int clEnqueueMigrateMemINTEL(cl_command_queue queue, const void *pointer, size_t size, cl_mem_migration_flags flags, cl_uint waits,
				const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_MIGRATE, __func__))
		return DRIVER(clEnqueueMigrateMemINTEL)(queue, pointer, size, flags, waits, list, event);
	size = gmt_pointer_bytes(gmt_command_uses_pointer(&command, pointer, 0, size), pointer, size);
	gmt_command_migrates(&command, flags);
	cl_int err;
	GMT_TRY(err, command, DRIVER(clEnqueueMigrateMemINTEL)(queue, pointer, size, flags, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

/* The driver may keep advice with the memory, so its block is not reused. */
cl_int clEnqueueMemAdviseINTEL(cl_command_queue queue, const void *pointer, size_t size, cl_mem_advice_intel advice, cl_uint waits,
			       const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_OTHER, __func__))
		return DRIVER(clEnqueueMemAdviseINTEL)(queue, pointer, size, advice, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses_pointer(&command, pointer, 0, size);
	if (memory)
		atomic_store(&memory->no_reuse, 1);
	cl_int err;
	GMT_TRY(err, command, DRIVER(clEnqueueMemAdviseINTEL)(queue, pointer, size, advice, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}
