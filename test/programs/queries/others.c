/* others.c: objects that are not memory but could show a hidden user: contexts, queues, kernels, events. */
#include "queries.h"

#include <stdio.h>
#include <string.h>

static const struct query platform_queries[] = {
	QUERY(CL_PLATFORM_PROFILE, ANSWER_TEXT), QUERY(CL_PLATFORM_VERSION, ANSWER_TEXT),
	QUERY(CL_PLATFORM_NAME, ANSWER_TEXT),    QUERY(CL_PLATFORM_VENDOR, ANSWER_TEXT),
	QUERY(CL_PLATFORM_EXTENSIONS, ANSWER_TEXT), QUERY(CL_PLATFORM_NUMERIC_VERSION, ANSWER_HEX),
};

static const struct query device_queries[] = {
	QUERY(CL_DEVICE_TYPE, ANSWER_HEX),
	QUERY(CL_DEVICE_NAME, ANSWER_TEXT),
	QUERY(CL_DEVICE_EXTENSIONS, ANSWER_TEXT),
	QUERY(CL_DEVICE_MAX_MEM_ALLOC_SIZE, ANSWER_NUMBER),
	QUERY(CL_DEVICE_GLOBAL_MEM_SIZE, ANSWER_NUMBER),
	QUERY(CL_DEVICE_GLOBAL_MEM_CACHE_TYPE, ANSWER_NUMBER),
	QUERY(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, ANSWER_NUMBER),
	QUERY(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, ANSWER_NUMBER),
	QUERY(CL_DEVICE_LOCAL_MEM_SIZE, ANSWER_NUMBER),
	QUERY(CL_DEVICE_LOCAL_MEM_TYPE, ANSWER_NUMBER),
	QUERY(CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, ANSWER_NUMBER),
	QUERY(CL_DEVICE_MAX_CONSTANT_ARGS, ANSWER_NUMBER),
	QUERY(CL_DEVICE_MEM_BASE_ADDR_ALIGN, ANSWER_NUMBER),
	QUERY(CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE, ANSWER_NUMBER),
	QUERY(CL_DEVICE_HOST_UNIFIED_MEMORY, ANSWER_NUMBER),
	QUERY(CL_DEVICE_IMAGE_SUPPORT, ANSWER_NUMBER),
	QUERY(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, ANSWER_NUMBER),
	QUERY(CL_DEVICE_IMAGE_PITCH_ALIGNMENT, ANSWER_NUMBER),
	QUERY(CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT, ANSWER_NUMBER),
	QUERY(CL_DEVICE_SVM_CAPABILITIES, ANSWER_HEX),
	QUERY(CL_DEVICE_PIPE_SUPPORT, ANSWER_NUMBER),
	QUERY(CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, ANSWER_NUMBER),
	QUERY(CL_DEVICE_EXECUTION_CAPABILITIES, ANSWER_HEX),
	QUERY(CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, ANSWER_HEX),
	QUERY(CL_DEVICE_REFERENCE_COUNT, ANSWER_NUMBER),
	QUERY(CL_DEVICE_PLATFORM, ANSWER_HANDLES),
	QUERY(CL_DEVICE_PARENT_DEVICE, ANSWER_HANDLES),
};

static const struct query context_queries[] = {
	QUERY(CL_CONTEXT_REFERENCE_COUNT, ANSWER_PRESENT), /* print_references asks for it, when nothing runs */
	QUERY(CL_CONTEXT_NUM_DEVICES, ANSWER_NUMBER),
	QUERY(CL_CONTEXT_DEVICES, ANSWER_HANDLES),
};

/* Of a context that has some: PoCL 3.1 crashes when asked for the properties of one without. */
static const struct query properties_queries[] = {QUERY(CL_CONTEXT_PROPERTIES, ANSWER_HANDLES)};

static const struct query queue_queries[] = {
	QUERY(CL_QUEUE_CONTEXT, ANSWER_HANDLES),      QUERY(CL_QUEUE_DEVICE, ANSWER_HANDLES),
	QUERY(CL_QUEUE_REFERENCE_COUNT, ANSWER_PRESENT), QUERY(CL_QUEUE_PROPERTIES, ANSWER_HEX),
	QUERY(CL_QUEUE_PROPERTIES_ARRAY, ANSWER_HEX), QUERY(CL_QUEUE_SIZE, ANSWER_NUMBER),
	QUERY(CL_QUEUE_DEVICE_DEFAULT, ANSWER_HANDLES),
};

