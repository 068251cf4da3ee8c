/* hook_kernel.c: kernels and their arguments: how most commands name the memory that they use. */
#define _GNU_SOURCE
#include "command.h"

#include <string.h>

static void kernel_created(cl_kernel handle)
{
	cl_uint arguments = 0;
	if (gmt_next.clGetKernelInfo(handle, CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, NULL) != CL_SUCCESS)
		arguments = 0;
	struct gmt_kernel *kernel = gmt_kernel_add(handle, arguments);
	if (!kernel)
		return;
	char name[256];
	size_t length = 0;
	if (gmt_next.clGetKernelInfo(handle, CL_KERNEL_FUNCTION_NAME, sizeof name, name, &length) != CL_SUCCESS)
		length = 0;
	struct gmtevent event = {.time = gmt_now(), .kind = GMT_KIND_KERNEL, .object = kernel->object.number};
	gmt_ring_write_payload(&event, name, length ? length - 1 : 0);
}

GMT_HOOK cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_next.clCreateKernel(program, name, errcode);
	cl_kernel handle = gmt_next.clCreateKernel(program, name, errcode);
	if (handle)
		kernel_created(handle);
	gmt_leave();
	return handle;
}

GMT_HOOK cl_int clCreateKernelsInProgram(cl_program program, cl_uint room, cl_kernel *kernels, cl_uint *count)
{
	if (!gmt_enter_untimed())
		return gmt_next.clCreateKernelsInProgram(program, room, kernels, count);
	cl_uint made = 0;
	cl_int err = gmt_next.clCreateKernelsInProgram(program, room, kernels, &made);
	if (err == CL_SUCCESS && count)
		*count = made;
	for (cl_uint i = 0; err == CL_SUCCESS && kernels && i < made && i < room; i++)
		kernel_created(kernels[i]);
	gmt_leave();
	return err;
}

GMT_HOOK cl_kernel clCloneKernel(cl_kernel source, cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_next.clCloneKernel(source, errcode);
	cl_kernel handle = gmt_next.clCloneKernel(source, errcode);
	if (handle) {
		kernel_created(handle);
		struct gmt_kernel *from = gmt_kernel_find(source), *to = gmt_kernel_find(handle);
		if (from && to && from->arguments == to->arguments && to->arguments)
			memcpy(to->argument, from->argument, to->arguments * sizeof *to->argument);
	}
	gmt_leave();
	return handle;
}

GMT_HOOK cl_int clRetainKernel(cl_kernel handle)
{
	if (!gmt_enter_untimed())
		return gmt_next.clRetainKernel(handle);
	cl_int err = gmt_next.clRetainKernel(handle);
	struct gmt_kernel *kernel = err == CL_SUCCESS ? gmt_kernel_find(handle) : NULL;
	if (kernel)
		atomic_fetch_add(&kernel->references, 1);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clReleaseKernel(cl_kernel handle)
{
	if (!gmt_enter_untimed())
		return gmt_next.clReleaseKernel(handle);
	struct gmt_kernel *kernel = gmt_kernel_find(handle);
	if (kernel && atomic_fetch_sub(&kernel->references, 1) == 1)
		gmt_kernel_remove(kernel);
	cl_int err = gmt_next.clReleaseKernel(handle);
	gmt_leave();
	return err;
}

/* Arguments come without a type: eight bytes may be a memory object, and are looked up when the kernel is enqueued. */
GMT_HOOK cl_int clSetKernelArg(cl_kernel handle, cl_uint index, size_t size, const void *value)
{
	if (!gmt_enter_untimed())
		return gmt_next.clSetKernelArg(handle, index, size, value);
	cl_int err = gmt_next.clSetKernelArg(handle, index, size, value);
	struct gmt_kernel *kernel = err == CL_SUCCESS ? gmt_kernel_find(handle) : NULL;
	if (kernel && index < kernel->arguments) {
		uint64_t bits = 0;
		if (value && size == sizeof bits)
			memcpy(&bits, value, sizeof bits);
		kernel->argument[index] = bits;
	}
	gmt_leave();
	return err;
}

static void use_arguments(struct gmt_command *command, cl_kernel handle)
{
	struct gmt_kernel *kernel = command->queue ? gmt_kernel_find(handle) : NULL;
	if (!kernel)
		return;
	command->kernel = kernel->object.number;
	for (uint32_t i = 0; i < kernel->arguments; i++)
		if (kernel->argument[i])
			gmt_command_use(command, (cl_mem)(uintptr_t)kernel->argument[i], 0, 0);
}

GMT_HOOK cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
				       const size_t *global, const size_t *local, cl_uint waits, const cl_event *list,
				       cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_KERNEL))
		return gmt_next.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, list, event);
	cl_int err;
	GMT_TRY(err, gmt_next.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, list, event));
	gmt_command_end(&command, err, false);
	use_arguments(&command, kernel);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueTask(cl_command_queue queue, cl_kernel kernel, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_KERNEL))
		return gmt_next.clEnqueueTask(queue, kernel, waits, list, event);
	cl_int err;
	GMT_TRY(err, gmt_next.clEnqueueTask(queue, kernel, waits, list, event));
	gmt_command_end(&command, err, false);
	use_arguments(&command, kernel);
	gmt_leave();
	return err;
}

/* Host code in a queue may wait for anything, so order within the queue proves nothing any more. */
GMT_HOOK cl_int clEnqueueNativeKernel(cl_command_queue queue, void(CL_CALLBACK *function)(void *), void *arguments, size_t bytes,
				      cl_uint count, const cl_mem *memories, const void **places, cl_uint waits,
				      const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_NATIVE))
		return gmt_next.clEnqueueNativeKernel(queue, function, arguments, bytes, count, memories, places, waits, list, event);
	if (command.queue && command.queue->context)
		atomic_store(&command.queue->context->unordered, 1);
	cl_int err;
	GMT_TRY(err, gmt_next.clEnqueueNativeKernel(queue, function, arguments, bytes, count, memories, places, waits, list, event));
	gmt_command_end(&command, err, false);
	for (cl_uint i = 0; memories && i < count; i++)
		gmt_command_use(&command, memories[i], 0, 0);
	gmt_leave();
	return err;
}
