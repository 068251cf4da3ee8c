/*
 * door_preload.c: how a program reaches our hooks when we are preloaded.
 *
 * Linked programs find our exported names first. Programs that open libOpenCL themselves ask dlsym, whatever name
 * or path they opened it by, so that is where we answer; the handle and the library stay theirs. Extension
 * functions come from clGetExtensionFunctionAddress*. Programs that are caught neither way: door_layer.c.
 */
#define _GNU_SOURCE
#include "pool.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define LOADERS_MAX 8
#define NAME_ROOM 64

/*
 * Functions of libOpenCL libraries beyond the first. Whether such a library takes us as its layer, so that its calls
 * are seen after all, shows only when it is used; so it is reported when the process ends, if then it did not.
 */
static struct {
	_Atomic(const void *) function;
	char name[NAME_ROOM];
} seconds[LOADERS_MAX];

void gmt_preload_ends(void)
{
	for (size_t i = 0; i < LOADERS_MAX; i++) {
		const void *function = atomic_load(&seconds[i].function);
		if (function && !gmt_layer_holds(function))
			gmt_diag(GMT_DIAG_SECOND_LOADER, seconds[i].name);
	}
}

#ifndef GMT_NO_DLSYM /* sanitizers bring a dlsym of their own */

static bool same_library(const void *a, const void *b)
{
	Dl_info one, other;
	return dladdr(a, &one) && dladdr(b, &other) && one.dli_fbase == other.dli_fbase;
}

static void second_loader(const char *name, const void *function)
{
	if (gmt_layer_holds(function))
		return;
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&mutex);
	size_t i = gmt_layer_expected() ? 0 : LOADERS_MAX;
	while (i < LOADERS_MAX && seconds[i].function && !same_library(seconds[i].function, function))
		i++;
	if (i < LOADERS_MAX && !seconds[i].function) {
		strncpy(seconds[i].name, name, NAME_ROOM - 1);
		atomic_store(&seconds[i].function, function);
	}
	pthread_mutex_unlock(&mutex);
	if (i == LOADERS_MAX)
		gmt_diag(GMT_DIAG_SECOND_LOADER, name);
}

/* Our function in place of a real one found in an ICD loader; NULL when it is none of ours. */
static void *stand_in(const char *name, void *real)
{
	void *ours = gmt_hook_named(name);
	if (!ours || !real || real == ours || !gmt_next_ready_from(real))
		return NULL;
	if (!gmt_next_is_entry(name, real)) {
		second_loader(name, real);
		return NULL;
	}
	return ours;
}

static bool of_a_layer(const char *name)
{
	return strncmp(name, "clInitLayer", strlen("clInitLayer")) == 0;
}

static __attribute__((noinline)) bool wanted(void *handle, const char *name)
{
	if (strncmp(name, "clCreateImage", strlen("clCreateImage")) == 0)
		atomic_store(&gmt_images_wanted, 1);
	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT)
		return false;
	return of_a_layer(name) || (!gmt_inside && gmt_hook_named(name));
}

static __attribute__((noinline)) void *answer(void *handle, const char *name)
{
	void *real = gmt_real_dlsym()(handle, name);
	if (of_a_layer(name)) {
		gmt_layer_asked(real);
		return real;
	}
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

static bool begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/*
 * Commands that we do not follow may use blocks behind our back. Those named here use shared memory, memory of other
 * interfaces, which is never pooled, or none; or they are recorded into a command buffer, which counts as a whole.
 */
static bool defeats_tracking(const char *name)
{
	static const char *const harmless[] = {
		"clEnqueueAcquire", "clEnqueueRelease", "clEnqueueSVM", "clEnqueueMem", "clEnqueueMigrateMemINTEL",
		"clEnqueueSignal", "clEnqueueWait", "clEnqueueReadGlobalVariable", "clEnqueueWriteGlobalVariable",
		"clEnqueueReadHostPipe", "clEnqueueWriteHostPipe", "clEnqueueGenerateMipmap",
	};
	static const char *const others[] = {"clSetContentSizeBuffer", "clRemapCommandBuffer", "clCreatePerfCountersCommandQueue"};
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (begins(name, others[i]))
			return true;
	if (!begins(name, "clEnqueue"))
		return false;
	for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
		if (begins(name, harmless[i]))
			return false;
	return true;
}

static void *extension(const char *name, void *real)
{
	if (!name || !real)
		return real;
	void *ours = gmt_hook_named(name);
	if (!ours) {
		if (defeats_tracking(name))
			gmt_pooling_off(GMT_DIAG_TRANSPARENT, name);
		if (begins(name, "clEnqueueWait")) /* semaphores: a queue may wait for whatever sets them */
			gmt_queue_gate_outside();
		return real;
	}
	if (!gmt_next_extension(name, real)) {
		/* Another platform's function of the same name: two cannot stand behind one hook. */
		if (strstr(name, "INTEL"))
			gmt_diag(GMT_DIAG_SECOND_LOADER, name);
		else
			gmt_pooling_off(GMT_DIAG_SECOND_LOADER, name);
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
