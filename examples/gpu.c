#include "common.h"

#include <stdarg.h>
#include <stdlib.h>

enum { PIECE = 1 << 20 }; /* bytes read at a time by checksum_buffer */

cl_device_id gpu_device(void)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_uint platforms = 0;
	if (clGetPlatformIDs(1, &platform, &platforms) != CL_SUCCESS || platforms == 0)
		fail("no OpenCL platform: install one, for example pocl-opencl-icd");
	CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	return device;
}

struct gpu gpu_open(cl_command_queue_properties properties)
{
	struct gpu gpu = {.device = gpu_device()};
	cl_int status;
	gpu.context = clCreateContext(NULL, 1, &gpu.device, NULL, NULL, &status);
	CHECK(status);
	gpu.queue = clCreateCommandQueue(gpu.context, gpu.device, properties, &status);
	CHECK(status);
	return gpu;
}

void gpu_close(struct gpu *gpu)
{
	CHECK(clFinish(gpu->queue));
	CHECK(clReleaseCommandQueue(gpu->queue));
	CHECK(clReleaseContext(gpu->context));
}

static _Noreturn void fail_build(const struct gpu *gpu, cl_program program)
{
	static char log[16384];
	clGetProgramBuildInfo(program, gpu->device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
	fail("cannot build the kernels:\n%s", log);
}

cl_program gpu_build(const struct gpu *gpu, const char *source)
{
	cl_int status;
	cl_program program = clCreateProgramWithSource(gpu->context, 1, &source, NULL, &status);
	CHECK(status);
	if (clBuildProgram(program, 1, &gpu->device, "-cl-kernel-arg-info", NULL, NULL) != CL_SUCCESS)
		fail_build(gpu, program);
	return program;
}

cl_kernel gpu_kernel(cl_program program, const char *name)
{
	cl_int status;
	cl_kernel kernel = clCreateKernel(program, name, &status);
	CHECK(status);
	return kernel;
}

void gpu_arguments(cl_kernel kernel, ...)
{
	va_list list;
	va_start(list, kernel);
	for (cl_uint i = 0;; i++) {
		size_t size = va_arg(list, size_t);
		if (size == 0)
			break;
		CHECK(clSetKernelArg(kernel, i, size, va_arg(list, const void *)));
	}
	va_end(list);
}

void gpu_run(const struct gpu *gpu, cl_kernel kernel, size_t items)
{
	CHECK(clEnqueueNDRangeKernel(gpu->queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
}

uint64_t checksum_buffer(uint64_t hash, const struct gpu *gpu, cl_mem buffer, size_t size)
{
	size_t piece = size < PIECE ? size : PIECE;
	void *host = allocate(piece);
	for (size_t at = 0; at < size; at += piece) {
		size_t part = size - at < piece ? size - at : piece;
		CHECK(clEnqueueReadBuffer(gpu->queue, buffer, CL_TRUE, at, part, host, 0, NULL, NULL));
		hash = checksum(hash, host, part);
	}
	free(host);
	return hash;
}
