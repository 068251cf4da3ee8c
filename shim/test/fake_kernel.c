/* fake_kernel.c: kernels and their arguments. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <string.h>

static cl_kernel new_kernel(cl_context context)
{
	cl_kernel kernel = fake_new(FAKE_KERNEL, sizeof *kernel);
	kernel->context = context;
	fake_hold(context);
	fake.livekernels++;
	return kernel;
}

/* Kernels want a context to hold; the fake has no programs, so each one makes its own. */
static cl_kernel kernel_alone(void)
{
	cl_context context = fake_new_context(NULL);
	cl_kernel kernel = new_kernel(context);
	fake_release(context, FAKE_CONTEXT, CL_INVALID_CONTEXT);
	return kernel;
}

GMT_HOOK cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *errcode)
{
	FAKE_LOCKED;
	cl_int error = !fake_alive(program, FAKE_PROGRAM) ? CL_INVALID_PROGRAM : name ? CL_SUCCESS : CL_INVALID_VALUE;
	if (errcode)
		*errcode = error;
	return error == CL_SUCCESS ? kernel_alone() : NULL;
}

GMT_HOOK cl_int clCreateKernelsInProgram(cl_program program, cl_uint room, cl_kernel *kernels, cl_uint *count)
{
	FAKE_LOCKED;
	if (!fake_alive(program, FAKE_PROGRAM))
		return CL_INVALID_PROGRAM;
	if (kernels && room < 2)
		return CL_INVALID_VALUE;
	for (cl_uint i = 0; kernels && i < 2; i++)
		kernels[i] = kernel_alone();
	if (count)
		*count = 2;
	return CL_SUCCESS;
}

GMT_HOOK cl_kernel clCloneKernel(cl_kernel source, cl_int *errcode)
{
	FAKE_LOCKED;
	cl_kernel kernel = NULL;
	if (fake_alive(source, FAKE_KERNEL)) {
		kernel = new_kernel(source->context);
		memcpy(kernel->memory, source->memory, sizeof kernel->memory);
		memcpy(kernel->pointer, source->pointer, sizeof kernel->pointer);
	}
	if (errcode)
		*errcode = kernel ? CL_SUCCESS : CL_INVALID_KERNEL;
	return kernel;
}

GMT_HOOK cl_int clRetainKernel(cl_kernel kernel)
{
	return fake_retain(kernel, FAKE_KERNEL, CL_INVALID_KERNEL);
}

GMT_HOOK cl_int clReleaseKernel(cl_kernel kernel)
{
	return fake_release(kernel, FAKE_KERNEL, CL_INVALID_KERNEL);
}

GMT_HOOK cl_int clGetKernelInfo(cl_kernel kernel, cl_kernel_info what, size_t room, void *out, size_t *needed)
{
	FAKE_LOCKED;
	if (!fake_alive(kernel, FAKE_KERNEL))
		return CL_INVALID_KERNEL;
	cl_uint arguments = FAKE_ARGUMENTS;
	if (what == CL_KERNEL_FUNCTION_NAME)
		return fake_answer("kernel", 7, room, out, needed);
	return fake_answer(&arguments, sizeof arguments, room, out, needed);
}

GMT_HOOK cl_int clGetKernelArgInfo(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what, size_t room, void *out,
				   size_t *needed)
{
	FAKE_LOCKED;
	fake.arginfos++;
	if (!fake_alive(kernel, FAKE_KERNEL))
		return CL_INVALID_KERNEL;
	if (index >= FAKE_ARGUMENTS)
		return CL_INVALID_ARG_INDEX;
	if (!fake.arginfo)
		return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
	cl_kernel_arg_address_qualifier address = fake.argaddress[index];
	cl_kernel_arg_type_qualifier type = fake.argtype[index];
	if (what == CL_KERNEL_ARG_ADDRESS_QUALIFIER)
		return fake_answer(&address, sizeof address, room, out, needed);
	cl_kernel_arg_access_qualifier access = fake.argaccess[index];
	if (what == CL_KERNEL_ARG_ACCESS_QUALIFIER)
		return fake_answer(&access, sizeof access, room, out, needed);
	return what == CL_KERNEL_ARG_TYPE_QUALIFIER ? fake_answer(&type, sizeof type, room, out, needed) : CL_INVALID_VALUE;
}

void fake_keep(cl_kernel kernel, unsigned index, cl_mem memory)
{
	cl_mem before = kernel->kept[index];
	if (memory)
		fake_hold(memory);
	kernel->kept[index] = memory;
	if (before)
		fake_drop(before);
}

GMT_HOOK cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
	void (*before)(void) = fake.beforesetarg;
	if (before)
		before();
	FAKE_LOCKED;
	fake.setargs++;
	if (!fake_alive(kernel, FAKE_KERNEL))
		return CL_INVALID_KERNEL;
	if (index >= FAKE_ARGUMENTS)
		return CL_INVALID_ARG_INDEX;
	kernel->pointer[index] = NULL;
	if (index == FAKE_ARGUMENTS - 1)
		return CL_SUCCESS;
	cl_mem memory = NULL;
	if (size != sizeof memory)
		return CL_INVALID_ARG_SIZE;
	if (value)
		memcpy(&memory, value, sizeof memory);
	if (memory && !fake_alive(memory, FAKE_MEMORY))
		return CL_INVALID_MEM_OBJECT;
	kernel->memory[index] = memory;
	fake_keep(kernel, index, fake.keepsarguments ? memory : NULL);
	return CL_SUCCESS;
}

GMT_HOOK cl_int clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index, const void *value)
{
	FAKE_LOCKED;
	if (!fake_alive(kernel, FAKE_KERNEL))
		return CL_INVALID_KERNEL;
	if (index >= FAKE_ARGUMENTS)
		return CL_INVALID_ARG_INDEX;
	kernel->pointer[index] = value;
	return CL_SUCCESS;
}

GMT_HOOK cl_int clSetKernelExecInfo(cl_kernel kernel, cl_kernel_exec_info what, size_t size, const void *value)
{
	FAKE_LOCKED;
	(void)what, (void)size;
	return !fake_alive(kernel, FAKE_KERNEL) ? CL_INVALID_KERNEL : value ? CL_SUCCESS : CL_INVALID_VALUE;
}

static cl_int run_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint waits, const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	if (!fake_alive(kernel, FAKE_KERNEL))
		return CL_INVALID_KERNEL;
	cl_mem used[FAKE_ARGUMENTS];
	unsigned count = 0;
	for (unsigned i = 0; i < FAKE_ARGUMENTS - 1; i++)
		if (kernel->memory[i])
			used[count++] = kernel->memory[i];
	struct fake_action action = {.kind = FAKE_POINTERS, .pointers = FAKE_ARGUMENTS};
	for (unsigned i = 0; i < FAKE_ARGUMENTS; i++)
		action.pointer[i] = kernel->pointer[i];
	return fake_submit_action(queue, CL_FALSE, count, used, &action, waits, list, event);
}

GMT_HOOK cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
				       const size_t *global, const size_t *local, cl_uint waits, const cl_event *list,
				       cl_event *event)
{
	(void)dimensions, (void)offset, (void)global, (void)local;
	return run_kernel(queue, kernel, waits, list, event);
}

GMT_HOOK cl_int clEnqueueTask(cl_command_queue queue, cl_kernel kernel, cl_uint waits, const cl_event *list, cl_event *event)
{
	return run_kernel(queue, kernel, waits, list, event);
}
