/*
 * cmdbuf: records copies and a kernel into a command buffer (cl_khr_command_buffer) and replays it, with other buffers of
 * the same size around it. What only a copy uses is released by the program right after recording: the command buffer
 * keeps it, as the specification demands. What a kernel uses it does not keep; the program does, until the end.
 *
 *	cmdbuf [-t] [REPLAYS] [SIZE]
 */
#define CL_TARGET_OPENCL_VERSION 300
#include "common.h"

#include <CL/cl_ext.h>
#include <stdlib.h>
#include <string.h>

enum { OTHERS = 8 };

/* Since version 0.9.5 the clCommand* functions take properties. */
static const cl_version properties_since = CL_MAKE_VERSION(0, 9, 5);

/* The functions that are used here. */
static struct {
	clCreateCommandBufferKHR_fn create;
	clFinalizeCommandBufferKHR_fn finalize;
	clRetainCommandBufferKHR_fn retain;
	clReleaseCommandBufferKHR_fn release;
	clEnqueueCommandBufferKHR_fn enqueue;
	clCommandCopyBufferKHR_fn copy;
	clCommandNDRangeKernelKHR_fn kernel;
	clGetCommandBufferInfoKHR_fn info;
} command;

static void find_function(cl_platform_id platform, const char *name, void *place)
{
	void *function = clGetExtensionFunctionAddressForPlatform(platform, name);
	if (function == NULL)
		fail("cmdbuf: the driver has no %s", name);
	memcpy(place, &function, sizeof function);
}

/* Ends the program when the device has no command buffers, or others than these headers. */
static void check_version(cl_device_id device)
{
	static cl_name_version list[256];
	size_t bytes = 0;
	CHECK(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof list, list, &bytes));
	for (size_t i = 0; i < bytes / sizeof *list; i++) {
		if (strcmp(list[i].name, CL_KHR_COMMAND_BUFFER_EXTENSION_NAME) != 0)
			continue;
		if (list[i].version >= properties_since)
			fail("cmdbuf: version %x of command buffers is newer than this program", list[i].version);
		return;
	}
	fail("cmdbuf: the device has no command buffers");
}

static void find_functions(cl_device_id device)
{
	cl_platform_id platform;
	check_version(device);
	CHECK(clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL));
	find_function(platform, "clCreateCommandBufferKHR", &command.create);
	find_function(platform, "clFinalizeCommandBufferKHR", &command.finalize);
	find_function(platform, "clRetainCommandBufferKHR", &command.retain);
	find_function(platform, "clReleaseCommandBufferKHR", &command.release);
	find_function(platform, "clEnqueueCommandBufferKHR", &command.enqueue);
	find_function(platform, "clCommandCopyBufferKHR", &command.copy);
	find_function(platform, "clCommandNDRangeKernelKHR", &command.kernel);
	find_function(platform, "clGetCommandBufferInfoKHR", &command.info);
}

SITE(create_held)   /* what the kernel uses */
SITE(create_copied) /* what only copies use */
SITE(create_other)  /* what has nothing to do with the command buffer */

static void set_all(const struct gpu *gpu, cl_mem buffer, size_t size, cl_uint value)
{
	CHECK(clEnqueueFillBuffer(gpu->queue, buffer, &value, sizeof value, 0, size, 0, NULL, NULL));
}

/* Buffers that come and go, so that there is something to reuse. */
static void churn(const struct gpu *gpu, size_t size)
{
	for (cl_uint i = 0; i < OTHERS; i++) {
		cl_mem buffer = create_other(gpu, size);
		set_all(gpu, buffer, size, i);
		CHECK(clReleaseMemObject(buffer));
	}
	CHECK(clFinish(gpu->queue));
}

/* What a command buffer works on: from -> between -> in -> kernel -> out. */
struct chain {
	cl_mem from, between, in, out;
};

static struct chain create_chain(const struct gpu *gpu, size_t size)
{
	return (struct chain){
		.from = create_held(gpu, size),
		.between = create_copied(gpu, size),
		.in = create_held(gpu, size),
		.out = create_held(gpu, size),
	};
}

/* What the kernel makes of a number. */
static cl_uint scrambled(cl_uint x, size_t at)
{
	for (int i = 0; i < 500; i++)
		x = x * 1664525u + 1013904223u;
	return x + (cl_uint)at;
}

/* Ends the program when the buffer holds anything but value, scrambled or as it is. Adds it to the checksum. */
static uint64_t check_all(uint64_t hash, const struct gpu *gpu, cl_mem buffer, size_t size, cl_uint value, bool scramble)
{
	cl_uint *host = allocate(size), first = scramble ? scrambled(value, 0) : value;
	CHECK(clEnqueueReadBuffer(gpu->queue, buffer, CL_TRUE, 0, size, host, 0, NULL, NULL));
	for (size_t i = 0; i < size / 4; i++) {
		cl_uint want = scramble ? first + (cl_uint)i : value;
		if (host[i] != want)
			fail("cmdbuf: number %zu is %u instead of %u", i, host[i], want);
	}
	hash = checksum(hash, host, size);
	free(host);
	return hash;
}

