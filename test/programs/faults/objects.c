/*
 * objects.c: a loop that keeps objects, or nearly does.
 *
 *	objects leak|tidy [ITERATIONS]
 *
 * In each iteration both run a kernel twice, with an event each, create a kernel, a program, a sampler and a buffer, and
 * wait a millisecond. leak releases the buffer only. tidy holds the events of a hundred iterations, then releases them, and
 * at its end keeps three kernels, as many programs do.
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HELD = 200, KEPT = 3 };

static const char *const source = "__kernel void add(__global uint *value, uint more) { value[0] += more; }\n";

struct held {
	cl_event events[HELD];
	size_t count;
};

static __attribute__((noinline)) void step(const struct gpu *gpu, cl_kernel kernel, struct held *held, int leaks)
{
	const size_t items = 1;
	for (int i = 0; i < 2; i++) {
		cl_event event;
		CHECK(clEnqueueNDRangeKernel(gpu->queue, kernel, 1, NULL, &items, NULL, 0, NULL, &event));
		if (leaks)
			continue;
		held->events[held->count++] = event;
		if (held->count < HELD)
			continue;
		while (held->count > 0)
			CHECK(clReleaseEvent(held->events[--held->count]));
	}
}

static __attribute__((noinline)) void make_others(const struct gpu *gpu, cl_program built, int leaks)
{
	cl_int status;
	cl_kernel kernel = clCreateKernel(built, "add", &status);
	CHECK(status);
	cl_program program = clCreateProgramWithSource(gpu->context, 1, (const char **)&source, NULL, &status);
	CHECK(status);
	cl_sampler sampler = clCreateSampler(gpu->context, CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, &status);
	CHECK(status);
	cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, 4096, NULL, &status);
	CHECK(status);
	CHECK(clReleaseMemObject(buffer));
	if (leaks)
		return;
	CHECK(clReleaseKernel(kernel));
	CHECK(clReleaseProgram(program));
	CHECK(clReleaseSampler(sampler));
}

int main(int argc, char **argv)
{
	if (argc < 2 || (strcmp(argv[1], "leak") != 0 && strcmp(argv[1], "tidy") != 0)) {
		fprintf(stderr, "usage: objects leak|tidy [ITERATIONS]\n");
		return 2;
	}
	int leaks = strcmp(argv[1], "leak") == 0;
	struct arguments arguments = arguments_read(argc - 1, argv + 1, "[ITERATIONS]", 1);
	size_t iterations = arguments_count(&arguments, 0, 400);
	struct gpu gpu = gpu_open(0);
	cl_program program = gpu_build(&gpu, source);
	cl_kernel kernels[KEPT];
	for (int i = 0; i < KEPT; i++)
		kernels[i] = gpu_kernel(program, "add");
	cl_uint zero = 0, one = 1;
	cl_mem value = create_worked(&gpu, sizeof zero);
	CHECK(clEnqueueWriteBuffer(gpu.queue, value, CL_TRUE, 0, sizeof zero, &zero, 0, NULL, NULL));
	gpu_arguments(kernels[0], sizeof(cl_mem), &value, sizeof one, &one, (size_t)0);
	struct held held = {.count = 0};
	for (size_t i = 0; i < iterations; i++) {
		step(&gpu, kernels[0], &held, leaks);
		make_others(&gpu, program, leaks);
		CHECK(clFinish(gpu.queue));
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	uint64_t hash = checksum_buffer(CHECKSUM_START, &gpu, value, sizeof zero);
	while (held.count > 0)
		CHECK(clReleaseEvent(held.events[--held.count]));
	CHECK(clReleaseMemObject(value));
	CHECK(clReleaseProgram(program));
	gpu_close(&gpu);
	printf("objects: checksum %016llx\n", (unsigned long long)hash);
	return 0;
}
