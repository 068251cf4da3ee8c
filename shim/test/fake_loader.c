/*
 * fake_loader.c: an ICD loader for the tests, with the fake driver behind it and the layers of OPENCL_LAYERS in
 * between. Like real ones it starts at the first clGetPlatformIDs or clCreateContext. Knobs come from the environment:
 *
 *   FAKE_LOADER_PROPERTIES=1  layers are initialised with properties, and notified of the end (Khronos' loaders; else ocl-icd)
 *   FAKE_LOADER_ENTRIES=N     pointers in its table
 *   FAKE_LOADER_PLAIN=1       it does not know layers
 */
#define _GNU_SOURCE
#include "../base/opencl.h"

#include "fake_loader.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES ((cl_uint)(sizeof(cl_icd_dispatch) / sizeof(void *)))
#define LAYERS_MAX 4

struct fake_loader fake_loader;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cl_icd_dispatch driver;
static struct {
	cl_icd_dispatch table;
	void *library;
} layers[LAYERS_MAX];
static unsigned layer_count;

/* What the entries call; one each, because assembler cannot see the layout of a table. */
#define HOOK(name) __attribute__((visibility("hidden"))) void *fake_entry_##name;
#define HOOK_EXTENSION(name)
#include "../base/hooks.def"
#undef HOOK

static unsigned number_from(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);
	return text ? (unsigned)atoi(text) : otherwise;
}

static void call_into(const cl_icd_dispatch *table)
{
#define HOOK(name) memcpy(&fake_entry_##name, &table->name, sizeof(void *));
#include "../base/hooks.def"
#undef HOOK
}

static void find(void *library, void *function, const char *name)
{
	void *symbol = dlsym(library, name);
	memcpy(function, &symbol, sizeof symbol);
}

__attribute__((constructor)) static void open_driver(void)
{
	/* Beside us. Not by an RPATH: sanitizers call dlopen in our place. */
	char path[4096];
	Dl_info self;
	if (!dladdr(&fake_loader, &self) || strlen(self.dli_fname) >= sizeof path - 32)
		abort();
	strcpy(path, self.dli_fname);
	strcpy(strrchr(path, '/') + 1, "libfakedriver.so");
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		abort();
#define HOOK(name) find(library, &driver.name, #name);
#include "../base/hooks.def"
#undef HOOK
#undef HOOK_EXTENSION
#define HELPER(name) find(library, &driver.name, #name);
	HELPER(clGetPlatformIDs)
	HELPER(clGetDeviceInfo)
	HELPER(clGetContextInfo)
	HELPER(clGetKernelInfo)
	HELPER(clGetEventInfo)
	HELPER(clReleaseEvent)
	HELPER(clEnqueueMarkerWithWaitList)
	HELPER(clEnqueueBarrierWithWaitList)
	HELPER(clEnqueueWaitForEvents)
#undef HELPER
	call_into(&driver);
}

static cl_int init_layer(void *library, cl_uint count, const cl_icd_dispatch *target, cl_uint *got, const cl_icd_dispatch **table)
{
	if (number_from("FAKE_LOADER_PROPERTIES", 0)) {
		init_with_properties_fn *init;
		find(library, &init, "clInitLayerWithProperties");
		return init ? init(count, target, got, table, NULL) : CL_INVALID_VALUE;
	}
	pfn_clInitLayer init;
	find(library, &init, "clInitLayer");
	return init ? init(count, target, got, table) : CL_INVALID_VALUE;
}

static void add_layer(const char *path)
{
	const cl_icd_dispatch *target = layer_count ? &layers[layer_count - 1].table : &driver, *table = NULL;
	cl_uint count = number_from("FAKE_LOADER_ENTRIES", ENTRIES), got = 0;
	void *library = layer_count < LAYERS_MAX ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
	cl_layer_api_version version = 0;
	pfn_clGetLayerInfo info = NULL;
	if (library)
		find(library, &info, "clGetLayerInfo");
	if (!info || info(CL_LAYER_API_VERSION, sizeof version, &version, NULL) != CL_SUCCESS || version != CL_LAYER_API_VERSION_100)
		return;
	if (init_layer(library, count, target, &got, &table) != CL_SUCCESS || got > count)
		return;
	memcpy(&layers[layer_count].table, target, sizeof *target);
	for (cl_uint i = 0; i < got; i++)
		if (((void *const *)(const void *)table)[i])
			((void **)(void *)&layers[layer_count].table)[i] = ((void *const *)(const void *)table)[i];
	layers[layer_count].library = library;
	call_into(&layers[layer_count++].table);
}

static void start(void)
{
	fake_loader.starts++;
	char *path = number_from("FAKE_LOADER_PLAIN", 0) ? NULL : getenv("OPENCL_LAYERS");
	while (path && *path) { /* in place, as ocl-icd does it */
		char *next = strchr(path, ':');
		if (next)
			*next++ = 0;
		add_layer(path);
		path = next;
	}
	fake_loader.layers = layer_count;
}

void fake_loader_ends(void)
{
	call_into(&driver); /* first: who still calls gets through */
	while (layer_count > 0) {
		pfn_deinit end;
		find(layers[--layer_count].library, &end, "clDeinitLayer");
		if (end && number_from("FAKE_LOADER_PROPERTIES", 0))
			end();
	}
}

GMT_HOOK cl_int clGetPlatformIDs(cl_uint room, cl_platform_id *platforms, cl_uint *count)
{
	pthread_once(&once, start);
	return driver.clGetPlatformIDs(room, platforms, count);
}

GMT_HOOK cl_context clCreateContext(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
				    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
				    cl_int *errcode)
{
	pthread_once(&once, start);
	cl_api_clCreateContext next;
	memcpy(&next, &fake_entry_clCreateContext, sizeof next);
	return next(properties, count, devices, notify, data, errcode);
}

/* Not a tail call: the loader's frame stands between the program and a layer. */
GMT_HOOK cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *errcode)
{
	cl_api_clCreateBuffer next;
	memcpy(&next, &fake_entry_clCreateBuffer, sizeof next);
	cl_mem buffer = next(context, flags, size, host, errcode);
	atomic_fetch_add(&fake_loader.creates, 1);
	return buffer;
}
