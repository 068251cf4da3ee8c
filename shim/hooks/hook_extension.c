/* hook_extension.c: hands out our hooks for extension functions. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/start.h"
#include "../order/handout.h"
#include "../pool/evict.h"
#include "../pool/plan.h"

#include <string.h>

static bool begins_with(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/*
 * Whether an extension's command may use blocks unnoticed. Commands are harmless if they use no memory or that of other
 * interfaces, which is never pooled, or if they go into a command buffer, which counts as using all memory.
 */
static bool defeats_tracking(const char *name)
{
	static const char *const harmless[] = {
		"clEnqueueAcquire", "clEnqueueRelease", "clEnqueueSVM",
		"clEnqueueSignal", "clEnqueueWait", "clEnqueueReadGlobalVariable", "clEnqueueWriteGlobalVariable",
		"clEnqueueReadHostPipe", "clEnqueueWriteHostPipe", "clEnqueueGenerateMipmap",
	};
	static const char *const others[] = {"clSetContentSizeBuffer", "clRemapCommandBuffer", "clCreatePerfCountersCommandQueue"};
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (begins_with(name, others[i]))
			return true;
	if (!begins_with(name, "clEnqueue"))
		return false;
	for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
		if (begins_with(name, harmless[i]))
			return false;
	return true;
}

static void *hook_of_extension(const char *name, void *real)
{
	if (!name || !real)
		return real;
	void *ours = gmt_hook_named(name);
	if (!ours) {
		if (defeats_tracking(name))
			gmt_pooling_stop(GMT_DIAG_TRANSPARENT, name);
		if (begins_with(name, "clSVMFree") || begins_with(name, "clEnqueueSVM"))
			atomic_store(&gmt_pointers_elsewhere, 1);
		if (begins_with(name, "clEnqueueWait")) /* semaphores: a queue may wait for whatever signals them */
			gmt_queue_note_gate_outside();
		return real;
	}
	if (!gmt_dispatch_add_extension(name, real)) {
		/* Another platform's function of the same name: a hook can forward to only one. */
		if (strstr(name, "INTEL"))
			gmt_diag(GMT_DIAG_SECOND_LOADER, name);
		else
			gmt_pooling_stop(GMT_DIAG_SECOND_LOADER, name);
		return real;
	}
	return ours;
}

GMT_HOOK void *clGetExtensionFunctionAddress(const char *name)
{
	if (!gmt_enter_untimed())
		return gmt_dispatch_ready() ? gmt_driver.clGetExtensionFunctionAddress(name) : NULL;
	void *found = hook_of_extension(name, gmt_driver.clGetExtensionFunctionAddress(name));
	gmt_leave();
	return found;
}

GMT_HOOK void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
	if (!gmt_enter_untimed())
		return gmt_dispatch_ready() ? gmt_driver.clGetExtensionFunctionAddressForPlatform(platform, name) : NULL;
	void *found = hook_of_extension(name, gmt_driver.clGetExtensionFunctionAddressForPlatform(platform, name));
	gmt_leave();
	return found;
}
