/* fake_driver.c: objects and their life, contexts, queries. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIVE 0x600dbeefu
#define DEAD 0xdeadbeefu

struct fake fake = {.largest = 1u << 30, .createerror = CL_MEM_OBJECT_ALLOCATION_FAILURE, .enqueueerror = CL_OUT_OF_RESOURCES,
		    .alignbits = 64, .devices = 1};

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static unsigned depth; /* of the lock */
static struct fake_object *spare[FAKE_TYPES]; /* dead, latest first */

void fake_lock(void)
{
	pthread_mutex_lock(&mutex);
	depth++;
}

void fake_unlock(void *unused)
{
	(void)unused;
	struct fake_deferred *list = --depth == 0 ? fake_take_deferred() : NULL;
	pthread_mutex_unlock(&mutex);
	fake_run_deferred(list);
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
	if (o && o->magic == DEAD && !fake.forgiving)
		fake_fail("a dead handle is used");
	return o && o->magic == ALIVE && o->type == type;
}

static void context_ends(cl_context context)
{
	fake.livecontexts--;
	for (struct fake_context_callback *c = context->callbacks; c;) {
		struct fake_context_callback *next = c->next;
		c->notify(context, c->data);
		free(c);
		c = next;
	}
}

static size_t ends(struct fake_object *o)
{
	switch (o->type) {
	case FAKE_CONTEXT:
		context_ends((cl_context)o);
		return sizeof(struct _cl_context);
	case FAKE_QUEUE:
		fake_queue_ends((cl_command_queue)o);
		return sizeof(struct _cl_command_queue);
	case FAKE_MEMORY:
		fake_memory_ends((cl_mem)o);
		return sizeof(struct _cl_mem);
	case FAKE_KERNEL:
		fake.livekernels--;
		for (unsigned i = 0; i < FAKE_ARGUMENTS - 1; i++)
			fake_keep((cl_kernel)o, i, NULL);
		fake_drop(((cl_kernel)o)->context);
		return sizeof(struct _cl_kernel);
	case FAKE_EVENT:
		fake_event_ends((cl_event)o);
		return sizeof(struct _cl_event);
	case FAKE_RECORDING:
		fake_drop(((cl_command_buffer_khr)o)->queue);
		return sizeof(struct _cl_command_buffer_khr);
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
	if (o->references == 0 && fake.forgiving)
		return invalid;
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

cl_uint fake_references(const struct fake_object *object, bool holds)
{
	return object->references + (holds ? object->holds : 0);
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

void fake_forget(void *object)
{
	FAKE_LOCKED;
	struct fake_object *o = object;
	fake_release(o, o->type, CL_INVALID_VALUE);
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

GMT_HOOK cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t room, void *out, size_t *needed)
{
	(void)platform;
	const char *name = fake.rusticl ? "rusticl" : "fake";
	return what == CL_PLATFORM_NAME ? fake_answer(name, strlen(name) + 1, room, out, needed) : CL_INVALID_VALUE;
}

GMT_HOOK cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *devices, cl_uint *count)
{
	(void)platform;
	if (type == CL_DEVICE_TYPE_ACCELERATOR)
		return CL_DEVICE_NOT_FOUND;
	if (count)
		*count = 1;
	if (devices && room)
		devices[0] = fake_device();
	return CL_SUCCESS;
}

GMT_HOOK cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *out, size_t *needed)
{
	if (!fake_alive(device, FAKE_DEVICE))
		return CL_INVALID_DEVICE;
	cl_ulong number = what == CL_DEVICE_MAX_MEM_ALLOC_SIZE ? fake.largest : 4ull * fake.largest;
	if (what == 0x4039 && fake.nofreequery)
		return CL_INVALID_VALUE;
	if (what == 0x4039) { /* CL_DEVICE_GLOBAL_FREE_MEMORY_AMD */
		size_t kib[2] = {(size_t)(number / 1024), (size_t)(fake.largest / 1024)};
		return fake_answer(kib, sizeof kib, room, out, needed);
	}
	if (what == 0x106A && fake.uuid) /* CL_DEVICE_UUID_KHR */
		return fake_answer("0123456789abcdef", 16, room, out, needed);
	if (what == 0x4037 && fake.uuid) { /* CL_DEVICE_TOPOLOGY_AMD */
		unsigned char topology[24] = {[0] = 1, [21] = 0x65, [22] = 2};
		return fake_answer(topology, sizeof topology, room, out, needed);
	}
	if (what == CL_DEVICE_TYPE) {
		cl_device_type type = fake.processor ? CL_DEVICE_TYPE_CPU : CL_DEVICE_TYPE_GPU;
		return fake_answer(&type, sizeof type, room, out, needed);
	}
	cl_device_id parent = NULL;
	if (what == CL_DEVICE_PARENT_DEVICE)
		return fake_answer(&parent, sizeof parent, room, out, needed);
	if (what == CL_DEVICE_NAME)
		return fake_answer("fake", 5, room, out, needed);
	if (what == CL_DRIVER_VERSION)
		return fake_answer(fake.driver ? fake.driver : "1.0", 4, room, out, needed);
	if (what == CL_DEVICE_VERSION) {
		const char *version = fake.version ? fake.version : "OpenCL 3.0 fake";
		return fake_answer(version, strlen(version) + 1, room, out, needed);
	}
	if (what == CL_DEVICE_SVM_CAPABILITIES) {
		cl_device_svm_capabilities can = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
		if (!fake.nofinegrain)
			can |= CL_DEVICE_SVM_FINE_GRAIN_BUFFER | CL_DEVICE_SVM_ATOMICS;
		return fake_answer(&can, sizeof can, room, out, needed);
	}
	cl_uint align = fake.alignbits;
	if (what == CL_DEVICE_MEM_BASE_ADDR_ALIGN)
		return fake_answer(&align, sizeof align, room, out, needed);
	if (what == CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE && fake.constant)
		number = fake.constant;
	return fake_answer(&number, sizeof number, room, out, needed);
}

cl_context fake_new_context(cl_int *errcode)
{
	FAKE_LOCKED;
	cl_context context = fake_new(FAKE_CONTEXT, sizeof *context);
	fake.livecontexts++;
	fake.contexts++;
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
		return fake_new_context(errcode);
	if (errcode)
		*errcode = CL_INVALID_VALUE;
	return NULL;
}

GMT_HOOK cl_context clCreateContextFromType(const cl_context_properties *properties, cl_device_type type,
					    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
					    cl_int *errcode)
{
	(void)properties, (void)notify, (void)data, (void)type;
	return fake_new_context(errcode);
}

GMT_HOOK cl_int clRetainContext(cl_context context)
{
	return fake_retain(context, FAKE_CONTEXT, CL_INVALID_CONTEXT);
}

GMT_HOOK cl_int clReleaseContext(cl_context context)
{
	return fake_release(context, FAKE_CONTEXT, CL_INVALID_CONTEXT);
}

GMT_HOOK cl_int clSetContextDestructorCallback(cl_context context, void(CL_CALLBACK *notify)(cl_context, void *), void *data)
{
	FAKE_LOCKED;
	if (!fake_alive(context, FAKE_CONTEXT))
		return CL_INVALID_CONTEXT;
	struct fake_context_callback *callback = notify ? malloc(sizeof *callback) : NULL;
	if (!callback)
		return CL_INVALID_VALUE;
	*callback = (struct fake_context_callback){context->callbacks, notify, data};
	context->callbacks = callback;
	return CL_SUCCESS;
}

GMT_HOOK cl_int clGetContextInfo(cl_context context, cl_context_info what, size_t room, void *out, size_t *needed)
{
	FAKE_LOCKED;
	if (!fake_alive(context, FAKE_CONTEXT))
		return CL_INVALID_CONTEXT;
	cl_device_id device = fake_device();
	cl_uint references = fake_references(&context->object, fake.countobjects);
	if (what == CL_CONTEXT_REFERENCE_COUNT)
		return fake_answer(&references, sizeof references, room, out, needed);
	if (what != CL_CONTEXT_DEVICES)
		return CL_INVALID_VALUE;
	cl_device_id devices[] = {device, device};
	return fake_answer(devices, fake.devices * sizeof device, room, out, needed);
}

GMT_HOOK void *clGetExtensionFunctionAddress(const char *name)
{
	return name ? fake_extension(name) : NULL;
}

GMT_HOOK void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
	return platform && name ? fake_extension(name) : NULL;
}
