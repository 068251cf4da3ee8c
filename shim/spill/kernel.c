/*
 * kernel.c: see kernel.h. The driver gets an argument when it is set for the first time, to judge it, and after that before
 * the commands for which the real object has changed.
 */
#define _GNU_SOURCE
#include "kernel.h"

#include "../base/call.h"
#include "../base/lock.h"
#include "../registry/table.h"
#include "pair.h"
#include "short.h"

#include <stdlib.h>
#include <string.h>

struct argument {
	struct gmt_spill_object *object; /* NULL: anything else */
	uint64_t serial;                 /* of the object */
	uint32_t made;                   /* the real object that the driver has; 0: none */
	bool asked, constant, reads;     /* what the driver knows of the argument; reads: the kernel only reads through it */
	struct gmt_spill_context *judged; /* the driver took a buffer of this context */
};

struct kernel {
	struct gmt_object object;
	_Atomic uint32_t references;
	_Atomic uint32_t lock; /* held while arguments are set, also for a command that is being enqueued; as in struct gmt_spill_queue */
	cl_uint count;
	struct argument *argument;
	struct gmt_spill_use *uses; /* of the command that is being enqueued */
};

GMT_TABLE(spill_kernels, kernel, 4096, offsetof(struct kernel, lock), 0);

static struct kernel *find_kernel(cl_kernel handle)
{
	return (struct kernel *)gmt_table_find(&spill_kernels, handle);
}

static struct kernel *add_kernel(cl_kernel handle)
{
	cl_uint count = 0;
	if (!handle || gmt_bare.clGetKernelInfo(handle, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL) != CL_SUCCESS)
		return NULL;
	struct kernel *kernel = (struct kernel *)gmt_table_add(&spill_kernels, handle, false);
	if (!kernel)
		return NULL;
	gmt_lock(&kernel->lock);
	free(kernel->argument);
	free(kernel->uses);
	kernel->argument = calloc(count + 1u, sizeof *kernel->argument);
	kernel->uses = calloc(count + 1u, sizeof *kernel->uses);
	kernel->count = kernel->argument && kernel->uses ? count : 0;
	gmt_unlock(&kernel->lock);
	atomic_store(&kernel->references, 1);
	return kernel;
}

/* In a callback another call may have it that waits for the callback. */
static bool lock_kernel(struct kernel *kernel)
{
	if (gmt_likely(!gmt_in_callback)) {
		gmt_lock(&kernel->lock);
		return true;
	}
	for (unsigned i = 0; i < 1000; i++) {
		if (!atomic_exchange_explicit(&kernel->lock, 1, memory_order_acquire))
			return true;
		gmt_pause(20000);
	}
	return false;
}

/*
 * A pointer to const proves nothing: a kernel may cast that away. With restrict beside it, what it points to may not change while
 * the kernel runs (C99, 6.7.3.1).
 */
static void learn_argument(cl_kernel handle, cl_uint index, struct argument *argument)
{
	const cl_kernel_arg_type_qualifier unchanged = CL_KERNEL_ARG_TYPE_CONST | CL_KERNEL_ARG_TYPE_RESTRICT;
	cl_kernel_arg_address_qualifier address = 0;
	cl_kernel_arg_access_qualifier access = 0;
	cl_kernel_arg_type_qualifier type = 0;
	argument->asked = true;
	if (!gmt_bare.clGetKernelArgInfo)
		return;
	if (gmt_bare.clGetKernelArgInfo(handle, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof address, &address, NULL) == CL_SUCCESS)
		argument->constant = address == CL_KERNEL_ARG_ADDRESS_CONSTANT;
	if (gmt_bare.clGetKernelArgInfo(handle, index, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof access, &access, NULL) == CL_SUCCESS)
		argument->reads = access == CL_KERNEL_ARG_ACCESS_READ_ONLY;
	if (gmt_bare.clGetKernelArgInfo(handle, index, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof type, &type, NULL) == CL_SUCCESS)
		argument->reads |= (type & unchanged) == unchanged;
}

static cl_uint real_references(cl_mem real)
{
	cl_uint count = 0;
	gmt_bare.clGetMemObjectInfo(real, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL);
	return count;
}

/*
 * Hands the real object to the driver. One reference is ours: where there is no other after that, the kernel keeps none. More prove
 * nothing, nor does a count from before: commands take references and give them back meanwhile.
 */
