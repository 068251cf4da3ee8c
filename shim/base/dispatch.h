/*
 * dispatch.h: the driver's functions, which every hook calls in the end, and the table of our hooks.
 */
#ifndef GMT_DISPATCH_H
#define GMT_DISPATCH_H

#include "opencl.h"

struct gmt_functions {
#define HOOK(name) __typeof__(&name) name;
#define HOOK_EXTENSION(name) _Atomic(__typeof__(&name)) name;
#include "hooks.def"
#undef HOOK
#undef HOOK_EXTENSION
	__typeof__(&clGetKernelInfo) clGetKernelInfo;
	__typeof__(&clGetKernelArgInfo) clGetKernelArgInfo;
	__typeof__(&clGetProgramInfo) clGetProgramInfo;
	__typeof__(&clGetProgramBuildInfo) clGetProgramBuildInfo;
	__typeof__(&clEnqueueWaitForEvents) clEnqueueWaitForEvents;
};

/*
 * The functions to call now; valid once gmt_dispatch_ready() has returned true. Another set may replace them at any
 * time; the old one stays valid.
 */
extern _Atomic(struct gmt_functions *) gmt_driver_now;
#define gmt_driver (*atomic_load_explicit(&gmt_driver_now, memory_order_acquire))

/* The driver's own functions, without those that --spill puts over them. */
extern _Atomic(struct gmt_functions *) gmt_bare_now;
#define gmt_bare (*atomic_load_explicit(&gmt_bare_now, memory_order_acquire))
/* Has hooks call the functions that over stores in a copy of the driver's. Once, before the first hook calls the driver. */
void gmt_dispatch_override(void (*over)(struct gmt_functions *functions));

/* Resolves the driver's functions, once; false if this process has no OpenCL library. */
bool gmt_dispatch_ready(void);
/* The same, from the library that holds address: a program that opens libOpenCL itself decides which one is real. */
bool gmt_dispatch_ready_from(const void *address);
/* The path of a driver that the program opened without a loader, and whose functions it calls unseen; NULL: there is none. */
const char *gmt_dispatch_lone_driver(void);
/* Whether address is the function of that name which the library itself exports. */
bool gmt_dispatch_is_entry(const char *name, const void *address);

/* Switches to the functions of a loader's table, which has count pointers. */
struct _cl_icd_dispatch;
void gmt_dispatch_use_layer(const struct _cl_icd_dispatch *target, cl_uint count);
/* Switches back to the library's own functions, if it has any, because the loader goes away. */
void gmt_dispatch_use_entries(void);
/* Puts our hooks into the table that a loader gets from us, except where it has no function of its own. */
void gmt_dispatch_hook_table(void **table, cl_uint count);

/* Our hook for name, or NULL. */
void *gmt_hook_named(const char *name);
/* Stores the driver's function that an extension's hook calls; false if another platform's is already there. */
bool gmt_dispatch_add_extension(const char *name, void *real);

/* glibc's own dlsym. */
typedef void *gmt_dlsym_fn(void *handle, const char *name);
gmt_dlsym_fn *gmt_real_dlsym(void);

#endif
