#include "work.h"

cl_mem create_worked(const struct gpu *gpu, size_t size)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, &status);
	CHECK(status);
	return buffer;
}

uint64_t work_once(const struct gpu *gpu, size_t number, size_t size, uint64_t hash)
{
	cl_uint pattern = (cl_uint)number;
	cl_mem buffer = create_worked(gpu, size);
	CHECK(clEnqueueFillBuffer(gpu->queue, buffer, &pattern, sizeof pattern, 0, size, 0, NULL, NULL));
	hash = checksum_buffer(hash, gpu, buffer, size);
	CHECK(clReleaseMemObject(buffer));
	return hash;
}

uint64_t work(const struct gpu *gpu, size_t iterations, size_t size)
{
	uint64_t hash = CHECKSUM_START;
	for (size_t i = 0; i < iterations; i++)
		hash = work_once(gpu, i, size, hash);
	return hash;
}
