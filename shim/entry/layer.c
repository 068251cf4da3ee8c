/*
 * layer.c: hooks calls that bypass both the exported names and dlsym.
 *
 * A program may bring its own copy of an ICD loader under another name, or open one so that preloaded names do not
 * count (RTLD_DEEPBIND). Loaders accept layers, libraries named in OPENCL_LAYERS. They give each layer a table of
 * functions to call, and call through the table that the layer returns (CL/cl_layer.h). We return theirs with our hooks.
 *
 * No call is counted twice: after the first table, hooks call that table's functions (gmt_driver), which come after the
 * loader's entries and after our hooks. So a call goes
 *
 *   preloaded name -> hook -> loader's table            or            loader's entry -> hook -> loader's table
 *
 * If we are a layer of several loaders, gmt_driver stays with the first: OpenCL objects name their driver themselves.
 *
 * The first OpenCL call of a program may enter one of our hooks, which calls the loader's entry because there is no table
 * yet. The loader then builds its table (under its own lock, once), and its entry calls the same hook through it. There
 * gmt_inside is set, or there is no session, so the hook only forwards to the table. So the loader need not start early.
 */
#define _GNU_SOURCE
#include "layer.h"

#include "../base/dispatch.h"
#include "../base/idle.h"
#include "../base/session.h"

#include <CL/cl_layer.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOADERS_MAX 8
#define LAYERS_ENV "OPENCL_LAYERS"
#define LAYERS_ROOM 4096
#define ENTRIES (sizeof(struct _cl_icd_dispatch) / sizeof(void *))

/* A list of properties, ended by 0. None is defined yet (cl_loader_layers 1.0.1). */
typedef cl_properties layer_properties;

GMT_HOOK cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count, const cl_icd_dispatch *target, cl_uint *countret,
						       const cl_icd_dispatch **table, const layer_properties *properties);
GMT_HOOK cl_int CL_API_CALL clDeinitLayer(void);

/* The code of one library. */
struct module {
	uintptr_t from, to;
};

/* The loaders that have us as a layer. Written under mutex; slots are not reused. */
static struct loader {
	_Atomic int live;
	cl_uint count;
	struct module module; /* empty if the program is linked with the loader: their frames cannot be distinguished */
	cl_icd_dispatch target, table;
} loaders[LOADERS_MAX];
static _Atomic unsigned loader_count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* The value of OPENCL_LAYERS at the start, if it names us. */
static struct {
	char *value; /* in the environment */
	size_t ours; /* index of our path in it */
	char copy[LAYERS_ROOM];
} layers;

static bool module_contains(const struct module *module, const void *address)
{
	return (uintptr_t)address >= module->from && (uintptr_t)address < module->to;
}

bool gmt_layer_is_loader_code(const void *address)
{
	unsigned count = atomic_load_explicit(&loader_count, memory_order_acquire);
	for (unsigned i = 0; i < count; i++)
		if (module_contains(&loaders[i].module, address))
			return true;
	return false;
}

struct around {
	const void *address;
	struct module module;
	char path[PATH_MAX]; /* empty for the main program */
};

static int find_module_around(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	struct around *around = arg;
	struct module module = {UINTPTR_MAX, 0};
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + part->p_vaddr;
		if (part->p_type != PT_LOAD)
			continue;
		module.from = from < module.from ? from : module.from;
		module.to = from + part->p_memsz > module.to ? from + part->p_memsz : module.to;
	}
	if (!module_contains(&module, around->address))
		return 0;
	around->module = module;
	(void)snprintf(around->path, sizeof around->path, "%s", info->dlpi_name);
	return 1;
}

