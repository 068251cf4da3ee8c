/* spill.c: see spill.h. */
#define _GNU_SOURCE
#include "spill.h"

#include "../base/dispatch.h"
#include "../base/ring.h"
#include "../base/session.h"
#include "../pool/budget.h"
#include "command.h"
#include "create.h"
#include "gate.h"
#include "image.h"
#include "info.h"
#include "kernel.h"
#include "list.h"
#include "map.h"
#include "rect.h"
#include "residency.h"
#include "user_event.h"

#include <string.h>

/*
 * Extension functions that take no memory object and make no command that uses one unseen. Any other would get a handle that
 * is not the driver's, so programs find that the driver does not have it.
 */
static bool is_harmless(const char *name)
{
	static const char *const known[] = {
		"clIcdGetPlatformIDsKHR", "clIcdGetFunctionAddressForPlatformKHR", "clIcdSetPlatformDispatchDataKHR",
		"clCreateProgramWithILKHR", "clGetKernelSubGroupInfoKHR", "clGetKernelSuggestedLocalWorkSizeKHR",
		"clGetKernelSuggestedLocalWorkSizeINTEL", "clCreateSubDevicesEXT", "clRetainDeviceEXT", "clReleaseDeviceEXT",
		"clGetGLContextInfoKHR", "clTerminateContextKHR", "clHostMemAllocINTEL", "clDeviceMemAllocINTEL",
		"clSharedMemAllocINTEL", "clMemFreeINTEL", "clMemBlockingFreeINTEL", "clGetMemAllocInfoINTEL",
		"clEnqueueMemcpyINTEL", "clEnqueueMemFillINTEL", "clEnqueueMemsetINTEL", "clEnqueueMigrateMemINTEL",
		"clEnqueueMemAdviseINTEL", "clLogMessagesToSystemLogAPPLE", "clLogMessagesToStdoutAPPLE",
		"clLogMessagesToStderrAPPLE",
	};
	for (size_t i = 0; name && i < sizeof known / sizeof known[0]; i++)
		if (strcmp(name, known[i]) == 0)
			return true;
	return false;
}

static bool is_core(const char *name)
{
	static const char *const core[] = {
#define HOOK(function) #function,
#define HOOK_EXTENSION(function)
#include "../base/hooks.def"
#undef HOOK
#undef HOOK_EXTENSION
	};
	for (size_t i = 0; name && i < sizeof core / sizeof core[0]; i++)
		if (strcmp(name, core[i]) == 0)
			return true;
	return false;
}

static void *extension(const char *name)
{
	return is_harmless(name) || is_core(name) ? gmt_bare.clGetExtensionFunctionAddress(name) : NULL;
}

static void *extension_for(cl_platform_id platform, const char *name)
{
	return is_harmless(name) || is_core(name) ? gmt_bare.clGetExtensionFunctionAddressForPlatform(platform, name) : NULL;
}

static void put(struct gmt_functions *over)
{
	gmt_spill_put_contexts(over);
	gmt_spill_put_queues(over);
	gmt_spill_put_user_events(over);
	gmt_spill_put_gates(over);
	gmt_spill_put_creates(over);
	gmt_spill_put_info(over);
	gmt_spill_put_kernels(over);
	gmt_spill_put_buffer_commands(over);
	gmt_spill_put_rect_commands(over);
	gmt_spill_put_map_commands(over);
	gmt_spill_put_images(over);
	gmt_spill_put_list_commands(over);
	GMT_SPILL_OVER(over, clGetExtensionFunctionAddress, extension);
	GMT_SPILL_OVER(over, clGetExtensionFunctionAddressForPlatform, extension_for);
}

void gmt_spill_start(void)
{
	if (!gmt_session.config.spill)
		return;
	if (!gmt_spill_objects_begin()) {
		gmt_diag(GMT_DIAG_SPILL, "no room for the addresses of virtual objects");
		return;
	}
	gmt_budget_spill = gmt_spill_one;
	gmt_dispatch_put_over(put);
}