static const struct query program_queries[] = {
	QUERY(CL_PROGRAM_REFERENCE_COUNT, ANSWER_NUMBER), QUERY(CL_PROGRAM_CONTEXT, ANSWER_HANDLES),
	QUERY(CL_PROGRAM_NUM_DEVICES, ANSWER_NUMBER),     QUERY(CL_PROGRAM_DEVICES, ANSWER_HANDLES),
	QUERY(CL_PROGRAM_SOURCE, ANSWER_TEXT),            QUERY(CL_PROGRAM_NUM_KERNELS, ANSWER_NUMBER),
	QUERY(CL_PROGRAM_KERNEL_NAMES, ANSWER_TEXT),
};

static const struct query kernel_queries[] = {
	QUERY(CL_KERNEL_FUNCTION_NAME, ANSWER_TEXT), QUERY(CL_KERNEL_NUM_ARGS, ANSWER_NUMBER),
	QUERY(CL_KERNEL_REFERENCE_COUNT, ANSWER_NUMBER), QUERY(CL_KERNEL_CONTEXT, ANSWER_HANDLES),
	QUERY(CL_KERNEL_PROGRAM, ANSWER_HANDLES), QUERY(CL_KERNEL_ATTRIBUTES, ANSWER_TEXT),
};

static const struct query work_group_queries[] = {
	QUERY(CL_KERNEL_WORK_GROUP_SIZE, ANSWER_NUMBER),
	QUERY(CL_KERNEL_COMPILE_WORK_GROUP_SIZE, ANSWER_NUMBER),
	QUERY(CL_KERNEL_LOCAL_MEM_SIZE, ANSWER_NUMBER),
	QUERY(CL_KERNEL_PRIVATE_MEM_SIZE, ANSWER_NUMBER),
	QUERY(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, ANSWER_NUMBER),
};

static const struct query argument_queries[] = {
	QUERY(CL_KERNEL_ARG_ADDRESS_QUALIFIER, ANSWER_HEX),
	QUERY(CL_KERNEL_ARG_ACCESS_QUALIFIER, ANSWER_HEX),
	QUERY(CL_KERNEL_ARG_TYPE_NAME, ANSWER_TEXT),
	QUERY(CL_KERNEL_ARG_TYPE_QUALIFIER, ANSWER_HEX),
	QUERY(CL_KERNEL_ARG_NAME, ANSWER_TEXT),
};

static const struct query event_queries[] = {
	QUERY(CL_EVENT_COMMAND_QUEUE, ANSWER_HANDLES), QUERY(CL_EVENT_CONTEXT, ANSWER_HANDLES),
	QUERY(CL_EVENT_COMMAND_TYPE, ANSWER_HEX),      QUERY(CL_EVENT_COMMAND_EXECUTION_STATUS, ANSWER_NUMBER),
	QUERY(CL_EVENT_REFERENCE_COUNT, ANSWER_PRESENT), /* a driver's thread may hold one a little longer */
};

static const struct query profiling_queries[] = {
	QUERY(CL_PROFILING_COMMAND_QUEUED, ANSWER_PRESENT), QUERY(CL_PROFILING_COMMAND_SUBMIT, ANSWER_PRESENT),
	QUERY(CL_PROFILING_COMMAND_START, ANSWER_PRESENT),  QUERY(CL_PROFILING_COMMAND_END, ANSWER_PRESENT),
	QUERY(CL_PROFILING_COMMAND_COMPLETE, ANSWER_PRESENT),
};

GETTER(get_platform, clGetPlatformInfo(AS(cl_platform_id, object), key, room, value, needed))
GETTER(get_device, clGetDeviceInfo(AS(cl_device_id, object), key, room, value, needed))
GETTER(get_context, clGetContextInfo(AS(cl_context, object), key, room, value, needed))
GETTER(get_queue, clGetCommandQueueInfo(AS(cl_command_queue, object), key, room, value, needed))
GETTER(get_program, clGetProgramInfo(AS(cl_program, object), key, room, value, needed))
GETTER(get_kernel, clGetKernelInfo(AS(cl_kernel, object), key, room, value, needed))
GETTER(get_work_group, clGetKernelWorkGroupInfo(AS(cl_kernel, object), AS(cl_device_id, second), key, room, value, needed))
GETTER(get_argument, clGetKernelArgInfo(AS(cl_kernel, object), (cl_uint)AS(uintptr_t, second), key, room, value, needed))
GETTER(get_event, clGetEventInfo(AS(cl_event, object), key, room, value, needed))
GETTER(get_profiling, clGetEventProfilingInfo(AS(cl_event, object), key, room, value, needed))

