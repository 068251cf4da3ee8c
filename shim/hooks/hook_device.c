/* hook_device.c: device queries. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/start.h"
#include "../pool/budget.h"

#define FREE_MEMORY 0x4039 /* CL_DEVICE_GLOBAL_FREE_MEMORY_AMD: free, and the largest free block, in KiB */
#define FREE_NUMBERS 2
#define KIB 1024

static bool of_memory(cl_device_info what)
{
	return what == CL_DEVICE_GLOBAL_MEM_SIZE || what == CL_DEVICE_MAX_MEM_ALLOC_SIZE || what == FREE_MEMORY;
}

static void cap(cl_device_info what, void *value, size_t bytes)
{
	if (what != FREE_MEMORY) {
		*(cl_ulong *)value = gmt_budget_cap(*(cl_ulong *)value);
		return;
	}
	size_t *kib = value;
	for (size_t i = 0; i < FREE_NUMBERS && (i + 1) * sizeof *kib <= bytes; i++)
		if (kib[i] <= SIZE_MAX / KIB)
			kib[i] = (size_t)gmt_budget_left((cl_ulong)kib[i] * KIB) / KIB;
}

/* With a budget the device reports less memory, because programs size their work by it. */
GMT_HOOK cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *needed)
{
	bool memory = of_memory(what);
	if ((!memory && gmt_dispatch_ready()) || !gmt_enter_untimed())
		return gmt_driver.clGetDeviceInfo(device, what, room, value, needed);
	size_t bytes = 0;
	cl_int err = gmt_driver.clGetDeviceInfo(device, what, room, value, &bytes);
	if (err == CL_SUCCESS && needed)
		*needed = bytes;
	if (err == CL_SUCCESS && value && memory)
		cap(what, value, bytes);
	gmt_leave();
	return err;
}
