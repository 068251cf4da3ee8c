/*
 * tiny: one buffer and a millisecond of work, to see what a tool shows of a very short program.
 *
 *	tiny [-t] [ITERATIONS] [SIZE]
 */
#include "common.h"

#include <stdlib.h>

static __attribute__((noinline)) cl_mem create_only(const struct gpu *gpu, size_t size)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, &status);
	CHECK(status);
	return buffer;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ITERATIONS] [SIZE]", 2);
	size_t iterations = arguments_count(&arguments, 0, 1);
	size_t size = arguments_size(&arguments, 1, 4096);
	struct gpu gpu = gpu_open(0);

	uint64_t start = now_ns(), hash = CHECKSUM_START;
	for (size_t i = 0; i < iterations; i++) {
		cl_uint pattern = (cl_uint)i;
		cl_mem buffer = create_only(&gpu, size);
		CHECK(clEnqueueFillBuffer(gpu.queue, buffer, &pattern, sizeof pattern, 0, size, 0, NULL, NULL));
		hash = checksum_buffer(hash, &gpu, buffer, size);
		CHECK(clReleaseMemObject(buffer));
	}
	report_time(&arguments, start);
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
