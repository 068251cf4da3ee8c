/*
 * accumulate: a kernel adds to memory that nothing wrote, in a new buffer each time, and the program prints the sum of what it
 * finds. Where new memory is zero, only recycled memory gives other sums than 1024.
 *
 *	accumulate KIND [SIZE] [ROUNDS]
 *
 * KIND: add; or nearly: fill (the buffer is filled first), write (its bytes are written first), only (CL_MEM_WRITE_ONLY, and the
 * kernel sets numbers), part (the numbers that the kernel uses are written first, others are not); timed (add, with a line that
 * differs in each run); leak (add, and the last buffer is never released).
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1024, BYTES = COUNT * sizeof(cl_int) };

static const char *const source =
	"__kernel void add_one(__global int *to) { to[get_global_id(0)] += 1; }\n"
	"__kernel void set_one(__global int *to) { to[get_global_id(0)] = 1; }\n";

static __attribute__((noinline)) cl_mem create_numbers(const struct gpu *gpu, cl_mem_flags flags, size_t size)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(gpu->context, flags, size, NULL, &status);
	CHECK(status);
	return buffer;
}

static void prepare(const struct gpu *gpu, const char *kind, cl_mem buffer, size_t size)
{
	const cl_int zero = 0;
	if (strcmp(kind, "fill") == 0)
		CHECK(clEnqueueFillBuffer(gpu->queue, buffer, &zero, sizeof zero, 0, size, 0, NULL, NULL));
	if (strcmp(kind, "write") != 0 && strcmp(kind, "part") != 0)
		return;
	size_t bytes = strcmp(kind, "part") == 0 ? BYTES : size;
	void *numbers = calloc(1, bytes);
	if (!numbers)
		fail("no memory");
	CHECK(clEnqueueWriteBuffer(gpu->queue, buffer, CL_TRUE, 0, bytes, numbers, 0, NULL, NULL));
	free(numbers);
}

static long sum_of(const struct gpu *gpu, cl_mem buffer)
{
	cl_int numbers[COUNT];
	CHECK(clEnqueueReadBuffer(gpu->queue, buffer, CL_TRUE, 0, BYTES, numbers, 0, NULL, NULL));
	long sum = 0;
	for (size_t i = 0; i < COUNT; i++)
		sum += numbers[i];
	return sum;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "KIND [SIZE] [ROUNDS]", 3);
	const char *kind = arguments.count ? arguments.values[0] : "add";
	size_t size = arguments_size(&arguments, 1, 64u << 20), rounds = arguments_count(&arguments, 2, 3);
	bool only = strcmp(kind, "only") == 0;
	struct gpu gpu = gpu_open(0);
	cl_program program = gpu_build(&gpu, source);
	cl_kernel kernel = gpu_kernel(program, only ? "set_one" : "add_one");
	if (strcmp(kind, "timed") == 0)
		printf("now it is %llu\n", (unsigned long long)now_ns());
	for (size_t i = 0; i < rounds; i++) {
		cl_mem buffer = create_numbers(&gpu, only ? CL_MEM_WRITE_ONLY : CL_MEM_READ_WRITE, size);
		prepare(&gpu, kind, buffer, size);
		CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
		gpu_run(&gpu, kernel, COUNT);
		printf("round %zu: %ld\n", i + 1, sum_of(&gpu, buffer));
		if (i + 1 < rounds || strcmp(kind, "leak") != 0)
			CHECK(clReleaseMemObject(buffer));
	}
	CHECK(clReleaseKernel(kernel));
	CHECK(clReleaseProgram(program));
	gpu_close(&gpu);
	return EXIT_SUCCESS;
}
