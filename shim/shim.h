/*
 * shim.h: the preload library's own header.
 *
 * A call of the program enters a hook (hook_*.c). The hook asks call.c whether we may act at all, forwards to the
 * real function (next.c), keeps the books that make pooling safe (objects.c, inflight.c), asks the Go core how to
 * serve a buffer (pool.c), and writes one event into its thread's ring (ring.c). It never prints, aborts or waits
 * for the other process; whatever fails makes us transparent.
 *
 *   door_preload.c  how programs reach our hooks: exported names, dlsym, clGetExtensionFunctionAddress
 *   next.c          the real functions, resolved once
 *   session.c       the first call: connect, map the rings, load the core; fork and exit
 *   call.c          the five lines that every hook starts and ends with
 *   ring.c          events into shared memory
 *   tags.c          call sites
 *   objects.c       contexts, queues, kernels and memory objects by handle
 *   inflight.c      which queued commands use which memory, and when they are done
 *   pool.c          plan, create, commit; release, cool, evict
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
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../internal/wire/event.h"
#include "core.h"

#define GMT_HOOK __attribute__((visibility("default")))
#define gmt_likely(x) __builtin_expect(!!(x), 1)
#define gmt_unlikely(x) __builtin_expect(!!(x), 0)

/* next.c: the functions that we stand in front of. Valid once gmt_next_ready() has returned true. */
struct gmt_next {
#define HOOK(name) __typeof__(&name) name;
#define HOOK_EXTENSION(name) _Atomic(__typeof__(&name)) name;
#include "hooks.def"
#undef HOOK
#undef HOOK_EXTENSION
	__typeof__(&clGetDeviceInfo) clGetDeviceInfo;
	__typeof__(&clGetContextInfo) clGetContextInfo;
	__typeof__(&clGetKernelInfo) clGetKernelInfo;
	__typeof__(&clGetEventInfo) clGetEventInfo;
	__typeof__(&clGetImageInfo) clGetImageInfo;
	__typeof__(&clReleaseEvent) clReleaseEvent;
	__typeof__(&clEnqueueMarkerWithWaitList) clEnqueueMarkerWithWaitList;
	__typeof__(&clEnqueueBarrierWithWaitList) clEnqueueBarrierWithWaitList;
};
extern struct gmt_next gmt_next;

/* Resolves the real functions, once; false when this process has no OpenCL library. */
bool gmt_next_ready(void);
/* The same, from the library that holds address: a program that opens libOpenCL itself decides which one is real. */
bool gmt_next_ready_from(const void *address);
/* Our function for name, or NULL; *slot receives where the real one is kept. */
void *gmt_hook_named(const char *name, void ***slot);
/* glibc's own dlsym. */
typedef void *gmt_dlsym_fn(void *handle, const char *name);
gmt_dlsym_fn *gmt_real_dlsym(void);

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
/* Stops pooling for good and tells the session why. Blocks out there keep working. */
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
void gmt_diag(enum gmtdiag code, const char *text);

/* tags.c: the number of the call site whose return address is caller. */
uint32_t gmt_tag(struct gmt_call *call, const void *caller, uint64_t size);

/*
 * objects.c. Entries live in tables by handle and are type-stable: their memory is reused for entries of the same
 * type only and never returned, so that a stale pointer can be checked against a number instead of crashing.
 */
struct gmt_object {
	_Atomic(struct gmt_object *) chain;
	_Atomic(const void *) handle;
	_Atomic uint64_t number; /* from 1, never reused within its table; 0 while nobody owns the entry */
};

#define GMT_CLASSES_MAX 16
struct gmt_context {
	struct gmt_object object;
	_Atomic uint32_t references;
	uint64_t largest; /* bytes of the largest allocation that any of its devices takes; 0 unknown */
	_Atomic uint32_t queues;     /* alive */
	_Atomic uint32_t unordered;  /* 1: order between commands cannot be known (user events, native kernels) */
	_Atomic uint32_t ordered;    /* 1: a block was freed as ordered behind a queue's pending commands */
	_Atomic uint32_t classes;    /* used entries of flags and class */
	_Atomic uint32_t classlock;
	cl_mem_flags flags[GMT_CLASSES_MAX];
	uint32_t class[GMT_CLASSES_MAX];
};

#define GMT_MARKERS 16
struct gmt_marker {
	cl_event event;
	uint64_t position; /* all commands up to here have completed when event has */
};
struct gmt_queue {
	struct gmt_object object;
	_Atomic(struct gmt_context *) context;
	_Atomic bool inorder;
	_Atomic uint32_t references;
	_Atomic uint64_t enqueued; /* commands whose enqueue has returned */
	_Atomic uint64_t done;     /* commands known to have completed, counted the same way */
	_Atomic uint32_t lock;     /* markers, closed */
	_Atomic bool closed;       /* the driver may have freed it: no more markers */
	_Atomic uint32_t markers;
	struct gmt_marker marker[GMT_MARKERS]; /* oldest first */
	struct gmt_queue *zombies;             /* released by the program, commands pending */
};

struct gmt_kernel {
	struct gmt_object object;
	_Atomic uint32_t references;
	uint32_t arguments;
	uint64_t *argument; /* the 8 bytes last set, 0 for anything else */
};

