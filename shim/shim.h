/*
 * shim.h: the preload library's own header.
 *
 * A call of the program enters a hook (hook_*.c). The hook asks call.c whether we may act at all, forwards to the
 * real function (next.c), keeps the books that make pooling safe (objects.c, inflight.c), asks the Go core how to
 * serve a buffer (pool.c), and writes one event into its thread's ring (ring.c). It never prints, aborts or waits
 * for the other process; whatever fails makes us transparent.
 *
 *   door_preload.c  how programs reach our hooks: exported names, dlsym, clGetExtensionFunctionAddress
 *   door_layer.c    the same for what passes these by: we are a layer in ICD loaders
 *   next.c          the real functions
 *   session.c       the first call: connect, map the rings, load the core; fork and exit
 *   call.c          the five lines that every hook starts and ends with
 *   ring.c          events into shared memory
 *   tags.c          call sites
 *   objects.h, .c   contexts, queues, kernels, events and memory objects by handle
 *   queue.c         which commands of a queue have completed
 *   inflight.c      which queued commands use which memory; blocks that cool
 *   pool.h, .c      plan, create, commit
 *   part.c          buffers that are parts of slabs; images.c says where they may be
 *   late.c          those with destructor callbacks
 *   recycle.c       release, evict
 *   drain.c         running out of memory
 *   gauge.c         how free memory lies in slabs
 *   upload.c        filling recycled blocks: COPY_HOST_PTR, --scrub
 *   budget.c        --device-memory
 *   finding.c       mistakes of the program
 *   probe.c         what gpumemtop doctor asks
 *   signals.h, .c   the program's handlers and Go's stacks
 *   command.h, .c   what every enqueue has in common
 *   hook_*.c        the hooks, by kind of object
 */
#ifndef GMT_SHIM_H
#define GMT_SHIM_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#define CL_ENABLE_BETA_EXTENSIONS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_gl.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../internal/wire/event.h"
#include "core.h"

#define GMT_HOOK __attribute__((visibility("default")))
#define gmt_likely(x) __builtin_expect(!!(x), 1)
#define gmt_unlikely(x) __builtin_expect(!!(x), 0)

/* next.c: the functions that we stand in front of. */
struct gmt_functions {
#define HOOK(name) __typeof__(&name) name;
#define HOOK_EXTENSION(name) _Atomic(__typeof__(&name)) name;
#include "hooks.def"
#undef HOOK
#undef HOOK_EXTENSION
	__typeof__(&clGetKernelInfo) clGetKernelInfo;
	__typeof__(&clGetKernelArgInfo) clGetKernelArgInfo;
	__typeof__(&clGetImageInfo) clGetImageInfo;
};
/*
 * Those to call now; valid once gmt_next_ready() has returned true. Another set may take their place at any time, and
 * an old one stays as it is.
 */
extern _Atomic(struct gmt_functions *) gmt_next_now;
#define gmt_next (*atomic_load_explicit(&gmt_next_now, memory_order_acquire))

/* Resolves the real functions, once; false when this process has no OpenCL library. */
bool gmt_next_ready(void);
/* The same, from the library that holds address: a program that opens libOpenCL itself decides which one is real. */
bool gmt_next_ready_from(const void *address);
/* Whether address is the function of that name which the library itself exports. */
bool gmt_next_is_entry(const char *name, const void *address);
/* From here on the real functions are those of a loader's table of count pointers. */
struct _cl_icd_dispatch;
void gmt_next_from_layer(const struct _cl_icd_dispatch *target, cl_uint count);
/* That loader is going away: the library's own functions again, as far as there are any. */
void gmt_next_from_entries(void);
/* Puts our functions into the table that a loader gets from us, where it has functions of its own. */
void gmt_next_hook_table(void **table, cl_uint count);
/* Our function for name, or NULL. */
void *gmt_hook_named(const char *name);
/* Takes the real function behind an extension that we hook; false when another platform's is there already. */
bool gmt_next_extension(const char *name, void *real);
/* glibc's own dlsym. */
typedef void *gmt_dlsym_fn(void *handle, const char *name);
gmt_dlsym_fn *gmt_real_dlsym(void);

/* door_layer.c. Whether code at address belongs to an ICD loader that has us as a layer. */
bool gmt_layer_holds(const void *address);
/* Whether loaders in this process are asked to take us as a layer, as far as they know layers. */
bool gmt_layer_expected(void);
/* A loader has looked up how a layer is initialised, and found function. */
void gmt_layer_asked(const void *function);
/* door_preload.c. At the end of the process: tells what calls could not be seen. */
void gmt_preload_ends(void);

/* session.c */
enum gmt_state { GMT_STATE_NEW, GMT_STATE_ON, GMT_STATE_OFF };
struct gmt_session {
	_Atomic int state;    /* enum gmt_state */
	_Atomic int pooling;  /* 1 while buffers may be served from the pool */
	struct gmtconfig config;
	struct gmtregion *region;
	struct gmt_core {
#define GMT_CORE_FUNCTION(name) gmt_core_##name##_fn *name;
		GMT_CORE_FUNCTIONS(GMT_CORE_FUNCTION)
#undef GMT_CORE_FUNCTION
	} core;
};
extern struct gmt_session gmt_session;

