/*
 * icd.c: a driver for tests of the tracer. Its contexts and buffers have no content, and its extension functions no
 * symbols. It never reuses objects.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct _cl_platform_id { cl_icd_dispatch *dispatch; };
struct _cl_device_id { cl_icd_dispatch *dispatch; };
struct _cl_context { cl_icd_dispatch *dispatch; };
struct _cl_mem { cl_icd_dispatch *dispatch; };

static cl_icd_dispatch table;
static struct _cl_platform_id platform = {&table};
static struct _cl_device_id device = {&table};

static void *object(void)
{
	cl_icd_dispatch **made = malloc(sizeof *made);
	if (!made)
		abort();
	*made = &table;
	return made;
}

static cl_int answer(const void *value, size_t size, size_t room, void *to, size_t *needed)
{
	if (to && room < size)
		return CL_INVALID_VALUE;
	if (to)
		memcpy(to, value, size);
	if (needed)
		*needed = size;
	return CL_SUCCESS;
}

EXPORT cl_int clGetPlatformInfo(cl_platform_id id, cl_platform_info what, size_t room, void *to, size_t *needed)
{
	(void)id;
	const char *text = what == CL_PLATFORM_EXTENSIONS ? "cl_khr_icd" : what == CL_PLATFORM_VERSION ? "OpenCL 3.0 test" : "test";
	return answer(text, strlen(text) + 1, room, to, needed);
}

static cl_int devices(cl_platform_id id, cl_device_type type, cl_uint room, cl_device_id *list, cl_uint *count)
{
	(void)id, (void)type;
	if (list && room)
		*list = &device;
	if (count)
		*count = 1;
	return CL_SUCCESS;
}

static cl_context context(const cl_context_properties *properties, cl_uint count, const cl_device_id *list,
			  void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data, cl_int *errcode)
{
	(void)properties, (void)count, (void)list, (void)notify, (void)data;
	if (errcode)
		*errcode = CL_SUCCESS;
	return object();
}

static cl_mem buffer(cl_context of, cl_mem_flags flags, size_t size, void *host, cl_int *errcode)
{
	(void)of, (void)flags, (void)host;
	if (errcode)
		*errcode = size ? CL_SUCCESS : CL_INVALID_BUFFER_SIZE;
	return size ? object() : NULL;
}

static cl_int release(cl_mem memory)
{
	return memory ? CL_SUCCESS : CL_INVALID_MEM_OBJECT;
}

static void *device_memory(cl_context of, cl_device_id on, const cl_mem_properties_intel *properties, size_t size, cl_uint alignment,
			   cl_int *errcode)
{
	(void)of, (void)on, (void)properties, (void)alignment;
	if (errcode)
		*errcode = CL_SUCCESS;
	return malloc(size);
}

static cl_int free_memory(cl_context of, void *memory)
{
	(void)of;
	free(memory);
	return CL_SUCCESS;
}

EXPORT cl_int clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *list, cl_uint *count)
{
	if (list && room)
		*list = &platform;
	if (count)
		*count = 1;
	return CL_SUCCESS;
}

static void *address(const char *name)
{
	typedef void (*function)(void);
	static const struct {
		const char *name;
		function address;
	} known[] = {
		{"clIcdGetPlatformIDsKHR", (function)clIcdGetPlatformIDsKHR},
		{"clGetPlatformInfo", (function)clGetPlatformInfo},
		{"clDeviceMemAllocINTEL", (function)device_memory},
		{"clMemFreeINTEL", (function)free_memory},
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strcmp(known[i].name, name) == 0)
			return (void *)known[i].address;
	return NULL;
}

/* Not under its public name, which a preloaded library may have, too. */
EXPORT void *clGetExtensionFunctionAddress(const char *name)
{
	return address(name);
}

static void *address_for_platform(cl_platform_id id, const char *name)
{
	(void)id;
	return address(name);
}

static cl_int unsupported(void)
{
	return CL_INVALID_OPERATION;
}

__attribute__((constructor)) static void fill(void)
{
	cl_int (*nothing)(void) = unsupported;
	for (size_t i = 0; i < sizeof table / sizeof nothing; i++)
		memcpy((char *)&table + i * sizeof nothing, &nothing, sizeof nothing);
	table.clGetPlatformInfo = clGetPlatformInfo;
	table.clGetDeviceIDs = devices;
	table.clCreateContext = context;
	table.clCreateBuffer = buffer;
	table.clReleaseMemObject = release;
	table.clGetExtensionFunctionAddressForPlatform = address_for_platform;
}
