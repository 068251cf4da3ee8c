/* hook_kernel.c: kernels and their arguments, which name most of the memory that commands use. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/sites.h"
#include "../registry/finding.h"
#include "../registry/memory.h"
#include "command.h"

#include <string.h>

static void note_kernel_created(cl_kernel handle, const struct gmt_caller *caller)
{
	cl_uint arguments = 0;
	if (gmt_driver.clGetKernelInfo(handle, CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, NULL) != CL_SUCCESS)
		arguments = 0;
	struct gmt_kernel *kernel = gmt_kernel_add(handle, arguments);
	gmt_count_object(kernel ? &kernel->object : NULL, GMT_HELD_KERNEL, caller);
	if (!kernel)
		return;
	char name[256];
	size_t length = 0;
	if (gmt_driver.clGetKernelInfo(handle, CL_KERNEL_FUNCTION_NAME, sizeof name, name, &length) != CL_SUCCESS)
		length = 0;
	struct gmtevent event = GMT_EVENT_KERNEL(.time = gmt_now(), .kernel = kernel->object.id);
	gmt_ring_write_payload(&event, name, length ? length - 1 : 0);
}

GMT_HOOK cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clCreateKernel(program, name, errcode);
	cl_int *status = GMT_STATUS(errcode);
	cl_kernel handle = gmt_driver.clCreateKernel(program, name, status);
	if (handle)
		note_kernel_created(handle, &GMT_CALLER);
	else
		gmt_call_failed(__func__, *status, &GMT_CALLER);
	gmt_leave();
	return handle;
}

GMT_HOOK cl_int clCreateKernelsInProgram(cl_program program, cl_uint room, cl_kernel *kernels, cl_uint *count)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clCreateKernelsInProgram(program, room, kernels, count);
	cl_uint made = 0;
	cl_int err = gmt_driver.clCreateKernelsInProgram(program, room, kernels, &made);
	if (err == CL_SUCCESS && count)
		*count = made;
	for (cl_uint i = 0; err == CL_SUCCESS && kernels && i < made && i < room; i++)
		note_kernel_created(kernels[i], &GMT_CALLER);
	if (err != CL_SUCCESS)
		gmt_call_failed(__func__, err, &GMT_CALLER);
	gmt_leave();
	return err;
}

GMT_HOOK cl_kernel clCloneKernel(cl_kernel source, cl_int *errcode)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clCloneKernel(source, errcode);
	cl_int *status = GMT_STATUS(errcode);
	cl_kernel handle = gmt_driver.clCloneKernel(source, status);
	if (!handle)
		gmt_call_failed(__func__, *status, &GMT_CALLER);
	if (handle) {
		note_kernel_created(handle, &GMT_CALLER);
		struct gmt_kernel *from = gmt_kernel_find(source), *to = gmt_kernel_find(handle);
		if (from && to && from->arguments == to->arguments && to->arguments) {
			memcpy(to->argument, from->argument, to->arguments * sizeof *to->argument);
			memcpy(to->kind, from->kind, to->arguments * sizeof *to->kind);
		}
		if (from && to)
			atomic_store(&to->indirect, atomic_load(&from->indirect));
	}
	gmt_leave();
	return handle;
}

GMT_HOOK cl_int clRetainKernel(cl_kernel handle)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clRetainKernel(handle);
	cl_int err = gmt_driver.clRetainKernel(handle);
	struct gmt_kernel *kernel = err == CL_SUCCESS ? gmt_kernel_find(handle) : NULL;
	if (kernel)
		atomic_fetch_add(&kernel->references, 1);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clReleaseKernel(cl_kernel handle)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clReleaseKernel(handle);
	struct gmt_kernel *kernel = gmt_kernel_find(handle);
	if (kernel && gmt_last_reference(&kernel->references))
		gmt_kernel_remove(kernel);
	cl_int err = gmt_driver.clReleaseKernel(handle);
	if (err != CL_SUCCESS)
		gmt_call_failed(__func__, err, &GMT_CALLER);
	gmt_leave();
	return err;
}

/* The kind of an argument, asked of the driver once. It may know nothing if the program was built without argument information. */
static uint8_t kind_of_argument(struct gmt_kernel *kernel, cl_uint index)
{
	uint8_t kind = __atomic_load_n(&kernel->kind[index], __ATOMIC_RELAXED), pointer = kind & GMT_ARGUMENT_POINTER;
	cl_kernel handle = (cl_kernel)atomic_load(&kernel->object.handle);
	if (kind & GMT_ARGUMENT_ASKED || !handle || !gmt_driver.clGetKernelArgInfo)
		return kind;
	cl_kernel_arg_address_qualifier address = 0;
	cl_kernel_arg_type_qualifier type = 0;
	kind = GMT_ARGUMENT_ASKED | pointer;
	if (gmt_driver.clGetKernelArgInfo(handle, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof address, &address, NULL) == CL_SUCCESS) {
		if (address == CL_KERNEL_ARG_ADDRESS_GLOBAL || address == CL_KERNEL_ARG_ADDRESS_CONSTANT)
			kind |= GMT_ARGUMENT_MEMORY;
		if (gmt_driver.clGetKernelArgInfo(handle, index, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof type, &type, NULL) != CL_SUCCESS)
			type = 0;
		if (address == CL_KERNEL_ARG_ADDRESS_CONSTANT || type & CL_KERNEL_ARG_TYPE_CONST)
			kind |= GMT_ARGUMENT_READS;
	}
	cl_kernel_arg_access_qualifier access = 0;
	if (gmt_driver.clGetKernelArgInfo(handle, index, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof access, &access, NULL) == CL_SUCCESS) {
		kind |= access == CL_KERNEL_ARG_ACCESS_READ_ONLY ? GMT_ARGUMENT_READS : 0;
		kind |= access == CL_KERNEL_ARG_ACCESS_WRITE_ONLY ? GMT_ARGUMENT_WRITES : 0;
	}
	__atomic_store_n(&kernel->kind[index], kind, __ATOMIC_RELAXED);
	return kind;
}

