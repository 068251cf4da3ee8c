/*
 * frag: the worst case of a free list. Three buffers are filled and released, then one twice as large is wanted: none
 * of the three can serve it, yet together they hold the memory that it needs.
 *
 *	frag [-t] [ROUNDS] [SIZE]     SIZE: bytes of each of the three
 *
 * Without SIZE it is 256 MiB, less where the device is too small for that: at most a quarter of its memory and half of
 * the largest allocation. With a quarter of the memory, a pool that keeps all three has to give some back.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

enum { SMALL = 3, UNIT = 256 << 20 };

static size_t device_unit(const struct gpu *gpu)
{
	cl_ulong global, largest;
	CHECK(clGetDeviceInfo(gpu->device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof global, &global, NULL));
	CHECK(clGetDeviceInfo(gpu->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL));
	cl_ulong unit = global / 4 < largest / 2 ? global / 4 : largest / 2;
	return (size_t)(unit < UNIT ? unit : UNIT) & ~(size_t)4095;
}

static __attribute__((noinline)) cl_mem create_small(const struct gpu *gpu, size_t size, cl_int *status)
{
	return clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, status);
}

static __attribute__((noinline)) cl_mem create_large(const struct gpu *gpu, size_t size, cl_int *status)
{
	return clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, status);
}

/* Writes all of a buffer, so that the device has to have the memory. */
static cl_int touch(const struct gpu *gpu, cl_mem buffer, size_t size, cl_uint pattern)
{
	cl_int status =
		clEnqueueFillBuffer(gpu->queue, buffer, &pattern, sizeof pattern, 0, size, 0, NULL, NULL);
	return status == CL_SUCCESS ? clFinish(gpu->queue) : status;
}

static void use_small(const struct gpu *gpu, size_t size)
{
	cl_mem small[SMALL];
	for (cl_uint i = 0; i < SMALL; i++) {
		cl_int status;
		small[i] = create_small(gpu, size, &status);
		CHECK(status);
		CHECK(touch(gpu, small[i], size, i));
	}
	for (int i = 0; i < SMALL; i++)
		CHECK(clReleaseMemObject(small[i]));
}

/* Returns whether the device had room for the large buffer. */
static bool use_large(const struct gpu *gpu, size_t size, uint64_t *hash)
{
	cl_int status;
	cl_mem large = create_large(gpu, size, &status);
	if (status == CL_SUCCESS)
		status = touch(gpu, large, size, 0xf5a6u);
	if (status == CL_SUCCESS) {
		cl_uint first, last;
		CHECK(clEnqueueReadBuffer(gpu->queue, large, CL_TRUE, 0, sizeof first, &first, 0, NULL, NULL));
		CHECK(clEnqueueReadBuffer(gpu->queue, large, CL_TRUE, size - sizeof last, sizeof last, &last, 0, NULL,
					  NULL));
		*hash = checksum(checksum(*hash, &first, sizeof first), &last, sizeof last);
	} else if (status != CL_MEM_OBJECT_ALLOCATION_FAILURE && status != CL_OUT_OF_RESOURCES &&
		   status != CL_OUT_OF_HOST_MEMORY) {
		CHECK(status);
	}
	if (large != NULL)
		CHECK(clReleaseMemObject(large));
	return status == CL_SUCCESS;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ROUNDS] [SIZE]", 2);
	size_t rounds = arguments_count(&arguments, 0, 1);
	struct gpu gpu = gpu_open(0);
	size_t size = arguments_size(&arguments, 1, device_unit(&gpu));

	uint64_t start = now_ns(), hash = CHECKSUM_START;
	size_t granted = 0;
	for (size_t i = 0; i < rounds; i++) {
		use_small(&gpu, size);
		granted += use_large(&gpu, 2 * size, &hash) ? 1 : 0;
	}
	report_time(&arguments, start);
	gpu_close(&gpu);
	printf("%s: %d x %zu bytes released, then %zu bytes wanted: granted %zu of %zu times, checksum %016llx\n",
	       arguments.program, SMALL, size, 2 * size, granted, rounds, (unsigned long long)hash);
	return EXIT_SUCCESS;
}