static cl_int hand_real_object(cl_kernel handle, cl_uint index, const struct gmt_spill_object *object)
{
	_Atomic bool *free_arguments = &object->context->free_arguments;
	cl_int err = gmt_bare.clSetKernelArg(handle, index, sizeof object->real, &object->real);
	if (gmt_unlikely(!atomic_load_explicit(free_arguments, memory_order_relaxed)) && err == CL_SUCCESS && real_references(object->real) <= 1)
		atomic_store(free_arguments, true);
	return err;
}

/* Whether kernels must not have real objects between commands. */
static bool must_kernels_let_go(const struct gmt_spill_context *context)
{
	return gmt_unlikely(gmt_spill_is_short()) && !atomic_load(&context->free_arguments);
}

/* Whether the driver may hold what the argument was until now: a callback of its end must not wait for the kernel's next command. */
static bool may_driver_hold_old(const struct argument *argument, const struct gmt_spill_context *context)
{
	return argument->made && !atomic_load_explicit(&context->free_arguments, memory_order_relaxed);
}

/* Hands the object to the driver, or what stands for it while it has no real one. */
static cl_int set_in_driver(cl_kernel handle, cl_uint index, struct gmt_spill_object *object, uint32_t *made)
{
	*made = 0;
	cl_int err = object->image ? gmt_spill_pin(object, "clSetKernelArg") : CL_SUCCESS;
	if (err != CL_SUCCESS)
		return err;
	if (!object->image && (must_kernels_let_go(object->context) || !gmt_spill_pin_now(object, false))) {
		cl_mem dummy = gmt_spill_dummy(object);
		return dummy ? gmt_bare.clSetKernelArg(handle, index, sizeof dummy, &dummy) : CL_OUT_OF_RESOURCES;
	}
	err = hand_real_object(handle, index, object);
	*made = object->made;
	gmt_spill_unpin(object);
	return err;
}

static cl_int set_object_argument(struct kernel *kernel, cl_kernel handle, cl_uint index, struct gmt_spill_object *object)
{
	struct argument *argument = &kernel->argument[index];
	uint64_t serial = atomic_load(&object->serial);
	if (argument->object == object && argument->serial == serial)
		return CL_SUCCESS;
	if (!argument->asked)
		learn_argument(handle, index, argument);
	uint32_t made = 0;
	cl_int err = CL_SUCCESS;
	if (argument->judged != object->context || argument->constant || object->image || may_driver_hold_old(argument, object->context))
		err = set_in_driver(handle, index, object, &made);
	if (err != CL_SUCCESS)
		return err;
	argument->object = object;
	argument->serial = serial;
	argument->made = made;
	argument->judged = object->image ? NULL : object->context;
	return CL_SUCCESS;
}

static cl_int set_argument(cl_kernel handle, cl_uint index, size_t size, const void *value)
{
	cl_mem given = NULL;
	if (value && size == sizeof given)
		memcpy(&given, value, sizeof given);
	bool ours = gmt_spill_is_ours(given);
	struct kernel *kernel = find_kernel(handle);
	if (gmt_likely(!ours) && (!kernel || index >= kernel->count || !kernel->argument[index].object))
		return gmt_bare.clSetKernelArg(handle, index, size, value);
	struct gmt_spill_object *object = ours ? gmt_spill_find(given) : NULL;
	if (ours && !object)
		return CL_INVALID_MEM_OBJECT;
	cl_int err = CL_OUT_OF_RESOURCES;
	if (!kernel || index >= kernel->count) { /* the driver refuses it; of a kernel that we do not know, we do */
		cl_int refused = gmt_bare.clSetKernelArg(handle, index, size, &(cl_mem){NULL});
		return refused == CL_SUCCESS ? err : refused;
	}
	if (!lock_kernel(kernel))
		return err;
	if (object) {
		err = set_object_argument(kernel, handle, index, object);
	} else {
		err = gmt_bare.clSetKernelArg(handle, index, size, value);
		if (err == CL_SUCCESS)
			kernel->argument[index].object = NULL;
	}
	gmt_unlock(&kernel->lock);
	return err;
}

