/*
 * wraps.c: a user's library for LD_PRELOAD, which wraps OpenCL functions, counts their calls and prints the counts at the end.
 * With -DBY_HANDLE it finds the next functions in libOpenCL itself, at its start, instead of by RTLD_NEXT.
 */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static __typeof__(&clCreateBuffer) create;
static __typeof__(&clReleaseMemObject) release;
static __typeof__(&clGetMemObjectInfo) info;
static __typeof__(&clGetPlatformIDs) platforms;
static __typeof__(&clFinish) finish;
static atomic_int creates, releases, infos, asked, finishes;

static void find(void *function, const char *name)
{
#ifdef BY_HANDLE
	static void *library;
	if (!library)
		library = dlopen("libOpenCL.so.1", RTLD_LAZY);
	void *found = dlsym(library, name);
#else
	void *found = dlsym(RTLD_NEXT, name);
#endif
	memcpy(function, &found, sizeof found);
}

__attribute__((constructor)) static void begin(void)
{
	find(&create, "clCreateBuffer");
	find(&release, "clReleaseMemObject");
	find(&info, "clGetMemObjectInfo");
	find(&platforms, "clGetPlatformIDs");
	find(&finish, "clFinish");
}

__attribute__((destructor)) static void end(void)
{
	printf("wraps: %d creates, %d releases, %d infos, %d platforms, %d finishes\n", creates, releases, infos, asked, finishes);
}

cl_int clGetPlatformIDs(cl_uint room, cl_platform_id *list, cl_uint *count)
{
	asked++;
	return platforms(room, list, count);
}

/* Asks for the size, by its own function. */
cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *error)
{
	creates++;
	cl_mem buffer = create(context, flags, size, host, error);
	if (buffer)
		clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, NULL);
	return buffer;
}

cl_int clReleaseMemObject(cl_mem buffer)
{
	releases++;
	return release(buffer);
}

cl_int clGetMemObjectInfo(cl_mem buffer, cl_mem_info what, size_t room, void *value, size_t *needed)
{
	infos++;
	return info(buffer, what, room, value, needed);
}

cl_int clFinish(cl_command_queue queue)
{
	finishes++;
	return finish(queue);
}
