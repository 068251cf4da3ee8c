/*
 * stale: writes halves or ones into memory, releases it, creates as much again, and prints the sum of the numbers there, which
 * it never wrote.
 *
 *	stale floats|integers|shared|image|normalized
 *
 * shared: floats in shared virtual memory; image: one of floats; normalized: one of bytes from 0 to 1.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1024, SIZE = COUNT * sizeof(cl_float), SIDE = 16 };

static const char *const source =
	"__constant sampler_t plain = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;\n"
	"__kernel void add_floats(__global const float *from, __global float *sum) {\n"
	"	float all = 0;\n"
	"	for (int i = 0; i < 1024; i++)\n"
	"		all += from[i];\n"
	"	*sum = all;\n"
	"}\n"
	"__kernel void add_integers(__global const int *from, __global float *sum) {\n"
	"	int all = 0;\n"
	"	for (int i = 0; i < 1024; i++)\n"
	"		all += from[i];\n"
	"	*sum = all;\n"
	"}\n"
	"__kernel void add_image(__read_only image2d_t from, __global float *sum) {\n"
	"	float4 all = 0;\n"
	"	for (int i = 0; i < 256; i++)\n"
	"		all += read_imagef(from, plain, (int2)(i % 16, i / 16));\n"
	"	*sum = all.x + all.y + all.z + all.w;\n"
	"}\n";

static const struct kind {
	const char *name, *kernel;
	cl_channel_type channel; /* 0: no image */
	cl_uint written;         /* four bytes of what was there before */
} kinds[] = {
	{"floats", "add_floats", 0, 0x3f000000}, /* 0.5f */
	{"integers", "add_integers", 0, 1},
	{"shared", "add_floats", 0, 0x3f000000},
	{"image", "add_image", CL_FLOAT, 0x3f000000},
	{"normalized", "add_image", CL_UNORM_INT8, 0x00ff00ff}, /* every other channel is 1 */
};

SITE(create_numbers)
SITE(create_sum)

static __attribute__((noinline)) cl_mem create_image(const struct gpu *gpu, cl_channel_type channel)
{
	const cl_image_format format = {CL_RGBA, channel};
	const cl_image_desc description = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = SIDE, .image_height = SIDE};
	cl_int status;
	cl_mem image = clCreateImage(gpu->context, CL_MEM_READ_WRITE, &format, &description, NULL, &status);
	CHECK(status);
	return image;
}

/* Memory of a kind: shared memory, or else a memory object. */
struct numbers {
	void *shared;
	cl_mem object;
};

static struct numbers create(const struct gpu *gpu, const struct kind *kind)
{
	if (strcmp(kind->name, "shared") == 0)
		return (struct numbers){.shared = clSVMAlloc(gpu->context, CL_MEM_READ_WRITE, SIZE, 0)};
	return (struct numbers){.object = kind->channel ? create_image(gpu, kind->channel) : create_numbers(gpu, SIZE)};
}

static void write_numbers(const struct gpu *gpu, const struct kind *kind, struct numbers to)
{
	const size_t zero[3] = {0, 0, 0}, all[3] = {SIDE, SIDE, 1};
	cl_uint numbers[COUNT];
	for (size_t i = 0; i < COUNT; i++)
		numbers[i] = kind->written;
	if (to.shared)
		CHECK(clEnqueueSVMMemcpy(gpu->queue, CL_TRUE, to.shared, numbers, SIZE, 0, NULL, NULL));
	else if (kind->channel)
		CHECK(clEnqueueWriteImage(gpu->queue, to.object, CL_TRUE, zero, all, 0, 0, numbers, 0, NULL, NULL));
	else
		CHECK(clEnqueueWriteBuffer(gpu->queue, to.object, CL_TRUE, 0, SIZE, numbers, 0, NULL, NULL));
	CHECK(clFinish(gpu->queue));
}

static void release(const struct gpu *gpu, struct numbers numbers)
{
	if (numbers.shared)
		clSVMFree(gpu->context, numbers.shared);
	else
		CHECK(clReleaseMemObject(numbers.object));
}

static cl_float sum_of(const struct gpu *gpu, cl_kernel kernel, struct numbers from)
{
	cl_mem sum = create_sum(gpu, sizeof(cl_float));
	cl_float got;
	if (from.shared)
		CHECK(clSetKernelArgSVMPointer(kernel, 0, from.shared));
	else
		CHECK(clSetKernelArg(kernel, 0, sizeof from.object, &from.object));
	CHECK(clSetKernelArg(kernel, 1, sizeof sum, &sum));
	gpu_run(gpu, kernel, 1);
	CHECK(clEnqueueReadBuffer(gpu->queue, sum, CL_TRUE, 0, sizeof got, &got, 0, NULL, NULL));
	CHECK(clReleaseMemObject(sum));
	return got;
}

static void add_stale(const struct gpu *gpu, const struct kind *kind)
{
	cl_program program = gpu_build(gpu, source);
	cl_kernel kernel = gpu_kernel(program, kind->kernel);
	struct numbers numbers;
	for (int i = 0; i < 2; i++) { /* the pool does not keep the first image of a shape */
		numbers = create(gpu, kind);
		write_numbers(gpu, kind, numbers);
		release(gpu, numbers);
	}
	numbers = create(gpu, kind);
	cl_float sum = sum_of(gpu, kernel, numbers);
	if (sum != sum)
		printf("NaN\n"); /* of either sign, which the C library prints */
	else
		printf("%g\n", sum);
	release(gpu, numbers);
	CHECK(clReleaseKernel(kernel));
	CHECK(clReleaseProgram(program));
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (argc != 2 || strcmp(kinds[i].name, argv[1]) != 0)
			continue;
		struct gpu gpu = gpu_open(0);
		add_stale(&gpu, &kinds[i]);
		gpu_close(&gpu);
		return EXIT_SUCCESS;
	}
	fail("usage: stale KIND: see test/programs/faults/stale.c");
}