static cl_command_buffer_khr record(const struct gpu *gpu, cl_kernel kernel, const struct chain *chain, size_t size)
{
	cl_int status;
	cl_sync_point_khr points[3];
	const size_t items = size / 4;
	/* A driver may say that a replay has ended a little before it believes so itself. */
	const cl_command_buffer_properties_khr properties[] = {CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
	cl_command_buffer_khr buffer = command.create(1, &gpu->queue, properties, &status);
	CHECK(status);
	CHECK(command.copy(buffer, NULL, chain->from, chain->between, 0, 0, size, 0, NULL, &points[0], NULL));
	CHECK(command.copy(buffer, NULL, chain->between, chain->in, 0, 0, size, 1, &points[0], &points[1], NULL));
	gpu_arguments(kernel, sizeof chain->in, &chain->in, sizeof chain->out, &chain->out, (size_t)0);
	CHECK(command.kernel(buffer, NULL, NULL, kernel, 1, NULL, &items, NULL, 1, &points[1], &points[2], NULL));
	CHECK(command.finalize(buffer));
	CHECK(clReleaseMemObject(chain->between)); /* the recording has its own reference */
	return buffer;
}

/* What the command buffer says about itself: one queue, one or two references. */
static uint64_t ask(uint64_t hash, cl_command_buffer_khr buffer)
{
	const cl_command_buffer_info_khr keys[] = {CL_COMMAND_BUFFER_NUM_QUEUES_KHR, CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		cl_uint value = 0;
		CHECK(command.info(buffer, keys[i], sizeof value, &value, NULL));
		hash = checksum(hash, &value, sizeof value);
	}
	return hash;
}

/* Replays; while that is in flight buffers of the same size come, go and stay. Their contents count too. */
static uint64_t replay(uint64_t hash, const struct gpu *gpu, const struct gpu *second, cl_command_buffer_khr buffer,
		       const struct chain *chain, size_t size, cl_uint number)
{
	set_all(gpu, chain->from, size, number);
	CHECK(command.enqueue(0, NULL, buffer, 0, NULL, NULL));
	cl_mem result = create_other(gpu, size), stays[OTHERS];
	CHECK(clEnqueueCopyBuffer(gpu->queue, chain->out, result, 0, 0, size, 0, NULL, NULL));
	CHECK(clFlush(gpu->queue));
	for (cl_uint i = 0; i < OTHERS; i++) {
		stays[i] = create_other(gpu, size);
		set_all(second, stays[i], size, 1000 * number + i);
	}
	churn(second, size);
	hash = check_all(hash, gpu, result, size, number, true);
	CHECK(clReleaseMemObject(result));
	/* Once more, with others that are there already. */
	CHECK(command.enqueue(0, NULL, buffer, 0, NULL, NULL));
	CHECK(clFinish(gpu->queue));
	for (cl_uint i = 0; i < OTHERS; i++) {
		hash = check_all(hash, second, stays[i], size, 1000 * number + i, false);
		CHECK(clReleaseMemObject(stays[i]));
	}
	return hash;
}

/* One command buffer from its recording to its end. */
static uint64_t live(uint64_t hash, const struct gpu *gpu, const struct gpu *second, cl_kernel kernel, const struct chain *chain,
		     cl_uint replays, size_t size)
{
	cl_command_buffer_khr buffer = record(gpu, kernel, chain, size);
	churn(gpu, size);
	hash = ask(hash, buffer);
	CHECK(command.retain(buffer));
	for (cl_uint i = 0; i < replays; i++)
		hash = replay(hash, gpu, second, buffer, chain, size, i);
	CHECK(command.release(buffer));
	hash = ask(hash, buffer);
	hash = replay(hash, gpu, second, buffer, chain, size, replays);
	CHECK(command.release(buffer));
	hash = check_all(hash, gpu, chain->from, size, replays, false);
	hash = check_all(hash, gpu, chain->in, size, replays, false);
	hash = check_all(hash, gpu, chain->out, size, replays, true);
	CHECK(clReleaseMemObject(chain->from));
	CHECK(clReleaseMemObject(chain->in));
	CHECK(clReleaseMemObject(chain->out));
	churn(gpu, size);
	return hash;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[REPLAYS] [SIZE]", 2);
	size_t replays = arguments_count(&arguments, 0, 8), size = arguments_size(&arguments, 1, 256u << 10);
	const char *source = "kernel void scramble(global const uint *in, global uint *out) {\n"
			     "	uint x = in[get_global_id(0)];\n"
			     "	for (int i = 0; i < 500; i++)\n"
			     "		x = x * 1664525u + 1013904223u;\n"
			     "	out[get_global_id(0)] = x + (uint)get_global_id(0);\n"
			     "}\n";
	cl_int status;
	struct gpu gpu = gpu_open(0), second = gpu;
	second.queue = clCreateCommandQueueWithProperties(gpu.context, gpu.device, NULL, &status);
	CHECK(status);
	cl_program program = gpu_build(&gpu, source);
	cl_kernel kernel = gpu_kernel(program, "scramble");
	uint64_t start = now_ns(), hash = CHECKSUM_START;
	/* Some of it before the first sign of command buffers. */
	churn(&gpu, size);
	struct chain chain = create_chain(&gpu, size);
	churn(&gpu, size);
	find_functions(gpu.device);
	hash = live(hash, &gpu, &second, kernel, &chain, (cl_uint)replays, size);
	chain = create_chain(&gpu, size);
	hash = live(hash, &gpu, &second, kernel, &chain, (cl_uint)replays, size);
	report_time(&arguments, start);
	CHECK(clReleaseKernel(kernel));
	CHECK(clReleaseProgram(program));
	CHECK(clReleaseCommandQueue(second.queue));
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