/* Opens the library that has address once more; NULL for the main program. */
static void *library_of(const void *address, struct module *module)
{
	struct around around = {.address = address};
	dl_iterate_phdr(find_module_around, &around);
	*module = around.module;
	return around.path[0] ? dlopen(around.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

/* clInitLayer* of the layer in which this thread's loader has looked it up last, if it did through our dlsym. */
static __thread const void *asked __attribute__((tls_model("initial-exec")));

void gmt_layer_note_asked(const void *function)
{
	asked = function;
}

/*
 * The function that the caller of clInitLayer* or the like meant. If we are preloaded, our names come first in the whole
 * process: another layer's call to its own function of that name arrives here and must go back to it. In a tail call the
 * return address is the loader's, so we prefer the layer in which the loader looked last. Loaders do not export these names.
 */
static void *intended_function(const char *name, const void *caller)
{
	struct module ours, module;
	void *self = library_of(&loaders, &ours);
	if (self)
		dlclose(self);
	void *library = library_of(asked && !module_contains(&ours, asked) ? asked : caller, &module);
	void *symbol = library ? gmt_real_dlsym()(library, name) : NULL;
	if (library)
		dlclose(library);
	return symbol && module_contains(&module, symbol) && !module_contains(&ours, symbol) ? symbol : NULL;
}

/*
 * Keeps the loader in memory, because gmt_driver leads into it, and returns where its code is. It returns an empty module if
 * the program is linked with the loader: call stacks must then leave out no frames of that module.
 */
static struct module pin_loader(const void *caller)
{
	struct module module;
	void *library = library_of(caller, &module);
	void *entry = library ? gmt_real_dlsym()(library, "clGetPlatformIDs") : NULL;
	return entry && module_contains(&module, entry) ? module : (struct module){0};
}

/* Looks for our own path in OPENCL_LAYERS. */
__attribute__((constructor)) static void read_environment(void)
{
	Dl_info info;
	char *value = secure_getenv(LAYERS_ENV);
	if (!value || strlen(value) >= LAYERS_ROOM || !dladdr(&layers, &info))
		return;
	size_t length = strlen(info.dli_fname);
	for (char *path = value; path; path = strchr(path, ':')) {
		path += *path == ':';
		if (strncmp(path, info.dli_fname, length) == 0 && (path[length] == ':' || !path[length])) {
			strcpy(layers.copy, value);
			layers.ours = (size_t)(path - value);
			layers.value = value;
		}
	}
}

bool gmt_layer_expected(void)
{
	return layers.value != NULL;
}

/*
 * Restores the separators of OPENCL_LAYERS: ocl-icd writes a 0 after each path into the environment's string, so children would
 * inherit only the first layer. It has already read the paths before ours.
 */
static void repair_environment(void)
{
	char *value = layers.value;
	if (!value || getenv(LAYERS_ENV) != value)
		return;
	for (size_t i = 0; i < layers.ours; i++) {
		if (!value[i] && layers.copy[i] == ':')
			value[i] = ':';
		else if (value[i] != layers.copy[i])
			return;
	}
}

static cl_int init_layer(cl_uint count, const cl_icd_dispatch *target, cl_uint *countret, const cl_icd_dispatch **table,
		   const void *caller)
{
	if (!count || !target || !countret || !table)
		return CL_INVALID_VALUE;
	struct module module = pin_loader(caller);
	pthread_mutex_lock(&mutex);
	unsigned n = atomic_load(&loader_count);
	if (n == LOADERS_MAX) {
		pthread_mutex_unlock(&mutex);
		return CL_OUT_OF_HOST_MEMORY;
	}
	struct loader *loader = &loaders[n];
	loader->count = count < ENTRIES ? count : ENTRIES; /* entries that our header does not know stay as they are */
	loader->module = module;
	memcpy(&loader->target, target, loader->count * sizeof(void *));
	memcpy(&loader->table, target, loader->count * sizeof(void *));
	gmt_dispatch_hook_table((void **)(void *)&loader->table, loader->count);
	bool first = true;
	for (unsigned i = 0; i < n; i++)
		first = first && !loaders[i].live;
	atomic_store(&loader->live, 1);
	atomic_store_explicit(&loader_count, n + 1, memory_order_release);
	repair_environment();
	pthread_mutex_unlock(&mutex);
	if (first)
		gmt_dispatch_use_layer(&loader->target, loader->count);
	*countret = loader->count;
	*table = &loader->table;
	return CL_SUCCESS;
}

GMT_HOOK cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *target, cl_uint *countret,
					const cl_icd_dispatch **table)
{
	const void *caller = __builtin_return_address(0);
	void *symbol = intended_function("clInitLayer", caller);
	if (!symbol)
		return init_layer(count, target, countret, table, caller);
	__typeof__(&clInitLayer) other;
	memcpy(&other, &symbol, sizeof other);
	return other(count, target, countret, table);
}

GMT_HOOK cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count, const cl_icd_dispatch *target, cl_uint *countret,
						       const cl_icd_dispatch **table, const layer_properties *properties)
{
	const void *caller = __builtin_return_address(0);
	void *symbol = intended_function("clInitLayerWithProperties", caller);
	if (!symbol)
		return properties && *properties ? CL_INVALID_PROPERTY : init_layer(count, target, countret, table, caller);
	__typeof__(&clInitLayerWithProperties) other;
	memcpy(&other, &symbol, sizeof other);
	return other(count, target, countret, table, properties);
}

/* The calling loader goes away, and its drivers. Later calls go to another loader, or to the library's entries. */
static void deinit_layer(const void *caller)
{
	gmt_idle_stop(); /* for good */
	gmt_session_make_quiet();
	pthread_mutex_lock(&mutex);
	unsigned n = atomic_load(&loader_count), next = n;
	for (unsigned i = 0; i < n; i++)
		if (module_contains(&loaders[i].module, caller))
			atomic_store(&loaders[i].live, 0);
	for (unsigned i = n; i-- > 0;)
		if (loaders[i].live)
			next = i;
	pthread_mutex_unlock(&mutex);
	if (next < n)
		gmt_dispatch_use_layer(&loaders[next].target, loaders[next].count);
	else
		gmt_dispatch_use_entries();
}

GMT_HOOK cl_int CL_API_CALL clDeinitLayer(void)
{
	const void *caller = __builtin_return_address(0);
	void *symbol = intended_function("clDeinitLayer", caller);
	if (symbol) {
		__typeof__(&clDeinitLayer) other;
		memcpy(&other, &symbol, sizeof other);
		return other();
	}
	deinit_layer(caller);
	return CL_SUCCESS;
}

static cl_int layer_info(cl_layer_info what, size_t room, void *value, size_t *needed)
{
	static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
	static const char name[] = "gpumemtop";
	const void *from = what == CL_LAYER_API_VERSION ? (const void *)&version : name;
	size_t size = what == CL_LAYER_API_VERSION ? sizeof version : sizeof name;
	if ((what != CL_LAYER_API_VERSION && what != CL_LAYER_NAME) || (value && room < size))
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, from, size);
	if (needed)
		*needed = size;
	return CL_SUCCESS;
}

GMT_HOOK cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t room, void *value, size_t *needed)
{
	void *symbol = intended_function("clGetLayerInfo", __builtin_return_address(0));
	if (!symbol)
		return layer_info(what, room, value, needed);
	__typeof__(&clGetLayerInfo) other;
	memcpy(&other, &symbol, sizeof other);
	return other(what, room, value, needed);
}
