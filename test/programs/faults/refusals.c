/*
 * refusals: makes calls about memory that OpenCL refuses for what they ask, each from a place of its own, and prints what
 * gpumemtop calls each, its status and how often it was made.
 *
 *	refusals [nearly]     nearly: asks for what is allowed
 */
#define CL_TARGET_OPENCL_VERSION 300 /* it makes a pipe */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *host;
static cl_mem whole;

typedef cl_int attempt(const struct gpu *gpu, bool nearly);

static cl_int made(cl_mem memory, cl_int status)
{
	if (memory)
		CHECK(clReleaseMemObject(memory));
	return status;
}

static cl_int buffer(const struct gpu *gpu, cl_mem_flags flags, size_t size, void *pointer)
{
	cl_int status;
	cl_mem memory = clCreateBuffer(gpu->context, flags, size, pointer, &status);
	return made(memory, status);
}

static cl_int empty_buffer(const struct gpu *gpu, bool nearly) { return buffer(gpu, CL_MEM_READ_WRITE, nearly, NULL); }
static cl_int no_pointer(const struct gpu *gpu, bool nearly) { return buffer(gpu, CL_MEM_COPY_HOST_PTR, 64, nearly ? host : NULL); }
static cl_int no_flag(const struct gpu *gpu, bool nearly) { return buffer(gpu, CL_MEM_READ_WRITE, 64, nearly ? NULL : host); }
static cl_int two_flags(const struct gpu *gpu, bool nearly)
{
	return buffer(gpu, CL_MEM_READ_ONLY | (nearly ? 0 : CL_MEM_WRITE_ONLY), 64, NULL);
}

static cl_int part(size_t origin, size_t size)
{
	cl_int status;
	cl_buffer_region region = {origin, size};
	cl_mem memory = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
	return made(memory, status);
}

static cl_int odd_part(const struct gpu *gpu, bool nearly) { return (void)gpu, part(nearly ? 0 : 4, 64); }
static cl_int empty_part(const struct gpu *gpu, bool nearly) { return (void)gpu, part(0, nearly ? 64 : 0); }
static cl_int part_beyond(const struct gpu *gpu, bool nearly) { return (void)gpu, part(32 << 10, nearly ? 64 : 64 << 10); }

static cl_int image(const struct gpu *gpu, cl_channel_order order, size_t width)
{
	cl_int status;
	cl_image_format format = {order, CL_UNSIGNED_INT8};
	cl_image_desc description = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = width, .image_height = 16};
	cl_mem memory = clCreateImage(gpu->context, CL_MEM_READ_WRITE, &format, &description, NULL, &status);
	return made(memory, status);
}

static cl_int image_format(const struct gpu *gpu, bool nearly) { return image(gpu, nearly ? CL_RGBA : CL_RGB, 16); }
static cl_int image_size(const struct gpu *gpu, bool nearly) { return image(gpu, CL_RGBA, nearly ? 16 : (size_t)1 << 40); }

static cl_int packetless(const struct gpu *gpu, bool nearly)
{
	if (nearly)
		return CL_SUCCESS; /* few devices have pipes */
	cl_int status;
	cl_mem memory = clCreatePipe(gpu->context, CL_MEM_READ_WRITE, 0, 0, NULL, &status);
	return made(memory, status);
}

static cl_int release_none(const struct gpu *gpu, bool nearly)
{
	(void)gpu;
	if (nearly)
		CHECK(clRetainMemObject(whole));
	return clReleaseMemObject(nearly ? whole : NULL);
}

static cl_int retain_none(const struct gpu *gpu, bool nearly)
{
	(void)gpu;
	if (nearly)
		return clRetainMemObject(whole) || clReleaseMemObject(whole);
	return clRetainMemObject(NULL);
}

static const struct {
	const char *call;
	attempt *attempt;
} attempts[] = {
	{"create of a buffer", empty_buffer},    {"create of a buffer", no_pointer},      {"create of a buffer", no_flag},
	{"create of a buffer", two_flags},       {"create of a sub-buffer", odd_part},     {"create of a sub-buffer", empty_part},
	{"create of a sub-buffer", part_beyond},  {"create of an image", image_format},    {"create of an image", image_size},
	{"create of a pipe", packetless},        {"clReleaseMemObject", release_none},    {"clRetainMemObject", retain_none},
};

int main(int argc, char **argv)
{
	bool nearly = argc == 2 && strcmp(argv[1], "nearly") == 0;
	struct gpu gpu = gpu_open(0);
	host = calloc(1, 64);
	cl_int status;
	whole = clCreateBuffer(gpu.context, CL_MEM_READ_WRITE, 64 << 10, NULL, &status);
	CHECK(status);
	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
		int times = 1 + (int)i % 3;
		for (int n = 0; n < times; n++)
			status = attempts[i].attempt(&gpu, nearly);
		if ((status == CL_SUCCESS) != nearly)
			fail("%s, %zu: %d", attempts[i].call, i, status);
		if (!nearly)
			printf("%s\t%d\t%d\n", attempts[i].call, status, times);
	}
	CHECK(clReleaseMemObject(whole));
	free(host);
	gpu_close(&gpu);
	return EXIT_SUCCESS;
}
