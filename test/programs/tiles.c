/*
 * tiles: filters a picture tile by tile, as imaging programs do: each round creates an image for a tile and one for the
 * result, and releases both.
 *
 *	tiles [-t] [ROUNDS] [SIZE]     SIZE: bytes of a tile
 */
#include "common.h"

#include <stdlib.h>

static const char *const source =
	"__constant sampler_t plain = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;\n"
	"__kernel void invert(__read_only image2d_t from, __write_only image2d_t to) {\n"
	"	int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
	"	write_imageui(to, at, 255u - read_imageui(from, plain, at));\n"
	"}\n";

struct filter {
	struct gpu gpu;
	cl_kernel kernel;
	size_t side; /* of a tile, in elements */
};

static __attribute__((noinline)) cl_mem new_tile(const struct filter *filter, cl_mem_flags flags)
{
	const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	const cl_image_desc description = {
		.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = filter->side, .image_height = filter->side,
	};
	cl_int status;
	cl_mem tile = clCreateImage(filter->gpu.context, flags, &format, &description, NULL, &status);
	CHECK(status);
	return tile;
}

static void one_tile(const struct filter *filter, const unsigned char *tile, unsigned char *result)
{
	const size_t zero[3] = {0, 0, 0}, all[3] = {filter->side, filter->side, 1};
	cl_command_queue queue = filter->gpu.queue;
	cl_mem from = new_tile(filter, CL_MEM_READ_ONLY), to = new_tile(filter, CL_MEM_WRITE_ONLY);
	CHECK(clEnqueueWriteImage(queue, from, CL_FALSE, zero, all, 0, 0, tile, 0, NULL, NULL));
	gpu_arguments(filter->kernel, sizeof from, &from, sizeof to, &to, (size_t)0);
	CHECK(clEnqueueNDRangeKernel(queue, filter->kernel, 2, NULL, all, NULL, 0, NULL, NULL));
	CHECK(clEnqueueReadImage(queue, to, CL_TRUE, zero, all, 0, 0, result, 0, NULL, NULL));
	CHECK(clReleaseMemObject(from));
	CHECK(clReleaseMemObject(to));
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ROUNDS] [SIZE]", 2);
	size_t rounds = arguments_count(&arguments, 0, 200), size = arguments_size(&arguments, 1, 64 << 10);
	struct filter filter = {.gpu = gpu_open(0), .side = 1};
	cl_program program = gpu_build(&filter.gpu, source);
	filter.kernel = gpu_kernel(program, "invert");
	while (4 * (filter.side + 1) * (filter.side + 1) <= size)
		filter.side++;
	size = 4 * filter.side * filter.side;
	unsigned char *tile = allocate(size), *result = allocate(size);
	uint64_t hash = CHECKSUM_START, start = now_ns();
	for (size_t i = 0; i < rounds; i++) {
		fill_random(tile, size < 4096 ? size : 4096, i);
		one_tile(&filter, tile, result);
		for (size_t at = 0; at < size && at < 4096; at++)
			if ((tile[at] ^ result[at]) != 255)
				fail("tiles: byte %zu of tile %zu is %u, want %u", at, i, result[at], 255u - tile[at]);
		hash = checksum(hash, result, size < 4096 ? size : 4096);
	}
	report_time(&arguments, start);
	CHECK(clReleaseKernel(filter.kernel));
	CHECK(clReleaseProgram(program));
	gpu_close(&filter.gpu);
	free(tile);
	free(result);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
