/*
 * driver.h: OpenCL's functions as package cl calls them. The library is loaded on request, so that a
 * program with this package runs where there is no OpenCL. Calls whose cost is of interest are timed here, between the
 * call of a C function and its return: on the way from Go to C more time may pass than in a driver.
 */
#ifndef GPUMEMTOP_CL_DRIVER_H
#define GPUMEMTOP_CL_DRIVER_H

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include <stdint.h>

/* What a call made, its status, and how long it took. */
typedef struct {
	void *object;
	int64_t ns;
	cl_int status;
} timed;

/* Finds the functions; NULL, or what is wrong, which is valid until the next call. Not for two threads at a time. */
const char *driver_load(const char *library);

cl_int driver_platforms(cl_uint room, cl_platform_id *platforms, cl_uint *count);
cl_int driver_platform_info(cl_platform_id platform, cl_platform_info what, size_t room, void *value, size_t *size);
cl_int driver_devices(cl_platform_id platform, cl_uint room, cl_device_id *devices, cl_uint *count);
cl_int driver_device_info(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *size);
cl_context driver_context(cl_platform_id platform, cl_device_id device, cl_int *status);
cl_int driver_release_context(cl_context context);
cl_command_queue driver_queue(cl_context context, cl_device_id device, cl_int *status);
cl_int driver_release_queue(cl_command_queue queue);

timed driver_create(cl_context context, cl_mem_flags flags, size_t size);
timed driver_create_part(cl_mem memory, cl_mem_flags flags, size_t origin, size_t size);
timed driver_release(cl_mem memory);

/* Both wait until it is done. */
timed driver_fill(cl_command_queue queue, cl_mem memory, uint32_t pattern, size_t size);
timed driver_write(cl_command_queue queue, cl_mem memory, size_t offset, uint32_t value);

/* How long nothing takes. */
int64_t driver_nothing(void);

#endif
