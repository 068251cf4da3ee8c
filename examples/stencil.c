/*
 * stencil: heat spreading over a plate. As in Rodinia's Hotspot the way Futhark compiles it, every iteration creates
 * the buffer for its result, swaps, and releases the old one: an allocation inside the loop.
 *
 *	stencil [-t] [ITERATIONS] [SIZE] [EVERY]     SIZE: bytes of one grid; EVERY: iterations between looks at one cell,
 *	                                             which wait for the queue
 */
#include "common.h"

#include <stdlib.h>

enum { WIDTH = 1024 }; /* cells in a row */

static const char *const source =
	"__kernel void heat(__global float *grid, uint cells) {\n"
	"	uint i = get_global_id(0);\n"
	"	grid[i] = (float)((i * 2654435761u) >> 16) / 65536.0f;\n"
	"}\n"
	"__kernel void spread(__global const float *old, __global float *new, uint cells, uint width) {\n"
	"	uint i = get_global_id(0);\n"
	"	float up = i >= width ? old[i - width] : old[i];\n"
	"	float down = i + width < cells ? old[i + width] : old[i];\n"
	"	float left = i > 0 ? old[i - 1] : old[i];\n"
	"	float right = i + 1 < cells ? old[i + 1] : old[i];\n"
	"	new[i] = old[i] + 0.1f * (up + down + left + right - 4.0f * old[i]);\n"
	"}\n";

static __attribute__((noinline)) cl_mem create_first_grid(const struct gpu *gpu, size_t size)
{
	cl_int status;
	cl_mem grid = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, &status);
	CHECK(status);
	return grid;
}

static __attribute__((noinline)) cl_mem create_next_grid(const struct gpu *gpu, size_t size)
{
	cl_int status;
	cl_mem grid = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, &status);
	CHECK(status);
	return grid;
}

static float probe(const struct gpu *gpu, cl_mem grid, size_t cell)
{
	float value;
	CHECK(clEnqueueReadBuffer(gpu->queue, grid, CL_TRUE, cell * sizeof value, sizeof value, &value, 0, NULL, NULL));
	return value;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ITERATIONS] [SIZE] [EVERY]", 3);
	size_t iterations = arguments_count(&arguments, 0, 40);
	size_t size = arguments_size(&arguments, 1, 64u << 20), every = arguments_count(&arguments, 2, 4);
	cl_uint cells = (cl_uint)(size / sizeof(float)), width = WIDTH;

	struct gpu gpu = gpu_open(0);
	cl_program program = gpu_build(&gpu, source);
	cl_kernel heat = gpu_kernel(program, "heat"), spread = gpu_kernel(program, "spread");
	uint64_t start = now_ns(), hash = CHECKSUM_START;

	cl_mem grid = create_first_grid(&gpu, size);
	gpu_arguments(heat, sizeof grid, &grid, sizeof cells, &cells, (size_t)0);
	gpu_run(&gpu, heat, cells);
	for (size_t i = 1; i <= iterations; i++) {
		cl_mem next = create_next_grid(&gpu, size);
		gpu_arguments(spread, sizeof grid, &grid, sizeof next, &next, sizeof cells, &cells, sizeof width, &width,
			      (size_t)0);
		gpu_run(&gpu, spread, cells);
		CHECK(clReleaseMemObject(grid));
		grid = next;
		if (i % every == 0) {
			float value = probe(&gpu, grid, i % cells);
			hash = checksum(hash, &value, sizeof value);
		}
	}
	hash = checksum_buffer(hash, &gpu, grid, size);
	report_time(&arguments, start);

	CHECK(clReleaseMemObject(grid));
	CHECK(clReleaseKernel(heat));
	CHECK(clReleaseKernel(spread));
	CHECK(clReleaseProgram(program));
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
