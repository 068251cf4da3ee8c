/* fake_more.c: commands on images, native kernels, migration; shared virtual memory; extension functions. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <stdlib.h>
#include <string.h>

GMT_HOOK cl_int clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin,
				   const size_t *region, size_t row, size_t slice, void *pointer, cl_uint waits,
				   const cl_event *list, cl_event *event)
{
	(void)origin, (void)region, (void)row, (void)slice, (void)pointer;
	return fake_submit(queue, blocking, 1, &image, waits, list, event);
}

GMT_HOOK cl_int clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin,
				    const size_t *region, size_t row, size_t slice, const void *pointer, cl_uint waits,
				    const cl_event *list, cl_event *event)
{
	(void)origin, (void)region, (void)row, (void)slice, (void)pointer;
	return fake_submit(queue, blocking, 1, &image, waits, list, event);
}

GMT_HOOK cl_int clEnqueueCopyImage(cl_command_queue queue, cl_mem source, cl_mem destination, const size_t *from,
				   const size_t *to, const size_t *region, cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)from, (void)to, (void)region;
	cl_mem both[] = {source, destination};
	return fake_submit(queue, CL_FALSE, 2, both, waits, list, event);
}

GMT_HOOK cl_int clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void *colour, const size_t *origin,
				   const size_t *region, cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)colour, (void)origin, (void)region;
	return fake_submit(queue, CL_FALSE, 1, &image, waits, list, event);
}

static cl_int on_list(cl_command_queue queue, cl_uint count, const cl_mem *memories, cl_uint waits, const cl_event *list,
		      cl_event *event)
{
	if (count == 0 || !memories || count > FAKE_USES)
		return CL_INVALID_VALUE;
	return fake_submit(queue, CL_FALSE, count, memories, waits, list, event);
}

GMT_HOOK cl_int clEnqueueNativeKernel(cl_command_queue queue, void(CL_CALLBACK *function)(void *), void *arguments, size_t bytes,
				      cl_uint count, const cl_mem *memories, const void **places, cl_uint waits,
				      const cl_event *list, cl_event *event)
{
	(void)arguments, (void)bytes, (void)places;
	return function ? on_list(queue, count, memories, waits, list, event) : CL_INVALID_VALUE;
}

GMT_HOOK cl_int clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count, const cl_mem *memories,
					   cl_mem_migration_flags flags, cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)flags;
	return on_list(queue, count, memories, waits, list, event);
}

static void *allocate(cl_context context, size_t size, cl_int *errcode)
{
	FAKE_LOCKED;
	void *pointer = NULL;
	cl_int error = !fake_alive(context, FAKE_CONTEXT) ? CL_INVALID_CONTEXT : size ? CL_SUCCESS : CL_INVALID_BUFFER_SIZE;
	if (error == CL_SUCCESS && size > fake.largest)
		error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	if (error == CL_SUCCESS) {
		pointer = malloc(size);
		fake.livepointers++;
	}
	if (errcode)
		*errcode = error;
	return pointer;
}

static cl_int release(cl_context context, void *pointer)
{
	FAKE_LOCKED;
	if (!fake_alive(context, FAKE_CONTEXT))
		return CL_INVALID_CONTEXT;
	fake.livepointers -= pointer != NULL;
	free(pointer);
	return CL_SUCCESS;
}

GMT_HOOK void *clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
	(void)flags, (void)alignment;
	return allocate(context, size, NULL);
}

GMT_HOOK void clSVMFree(cl_context context, void *pointer)
{
	release(context, pointer);
}

GMT_HOOK cl_int clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void *pointers[],
				 void(CL_CALLBACK *notify)(cl_command_queue, cl_uint, void *[], void *), void *data, cl_uint waits,
				 const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	if (count == 0 || !pointers)
		return CL_INVALID_VALUE;
	cl_int err = fake_submit(queue, CL_FALSE, 0, NULL, waits, list, event);
	if (err != CL_SUCCESS)
		return err;
	if (notify)
		notify(queue, count, pointers, data);
	for (cl_uint i = 0; !notify && i < count; i++)
		release(queue->context, pointers[i]);
	return CL_SUCCESS;
}

static cl_mem intel_buffer(cl_context context, const cl_mem_properties_intel *properties, cl_mem_flags flags, size_t size,
			   void *host, cl_int *errcode)
{
	return clCreateBufferWithProperties(context, (const cl_mem_properties *)properties, flags, size, host, errcode);
}

static void *intel_host(cl_context context, const cl_mem_properties_intel *properties, size_t size, cl_uint alignment, cl_int *errcode)
{
	(void)properties, (void)alignment;
	return allocate(context, size, errcode);
}

static void *intel_device(cl_context context, cl_device_id device, const cl_mem_properties_intel *properties, size_t size,
			  cl_uint alignment, cl_int *errcode)
{
	(void)device, (void)properties, (void)alignment;
	return allocate(context, size, errcode);
}

static cl_int command_buffer(void)
{
	return CL_INVALID_OPERATION;
}

void *fake_extension(const char *name)
{
	typedef void (*function)(void);
	static const struct {
		const char *name;
		function address;
	} known[] = {
		{"clCreateBufferWithPropertiesINTEL", (function)intel_buffer},
		{"clHostMemAllocINTEL", (function)intel_host},
		{"clDeviceMemAllocINTEL", (function)intel_device},
		{"clSharedMemAllocINTEL", (function)intel_device},
		{"clMemFreeINTEL", (function)release},
		{"clMemBlockingFreeINTEL", (function)release},
		{"clCreateCommandBufferKHR", (function)command_buffer},
		{"clGetKernelSubGroupInfoKHR", (function)command_buffer},
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (strcmp(known[i].name, name) == 0) {
			void *address;
			memcpy(&address, &known[i].address, sizeof address);
			return address;
		}
	}
	return NULL;
}