static cl_uint context_references(const void *context)
{
	cl_uint count = 0;
	CHECK(clGetContextInfo(AS(cl_context, context), CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL));
	return count;
}

static cl_uint queue_references(const void *queue)
{
	cl_uint count = 0;
	CHECK(clGetCommandQueueInfo(AS(cl_command_queue, queue), CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, NULL));
	return count;
}

/*
 * What a context and its queue show when nothing runs: what was printed last, as long as nothing that held references
 * then has been released since. It may grow: PoCL 3.1 keeps some for good.
 */
static struct due {
	cl_uint context, queue;
} due = {UINT32_MAX, UINT32_MAX}; /* at first nothing has run: what there is, is due */

static void settle_references(const struct gpu *gpu)
{
	CHECK(clFinish(gpu->queue));
	due.context = least_references(context_references, gpu->context, due.context, 100);
	due.queue = least_references(queue_references, gpu->queue, due.queue, 100);
}

void print_references(const char *moment, const struct gpu *gpu)
{
	settle_references(gpu);
	printf("references %s: context %u, queue %u\n", moment, due.context, due.queue);
}

static void ask_event(const char *label, cl_event event)
{
	CHECK(clWaitForEvents(1, &event));
	ASK(label, get_event, event, NULL, event_queries);
	ASK(label, get_profiling, event, NULL, profiling_queries);
	CHECK(clReleaseEvent(event));
}

/* A command of each kind on one buffer, and what its event says. */
static void ask_events(const struct gpu *gpu, cl_kernel kernel, const char *queue)
{
	char label[96];
	cl_int code, pattern = 1;
	cl_event event;
	cl_mem buffer = create_buffer(gpu, CL_MEM_READ_WRITE, 4000, NULL), other = create_buffer(gpu, CL_MEM_READ_WRITE, 4000, NULL);
	size_t items = 1000;
	static unsigned char host[4000];
#define EVENT(name, call)                                                                                              \
	CHECK(call);                                                                                                   \
	snprintf(label, sizeof label, "event of a %s in %s", name, queue);                                              \
	ask_event(label, event)
	EVENT("fill", clEnqueueFillBuffer(gpu->queue, buffer, &pattern, 4, 0, 4000, 0, NULL, &event));
	EVENT("read", clEnqueueReadBuffer(gpu->queue, buffer, CL_FALSE, 0, 4000, host, 0, NULL, &event));
	EVENT("write", clEnqueueWriteBuffer(gpu->queue, buffer, CL_TRUE, 0, 4000, host, 0, NULL, &event));
	EVENT("copy", clEnqueueCopyBuffer(gpu->queue, buffer, other, 0, 0, 4000, 0, NULL, &event));
	void *mapped = clEnqueueMapBuffer(gpu->queue, buffer, CL_TRUE, CL_MAP_READ, 0, 4000, 0, NULL, &event, &code);
	EVENT("map", code);
	EVENT("unmap", clEnqueueUnmapMemObject(gpu->queue, buffer, mapped, 0, NULL, &event));
	EVENT("migration", clEnqueueMigrateMemObjects(gpu->queue, 1, &buffer, 0, 0, NULL, &event));
	gpu_arguments(kernel, sizeof buffer, &buffer, sizeof pattern, &pattern, (size_t)0);
	EVENT("kernel", clEnqueueNDRangeKernel(gpu->queue, kernel, 1, NULL, &items, NULL, 0, NULL, &event));
	EVENT("marker", clEnqueueMarkerWithWaitList(gpu->queue, 0, NULL, &event));
	EVENT("barrier", clEnqueueBarrierWithWaitList(gpu->queue, 0, NULL, &event));
#undef EVENT
	CHECK(clReleaseMemObject(buffer));
	CHECK(clReleaseMemObject(other));
}

static void ask_user_event(const struct gpu *gpu)
{
	cl_int code;
	cl_event event = clCreateUserEvent(gpu->context, &code);
	CHECK(code);
	ASK("user event", get_event, event, NULL, event_queries);
	CHECK(clSetUserEventStatus(event, CL_COMPLETE));
	ASK("set user event", get_event, event, NULL, event_queries);
	ASK("set user event", get_profiling, event, NULL, profiling_queries);
	CHECK(clReleaseEvent(event));
}

