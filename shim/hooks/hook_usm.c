/* hook_usm.c: unified shared memory (cl_intel_unified_shared_memory): tracked like SVM, never pooled. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/start.h"
#include "../pool/driver_create.h"
#include "hook_svm.h"

#define DRIVER(name) atomic_load_explicit(&gmt_driver.name, memory_order_acquire)

#define USM_ALLOCATE(kind, expression)                                                                                 \
	cl_int error = CL_SUCCESS;                                                                                     \
	void *pointer;                                                                                                 \
	GMT_DRIVER_CREATE(&call, pointer, error, size, expression);                                                    \
	gmt_pointer_allocated(&call, &GMT_CALLER, kind, context, size, pointer, error);                \
	if (errcode)                                                                                                   \
		*errcode = error;                                                                                      \
	gmt_leave();                                                                                                   \
	return pointer

void *clHostMemAllocINTEL(cl_context context, const cl_mem_properties_intel *properties, size_t size, cl_uint alignment,
			  cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return DRIVER(clHostMemAllocINTEL)(context, properties, size, alignment, errcode);
	USM_ALLOCATE(GMT_MEMORY_USM_HOST, DRIVER(clHostMemAllocINTEL)(context, properties, size, alignment, &error));
}

void *clDeviceMemAllocINTEL(cl_context context, cl_device_id device, const cl_mem_properties_intel *properties, size_t size,
			    cl_uint alignment, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return DRIVER(clDeviceMemAllocINTEL)(context, device, properties, size, alignment, errcode);
	USM_ALLOCATE(GMT_MEMORY_USM_DEVICE, DRIVER(clDeviceMemAllocINTEL)(context, device, properties, size, alignment, &error));
}

void *clSharedMemAllocINTEL(cl_context context, cl_device_id device, const cl_mem_properties_intel *properties, size_t size,
			    cl_uint alignment, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return DRIVER(clSharedMemAllocINTEL)(context, device, properties, size, alignment, errcode);
	USM_ALLOCATE(GMT_MEMORY_USM_SHARED, DRIVER(clSharedMemAllocINTEL)(context, device, properties, size, alignment, &error));
}

cl_int clMemFreeINTEL(cl_context context, void *pointer)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return DRIVER(clMemFreeINTEL)(context, pointer);
	gmt_pointer_freed(&call, pointer);
	cl_int err = DRIVER(clMemFreeINTEL)(context, pointer);
	gmt_leave();
	return err;
}

cl_int clMemBlockingFreeINTEL(cl_context context, void *pointer)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return DRIVER(clMemBlockingFreeINTEL)(context, pointer);
	gmt_pointer_freed(&call, pointer);
	cl_int err = DRIVER(clMemBlockingFreeINTEL)(context, pointer);
	gmt_leave();
	return err;
}
