/* hook_svm.c: shared virtual memory and unified shared memory: pointers instead of handles; tracked, never pooled. */
#define _GNU_SOURCE
#include "memory.h"

#include <stdlib.h>

static void *allocated(struct gmt_call *call, const void *caller, enum gmtmemory kind, cl_context context, size_t size,
		       void *pointer, cl_int error)
{
	gmt_driver_returned(call);
	struct gmt_created c = {
		.handle = pointer,
		.kind = kind,
		.context = gmt_context_find(context),
		.size = size,
		.tag = gmt_tag(call, caller, size),
		.served = {.granted = size, .outcome = pointer ? GMT_OUTCOME_DRIVER : GMT_OUTCOME_FAILED},
	};
	gmt_memory_report(call, &c, error);
	return pointer;
}

/* Takes a pointer out of the books before the driver can hand it out again. */
static void freed(const struct gmt_call *call, void *pointer)
{
	struct gmt_memory *memory = gmt_memory_find(pointer);
	if (!memory || memory->kind < GMT_MEMORY_SVM)
		return;
	struct gmtevent event = {
		.time = call->start,
		.kind = GMT_KIND_RELEASE,
		.op = memory->kind,
		.scope = memory->scope,
		.tag = memory->tag,
		.object = memory->object.number,
		.size = memory->size,
	};
	if (gmt_memory_remove(memory))
		gmt_ring_write(&event);
}

GMT_HOOK void *clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clSVMAlloc(context, flags, size, alignment);
	void *pointer = gmt_next.clSVMAlloc(context, flags, size, alignment);
	allocated(&call, __builtin_return_address(0), GMT_MEMORY_SVM, context, size, pointer,
		  pointer ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE);
	gmt_leave();
	return pointer;
}

GMT_HOOK void clSVMFree(cl_context context, void *pointer)
{
	struct gmt_call call;
	if (!gmt_enter(&call)) {
		gmt_next.clSVMFree(context, pointer);
		return;
	}
	freed(&call, pointer);
	gmt_next.clSVMFree(context, pointer);
	gmt_leave();
}

GMT_HOOK cl_int clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void *pointers[],
				 void(CL_CALLBACK *notify)(cl_command_queue, cl_uint, void *[], void *), void *data, cl_uint waits,
				 const cl_event *list, cl_event *event)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clEnqueueSVMFree(queue, count, pointers, notify, data, waits, list, event);
	/* With a callback the program frees them itself, there. The array may be gone when the call returns. */
	void **copy = !notify && pointers && count ? malloc(count * sizeof *copy) : NULL;
	for (cl_uint i = 0; copy && i < count; i++)
		copy[i] = pointers[i];
	cl_int err = gmt_next.clEnqueueSVMFree(queue, count, pointers, notify, data, waits, list, event);
	for (cl_uint i = 0; copy && err == CL_SUCCESS && i < count; i++)
		freed(&call, copy[i]);
	free(copy);
	gmt_leave();
	return err;
}

#define REAL(name) atomic_load_explicit(&gmt_next.name, memory_order_acquire)

#define USM_ALLOCATE(kind, expression)                                                                                 \
	cl_int error = CL_SUCCESS;                                                                                     \
	void *pointer = (expression);                                                                                  \
	allocated(&call, __builtin_return_address(0), kind, context, size, pointer, error);                            \
	if (errcode)                                                                                                   \
		*errcode = error;                                                                                      \
	gmt_leave();                                                                                                   \
	return pointer

void *clHostMemAllocINTEL(cl_context context, const cl_mem_properties_intel *properties, size_t size, cl_uint alignment,
			  cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return REAL(clHostMemAllocINTEL)(context, properties, size, alignment, errcode);
	USM_ALLOCATE(GMT_MEMORY_USM_HOST, REAL(clHostMemAllocINTEL)(context, properties, size, alignment, &error));
}

void *clDeviceMemAllocINTEL(cl_context context, cl_device_id device, const cl_mem_properties_intel *properties, size_t size,
			    cl_uint alignment, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return REAL(clDeviceMemAllocINTEL)(context, device, properties, size, alignment, errcode);
	USM_ALLOCATE(GMT_MEMORY_USM_DEVICE, REAL(clDeviceMemAllocINTEL)(context, device, properties, size, alignment, &error));
}

void *clSharedMemAllocINTEL(cl_context context, cl_device_id device, const cl_mem_properties_intel *properties, size_t size,
			    cl_uint alignment, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return REAL(clSharedMemAllocINTEL)(context, device, properties, size, alignment, errcode);
	USM_ALLOCATE(GMT_MEMORY_USM_SHARED, REAL(clSharedMemAllocINTEL)(context, device, properties, size, alignment, &error));
}

cl_int clMemFreeINTEL(cl_context context, void *pointer)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return REAL(clMemFreeINTEL)(context, pointer);
	freed(&call, pointer);
	cl_int err = REAL(clMemFreeINTEL)(context, pointer);
	gmt_leave();
	return err;
}

cl_int clMemBlockingFreeINTEL(cl_context context, void *pointer)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return REAL(clMemBlockingFreeINTEL)(context, pointer);
	freed(&call, pointer);
	cl_int err = REAL(clMemBlockingFreeINTEL)(context, pointer);
	gmt_leave();
	return err;
}
