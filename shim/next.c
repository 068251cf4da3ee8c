/* next.c: the real functions, resolved once, from the library that the program itself uses. */
#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

struct gmt_next gmt_next;

typedef void (*function)(void);

static const struct hook {
	const char *name;
	function ours;
	size_t slot;
	bool extension;
} hooks[] = {
#define HOOK(name) {#name, (function)name, offsetof(struct gmt_next, name), false},
#define HOOK_EXTENSION(name) {#name, (function)name, offsetof(struct gmt_next, name), true},
#include "hooks.def"
#undef HOOK
#undef HOOK_EXTENSION
};

/* Functions that we only call. */
static const struct hook helpers[] = {
#define HELPER(name) {#name, NULL, offsetof(struct gmt_next, name), false}
	HELPER(clGetDeviceInfo),
	HELPER(clGetContextInfo),
	HELPER(clGetKernelInfo),
	HELPER(clGetEventInfo),
	HELPER(clGetImageInfo),
	HELPER(clReleaseEvent),
	HELPER(clEnqueueMarkerWithWaitList),
	HELPER(clEnqueueBarrierWithWaitList),
#undef HELPER
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void **slot_of(const struct hook *hook)
{
	return (void **)(void *)((char *)&gmt_next + hook->slot);
}

gmt_dlsym_fn *gmt_real_dlsym(void)
{
	static _Atomic(gmt_dlsym_fn *) real;
	gmt_dlsym_fn *found = atomic_load_explicit(&real, memory_order_relaxed);
	if (gmt_likely(found != NULL))
		return found;
	/* The version that the symbol got when it moved into libc, then the old ones by architecture. */
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.27"};
	void *symbol = NULL;
	for (size_t i = 0; !symbol && i < COUNT(versions); i++)
		symbol = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	memcpy(&found, &symbol, sizeof found);
	atomic_store_explicit(&real, found, memory_order_relaxed);
	return found;
}

static bool is_loader(const char *path)
{
	if (!path)
		return false;
	const char *slash = strrchr(path, '/');
	return strncmp(slash ? slash + 1 : path, "libOpenCL", strlen("libOpenCL")) == 0;
}

static int find_loaded(struct dl_phdr_info *info, size_t size, void *path)
{
	(void)size;
	if (!is_loader(info->dlpi_name))
		return 0;
	*(const char **)path = info->dlpi_name;
	return 1;
}

/* The library behind the global scope; else one that is loaded privately; else the system's. */
static void *open_library(void)
{
	if (gmt_real_dlsym()(RTLD_NEXT, "clGetPlatformIDs"))
		return RTLD_NEXT;
	const char *path = NULL;
	dl_iterate_phdr(find_loaded, &path);
	if (path)
		return dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	return dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_LOCAL);
}

static void resolve(void *library, const struct hook *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		void *symbol = list[i].extension ? NULL : gmt_real_dlsym()(library, list[i].name);
		memcpy(slot_of(&list[i]), &symbol, sizeof symbol);
	}
}

static _Atomic int ready; /* 1: resolved, -1: there is nothing to resolve */
static pthread_mutex_t resolving = PTHREAD_MUTEX_INITIALIZER;

static bool resolve_once(void *library)
{
	pthread_mutex_lock(&resolving);
	if (atomic_load(&ready) == 0) {
		if (!library)
			library = open_library();
		if (library) {
			resolve(library, hooks, COUNT(hooks));
			resolve(library, helpers, COUNT(helpers));
		}
		atomic_store(&ready, library && gmt_next.clCreateBuffer && gmt_next.clReleaseMemObject ? 1 : -1);
	}
	pthread_mutex_unlock(&resolving);
	return atomic_load(&ready) == 1;
}

bool gmt_next_ready(void)
{
	int now = atomic_load_explicit(&ready, memory_order_acquire);
	return now ? now == 1 : resolve_once(NULL);
}

bool gmt_next_ready_from(const void *address)
{
	Dl_info info;
	if (!dladdr(address, &info) || !is_loader(info.dli_fname))
		return false;
	if (atomic_load_explicit(&ready, memory_order_acquire) == 0) {
		void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
		if (library)
			return resolve_once(library);
	}
	return gmt_next_ready();
}

void *gmt_hook_named(const char *name, void ***slot)
{
	for (size_t i = 0; i < COUNT(hooks); i++) {
		if (strcmp(hooks[i].name, name) == 0) {
			void *ours;
			memcpy(&ours, &hooks[i].ours, sizeof ours);
			*slot = slot_of(&hooks[i]);
			return ours;
		}
	}
	return NULL;
}