static uint64_t bits_of_argument(size_t size, const void *value)
{
	uint64_t bits = 0;
	if (value && size == sizeof bits)
		memcpy(&bits, value, sizeof bits);
	return bits;
}

/* Whether the eight bytes are memory that the pool has, and the kernel is known to expect memory there. */
static bool is_released_memory(struct gmt_kernel *kernel, cl_uint index, uint64_t bits)
{
	const struct gmt_memory *memory = bits ? gmt_memory_find((const void *)(uintptr_t)bits) : NULL;
	return gmt_unlikely(memory && atomic_load_explicit(&memory->references, memory_order_relaxed) == 0) &&
	       kind_of_argument(kernel, index) & GMT_ARGUMENT_MEMORY && gmt_finding_released(memory, "clSetKernelArg");
}

/* pointer: GMT_ARGUMENT_POINTER or 0. */
static void set_argument(struct gmt_kernel *kernel, cl_uint index, uint64_t bits, uint8_t pointer)
{
	kernel->argument[index] = bits;
	uint8_t kind = __atomic_load_n(&kernel->kind[index], __ATOMIC_RELAXED);
	if (gmt_unlikely((kind & GMT_ARGUMENT_POINTER) != pointer))
		__atomic_store_n(&kernel->kind[index], (uint8_t)(kind ^ GMT_ARGUMENT_POINTER), __ATOMIC_RELAXED);
}

