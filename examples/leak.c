/*
 * leak: forgets to release some of its buffers, all of them created in forget_result.
 *
 *	leak [-t] [LEAKS] [SIZE]     LEAKS: how many are forgotten; three times as many are created and released
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEPT_TIDY = 3 }; /* buffers released for each one that is not */

static __attribute__((noinline)) cl_mem create_temporary(const struct gpu *gpu, size_t size)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, &status);
	CHECK(status);
	return buffer;
}

/* Creates a buffer, uses it and loses it. */
static __attribute__((noinline)) void forget_result(const struct gpu *gpu, size_t size, cl_uint pattern, uint64_t *hash)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, &status);
	CHECK(status);
	CHECK(clEnqueueFillBuffer(gpu->queue, buffer, &pattern, sizeof pattern, 0, size, 0, NULL, NULL));
	*hash = checksum_buffer(*hash, gpu, buffer, size);
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[LEAKS] [SIZE]", 2);
	size_t leaks = arguments_count(&arguments, 0, 7);
	size_t size = arguments_size(&arguments, 1, 1u << 20);
	struct gpu gpu = gpu_open(0);

	uint64_t start = now_ns(), hash = CHECKSUM_START;
	for (size_t i = 0; i < leaks; i++) {
		for (int j = 0; j < KEPT_TIDY; j++)
			CHECK(clReleaseMemObject(create_temporary(&gpu, size)));
		forget_result(&gpu, size, (cl_uint)i, &hash);
	}
	report_time(&arguments, start);
	gpu_close(&gpu);
	printf("%s: %zu buffers of %zu bytes not released, checksum %016llx\n", arguments.program, leaks, size,
	       (unsigned long long)hash);
	return EXIT_SUCCESS;
}