/* The first OpenCL call of the process; false when we stay out of it. Calls from other threads wait for it. */
bool gmt_session_start(void);
/* No more driver calls of our own accord, because the drivers may go away: calls of the program still pass. */
void gmt_session_quiet(void);
bool gmt_session_is_quiet(void);
/* Stops pooling for good and tells the session why. Blocks out there keep working, idle ones go to the driver. */
void gmt_pooling_off(enum gmtdiag code, const char *why);

static inline bool gmt_pooling(void)
{
	return atomic_load_explicit(&gmt_session.pooling, memory_order_relaxed) != 0;
}

/* call.c: one call of the program. */
struct gmt_call {
	uint64_t start;  /* CLOCK_MONOTONIC ns */
	uint64_t last;   /* the latest reading: a clock costs as much as a lock, so readings are shared */
	uint64_t driver; /* ns inside the driver */
};
/* ring.c: fetches what the next write needs from the session's processor, which has read there, while the driver
 * works. */
void gmt_ring_prepare(void);
uint64_t gmt_now(void);

/* The driver has returned from a call that began right after the latest reading. */
static inline void gmt_driver_returned(struct gmt_call *call)
{
	uint64_t now = gmt_now();
	call->driver += now - call->last;
	call->last = now;
}

/* 1 while this thread is inside a hook: OpenCL called by the driver or by us is not the program's. Initial-exec, so
 * that reading it never allocates. */
extern __thread int gmt_inside __attribute__((tls_model("initial-exec")));

/* Begins a hook; false: only forward. Every true is followed by gmt_leave. */
static inline bool gmt_enter(struct gmt_call *call)
{
	if (gmt_inside)
		return false;
	int state = atomic_load_explicit(&gmt_session.state, memory_order_acquire);
	if (gmt_unlikely(state != GMT_STATE_ON) && (state == GMT_STATE_OFF || !gmt_session_start()))
		return false;
	gmt_inside = 1;
	gmt_ring_prepare();
	call->start = call->last = gmt_now();
	call->driver = 0;
	return true;
}

/* The same without a clock reading, for calls that write no event of their own. */
static inline bool gmt_enter_untimed(void)
{
	if (gmt_inside)
		return false;
	int state = atomic_load_explicit(&gmt_session.state, memory_order_acquire);
	if (gmt_unlikely(state != GMT_STATE_ON) && (state == GMT_STATE_OFF || !gmt_session_start()))
		return false;
	gmt_inside = 1;
	return true;
}

static inline void gmt_leave(void)
{
	gmt_inside = 0;
}

/* ring.c. An event's time and duration are filled in by the caller. Dropped, and counted, when there is no room. */
void gmt_ring_write(const struct gmtevent *event);
void gmt_ring_write_payload(struct gmtevent *event, const void *payload, size_t length);
/* At fork, in the child. */
void gmt_ring_forget(void);
static inline uint32_t gmt_clamp32(uint64_t ns)
{
	return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}
static inline int16_t gmt_clamp16(int32_t status)
{
	return status < INT16_MIN ? INT16_MIN : status > INT16_MAX ? INT16_MAX : (int16_t)status;
}
void gmt_diag(enum gmtdiag code, const char *text);

/* This thread's latest decision, see enum gmtorder; 0: none. */
extern __thread uint64_t gmt_decision __attribute__((tls_model("initial-exec")));
/* Tells of a decision, at event's time, that no other event tells of. */
void gmt_order(enum gmtorder op, int64_t number, struct gmtevent event);
/* A decision that the next event tells of: tells its number unless others know it. False: the core has failed. */
static inline bool gmt_decided(int64_t number, uint64_t time)
{
	if (gmt_unlikely(number <= 0))
		return number == 0;
	if (gmt_likely((uint64_t)number == gmt_decision + 1))
		gmt_decision++;
	else
		gmt_order(GMT_ORDER_NEXT, number, (struct gmtevent){.time = time});
	return true;
}

/* tags.c: the number of the call site whose return address is caller. */
uint32_t gmt_tag(struct gmt_call *call, const void *caller, uint64_t size);

/* call.c: locks that are held for a few instructions. */
void gmt_lock(_Atomic uint32_t *lock);
static inline void gmt_unlock(_Atomic uint32_t *lock)
{
	atomic_store_explicit(lock, 0, memory_order_release);
}
/*
 * For a lock that is held while the driver is called: it may run a callback of the program inside that call, and the
 * callback come back here. False then, on the thread that holds such a lock, and in a callback that would wait long;
 * everybody else waits.
 */
bool gmt_lock_driver(_Atomic uint32_t *lock);
void gmt_unlock_driver(_Atomic uint32_t *lock);
extern __thread int gmt_holding __attribute__((tls_model("initial-exec"))); /* such locks held by this thread */
extern __thread int gmt_barred __attribute__((tls_model("initial-exec")));  /* 1: in a callback */

#endif
