/*
 * outgrows: needs memory that it does not ask for again.
 *
 *	outgrows scratch | vector | sweep | phases | pause | slow [STEPS] [SIZE]
 *
 * "scratch" has a temporary buffer that grows by SIZE in each of STEPS rounds, and as many rounds at the largest size. "vector"
 * moves from SIZE / 256 into a buffer twice as large, STEPS times. "sweep" asks for sizes from SIZE to STEPS times that, over and
 * over. "phases" has STEPS temporary buffers at once, of SIZE and more each, and then, over and over, of a
 * sixteenth. "pause" releases STEPS buffers and makes no calls for three seconds. "slow" makes STEPS iterations that take as long.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SITE(create_scratch)
SITE(create_vector)
SITE(create_early)
SITE(create_late)

static uint64_t hash = CHECKSUM_START;

static void fill(const struct gpu *gpu, cl_mem buffer, size_t size)
{
	const cl_uint pattern = 0x5a5a5a5a;
	CHECK(clEnqueueFillBuffer(gpu->queue, buffer, &pattern, sizeof pattern, 0, size, 0, NULL, NULL));
	CHECK(clFinish(gpu->queue));
	hash = checksum(hash, &size, sizeof size);
}

static void temporary(const struct gpu *gpu, size_t size)
{
	cl_mem buffer = create_scratch(gpu, size);
	fill(gpu, buffer, size);
	CHECK(clReleaseMemObject(buffer));
}

static void vector(const struct gpu *gpu, size_t steps, size_t size)
{
	cl_mem last = create_vector(gpu, size);
	fill(gpu, last, size);
	for (size_t i = 0; i < steps; i++, size *= 2) {
		cl_mem larger = create_vector(gpu, 2 * size);
		CHECK(clEnqueueCopyBuffer(gpu->queue, last, larger, 0, 0, size, 0, NULL, NULL));
		CHECK(clFinish(gpu->queue));
		CHECK(clReleaseMemObject(last));
		last = larger;
	}
	fill(gpu, last, size / 16 & ~(size_t)3);
	CHECK(clReleaseMemObject(last));
}

/* Buffers that live at once. */
static void together(const struct gpu *gpu, cl_mem (*create)(const struct gpu *, size_t), size_t count, size_t size)
{
	cl_mem *buffers = allocate(count * sizeof *buffers);
	for (size_t i = 0; i < count; i++) {
		buffers[i] = create(gpu, size + i * 4096);
		fill(gpu, buffers[i], size);
	}
	for (size_t i = 0; i < count; i++)
		CHECK(clReleaseMemObject(buffers[i]));
	free(buffers);
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "scratch | vector | sweep | phases | pause | slow [STEPS] [SIZE]", 3);
	const char *what = arguments.count ? arguments.values[0] : "scratch";
	size_t steps = arguments_count(&arguments, 1, 12), size = arguments_size(&arguments, 2, 4 << 20);
	struct gpu gpu = gpu_open(0);
	if (!strcmp(what, "scratch")) {
		for (size_t i = 1; i <= 2 * steps; i++)
			temporary(&gpu, (i < steps ? i : steps) * size);
	} else if (!strcmp(what, "vector")) {
		vector(&gpu, steps, size / 256 & ~(size_t)3);
	} else if (!strcmp(what, "sweep")) {
		for (size_t i = 0; i < 10 * steps; i++)
			temporary(&gpu, (1 + i % steps) * size);
	} else if (!strcmp(what, "phases")) {
		together(&gpu, create_early, steps, size);
		for (int i = 0; i < 50; i++)
			together(&gpu, create_late, steps, size / 16);
	} else if (!strcmp(what, "pause")) {
		together(&gpu, create_early, steps, size);
		pause_us(3000000);
		temporary(&gpu, 4096);
	} else if (!strcmp(what, "slow")) {
		for (size_t i = 0; i < steps; i++) {
			together(&gpu, create_early, 3, size);
			pause_us(3100000);
		}
	} else {
		fail("outgrows: %s: want scratch, vector, sweep, phases, pause or slow", what);
	}
	gpu_close(&gpu);
	printf("outgrows %s: checksum %016llx\n", what, (unsigned long long)hash);
	return 0;
}
