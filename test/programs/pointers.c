/*
 * pointers: adds numbers in shared virtual memory, as layers above OpenCL do: each round allocates memory for numbers and for
 * the result, and frees both, every other time in the queue.
 *
 *	pointers [-t] [ROUNDS] [SIZE]     SIZE: bytes of an allocation
 */
#define CL_TARGET_OPENCL_VERSION 300
#include "common.h"

#include <stdlib.h>

enum { LOOKED = 1024 }; /* numbers that are checked, at most */

static const char *const source =
	"__kernel void add(__global const uint *from, __global uint *to, uint number) {\n"
	"	size_t i = get_global_id(0);\n"
	"	to[i] = from[i] + number;\n"
	"}\n";

static __attribute__((noinline)) cl_uint *new_numbers(const struct gpu *gpu, size_t size)
{
	cl_uint *numbers = clSVMAlloc(gpu->context, CL_MEM_READ_WRITE, size, 0);
	if (!numbers)
		fail("pointers: no shared virtual memory of %zu bytes", size);
	return numbers;
}

/* In its place in the queue, or at once: all commands are over then. */
static void release(const struct gpu *gpu, bool enqueued, cl_uint *from, cl_uint *to)
{
	void *both[] = {from, to};
	if (enqueued) {
		CHECK(clEnqueueSVMFree(gpu->queue, 2, both, NULL, NULL, 0, NULL, NULL));
		return;
	}
	clSVMFree(gpu->context, from);
	clSVMFree(gpu->context, to);
}

static uint64_t one_round(const struct gpu *gpu, cl_kernel kernel, size_t count, cl_uint round, uint64_t hash)
{
	size_t size = count * sizeof(cl_uint), looked = count < LOOKED ? count : LOOKED;
	cl_uint pattern = round * 2654435761u, *from = new_numbers(gpu, size), *to = new_numbers(gpu, size);
	cl_uint got[LOOKED];
	CHECK(clEnqueueSVMMemFill(gpu->queue, from, &pattern, sizeof pattern, size, 0, NULL, NULL));
	CHECK(clSetKernelArgSVMPointer(kernel, 0, from));
	CHECK(clSetKernelArgSVMPointer(kernel, 1, to));
	CHECK(clSetKernelArg(kernel, 2, sizeof round, &round));
	CHECK(clEnqueueNDRangeKernel(gpu->queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL));
	CHECK(clEnqueueSVMMemcpy(gpu->queue, CL_TRUE, got, to, looked * sizeof *got, 0, NULL, NULL));
	for (size_t i = 0; i < looked; i++)
		if (got[i] != pattern + round)
			fail("pointers: number %zu of round %u is %u, want %u", i, round, got[i], pattern + round);
	release(gpu, round % 2 == 1, from, to);
	return checksum(hash, (const unsigned char *)got, looked * sizeof *got);
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ROUNDS] [SIZE]", 2);
	size_t rounds = arguments_count(&arguments, 0, 200), size = arguments_size(&arguments, 1, 256 << 10);
	struct gpu gpu = gpu_open(0);
	cl_program program = gpu_build(&gpu, source);
	cl_kernel kernel = gpu_kernel(program, "add");
	uint64_t hash = CHECKSUM_START, start = now_ns();
	for (size_t i = 0; i < rounds; i++)
		hash = one_round(&gpu, kernel, size < 4 ? 1 : size / 4, (cl_uint)i, hash);
	report_time(&arguments, start);
	CHECK(clFinish(gpu.queue));
	CHECK(clReleaseKernel(kernel));
	CHECK(clReleaseProgram(program));
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
