/* hook_device.c: device queries. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../base/session.h"
#include "../entry/start.h"
#include "../pool/budget.h"

#include <string.h>

#define FREE_MEMORY 0x4039 /* CL_DEVICE_GLOBAL_FREE_MEMORY_AMD: free, and the largest free block, in KiB */
#define FREE_NUMBERS 2
#define KIB 1024

static bool is_memory_query(cl_device_info what)
{
	return what == CL_DEVICE_GLOBAL_MEM_SIZE || what == CL_DEVICE_MAX_MEM_ALLOC_SIZE || what == FREE_MEMORY;
}

static void cap_to_budget(cl_device_info what, void *value, size_t bytes)
{
	if (what != FREE_MEMORY) {
		*(cl_ulong *)value = gmt_budget_cap(*(cl_ulong *)value);
		return;
	}
	size_t *kib = value;
	for (size_t i = 0; i < FREE_NUMBERS && (i + 1) * sizeof *kib <= bytes; i++)
		if (kib[i] <= SIZE_MAX / KIB)
			kib[i] = (size_t)gmt_budget_left_bytes((cl_ulong)kib[i] * KIB) / KIB;
}

static cl_ulong query_number(cl_device_id device, cl_device_info what)
{
	cl_ulong value = 0;
	return gmt_driver.clGetDeviceInfo(device, what, sizeof value, &value, NULL) == CL_SUCCESS ? value : 0;
}

/*
 * Answers FREE_MEMORY, from the device's memory and what the process holds, for a driver that does not know this query.
 * Returns err if the driver knows it, or does not say how much memory the device has.
 */
static cl_int answer_free_memory(cl_device_id device, size_t room, void *value, size_t *bytes, cl_int err)
{
	size_t known = 0;
	cl_ulong global = query_number(device, CL_DEVICE_GLOBAL_MEM_SIZE), largest = query_number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
	if (!global || gmt_driver.clGetDeviceInfo(device, FREE_MEMORY, 0, NULL, &known) == CL_SUCCESS)
		return err;
	cl_ulong left = gmt_budget_free_bytes(global);
	size_t kib[FREE_NUMBERS] = {(size_t)(left / KIB), (size_t)((largest && largest < left ? largest : left) / KIB)};
	if (value && room < sizeof kib)
		return err;
	if (value)
		memcpy(value, kib, sizeof kib);
	*bytes = sizeof kib;
	return CL_SUCCESS;
}

GMT_HOOK cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *devices, cl_uint *count)
{
	if (gmt_inside || !gmt_dispatch_ready())
		return gmt_driver.clGetDeviceIDs(platform, type, room, devices, count);
	cl_uint found = 0;
	gmt_inside = 1;
	cl_int err = gmt_driver.clGetDeviceIDs(platform, type, room, devices, count ? count : &found);
	gmt_leave();
	gmt_session_note_device_query(type, err, err != CL_SUCCESS ? 0 : count ? *count : found);
	return err;
}

/* Queries for lists of extensions, from which --spill removes some. */
static bool is_extension_list(cl_device_info what)
{
	return what == CL_DEVICE_EXTENSIONS || what == CL_DEVICE_EXTENSIONS_WITH_VERSION;
}

/*
 * Reached through layers and dlsym only: it has no preloaded name. A loader takes this function from the driver itself
 * (cl_khr_icd). A preloaded name would catch the driver's reference to its own function and lead back to the loader.
 */
cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t room, void *value, size_t *needed)
{
	bool lists = what == CL_PLATFORM_EXTENSIONS || what == CL_PLATFORM_EXTENSIONS_WITH_VERSION;
	if ((!lists && gmt_dispatch_ready()) || !gmt_enter_untimed())
		return gmt_driver.clGetPlatformInfo(platform, what, room, value, needed);
	cl_int err = gmt_driver.clGetPlatformInfo(platform, what, room, value, needed);
	gmt_leave();
	return err;
}

/* With a budget the device reports less memory, because programs choose their sizes by it. */
GMT_HOOK cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *needed)
{
	bool memory = is_memory_query(what);
	if ((!memory && !is_extension_list(what) && gmt_dispatch_ready()) || !gmt_enter_untimed())
		return gmt_driver.clGetDeviceInfo(device, what, room, value, needed);
	size_t bytes = 0;
	cl_int err = gmt_driver.clGetDeviceInfo(device, what, room, value, &bytes);
	if (err == CL_INVALID_VALUE && what == FREE_MEMORY && gmt_session.config.answerfree)
		err = answer_free_memory(device, room, value, &bytes, err);
	else if (err == CL_SUCCESS && value && memory)
		cap_to_budget(what, value, bytes);
	if (err == CL_SUCCESS && needed)
		*needed = bytes;
	gmt_leave();
	return err;
}