/* The last command on one queue that used a memory object. */
struct gmt_use {
	struct gmt_queue *queue;
	uint64_t queuenumber;
	uint64_t position;
};
#define GMT_USES 4
struct gmt_uses {
	uint32_t count;
	bool many; /* used on more queues than fit: counts as used for ever */
	struct gmt_use use[GMT_USES];
};

struct gmt_memory {
	struct gmt_object object;
	struct gmt_memory *parent; /* a sub-buffer's buffer */
	struct gmt_context *context;
	uint64_t size;    /* requested */
	uint64_t granted; /* of the driver's object */
	uint64_t block;   /* 0: not pooled */
	uint32_t tag;
	uint16_t scope;
	uint8_t kind; /* enum gmtmemory */
	_Atomic uint8_t callbacks; /* has destructor callbacks */
	_Atomic uint32_t references;
	_Atomic uint32_t pins; /* 1 for all references together, 1 for each part: who takes the last one ends it */
	_Atomic int32_t maps;
	_Atomic uint32_t lock; /* uses */
	struct gmt_uses uses;
};

struct gmt_context *gmt_context_find(cl_context handle);
struct gmt_context *gmt_context_add(cl_context handle);
struct gmt_queue *gmt_queue_find(cl_command_queue handle);
struct gmt_queue *gmt_queue_add(cl_command_queue handle);
struct gmt_kernel *gmt_kernel_find(cl_kernel handle);
struct gmt_kernel *gmt_kernel_add(cl_kernel handle, uint32_t arguments);
struct gmt_memory *gmt_memory_find(const void *handle);
struct gmt_memory *gmt_memory_add(const void *handle);
/*
 * Takes an entry out of its table; false when another thread was first. Kernels and memory objects are reused from
 * then on; a queue waits for recycle, because its commands may be pending; a context is kept, because its objects
 * may outlive it.
 */
bool gmt_context_remove(struct gmt_context *context);
bool gmt_queue_remove(struct gmt_queue *queue);
void gmt_queue_recycle(struct gmt_queue *queue);
/* Calls visit for every queue that the program holds; visit must not add or remove one. */
void gmt_queue_each(void (*visit)(struct gmt_queue *, void *), void *arg);
bool gmt_kernel_remove(struct gmt_kernel *kernel);
bool gmt_memory_remove(struct gmt_memory *memory);

static inline uint16_t gmt_scope(const struct gmt_context *context)
{
	return context ? (uint16_t)context->object.number : 0;
}

void gmt_lock(_Atomic uint32_t *lock);
static inline void gmt_unlock(_Atomic uint32_t *lock)
{
	atomic_store_explicit(lock, 0, memory_order_release);
}

/* inflight.c */
enum gmt_flight {
	GMT_FLIGHT_DONE,    /* no queued command uses it */
	GMT_FLIGHT_ORDERED, /* one does, but whatever uses it later runs after that */
	GMT_FLIGHT_BUSY,
};
void gmt_use_add(struct gmt_memory *memory, struct gmt_queue *queue, uint64_t position);
enum gmt_flight gmt_uses_state(struct gmt_uses *uses, struct gmt_context *context);
/* The queue has completed everything up to position. */
void gmt_queue_done(struct gmt_queue *queue, uint64_t position);
void gmt_queue_poll(struct gmt_queue *queue);
/* The program's last release of a queue is about to reach the driver, or has. */
void gmt_queue_closing(struct gmt_queue *queue);
void gmt_queue_closed(struct gmt_queue *queue);
/* A second queue appears in a context: everything on it runs after what the first has queued. */
void gmt_queue_order_behind(struct gmt_queue *fresh);
/* Gives up everything held for a context whose last reference goes. */
void gmt_inflight_drop(struct gmt_context *context);

/* Blocks that were freed while in use wait here until their commands have completed. */
struct gmt_cooled {
	uint64_t block, size;
	uint32_t tag;
};
void gmt_cooling_add(const struct gmt_cooled *what, const struct gmt_uses *uses, struct gmt_context *context);
/* Looks at no more than most of them, never waits, and takes up to room that have cooled. */
unsigned gmt_cooling_take(struct gmt_cooled *out, unsigned room, unsigned most);

/* pool.c */
struct gmt_served {
	cl_mem handle;
	uint64_t block, granted;
	enum gmtoutcome outcome;
	uint8_t reason;
};
bool gmt_pool_eligible(struct gmt_context *context, cl_mem_flags flags, size_t size, const void *host);
struct gmt_served gmt_pool_create(struct gmt_call *call, struct gmt_context *context, cl_mem_flags flags, size_t size,
				  uint32_t tag, cl_int *error);
/* The program let go of memory for good: decides what becomes of it, and writes the RELEASE event. */
cl_int gmt_pool_release(struct gmt_call *call, struct gmt_memory *memory);
/* After an enqueue or create failed for want of memory: hands blocks back; false when there was nothing left. */
bool gmt_pool_drain(cl_int error, uint64_t need);
void gmt_pool_drop_context(struct gmt_context *context);
void gmt_pool_evicted(struct gmt_evictions *evictions);
/* Makes blocks free whose commands have completed; looks at no more than most of those that cool. */
void gmt_pool_settle(unsigned most);

/* hook helpers */
void gmt_write_create(const struct gmt_call *call, const struct gmt_memory *memory, const struct gmt_served *served, cl_int status);

#endif
