/*
 * preload.c: how a program reaches our hooks if we are preloaded.
 *
 * Linked programs find our exported names first. Programs that open libOpenCL themselves, by whatever name or path, call
 * dlsym. So our dlsym returns the hook, and leaves their handle and their library as they are. hooks/hook_extension.c returns
 * hooks of extension functions. layer.c catches programs that bypass both.
 */
#define _GNU_SOURCE
#include "preload.h"

#include "../base/call.h"
#include "../base/dispatch.h"
#include "../base/ring.h"
#include "../base/signals.h"
#include "../pool/images.h"
#include "exec.h"
#include "layer.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define LOADERS_MAX 8
#define NAME_ROOM 64

/*
 * Functions of further libOpenCL libraries. Such a library may take us as its layer when it is first used, and then we see its
 * calls. At the end of the process we report those that have not.
 */
static struct {
	_Atomic(const void *) function;
	char name[NAME_ROOM];
} seconds[LOADERS_MAX];

/* The path of the library that has a function; NULL: none has it now. */
static const char *library_of(const void *function)
{
	Dl_info info;
	return dladdr(function, &info) && info.dli_fname && *info.dli_fname ? info.dli_fname : NULL;
}

static void report_second_loader(const char *name, const void *function)
{
	const char *library = library_of(function);
	gmt_diag(GMT_DIAG_SECOND_LOADER, library ? library : name);
}

void gmt_preload_report_at_end(void)
{
	if (gmt_dispatch_lone_driver())
		gmt_diag(GMT_DIAG_SECOND_LOADER, gmt_dispatch_lone_driver());
	for (size_t i = 0; i < LOADERS_MAX; i++) {
		const void *function = atomic_load(&seconds[i].function);
		if (function && !gmt_layer_is_loader_code(function))
			report_second_loader(seconds[i].name, function);
	}
}

#ifndef GMT_NO_DLSYM /* sanitizers define their own dlsym */

static bool same_library(const void *a, const void *b)
{
	Dl_info one, other;
	return dladdr(a, &one) && dladdr(b, &other) && one.dli_fbase == other.dli_fbase;
}

static void note_second_loader(const char *name, const void *function)
{
	if (gmt_layer_is_loader_code(function))
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
		report_second_loader(name, function);
}

/* Our hook for a function found in an ICD loader; NULL if we have none. */
static void *hook_for(const char *name, void *real)
{
	void *ours = gmt_hook_named(name);
	if (!ours || !real || real == ours || !gmt_dispatch_ready_from(real))
		return NULL;
	if (!gmt_dispatch_is_entry(name, real)) {
		note_second_loader(name, real);
		return NULL;
	}
	return ours;
}

static bool is_layer_init(const char *name)
{
	return strncmp(name, "clInitLayer", strlen("clInitLayer")) == 0;
}

/* Whether a name may be one of the C library's functions that we hook, of signals and exec. dlsym in its handle finds the original. */
static inline bool may_be_libc(const char *name)
{
	return name[0] == 's' || name[0] == '_' || name[0] == 'p' || name[0] == 'w' || strncmp(name, "exec", 4) == 0 ||
	       strncmp(name, "fexec", 5) == 0;
}

static void *libc_hook(const char *name, void *real)
{
	void *ours = gmt_signals_hook_named(name, real);
	return ours ? ours : gmt_exec_hook_named(name, real);
}

static __attribute__((noinline)) bool is_hooked(void *handle, const char *name)
{
	if (gmt_images_is_create_name(name))
		atomic_store(&gmt_images_wanted, 1);
	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT)
		return false;
	if (may_be_libc(name))
		return true;
	return is_layer_init(name) || (!gmt_inside && gmt_hook_named(name));
}

static __attribute__((noinline)) void *look_up_hook(void *handle, const char *name)
{
	void *real = gmt_real_dlsym()(handle, name);
	if (is_layer_init(name)) {
		gmt_layer_note_asked(real);
		return real;
	}
	void *ours = may_be_libc(name) ? libc_hook(name, real) : hook_for(name, real);
	return ours ? ours : real;
}

/*
 * Forwards by a tail call: glibc finds the caller's scope (RTLD_NEXT, RTLD_DEFAULT) by the return address, so no frame of
 * ours may be in between. The compiler makes it a tail call at -O2, which a test checks.
 */
GMT_HOOK void *dlsym(void *restrict handle, const char *restrict name)
{
	gmt_dlsym_fn *real = gmt_real_dlsym();
	bool known = (name[0] == 'c' && name[1] == 'l') || may_be_libc(name);
	if (gmt_likely(!known) || !is_hooked(handle, name))
		return real(handle, name);
	return look_up_hook(handle, name);
}

#endif
