/*
 * staging: frames that go to the device and back through pinned memory, as netcl's transfers do. Every frame has a
 * staging buffer of its own in each direction (CL_MEM_ALLOC_HOST_PTR), which is mapped, filled or read, and released;
 * sizes vary a little from frame to frame. The device's own buffers stay.
 *
 * With the word "merged" the program follows gpumemtop advise: it writes frames where the device needs them, in a part of the
 * device's buffer, and keeps the buffer for the way back.
 *
 *	staging [-t] [FRAMES] [SIZE] [merged]     SIZE: bytes of the largest frame
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

/* The device's buffer, for the case that it is mapped itself. */
static __attribute__((noinline)) cl_mem create_mapped_frame(const struct gpu *gpu, size_t size)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size, NULL, &status);
	CHECK(status);
	return buffer;
}

static __attribute__((noinline)) cl_mem part_of_frame(cl_mem frame, size_t size)
{
	cl_int status;
	cl_buffer_region region = {0, size};
	cl_mem part = clCreateSubBuffer(frame, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
	CHECK(status);
	return part;
}

/* Fills a staging buffer through a mapping, and sends it to the device, if it is not there already. */
static void upload(const struct gpu *gpu, cl_mem frame, size_t size, uint64_t seed, bool merged)
{
	cl_mem staging = merged ? part_of_frame(frame, size) : create_staging(gpu, size);
	cl_int status;
	void *pixels = clEnqueueMapBuffer(gpu->queue, staging, CL_TRUE, CL_MAP_WRITE, 0, size, 0, NULL, NULL, &status);
	CHECK(status);
	fill_random(pixels, size, seed);
	CHECK(clEnqueueUnmapMemObject(gpu->queue, staging, pixels, 0, NULL, NULL));
	if (!merged)
		CHECK(clEnqueueCopyBuffer(gpu->queue, staging, frame, 0, 0, size, 0, NULL, NULL));
	CHECK(clReleaseMemObject(staging));
}

/* Fetches a frame into pinned memory, kept or made for it, and adds it to a checksum. */
static uint64_t download(const struct gpu *gpu, cl_mem frame, cl_mem kept, size_t size, uint64_t hash)
{
	cl_mem readback = kept ? kept : create_readback(gpu, size);
	CHECK(clEnqueueCopyBuffer(gpu->queue, frame, readback, 0, 0, size, 0, NULL, NULL));
	cl_int status;
	void *pixels = clEnqueueMapBuffer(gpu->queue, readback, CL_TRUE, CL_MAP_READ, 0, size, 0, NULL, NULL, &status);
	CHECK(status);
	hash = checksum(hash, pixels, size);
	CHECK(clEnqueueUnmapMemObject(gpu->queue, readback, pixels, 0, NULL, NULL));
	if (!kept)
		CHECK(clReleaseMemObject(readback));
	return hash;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[FRAMES] [SIZE] [merged]", 3);
	size_t frames = arguments_count(&arguments, 0, 60);
	size_t largest = arguments_size(&arguments, 1, 8u << 20);
	bool merged = arguments_merged(&arguments, 2);

	struct gpu gpu = gpu_open(0);
	cl_program program = gpu_build(&gpu, source);
	cl_kernel brighten = gpu_kernel(program, "brighten");
	uint64_t start = now_ns(), hash = CHECKSUM_START;

	cl_mem frame = merged ? create_mapped_frame(&gpu, largest) : create_frame(&gpu, largest);
	cl_mem kept = merged ? create_readback(&gpu, largest) : NULL;
	for (size_t i = 0; i < frames; i++) {
		size_t size = (largest - largest / 16 * (i % 4)) & ~(size_t)3;
		if (size == 0)
			size = 4;
		cl_uint pixels = (cl_uint)(size / sizeof(cl_uint)), by = (cl_uint)i;
		upload(&gpu, frame, size, i, merged);
		gpu_arguments(brighten, sizeof frame, &frame, sizeof pixels, &pixels, sizeof by, &by, (size_t)0);
		gpu_run(&gpu, brighten, pixels);
		hash = download(&gpu, frame, kept, size, hash);
	}
	report_time(&arguments, start);

	if (kept)
		CHECK(clReleaseMemObject(kept));
	CHECK(clReleaseMemObject(frame));
	CHECK(clReleaseKernel(brighten));
	CHECK(clReleaseProgram(program));
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