/* Under the kernel's lock. */
static cl_int collect_arguments(struct kernel *kernel, struct gmt_spill_command *command)
{
	for (cl_uint i = 0; i < kernel->count; i++) {
		const struct argument *argument = &kernel->argument[i];
		struct gmt_spill_object *object = argument->object;
		if (!object)
			continue;
		if (gmt_spill_find(gmt_spill_handle(object)) != object || atomic_load(&object->serial) != argument->serial)
			return CL_INVALID_KERNEL_ARGS; /* released: drivers have nothing there now */
		bool reads = argument->constant || argument->reads; /* CL_MEM_READ_ONLY proves nothing: some programs write it */
		command->uses[command->count++] = (struct gmt_spill_use){object, !reads};
	}
	return CL_SUCCESS;
}

static cl_int set_arguments_again(struct kernel *kernel, cl_kernel handle)
{
	for (cl_uint i = 0; i < kernel->count; i++) {
		struct argument *argument = &kernel->argument[i];
		struct gmt_spill_object *object = argument->object;
		if (!object || gmt_likely(argument->made == object->made))
			continue;
		cl_int err = hand_real_object(handle, i, object);
		if (err != CL_SUCCESS)
			return err;
		argument->made = object->made;
	}
	return CL_SUCCESS;
}

struct launch {
	cl_kernel handle;
	struct kernel *kernel; /* NULL: not ours to prepare */
	struct gmt_spill_command command;
};

static cl_int prepare_launch(struct launch *l, cl_command_queue queue, const char *name, cl_int refused)
{
	struct kernel *kernel = find_kernel(l->handle);
	l->kernel = NULL;
	if (!kernel || !kernel->count)
		return CL_SUCCESS;
	if (!lock_kernel(kernel))
		return CL_OUT_OF_RESOURCES;
	l->command = (struct gmt_spill_command){
		.name = name, .kernel = l->handle, .queue = gmt_spill_queue_find(queue), .handle = queue, .uses = kernel->uses,
	};
	cl_int err = collect_arguments(kernel, &l->command);
	if (err == CL_SUCCESS)
		err = gmt_spill_begin_or_refuse(&l->command, refused);
	if (err != CL_SUCCESS) {
		gmt_unlock(&kernel->lock);
		return err;
	}
	err = set_arguments_again(kernel, l->handle);
	l->kernel = kernel;
	if (err == CL_SUCCESS)
		return err;
	gmt_spill_end_command(&l->command, err);
	gmt_unlock(&kernel->lock);
	return err;
}

/* Where the driver has a real buffer it gets a small one: of images, nothing stands for them. Under the kernel's lock. */
static void let_arguments_go(struct kernel *kernel, cl_kernel handle, bool locked)
{
	for (cl_uint i = 0; i < kernel->count; i++) {
		struct argument *argument = &kernel->argument[i];
		struct gmt_spill_context *context = argument->judged;
		if (!argument->object || !argument->made || !context || !must_kernels_let_go(context) || !atomic_load(&context->live))
			continue;
		cl_mem dummy = locked ? gmt_spill_context_dummy(context) : gmt_spill_dummy(argument->object);
		if (dummy && gmt_bare.clSetKernelArg(handle, i, sizeof dummy, &dummy) == CL_SUCCESS)
			argument->made = 0;
	}
}

static void let_idle_kernel_go(struct gmt_object *object)
{
	struct kernel *kernel = (struct kernel *)object;
	if (atomic_exchange_explicit(&kernel->lock, 1, memory_order_acquire))
		return; /* it does so itself, after its command */
	cl_kernel handle = (cl_kernel)atomic_load(&kernel->object.handle);
	if (handle)
		let_arguments_go(kernel, handle, true);
	gmt_unlock(&kernel->lock);
}

/* Memory is short for the first time. */
static void let_all_kernels_go(void)
{
	gmt_table_each_outside(&spill_kernels, let_idle_kernel_go);
}

static cl_int end_launch(struct launch *l, cl_int err)
{
	if (l->kernel) {
		if (gmt_unlikely(gmt_spill_is_short()))
			let_arguments_go(l->kernel, l->handle, false);
		gmt_spill_end_command(&l->command, err);
		gmt_unlock(&l->kernel->lock);
	}
	return err;
}

static cl_int enqueue_kernel(cl_command_queue queue, cl_kernel handle, cl_uint dimensions, const size_t *offset, const size_t *global,
			     const size_t *local, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct launch l = {.handle = handle};
	gmt_spill_queue_note_gate(queue, waits, list);
	bool ranges = dimensions >= 1 && dimensions <= 3;
	cl_int err = prepare_launch(&l, queue, "clEnqueueNDRangeKernel",
	                            ranges ? gmt_spill_wait_list_error(queue, waits, list) : CL_INVALID_WORK_DIMENSION);
	if (err != CL_SUCCESS)
		return err;
	GMT_SPILL_TRY(err, gmt_bare.clEnqueueNDRangeKernel(queue, handle, dimensions, offset, global, local, waits, list, event));
	return end_launch(&l, err);
}

