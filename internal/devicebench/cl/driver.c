#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

static struct {
	cl_int(CL_API_CALL *platforms)(cl_uint, cl_platform_id *, cl_uint *);
	cl_int(CL_API_CALL *platform_info)(cl_platform_id, cl_platform_info, size_t, void *, size_t *);
	cl_int(CL_API_CALL *devices)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);
	cl_int(CL_API_CALL *device_info)(cl_device_id, cl_device_info, size_t, void *, size_t *);
	cl_context(CL_API_CALL *context)(const cl_context_properties *, cl_uint, const cl_device_id *,
					 void(CL_CALLBACK *)(const char *, const void *, size_t, void *), void *, cl_int *);
	cl_int(CL_API_CALL *release_context)(cl_context);
	cl_command_queue(CL_API_CALL *queue)(cl_context, cl_device_id, cl_command_queue_properties, cl_int *);
	cl_int(CL_API_CALL *release_queue)(cl_command_queue);
	cl_mem(CL_API_CALL *create)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
	cl_mem(CL_API_CALL *create_part)(cl_mem, cl_mem_flags, cl_buffer_create_type, const void *, cl_int *);
	cl_int(CL_API_CALL *release)(cl_mem);
	cl_int(CL_API_CALL *fill)(cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, cl_uint, const cl_event *,
				  cl_event *);
	cl_int(CL_API_CALL *write)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *, cl_uint,
				   const cl_event *, cl_event *);
	cl_int(CL_API_CALL *finish)(cl_command_queue);
} cl;

/* Where each function belongs. All are in OpenCL from 1.1 on but clEnqueueFillBuffer, which 1.2 brought. */
static const struct {
	const char *name;
	void *place;
} functions[] = {
	{"clGetPlatformIDs", &cl.platforms},
	{"clGetPlatformInfo", &cl.platform_info},
	{"clGetDeviceIDs", &cl.devices},
	{"clGetDeviceInfo", &cl.device_info},
	{"clCreateContext", &cl.context},
	{"clReleaseContext", &cl.release_context},
	{"clCreateCommandQueue", &cl.queue},
	{"clReleaseCommandQueue", &cl.release_queue},
	{"clCreateBuffer", &cl.create},
	{"clCreateSubBuffer", &cl.create_part},
	{"clReleaseMemObject", &cl.release},
	{"clEnqueueFillBuffer", &cl.fill},
	{"clEnqueueWriteBuffer", &cl.write},
	{"clFinish", &cl.finish},
};

const char *driver_load(const char *name)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return dlerror();
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		void *symbol = dlsym(library, functions[i].name);
		if (!symbol)
			return dlerror();
		memcpy(functions[i].place, &symbol, sizeof symbol);
	}
	return NULL;
}

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

cl_int driver_platforms(cl_uint room, cl_platform_id *platforms, cl_uint *count)
{
	return cl.platforms(room, platforms, count);
}

cl_int driver_platform_info(cl_platform_id platform, cl_platform_info what, size_t room, void *value, size_t *size)
{
	return cl.platform_info(platform, what, room, value, size);
}

cl_int driver_devices(cl_platform_id platform, cl_uint room, cl_device_id *devices, cl_uint *count)
{
	return cl.devices(platform, CL_DEVICE_TYPE_ALL, room, devices, count);
}

cl_int driver_device_info(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *size)
{
	return cl.device_info(device, what, room, value, size);
}

cl_context driver_context(cl_platform_id platform, cl_device_id device, cl_int *status)
{
	const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0};
	return cl.context(properties, 1, &device, NULL, NULL, status);
}

cl_int driver_release_context(cl_context context) { return cl.release_context(context); }

cl_command_queue driver_queue(cl_context context, cl_device_id device, cl_int *status)
{
	return cl.queue(context, device, 0, status);
}

cl_int driver_release_queue(cl_command_queue queue) { return cl.release_queue(queue); }

timed driver_create(cl_context context, cl_mem_flags flags, size_t size)
{
	timed result = {0};
	int64_t begun = now();
	result.object = cl.create(context, flags, size, NULL, &result.status);
	result.ns = now() - begun;
	return result;
}

timed driver_create_part(cl_mem memory, cl_mem_flags flags, size_t origin, size_t size)
{
	const cl_buffer_region region = {origin, size};
	timed result = {0};
	int64_t begun = now();
	result.object = cl.create_part(memory, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &result.status);
	result.ns = now() - begun;
	return result;
}

timed driver_release(cl_mem memory)
{
	timed result = {0};
	int64_t begun = now();
	result.status = cl.release(memory);
	result.ns = now() - begun;
	return result;
}

/* Bytes of one fill. NVIDIA's of 8 GiB never ends (580.159 on an H200); one of 4 GiB does. */
#define FILL_MOST ((size_t)1 << 30)

timed driver_fill(cl_command_queue queue, cl_mem memory, uint32_t pattern, size_t size)
{
	timed result = {0};
	int64_t begun = now();
	for (size_t at = 0; at < size && result.status == CL_SUCCESS; at += FILL_MOST) {
		size_t length = size - at < FILL_MOST ? size - at : FILL_MOST;
		result.status = cl.fill(queue, memory, &pattern, sizeof pattern, at, length, 0, NULL, NULL);
	}
	if (result.status == CL_SUCCESS)
		result.status = cl.finish(queue);
	result.ns = now() - begun;
	return result;
}

timed driver_write(cl_command_queue queue, cl_mem memory, size_t offset, uint32_t value)
{
	timed result = {0};
	int64_t begun = now();
	result.status = cl.write(queue, memory, CL_TRUE, offset, sizeof value, &value, 0, NULL, NULL);
	result.ns = now() - begun;
	return result;
}

int64_t driver_nothing(void)
{
	int64_t begun = now();
	return now() - begun;
}
