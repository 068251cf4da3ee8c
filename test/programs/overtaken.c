/*
 * overtaken: a kernel that still runs when a command behind it in its queue fails. In PoCL 3.1, commands that come later
 * overtake the kernel then. Its buffer is small; meanwhile a large one is used, as soon as there is memory for it.
 *
 *	overtaken [ROUNDS]
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 64, STEPS = 400000, SMALL = ITEMS * sizeof(cl_uint), LARGE = 1 << 20, TRIES = 100 };

static const char *const source =
	"__kernel void steps(__global uint *to, uint count) {\n"
	"	uint value = get_global_id(0);\n"
	"	for (uint i = 0; i < count; i++)\n"
	"		value = value * 1664525u + 1013904223u;\n"
	"	to[get_global_id(0)] = value;\n"
	"}\n";

SITE(create_small)
SITE(create_large)

/* Objects of the queue that fails stay: PoCL 3.1 aborts now and then when such events are released. */
static void run_and_fail(const struct gpu *gpu, cl_kernel kernel, cl_mem result, cl_event *kernel_over)
{
	cl_int status;
	const cl_uint steps = STEPS, zero = 0;
	const size_t items = ITEMS;
	cl_command_queue queue = clCreateCommandQueue(gpu->context, gpu->device, 0, &status);
	CHECK(status);
	cl_mem other = create_small(gpu, SMALL);
	cl_event gate = clCreateUserEvent(gpu->context, &status);
	CHECK(status);
	gpu_arguments(kernel, sizeof result, &result, sizeof steps, &steps, (size_t)0);
	CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, kernel_over));
	CHECK(clEnqueueFillBuffer(queue, other, &zero, sizeof zero, 0, SMALL, 1, &gate, NULL));
	CHECK(clFlush(queue));
	CHECK(clSetUserEventStatus(gate, -1));
}

static void use_large(const struct gpu *gpu, cl_mem large)
{
	const cl_uint zero = 0;
	for (int i = 0; i < TRIES; i++) {
		if (clEnqueueFillBuffer(gpu->queue, large, &zero, sizeof zero, 0, LARGE, 0, NULL, NULL) == CL_SUCCESS)
			break;
		pause_us(500);
	}
	CHECK(clFinish(gpu->queue));
}

static void check(const cl_uint *words)
{
	for (cl_uint i = 0; i < ITEMS; i++) {
		cl_uint value = i;
		for (cl_uint step = 0; step < STEPS; step++)
			value = value * 1664525u + 1013904223u;
		if (words[i] != value)
			fail("word %u is %08x, want %08x", i, words[i], value);
	}
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ROUNDS]", 1);
	size_t rounds = arguments_count(&arguments, 0, 3);
	struct gpu gpu = gpu_open(0);
	cl_kernel kernel = gpu_kernel(gpu_build(&gpu, source), "steps");
	uint64_t hash = CHECKSUM_START;
	for (size_t round = 0; round < rounds; round++) {
		cl_uint words[ITEMS];
		cl_event over;
		cl_mem result = create_small(&gpu, SMALL), large = create_large(&gpu, LARGE);
		run_and_fail(&gpu, kernel, result, &over);
		use_large(&gpu, large);
		CHECK(clWaitForEvents(1, &over));
		CHECK(clEnqueueReadBuffer(gpu.queue, result, CL_TRUE, 0, SMALL, words, 0, NULL, NULL));
		check(words);
		hash = checksum(hash, words, sizeof words);
		CHECK(clReleaseMemObject(large));
	}
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
