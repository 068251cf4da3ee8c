/*
 * card.c: a layer of the OpenCL loader (OPENCL_LAYERS) that makes the device a card that several programs share: CARD_BYTES in all, as
 * the file CARD counts them. The last 16 characters of CARD_UUID are its UUID. Creates of buffers that it has no room for fail with
 * CL_MEM_OBJECT_ALLOCATION_FAILURE. Memory counts until the driver releases it.
 */
#define _DEFAULT_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl_layer.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICE_UUID 0x106A /* of cl_khr_device_uuid */
#define UUID_BYTES 16

static cl_icd_dispatch next, table;
static _Atomic uint64_t *used;
static uint64_t most;

static int take(uint64_t bytes)
{
	uint64_t now = atomic_load(used);
	do
		if (bytes > most || now > most - bytes)
			return 0;
	while (!atomic_compare_exchange_weak(used, &now, now + bytes));
	return 1;
}

static void CL_CALLBACK gone(cl_mem memory, void *bytes)
{
	(void)memory;
	atomic_fetch_sub(used, (uint64_t)(uintptr_t)bytes);
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *needed)
{
	const char *uuid = getenv("CARD_UUID");
	if (what != DEVICE_UUID || !uuid || strlen(uuid) < UUID_BYTES || room < UUID_BYTES || !value)
		return next.clGetDeviceInfo(device, what, room, value, needed);
	memcpy(value, uuid + strlen(uuid) - UUID_BYTES, UUID_BYTES);
	if (needed)
		*needed = UUID_BYTES;
	return CL_SUCCESS;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *errcode)
{
	cl_mem memory = NULL;
	cl_int status = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	if (take(size)) {
		memory = next.clCreateBuffer(context, flags, size, host, &status);
		if (!memory || next.clSetMemObjectDestructorCallback(memory, gone, (void *)(uintptr_t)size) != CL_SUCCESS)
			atomic_fetch_sub(used, size);
	}
	if (errcode)
		*errcode = status;
	return memory;
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *target, cl_uint *got,
									const cl_icd_dispatch **ours)
{
	const char *name = getenv("CARD"), *bytes = getenv("CARD_BYTES");
	int fd = name && bytes ? open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd < 0 || ftruncate(fd, sizeof *used) != 0)
		return CL_OUT_OF_RESOURCES;
	void *shared = mmap(NULL, sizeof *used, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (shared == MAP_FAILED)
		return CL_OUT_OF_RESOURCES;
	used = shared;
	most = strtoull(bytes, NULL, 10);
	memcpy(&next, target, count * sizeof(void *));
	table.clCreateBuffer = create_buffer;
	table.clGetDeviceInfo = device_info;
	*got = count;
	*ours = &table;
	return CL_SUCCESS;
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t room, void *value, size_t *needed)
{
	cl_layer_api_version version = CL_LAYER_API_VERSION_100;
	if (what != CL_LAYER_API_VERSION || room < sizeof version || !value)
		return CL_INVALID_VALUE;
	memcpy(value, &version, sizeof version);
	if (needed)
		*needed = sizeof version;
	return CL_SUCCESS;
}