/* Arguments have no type. Eight bytes may be a memory object; they are looked up when the kernel is enqueued. */
GMT_HOOK cl_int clSetKernelArg(cl_kernel handle, cl_uint index, size_t size, const void *value)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clSetKernelArg(handle, index, size, value);
	struct gmt_kernel *kernel = gmt_kernel_find(handle);
	bool known = kernel && index < kernel->arguments;
	uint64_t bits = bits_of_argument(size, value);
	cl_int err = CL_INVALID_MEM_OBJECT;
	if (!known || !is_released_memory(kernel, index, bits))
		err = gmt_driver.clSetKernelArg(handle, index, size, value);
	if (known && err == CL_SUCCESS)
		set_argument(kernel, index, bits, 0);
	if (gmt_unlikely(err != CL_SUCCESS))
		gmt_call_failed(__func__, err, &GMT_CALLER);
	gmt_leave();
	return err;
}

/* Stores the address where clSetKernelArg stores a handle. */
static cl_int store_pointer_argument(cl_kernel handle, cl_uint index, const void *value, cl_int err)
{
	struct gmt_kernel *kernel = err == CL_SUCCESS ? gmt_kernel_find(handle) : NULL;
	if (kernel && index < kernel->arguments)
		set_argument(kernel, index, (uintptr_t)value, GMT_ARGUMENT_POINTER);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clSetKernelArgSVMPointer(cl_kernel handle, cl_uint index, const void *value)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clSetKernelArgSVMPointer(handle, index, value);
	return store_pointer_argument(handle, index, value, gmt_driver.clSetKernelArgSVMPointer(handle, index, value));
}

cl_int clSetKernelArgMemPointerINTEL(cl_kernel handle, cl_uint index, const void *value)
{
	clSetKernelArgMemPointerINTEL_fn set = atomic_load_explicit(&gmt_driver.clSetKernelArgMemPointerINTEL, memory_order_acquire);
	if (!gmt_enter_untimed())
		return set(handle, index, value);
	return store_pointer_argument(handle, index, value, set(handle, index, value));
}

/* A bit for each property that lets a kernel follow pointers it finds in memory; 0: another property. */
static uint32_t indirect_bit(cl_kernel_exec_info what)
{
	switch (what) {
	case CL_KERNEL_EXEC_INFO_SVM_PTRS:
		return 1;
	case CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM:
		return 2;
	case CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL:
		return 4;
	case CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL:
		return 8;
	case CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL:
		return 16;
	case CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL:
		return 32;
	default:
		return 0;
	}
}

/* A list may name every allocation, so we keep none of it and take the kernel to use all shared memory. */
GMT_HOOK cl_int clSetKernelExecInfo(cl_kernel handle, cl_kernel_exec_info what, size_t size, const void *value)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clSetKernelExecInfo(handle, what, size, value);
	cl_int err = gmt_driver.clSetKernelExecInfo(handle, what, size, value);
	struct gmt_kernel *kernel = err == CL_SUCCESS ? gmt_kernel_find(handle) : NULL;
	uint32_t bit = indirect_bit(what);
	bool on = size && value;
	if (on && size == sizeof(cl_bool) && bit != 1 && bit != 32)
		on = *(const cl_bool *)value != CL_FALSE;
	if (kernel && on)
		atomic_fetch_or(&kernel->indirect, bit);
	else if (kernel)
		atomic_fetch_and(&kernel->indirect, ~bit);
	gmt_leave();
	return err;
}

/* Whether a kernel reads or writes the argument; neither: it may do both. Some programs write what is CL_MEM_READ_ONLY. */
static uint8_t kernel_access_of(const struct gmt_memory *memory, uint8_t kind)
{
	cl_mem_flags flags = memory->flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY);
	if (!flags && memory->parent) /* a sub-buffer inherits the access of its buffer */
		flags = memory->parent->flags;
	if (kind & GMT_ARGUMENT_READS)
		return GMT_FLAG_READS;
	return flags & CL_MEM_WRITE_ONLY ? GMT_FLAG_WRITES : 0;
}

