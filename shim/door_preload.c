/*
 * door_preload.c: how a program reaches our hooks when we are preloaded.
 *
 * Linked programs find our exported names first. Programs that open libOpenCL themselves ask dlsym, whatever name
 * or path they opened it by, so that is where we answer; the handle and the library stay theirs. Extension
 * functions come from clGetExtensionFunctionAddress*.
 */
#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <string.h>

#ifndef GMT_NO_DLSYM /* sanitizers bring a dlsym of their own */

/* Our function in place of a real one found in an ICD loader; NULL when it is none of ours. */
static void *stand_in(const char *name, void *real)
{
	void **slot;
	void *ours = gmt_hook_named(name, &slot);
	if (!ours || !real || real == ours || !gmt_next_ready_from(real))
		return NULL;
	if (*slot != real) {
		gmt_diag(GMT_DIAG_SECOND_LOADER, name);
		return NULL;
	}
	return ours;
}

static __attribute__((noinline)) bool wanted(void *handle, const char *name)
{
	void **slot;
	return !gmt_inside && handle != RTLD_NEXT && handle != RTLD_DEFAULT && gmt_hook_named(name, &slot);
}

static __attribute__((noinline)) void *answer(void *handle, const char *name)
{
	void *real = gmt_real_dlsym()(handle, name);
	void *ours = stand_in(name, real);
	return ours ? ours : real;
}

/*
 * Forwarded as a tail call: glibc looks at the return address to find the caller's scope (RTLD_NEXT, RTLD_DEFAULT),
 * so no frame of ours may be in between. The compiler makes it one at -O2, which a test checks.
 */
GMT_HOOK void *dlsym(void *restrict handle, const char *restrict name)
{
	gmt_dlsym_fn *real = gmt_real_dlsym();
	if (gmt_likely(name[0] != 'c' || name[1] != 'l') || !wanted(handle, name))
		return real(handle, name);
	return answer(handle, name);
}

#endif

/* Functions whose use we cannot follow: memory that they record or address must never be recycled. */
static bool defeats_tracking(const char *name)
{
	static const char *const names[] = {
		"clCreateCommandBufferKHR",
		"clSetKernelArgDevicePointerEXT",
		"clEnqueueMigrateMemObjectEXT",
		"clImportMemoryARM",
		"clEnqueueAcquireExternalMemObjectsKHR",
		"clTerminateContextKHR",
	};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static void *extension(const char *name, void *real)
{
	if (!name || !real)
		return real;
	if (defeats_tracking(name))
		gmt_pooling_off(GMT_DIAG_TRANSPARENT, name);
	void **slot;
	void *ours = gmt_hook_named(name, &slot);
	if (!ours)
		return real;
	void *expected = NULL;
	if (!__atomic_compare_exchange_n(slot, &expected, real, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
	    expected != real && strstr(name, "INTEL")) {
		/* Another platform's function of the same name: two cannot stand behind one hook. */
		gmt_diag(GMT_DIAG_SECOND_LOADER, name);
		return real;
	}
	return ours;
}

GMT_HOOK void *clGetExtensionFunctionAddress(const char *name)
{
	if (!gmt_enter_untimed())
		return gmt_next_ready() ? gmt_next.clGetExtensionFunctionAddress(name) : NULL;
	void *found = extension(name, gmt_next.clGetExtensionFunctionAddress(name));
	gmt_leave();
	return found;
}

GMT_HOOK void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
	if (!gmt_enter_untimed())
		return gmt_next_ready() ? gmt_next.clGetExtensionFunctionAddressForPlatform(platform, name) : NULL;
	void *found = extension(name, gmt_next.clGetExtensionFunctionAddressForPlatform(platform, name));
	gmt_leave();
	return found;
}
