/*
 * staging: frames that go to the device and back through pinned memory, as netcl's transfers do. Every frame has a
 * staging buffer of its own in each direction (CL_MEM_ALLOC_HOST_PTR), which is mapped, filled or read, and released;
 * sizes vary a little from frame to frame. The device's own buffers stay.
 *
 *	staging [-t] [FRAMES] [SIZE]     SIZE: bytes of the largest frame
 */
#include "common.h"

#include <stdlib.h>

static const char *const source =
	"__kernel void brighten(__global uint *frame, uint pixels, uint by) {\n"
	"	uint i = get_global_id(0);\n"
	"	if (i < pixels) frame[i] = (frame[i] ^ by) * 2654435761u + i;\n"
	"}\n";

static __attribute__((noinline)) cl_mem create_staging(const struct gpu *gpu, size_t size)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size, NULL, &status);
	CHECK(status);
	return buffer;
}

static __attribute__((noinline)) cl_mem create_readback(const struct gpu *gpu, size_t size)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size, NULL, &status);
	CHECK(status);
	return buffer;
}

SITE(create_frame)

/* Fills a staging buffer through a mapping, and sends it to the device. */
static void upload(const struct gpu *gpu, cl_mem frame, size_t size, uint64_t seed)
{
	cl_mem staging = create_staging(gpu, size);
	cl_int status;
	void *pixels = clEnqueueMapBuffer(gpu->queue, staging, CL_TRUE, CL_MAP_WRITE, 0, size, 0, NULL, NULL, &status);
	CHECK(status);
	fill_random(pixels, size, seed);
	CHECK(clEnqueueUnmapMemObject(gpu->queue, staging, pixels, 0, NULL, NULL));
	CHECK(clEnqueueCopyBuffer(gpu->queue, staging, frame, 0, 0, size, 0, NULL, NULL));
	CHECK(clReleaseMemObject(staging));
}

/* Fetches a frame into pinned memory and adds it to a checksum. */
static uint64_t download(const struct gpu *gpu, cl_mem frame, size_t size, uint64_t hash)
{
	cl_mem readback = create_readback(gpu, size);
	CHECK(clEnqueueCopyBuffer(gpu->queue, frame, readback, 0, 0, size, 0, NULL, NULL));
	cl_int status;
	void *pixels = clEnqueueMapBuffer(gpu->queue, readback, CL_TRUE, CL_MAP_READ, 0, size, 0, NULL, NULL, &status);
	CHECK(status);
	hash = checksum(hash, pixels, size);
	CHECK(clEnqueueUnmapMemObject(gpu->queue, readback, pixels, 0, NULL, NULL));
	CHECK(clReleaseMemObject(readback));
	return hash;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[FRAMES] [SIZE]", 2);
	size_t frames = arguments_count(&arguments, 0, 60);
	size_t largest = arguments_size(&arguments, 1, 8u << 20);

	struct gpu gpu = gpu_open(0);
	cl_program program = gpu_build(&gpu, source);
	cl_kernel brighten = gpu_kernel(program, "brighten");
	uint64_t start = now_ns(), hash = CHECKSUM_START;

	cl_mem frame = create_frame(&gpu, largest);
	for (size_t i = 0; i < frames; i++) {
		size_t size = (largest - largest / 16 * (i % 4)) & ~(size_t)3;
		if (size == 0)
			size = 4;
		cl_uint pixels = (cl_uint)(size / sizeof(cl_uint)), by = (cl_uint)i;
		upload(&gpu, frame, size, i);
		gpu_arguments(brighten, sizeof frame, &frame, sizeof pixels, &pixels, sizeof by, &by, (size_t)0);
		gpu_run(&gpu, brighten, pixels);
		hash = download(&gpu, frame, size, hash);
	}
	report_time(&arguments, start);

	CHECK(clReleaseMemObject(frame));
	CHECK(clReleaseKernel(brighten));
	CHECK(clReleaseProgram(program));
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