/* A released argument does not make the call fail: it may be no memory, or the kernel may not use it. */
static void use_argument(struct gmt_command *command, struct gmt_kernel *kernel, cl_uint index)
{
	const void *handle = (const void *)(uintptr_t)kernel->argument[index];
	uint8_t known = __atomic_load_n(&kernel->kind[index], __ATOMIC_RELAXED);
	struct gmt_memory *memory = known & GMT_ARGUMENT_POINTER ? gmt_memory_at(handle) : gmt_memory_find(handle);
	if (!memory)
		return;
	if (gmt_unlikely(atomic_load_explicit(&memory->references, memory_order_relaxed) == 0) &&
	    kind_of_argument(kernel, index) & (GMT_ARGUMENT_MEMORY | GMT_ARGUMENT_POINTER))
		gmt_finding_released(memory, command->function);
	enum gmt_effect effect = GMT_EFFECT_WRITES;
	if (gmt_unlikely(atomic_load_explicit(&gmt_memory_root(memory)->unwritten, memory_order_relaxed)))
		effect = gmt_unwritten_effect(memory, kind_of_argument(kernel, index));
	gmt_command_note_access(command, (struct gmt_access){
		.memory = memory, .argument = index + 1, .effect = (uint8_t)effect,
		.flags = command->uses ? kernel_access_of(memory, kind_of_argument(kernel, index)) : 0,
	});
}

static void use_arguments(struct gmt_command *command, cl_kernel handle)
{
	struct gmt_kernel *kernel = gmt_kernel_find(handle);
	if (!kernel) {
		command->uncounted = handle != NULL; /* its create was not seen: it may use any memory */
		return;
	}
	command->kernel = kernel->object.id;
	command->indirect = atomic_load_explicit(&kernel->indirect, memory_order_relaxed) != 0;
	for (uint32_t i = 0; i < kernel->arguments; i++)
		if (kernel->argument[i])
			use_argument(command, kernel, i);
}

/* Enqueues commands before a kernel that clear recycled memory among its arguments. False: there is none. */
static bool clear_arguments(const struct gmt_command *command, cl_command_queue queue)
{
	bool cleared = false;
	for (uint32_t i = 0; i < command->count && command->queue && !command->refused; i++) {
		struct gmt_memory *root = gmt_memory_root(command->access[i].memory);
		if (!atomic_load_explicit(&root->unwritten, memory_order_relaxed) || !root->context || root->context != command->queue->context)
			continue;
		gmt_unwritten_clear(root, (enum gmt_effect)command->access[i].effect, queue, atomic_load(&command->queue->inorder));
		cleared = true;
	}
	return cleared;
}

/* Excludes cleared memory from reuse: its kernel failed, so no command shows when the clearing has completed. */
static void forbid_reuse_of_cleared(const struct gmt_command *command)
{
	for (uint32_t i = 0; i < command->count; i++)
		atomic_store(&gmt_memory_root(command->access[i].memory)->no_reuse, 1);
}

GMT_HOOK cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
				       const size_t *global, const size_t *local, cl_uint waits, const cl_event *list,
				       cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_KERNEL, __func__))
		return gmt_driver.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, list, event);
	use_arguments(&command, kernel);
	bool cleared = gmt_unlikely(gmt_session.config.scrub == GMT_SCRUB_AUTO) && clear_arguments(&command, queue);
	cl_int err;
	GMT_TRY(err, command,
		gmt_driver.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, list, event));
	if (gmt_unlikely(cleared && err != CL_SUCCESS))
		forbid_reuse_of_cleared(&command);
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueTask(cl_command_queue queue, cl_kernel kernel, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_KERNEL, __func__))
		return gmt_driver.clEnqueueTask(queue, kernel, waits, list, event);
	use_arguments(&command, kernel);
	bool cleared = gmt_unlikely(gmt_session.config.scrub == GMT_SCRUB_AUTO) && clear_arguments(&command, queue);
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueTask(queue, kernel, waits, list, event));
	if (gmt_unlikely(cleared && err != CL_SUCCESS))
		forbid_reuse_of_cleared(&command);
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}