static cl_int enqueue_task(cl_command_queue queue, cl_kernel handle, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct launch l = {.handle = handle};
	gmt_spill_queue_note_gate(queue, waits, list);
	cl_int err = prepare_launch(&l, queue, "clEnqueueTask", gmt_spill_wait_list_error(queue, waits, list));
	if (err != CL_SUCCESS)
		return err;
	GMT_SPILL_TRY(err, gmt_bare.clEnqueueTask(queue, handle, waits, list, event));
	return end_launch(&l, err);
}

static cl_kernel create_kernel(cl_program program, const char *name, cl_int *errcode)
{
	cl_kernel handle = gmt_bare.clCreateKernel(program, name, errcode);
	add_kernel(handle);
	return handle;
}

static cl_int create_kernels(cl_program program, cl_uint room, cl_kernel *kernels, cl_uint *count)
{
	cl_uint made = 0;
	cl_int err = gmt_bare.clCreateKernelsInProgram(program, room, kernels, &made);
	if (err == CL_SUCCESS && count)
		*count = made;
	for (cl_uint i = 0; err == CL_SUCCESS && kernels && i < made && i < room; i++)
		add_kernel(kernels[i]);
	return err;
}

static cl_kernel clone_kernel(cl_kernel source, cl_int *errcode)
{
	struct kernel *from = find_kernel(source);
	if (from)
		gmt_lock(&from->lock);
	cl_kernel handle = gmt_bare.clCloneKernel(source, errcode);
	struct kernel *to = add_kernel(handle);
	if (from && to && from->count == to->count && to->count)
		memcpy(to->argument, from->argument, to->count * sizeof *to->argument);
	if (from)
		gmt_unlock(&from->lock);
	return handle;
}

static cl_int retain_kernel(cl_kernel handle)
{
	cl_int err = gmt_bare.clRetainKernel(handle);
	struct kernel *kernel = err == CL_SUCCESS ? find_kernel(handle) : NULL;
	if (kernel)
		atomic_fetch_add(&kernel->references, 1);
	return err;
}

static cl_int release_kernel(cl_kernel handle)
{
	struct kernel *kernel = find_kernel(handle);
	if (kernel && gmt_last_reference(&kernel->references)) {
		bool locked = lock_kernel(kernel); /* let_idle_kernel_go uses the handle and what is there */
		kernel->count = 0;
		gmt_table_remove(&spill_kernels, &kernel->object, true);
		if (locked)
			gmt_unlock(&kernel->lock);
	}
	return gmt_bare.clReleaseKernel(handle);
}

/* What stood in the argument is the driver's again. */
static cl_int set_pointer_argument(cl_kernel handle, cl_uint index, const void *pointer)
{
	struct kernel *kernel = find_kernel(handle);
	cl_int err = gmt_bare.clSetKernelArgSVMPointer(handle, index, pointer);
	if (err == CL_SUCCESS && kernel && index < kernel->count) {
		gmt_lock(&kernel->lock);
		kernel->argument[index].object = NULL;
		gmt_unlock(&kernel->lock);
	}
	return err;
}

void gmt_spill_override_kernels(struct gmt_functions *over)
{
	gmt_spill_at_first_shortage = let_all_kernels_go;
	GMT_SPILL_OVER(over, clCreateKernel, create_kernel);
	GMT_SPILL_OVER(over, clCreateKernelsInProgram, create_kernels);
	GMT_SPILL_OVER(over, clCloneKernel, clone_kernel);
	GMT_SPILL_OVER(over, clRetainKernel, retain_kernel);
	GMT_SPILL_OVER(over, clReleaseKernel, release_kernel);
	GMT_SPILL_OVER(over, clSetKernelArg, set_argument);
	GMT_SPILL_OVER(over, clSetKernelArgSVMPointer, set_pointer_argument);
	GMT_SPILL_OVER(over, clEnqueueNDRangeKernel, enqueue_kernel);
	GMT_SPILL_OVER(over, clEnqueueTask, enqueue_task);
}
