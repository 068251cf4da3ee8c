/*
 * dynamic: reaches OpenCL as plug-in systems do. It is not linked with libOpenCL: it opens the library by the name that
 * it is given and looks every function up, half of them by clGetExtensionFunctionAddressForPlatform where that knows
 * them.
 *
 *	dynamic [-t] LIBRARY [ITERATIONS] [SIZE]     LIBRARY: libOpenCL.so, libOpenCL.so.1, or a path; with @ in front it
 *	                                             is opened with RTLD_DEEPBIND, as programs do that bring their own
 */
#define _GNU_SOURCE /* RTLD_DEEPBIND */
#include "common.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions used here. The types come from CL/cl.h. */
#define FUNCTIONS(X)                                                                                                   \
	X(clGetPlatformIDs)                                                                                            \
	X(clGetExtensionFunctionAddressForPlatform)                                                                    \
	X(clGetDeviceIDs)                                                                                              \
	X(clCreateContext)                                                                                             \
	X(clReleaseContext)                                                                                            \
	X(clCreateCommandQueue)                                                                                        \
	X(clReleaseCommandQueue)                                                                                       \
	X(clCreateBuffer)                                                                                              \
	X(clReleaseMemObject)                                                                                          \
	X(clEnqueueFillBuffer)                                                                                         \
	X(clEnqueueReadBuffer)                                                                                         \
	X(clFinish)

static struct {
#define MEMBER(name) __typeof__(&name) name;
	FUNCTIONS(MEMBER)
#undef MEMBER
} cl;

/* Copies an address into a function pointer, which ISO C does not let one assign. */
static void assign(void *function, void *address, const char *name)
{
	if (address == NULL)
		fail("%s not found", name);
	memcpy(function, &address, sizeof address);
}

static void open_library(const char *name)
{
	bool own = *name == '@';
	name += own;
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | (own ? RTLD_DEEPBIND : 0));
	if (library == NULL)
		fail("cannot open %s: %s", name, dlerror());
#define LOOK_UP(name) assign(&cl.name, dlsym(library, #name), #name);
	FUNCTIONS(LOOK_UP)
#undef LOOK_UP
}

/* Takes a function from the platform instead; drivers may answer NULL for anything that is no extension. */
static void prefer_extension(cl_platform_id platform, void *function, const char *name)
{
	void *address = cl.clGetExtensionFunctionAddressForPlatform(platform, name);
	if (address != NULL)
		assign(function, address, name);
}

static cl_mem create_loaded(cl_context context, size_t size)
{
	cl_int status;
	cl_mem buffer = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &status);
	CHECK(status);
	return buffer;
}

static uint64_t work(cl_context context, cl_command_queue queue, size_t iterations, size_t size)
{
	uint64_t hash = CHECKSUM_START;
	void *host = allocate(size);
	for (size_t i = 0; i < iterations; i++) {
		cl_uint pattern = (cl_uint)i;
		cl_mem buffer = create_loaded(context, size);
		CHECK(cl.clEnqueueFillBuffer(queue, buffer, &pattern, sizeof pattern, 0, size, 0, NULL, NULL));
		CHECK(cl.clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, size, host, 0, NULL, NULL));
		hash = checksum(hash, host, size);
		CHECK(cl.clReleaseMemObject(buffer));
	}
	free(host);
	return hash;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "LIBRARY [ITERATIONS] [SIZE]", 3);
	if (arguments.count == 0)
		fail("usage: %s [-t] %s", arguments.program, arguments.usage);
	size_t iterations = arguments_count(&arguments, 1, 20);
	size_t size = arguments_size(&arguments, 2, 1u << 20);
	open_library(arguments.values[0]);

	cl_platform_id platform;
	cl_device_id device;
	cl_int status;
	CHECK(cl.clGetPlatformIDs(1, &platform, NULL));
	prefer_extension(platform, &cl.clCreateBuffer, "clCreateBuffer");
	prefer_extension(platform, &cl.clReleaseMemObject, "clReleaseMemObject");
	CHECK(cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	cl_context context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &status);
	CHECK(status);
	cl_command_queue queue = cl.clCreateCommandQueue(context, device, 0, &status);
	CHECK(status);

	uint64_t start = now_ns(), hash = work(context, queue, iterations, size);
	report_time(&arguments, start);
	CHECK(cl.clFinish(queue));
	CHECK(cl.clReleaseCommandQueue(queue));
	CHECK(cl.clReleaseContext(context));
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
