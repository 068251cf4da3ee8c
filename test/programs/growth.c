/*
 * growth: a loop that keeps memory, beside a temporary buffer in each iteration.
 *
 *	growth [ITERATIONS] [MS] [host | buffers | warm]
 *
 * An iteration takes MS ms. "host" keeps 256 KiB of the program's own memory in each, as a driver with a leak would;
 * "buffers" keeps a buffer of that size; "warm" keeps 2 MiB of its own in each of the first twentieth, and then no more.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEMPORARY = 1 << 20, EACH = 256 << 10, WARM = 2 << 20 };

SITE(create_temporary)
SITE(create_kept)

static void fill(const struct gpu *gpu, cl_mem buffer, size_t size)
{
	const cl_uint pattern = 0x5a5a5a5a;
	CHECK(clEnqueueFillBuffer(gpu->queue, buffer, &pattern, sizeof pattern, 0, size, 0, NULL, NULL));
	CHECK(clFinish(gpu->queue));
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ITERATIONS] [MS] [host | buffers | warm]", 3);
	size_t iterations = arguments_count(&arguments, 0, 300), ms = arguments_count(&arguments, 1, 20);
	const char *what = arguments.count > 2 ? arguments.values[2] : "host";
	int host = !strcmp(what, "host"), warm = !strcmp(what, "warm"), buffers = !strcmp(what, "buffers");
	if (!host && !warm && !buffers)
		fail("growth: %s: want host, buffers or warm", what);
	cl_mem *kept = allocate(iterations * sizeof *kept);
	void **own = allocate(iterations * sizeof *own);
	struct gpu gpu = gpu_open(0);
	for (size_t i = 0; i < iterations; i++) {
		cl_mem temporary = create_temporary(&gpu, TEMPORARY);
		fill(&gpu, temporary, TEMPORARY);
		kept[i] = NULL;
		own[i] = NULL;
		if (buffers) {
			kept[i] = create_kept(&gpu, EACH);
			fill(&gpu, kept[i], EACH);
		} else if (host || i < iterations / 20) {
			own[i] = allocate(host ? EACH : WARM);
			memset(own[i], 1, host ? EACH : WARM);
		}
		CHECK(clReleaseMemObject(temporary));
		pause_us((long)ms * 1000);
	}
	uint64_t hash = CHECKSUM_START;
	for (size_t i = 0; i < iterations; i++) {
		if (kept[i])
			CHECK(clReleaseMemObject(kept[i]));
		if (own[i])
			hash = checksum(hash, own[i], EACH);
		free(own[i]);
	}
	gpu_close(&gpu);
	free(own);
	free(kept);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
