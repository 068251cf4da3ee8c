/* hook_device.c: device queries. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/start.h"
#include "../pool/budget.h"

/* With a budget the device reports less memory, because programs size their work by it. */
GMT_HOOK cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *needed)
{
	bool memory = what == CL_DEVICE_GLOBAL_MEM_SIZE || what == CL_DEVICE_MAX_MEM_ALLOC_SIZE;
	if ((!memory && gmt_dispatch_ready()) || !gmt_enter_untimed())
		return gmt_driver.clGetDeviceInfo(device, what, room, value, needed);
	cl_int err = gmt_driver.clGetDeviceInfo(device, what, room, value, needed);
	if (err == CL_SUCCESS && value && memory)
		*(cl_ulong *)value = gmt_budget_cap(*(cl_ulong *)value);
	gmt_leave();
	return err;
}
