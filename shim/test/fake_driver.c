/* fake_driver.c: objects and their life, contexts, kernels, queries. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIVE 0x600dbeefu
#define DEAD 0xdeadbeefu

struct fake fake = {.largest = 1u << 30, .createerror = CL_MEM_OBJECT_ALLOCATION_FAILURE, .enqueueerror = CL_OUT_OF_RESOURCES};

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct fake_object *spare[FAKE_TYPES]; /* dead, latest first */

void fake_lock(void)
{
	pthread_mutex_lock(&mutex);
}

void fake_unlock(void *unused)
{
	(void)unused;
	pthread_mutex_unlock(&mutex);
}

void fake_fail(const char *what)
{
	fprintf(stderr, "fake driver: %s\n", what);
	abort();
}

void *fake_new(enum fake_type type, size_t size)
{
	struct fake_object *o = spare[type];
	if (o)
		spare[type] = o->next;
	else
		o = malloc(size);
	if (!o)
		fake_fail("out of memory");
	memset(o, 0, size);
	o->magic = ALIVE;
	o->type = type;
	o->references = 1;
	return o;
}

bool fake_alive(const void *handle, enum fake_type type)
{
	const struct fake_object *o = handle;
	if (o && o->magic == DEAD)
		fake_fail("a dead handle is used");
	return o && o->magic == ALIVE && o->type == type;
}

static size_t ends(struct fake_object *o)
{
	switch (o->type) {
	case FAKE_CONTEXT:
		fake.livecontexts--;
		return sizeof(struct _cl_context);
	case FAKE_QUEUE:
		fake_queue_ends((cl_command_queue)o);
		return sizeof(struct _cl_command_queue);
	case FAKE_MEMORY:
		fake_memory_ends((cl_mem)o);
		return sizeof(struct _cl_mem);
	case FAKE_KERNEL:
		fake.livekernels--;
		fake_drop(((cl_kernel)o)->context);
		return sizeof(struct _cl_kernel);
	case FAKE_EVENT:
		fake.liveevents--;
		if (((cl_event)o)->context)
			fake_drop(((cl_event)o)->context);
		return sizeof(struct _cl_event);
	default:
		return sizeof *o;
	}
}

static void maybe_end(struct fake_object *o)
{
	if (o->references || o->holds)
		return;
	enum fake_type type = o->type;
	size_t size = ends(o);
	memset(o, 0xdd, size);
	o->magic = DEAD;
	o->type = type;
	o->next = spare[type];
	spare[type] = o;
}

void fake_hold(void *object)
{
	((struct fake_object *)object)->holds++;
}

void fake_drop(void *object)
{
	struct fake_object *o = object;
	if (o->magic != ALIVE || o->holds == 0)
		fake_fail("an object was dropped once too often");
	o->holds--;
	maybe_end(o);
}

cl_int fake_retain(void *handle, enum fake_type type, cl_int invalid)
{
	FAKE_LOCKED;
	if (!fake_alive(handle, type))
		return invalid;
	((struct fake_object *)handle)->references++;
	return CL_SUCCESS;
}

cl_int fake_release(void *handle, enum fake_type type, cl_int invalid)
{
	FAKE_LOCKED;
	if (!fake_alive(handle, type))
		return invalid;
	struct fake_object *o = handle;
	if (o->references == 0)
		fake_fail("released more often than retained");
	o->references--;
	maybe_end(o);
	return CL_SUCCESS;
}

cl_int fake_answer(const void *value, size_t size, size_t room, void *out, size_t *needed)
{
	if (out && room < size)
		return CL_INVALID_VALUE;
	if (out)
		memcpy(out, value, size);
	if (needed)
		*needed = size;
	return CL_SUCCESS;
}

cl_device_id fake_device(void)
{
	static struct fake_object device = {.magic = ALIVE, .type = FAKE_DEVICE};
	return (cl_device_id)&device;
}

cl_program fake_program(void)
{
	static struct fake_object program = {.magic = ALIVE, .type = FAKE_PROGRAM};
	return (cl_program)&program;
}

GMT_HOOK cl_int clGetPlatformIDs(cl_uint room, cl_platform_id *platforms, cl_uint *count)
{
	static int platform;
	if (count)
		*count = 1;
	if (platforms && room)
		platforms[0] = (cl_platform_id)(void *)&platform;
	return CL_SUCCESS;
}

GMT_HOOK cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *out, size_t *needed)
{
	if (!fake_alive(device, FAKE_DEVICE))
		return CL_INVALID_DEVICE;
	cl_ulong number = what == CL_DEVICE_MAX_MEM_ALLOC_SIZE ? fake.largest : 4ull * fake.largest;
	if (what == CL_DEVICE_NAME)
		return fake_answer("fake", 5, room, out, needed);
	if (what == CL_DRIVER_VERSION)
		return fake_answer("1.0", 4, room, out, needed);
	return fake_answer(&number, sizeof number, room, out, needed);
}

static cl_context new_context(cl_int *errcode)
{
	FAKE_LOCKED;
	cl_context context = fake_new(FAKE_CONTEXT, sizeof *context);
	fake.livecontexts++;
	if (errcode)
		*errcode = CL_SUCCESS;
	return context;
}

GMT_HOOK cl_context clCreateContext(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
				    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
				    cl_int *errcode)
{
	(void)properties, (void)notify, (void)data;
	if (count && devices)
		return new_context(errcode);
	if (errcode)
		*errcode = CL_INVALID_VALUE;
	return NULL;
}

GMT_HOOK cl_context clCreateContextFromType(const cl_context_properties *properties, cl_device_type type,
					    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
					    cl_int *errcode)
{
	(void)properties, (void)notify, (void)data, (void)type;
	return new_context(errcode);
}

GMT_HOOK cl_int clRetainContext(cl_context context)
{
	return fake_retain(context, FAKE_CONTEXT, CL_INVALID_CONTEXT);
}

GMT_HOOK cl_int clReleaseContext(cl_context context)
{
	return fake_release(context, FAKE_CONTEXT, CL_INVALID_CONTEXT);
}

GMT_HOOK cl_int clGetContextInfo(cl_context context, cl_context_info what, size_t room, void *out, size_t *needed)
{
	FAKE_LOCKED;
	if (!fake_alive(context, FAKE_CONTEXT))
		return CL_INVALID_CONTEXT;
	cl_device_id device = fake_device();
	if (what != CL_CONTEXT_DEVICES)
		return CL_INVALID_VALUE;
	return fake_answer(&device, sizeof device, room, out, needed);
}

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
	cl_context context = new_context(NULL);
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

GMT_HOOK cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
	FAKE_LOCKED;
	if (!fake_alive(kernel, FAKE_KERNEL))
		return CL_INVALID_KERNEL;
	if (index >= FAKE_ARGUMENTS)
		return CL_INVALID_ARG_INDEX;
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
	return CL_SUCCESS;
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
	return fake_submit(queue, CL_FALSE, count, used, waits, list, event);
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

GMT_HOOK void *clGetExtensionFunctionAddress(const char *name)
{
	return name ? fake_extension(name) : NULL;
}

GMT_HOOK void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
	return platform && name ? fake_extension(name) : NULL;
}
