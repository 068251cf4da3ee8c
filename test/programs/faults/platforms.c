/*
 * platforms: works on every device of every platform in turn: writes a buffer, reads it back, and creates the next before it
 * releases the last one. Prints how many devices there are and how many buffers were wrong.
 *
 *	platforms [ROUNDS] [SIZE]
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 }; /* platforms, and devices of each */

struct place {
	struct gpu gpu;
	cl_mem last;
};

static size_t open_all(struct place *places)
{
	cl_platform_id platforms[MOST];
	cl_uint found = 0;
	size_t count = 0;
	CHECK(clGetPlatformIDs(MOST, platforms, &found));
	for (cl_uint i = 0; i < found; i++) {
		cl_device_id devices[MOST];
		cl_uint more = 0;
		if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, MOST, devices, &more) != CL_SUCCESS)
			continue;
		for (cl_uint j = 0; j < more && count < MOST; j++) {
			struct gpu *gpu = &places[count++].gpu;
			cl_int status;
			gpu->device = devices[j];
			gpu->context = clCreateContext(NULL, 1, &devices[j], NULL, NULL, &status);
			CHECK(status);
			gpu->queue = clCreateCommandQueue(gpu->context, devices[j], 0, &status);
			CHECK(status);
		}
	}
	return count;
}

/* Whether a new buffer holds what was written to it. */
static bool write_and_read(struct place *place, unsigned char *bytes, unsigned char *back, size_t size)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(place->gpu.context, CL_MEM_READ_WRITE, size, NULL, &status);
	CHECK(status);
	if (place->last)
		CHECK(clReleaseMemObject(place->last));
	place->last = buffer;
	CHECK(clEnqueueWriteBuffer(place->gpu.queue, buffer, CL_FALSE, 0, size, bytes, 0, NULL, NULL));
	CHECK(clEnqueueReadBuffer(place->gpu.queue, buffer, CL_TRUE, 0, size, back, 0, NULL, NULL));
	return memcmp(bytes, back, size) == 0;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ROUNDS] [SIZE]", 2);
	size_t rounds = arguments_count(&arguments, 0, 20), size = arguments_size(&arguments, 1, 4096), wrong = 0;
	struct place places[MOST] = {0};
	size_t count = open_all(places);
	unsigned char *bytes = malloc(size), *back = malloc(size);
	if (!bytes || !back)
		fail("out of memory");
	for (size_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < count; i++) {
			memset(bytes, (int)(round * count + i), size);
			wrong += !write_and_read(&places[i], bytes, back, size);
		}
	for (size_t i = 0; i < count; i++) {
		CHECK(clReleaseMemObject(places[i].last));
		gpu_close(&places[i].gpu);
	}
	free(bytes);
	free(back);
	printf("platforms: %zu devices, %zu buffers wrong\n", count, wrong);
	return 0;
}