static void ask_queue(const struct gpu *gpu, cl_kernel kernel, const char *label, cl_command_queue_properties properties)
{
	cl_int code;
	const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
	struct gpu other = {gpu->device, gpu->context, NULL};
	settle_references(gpu);
	const struct due before = due;
	other.queue = clCreateCommandQueueWithProperties(gpu->context, gpu->device, list, &code);
	CHECK(code);
	name_add(other.queue, label);
	due = (struct due){context_references(other.context), queue_references(other.queue)};
	ASK(label, get_queue, other.queue, NULL, queue_queries);
	ask_events(&other, kernel, label);
	print_references(label, &other);
	name_remove(other.queue);
	CHECK(clReleaseCommandQueue(other.queue));
	due = before;
	print_references("after another queue", gpu);
}

static void ask_kernel(const struct gpu *gpu, cl_kernel kernel)
{
	ASK("kernel", get_kernel, kernel, NULL, kernel_queries);
	ASK("kernel on its device", get_work_group, kernel, gpu->device, work_group_queries);
	for (uintptr_t i = 0; i < 3; i++) { /* there are two */
		char label[32];
		snprintf(label, sizeof label, "kernel argument %u", (unsigned)i);
		ASK(label, get_argument, kernel, (const void *)i, argument_queries);
	}
	cl_mem buffer = create_buffer(gpu, CL_MEM_READ_WRITE, 4000, NULL);
	name_add(buffer, "argument");
	CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
	ask_memory_object("argument", buffer);
	CHECK(clRetainMemObject(buffer));
	CHECK(clReleaseMemObject(buffer));
	ask_memory_object("argument once more", buffer);
	name_remove(buffer);
	CHECK(clReleaseMemObject(buffer));
	cl_int code;
	cl_kernel clone = clCloneKernel(kernel, &code);
	printf("clCloneKernel: %d %s\n", code, error_name(code));
	if (clone != NULL)
		CHECK(clReleaseKernel(clone));
}

/* A context with properties, alone, with a buffer, after it, retained. */
static void ask_context(const struct gpu *gpu, cl_platform_id platform)
{
	cl_int code;
	const cl_context_properties list[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0};
	struct gpu other = {gpu->device, NULL, NULL};
	other.context = clCreateContext(list, 1, &other.device, NULL, NULL, &code);
	CHECK(code);
	name_add((const void *)(uintptr_t)CL_CONTEXT_PLATFORM, "CL_CONTEXT_PLATFORM");
	ASK("context with properties", get_context, other.context, NULL, properties_queries);
	for (int round = 0; round < 3; round++) {
		printf("context with properties: %u references", context_references(other.context));
		cl_mem buffers[2] = {create_buffer(&other, 0, 4096, NULL), create_buffer(&other, 0, 64, NULL)};
		printf(", %u with two buffers", context_references(other.context));
		CHECK(clReleaseMemObject(buffers[0]));
		printf(", %u with one", context_references(other.context));
		CHECK(clRetainContext(other.context));
		printf(", %u retained", context_references(other.context));
		CHECK(clReleaseMemObject(buffers[1]));
		CHECK(clReleaseContext(other.context));
		printf(", %u after all\n", context_references(other.context));
	}
	CHECK(clReleaseContext(other.context));
}

void ask_others(const struct gpu *gpu)
{
	const char *source = "kernel void add(global int *data, int by) { data[get_global_id(0)] += by; }";
	cl_platform_id platform;
	CHECK(clGetDeviceInfo(gpu->device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL));
	name_add(platform, "platform");
	ASK("platform", get_platform, platform, NULL, platform_queries);
	ASK("device", get_device, gpu->device, NULL, device_queries);
	ASK("context", get_context, gpu->context, NULL, context_queries);
	ask_context(gpu, platform);
	ASK("queue", get_queue, gpu->queue, NULL, queue_queries);
	settle_references(gpu);
	const struct due before = due;
	cl_program program = gpu_build(gpu, source);
	name_add(program, "program");
	cl_kernel kernel = gpu_kernel(program, "add");
	ASK("program", get_program, program, NULL, program_queries);
	ask_kernel(gpu, kernel);
	due.context = context_references(gpu->context); /* nothing has run since */
	print_references("with a program and a kernel", gpu);
	for (int round = 0; round < 2; round++) {
		ask_events(gpu, kernel, "queue");
		ask_queue(gpu, kernel, "profiling queue", CL_QUEUE_PROFILING_ENABLE);
		ask_queue(gpu, kernel, "unordered queue", CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	}
	ask_user_event(gpu);
	name_remove(program);
	CHECK(clReleaseKernel(kernel));
	CHECK(clReleaseProgram(program));
	due = before;
	print_references("after the kernel", gpu);
}
