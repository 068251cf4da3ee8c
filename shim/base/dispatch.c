/*
 * dispatch.c: the driver's functions.
 *
 * They come from one of two places: the library's exported entries, found with dlsym, or the table that an ICD loader
 * gives its layers (entry/layer.c). A loader's entry calls its outermost layer, which is this library. So if we are a layer,
 * hooks must call the table's functions, or their calls would come back to them. Otherwise hooks call the entries.
 */
#define _GNU_SOURCE
#include "dispatch.h"

#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

typedef void (*function)(void);

#define IN_TABLE(name) (offsetof(struct _cl_icd_dispatch, name) / sizeof(void *))
#define NOT_IN_TABLE SIZE_MAX

static const struct hook {
	const char *name;
	function ours;
	size_t slot;  /* offset in struct gmt_functions */
	size_t index; /* in the table of a loader */
} hooks[] = {
#define HOOK(name) {#name, (function)name, offsetof(struct gmt_functions, name), IN_TABLE(name)},
#define HOOK_EXTENSION(name) {#name, (function)name, offsetof(struct gmt_functions, name), NOT_IN_TABLE},
#include "hooks.def"
#undef HOOK
#undef HOOK_EXTENSION
/* Functions that we call but do not hook. */
#define HELPER(name) {#name, NULL, offsetof(struct gmt_functions, name), IN_TABLE(name)}
	HELPER(clGetKernelInfo),
	HELPER(clGetKernelArgInfo),
	HELPER(clGetProgramInfo),
	HELPER(clGetProgramBuildInfo),
	HELPER(clEnqueueWaitForEvents),
#undef HELPER
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Hooks may be calling while the functions change from entries to a table or back. So a published set never changes,
 * except for extensions, which go into all sets; a changed copy replaces it. Every set works, because all lead to the same
 * drivers: a hook that still calls an entry comes back to a hook, which then only forwards (gmt_inside).
 */
#define SETS_MAX 24 /* one for the library, at most two for each loader; then the last set stays */
static struct gmt_functions sets[SETS_MAX];
static unsigned current; /* of sets */
static struct gmt_functions over_sets[SETS_MAX]; /* copies of sets, with the functions of gmt_dispatch_override */
static void (*put_over)(struct gmt_functions *);
_Atomic(struct gmt_functions *) gmt_driver_now = &sets[0];
_Atomic(struct gmt_functions *) gmt_bare_now = &sets[0];

/* The library's own functions, from dlsym; NULL for extensions. Fixed once resolved is 1. */
static void *entries[COUNT(hooks)];
static _Atomic int resolved; /* 1: entries, -1: there is no library */
static _Atomic int ready;    /* 1: gmt_driver can be called, -1: there is no driver */
static bool layered;         /* gmt_driver is a loader's table */
static _Atomic(const char *) lone_driver; /* path of the library that open_lone_driver found */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* guards all of the above; no calls are made under it */

static void **slot_of_hook(struct gmt_functions *set, const struct hook *hook)
{
	return (void **)(void *)((char *)set + hook->slot);
}

static struct gmt_functions *copy_with_overrides(void)
{
	struct gmt_functions *set = &over_sets[current];
	for (size_t i = 0; i < COUNT(hooks); i++)
		__atomic_store_n(slot_of_hook(set, &hooks[i]), __atomic_load_n(slot_of_hook(&sets[current], &hooks[i]), __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
	put_over(set);
	return set;
}

void gmt_dispatch_override(void (*over)(struct gmt_functions *functions))
{
	pthread_mutex_lock(&writing);
	put_over = over;
	atomic_store_explicit(&gmt_driver_now, copy_with_overrides(), memory_order_release);
	pthread_mutex_unlock(&writing);
}

/*
 * Publishes a set in which functions (in the order of hooks) replace the current ones, except those that are NULL. missing:
 * only where there is none yet.
 */
static void publish_functions(void *const *functions, bool missing)
{
	if (current + 1 == SETS_MAX)
		return;
	struct gmt_functions *old = &sets[current], *set = &sets[++current];
	for (size_t i = 0; i < COUNT(hooks); i++) {
		void *was = __atomic_load_n(slot_of_hook(old, &hooks[i]), __ATOMIC_RELAXED);
		bool taken = functions[i] && !(missing && was);
		__atomic_store_n(slot_of_hook(set, &hooks[i]), taken ? functions[i] : was, __ATOMIC_RELAXED);
	}
	atomic_store_explicit(&gmt_bare_now, set, memory_order_release);
	atomic_store_explicit(&gmt_driver_now, put_over ? copy_with_overrides() : set, memory_order_release);
	atomic_store(&ready, set->clCreateBuffer && set->clReleaseMemObject ? 1 : -1);
}

gmt_dlsym_fn *gmt_real_dlsym(void)
{
	static _Atomic(gmt_dlsym_fn *) real;
	gmt_dlsym_fn *found = atomic_load_explicit(&real, memory_order_relaxed);
	if (gmt_likely(found != NULL))
		return found;
	/* dlsym's version since it moved into libc, then its old versions by architecture. */
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

static int find_loaded_loader(struct dl_phdr_info *info, size_t size, void *path)
{
	(void)size;
	if (!is_loader(info->dlpi_name))
		return 0;
	*(const char **)path = info->dlpi_name;
	return 1;
}

#define MODULES_MOST 512
struct modules {
	const char *path[MODULES_MOST];
	size_t count;
};

static int add_module(struct dl_phdr_info *info, size_t size, void *list)
{
	(void)size;
	struct modules *all = list;
	if (all->count < MODULES_MOST && info->dlpi_name && *info->dlpi_name)
		all->path[all->count++] = info->dlpi_name;
	return 0;
}

/*
 * Opens a library of another name that has OpenCL's functions itself: a driver that the program opened without a loader. Its own
 * calls of these functions come to our hooks, and a loader would send them to the driver's table, which has our hooks, too.
 */
static void *open_lone_driver(void)
{
	struct modules all = {.count = 0};
	dl_iterate_phdr(add_module, &all);
	for (size_t i = 0; i < all.count; i++) {
		Dl_info info;
		void *library = dlopen(all.path[i], RTLD_LAZY | RTLD_NOLOAD);
		void *own = library ? gmt_real_dlsym()(library, "clGetPlatformIDs") : NULL;
		if (own && dladdr(own, &info) && info.dli_fname && strcmp(info.dli_fname, all.path[i]) == 0 &&
		    own != gmt_hook_named("clGetPlatformIDs")) {
			atomic_store(&lone_driver, all.path[i]); /* which stays, as we keep the library open */
			return library;
		}
		if (library)
			dlclose(library);
	}
	return NULL;
}

const char *gmt_dispatch_lone_driver(void)
{
	return atomic_load(&lone_driver);
}

/* Opens the OpenCL library in the global scope; else one that was loaded privately; else, with load, the system's. */
static void *open_library(bool load)
{
	if (gmt_real_dlsym()(RTLD_NEXT, "clGetPlatformIDs"))
		return RTLD_NEXT;
	const char *path = NULL;
	dl_iterate_phdr(find_loaded_loader, &path);
	if (path)
		return dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	void *driver = load ? open_lone_driver() : NULL;
	return driver || !load ? driver : dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_LOCAL);
}

/*
 * Looks up the entries, once. Never takes the linker's lock under ours: a library's constructor may call OpenCL while
 * its thread holds the linker's. Two threads that come at once find the same entries.
 */
static void resolve_entries(void *library)
{
	void *found[COUNT(hooks)] = {0};
	for (size_t i = 0; library && i < COUNT(hooks); i++)
		found[i] = hooks[i].index == NOT_IN_TABLE ? NULL : gmt_real_dlsym()(library, hooks[i].name);
	pthread_mutex_lock(&writing);
	if (atomic_load(&resolved) != 1) {
		memcpy(entries, found, sizeof entries);
		publish_functions(found, layered);
		atomic_store(&resolved, library ? 1 : -1);
	}
	pthread_mutex_unlock(&writing);
}

bool gmt_dispatch_ready(void)
{
	int now = atomic_load_explicit(&ready, memory_order_acquire);
	if (gmt_unlikely(now == 0)) {
		resolve_entries(open_library(true));
		now = atomic_load(&ready);
	}
	return now == 1;
}

bool gmt_dispatch_ready_from(const void *address)
{
	Dl_info info;
	if (!dladdr(address, &info) || !is_loader(info.dli_fname))
		return false;
	if (atomic_load_explicit(&resolved, memory_order_acquire) != 1) {
		void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
		if (library)
			resolve_entries(library);
	}
	return gmt_dispatch_ready();
}

bool gmt_dispatch_is_entry(const char *name, const void *address)
{
	for (size_t i = 0; atomic_load_explicit(&resolved, memory_order_acquire) == 1 && i < COUNT(hooks); i++)
		if (strcmp(hooks[i].name, name) == 0)
			return entries[i] == address;
	return false;
}

void gmt_dispatch_use_layer(const struct _cl_icd_dispatch *target, cl_uint count)
{
	void *const *table = (void *const *)(const void *)target;
	void *functions[COUNT(hooks)] = {0};
	for (size_t i = 0; i < COUNT(hooks); i++)
		functions[i] = hooks[i].index < count ? table[hooks[i].index] : NULL;
	/* What a short table lacks comes from the library, if one is loaded already. */
	void *library = atomic_load(&resolved) == 0 ? open_library(false) : NULL;
	if (library)
		resolve_entries(library);
	pthread_mutex_lock(&writing);
	publish_functions(functions, false);
	layered = true;
	pthread_mutex_unlock(&writing);
}

void gmt_dispatch_use_entries(void)
{
	pthread_mutex_lock(&writing);
	publish_functions(entries, false);
	layered = false;
	pthread_mutex_unlock(&writing);
}

void gmt_dispatch_hook_table(void **table, cl_uint count)
{
	for (size_t i = 0; i < COUNT(hooks); i++)
		if (hooks[i].ours && hooks[i].index < count && table[hooks[i].index])
			memcpy(&table[hooks[i].index], &hooks[i].ours, sizeof hooks[i].ours);
}

static const struct hook *hook_of_name(const char *name)
{
	for (size_t i = 0; i < COUNT(hooks); i++)
		if (hooks[i].ours && strcmp(hooks[i].name, name) == 0)
			return &hooks[i];
	return NULL;
}

void *gmt_hook_named(const char *name)
{
	const struct hook *hook = hook_of_name(name);
	void *ours = NULL;
	if (hook)
		memcpy(&ours, &hook->ours, sizeof ours);
	return ours;
}

bool gmt_dispatch_add_extension(const char *name, void *real)
{
	const struct hook *hook = hook_of_name(name);
	if (!hook || hook->index != NOT_IN_TABLE)
		return true;
	pthread_mutex_lock(&writing);
	void *there = __atomic_load_n(slot_of_hook(&sets[0], hook), __ATOMIC_RELAXED);
	for (size_t i = 0; !there && i < SETS_MAX; i++) {
		__atomic_store_n(slot_of_hook(&over_sets[i], hook), real, __ATOMIC_RELEASE);
		__atomic_store_n(slot_of_hook(&sets[i], hook), real, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&writing);
	return !there || there == real;
}
