/*
 * session.h: what this process knows of the gpumemtop session: whether it is connected, how the run is configured,
 * the shared memory and the Go core. entry/start.c connects.
 */
#ifndef GMT_SESSION_H
#define GMT_SESSION_H

#include "core.h"
#include "opencl.h"

enum gmt_state {
	GMT_STATE_NEW,
	GMT_STATE_ON,
	GMT_STATE_OFF,
	GMT_STATE_FORKED, /* as OFF, but the first use of OpenCL will be reported */
};

struct gmt_session {
	_Atomic int state;   /* enum gmt_state */
	_Atomic int pooling; /* 1 while the pool may serve buffers */
	_Atomic int quiet;   /* 1: the drivers may have been unloaded */
	_Atomic int begun;   /* 1: a thread of this process has begun to start */
	struct gmtconfig config;
	const void *bell; /* the futex that the session sleeps on; NULL: none */
	struct gmtregion *region;
	struct gmt_core {
#define GMT_CORE_FUNCTION(name) gmt_core_##name##_fn *name;
		GMT_CORE_FUNCTIONS(GMT_CORE_FUNCTION)
#undef GMT_CORE_FUNCTION
	} core;
} __attribute__((aligned(4096))); /* pages of its own, which are empty in a forked child */
extern struct gmt_session gmt_session;

static inline bool gmt_pooling(void)
{
	return atomic_load_explicit(&gmt_session.pooling, memory_order_relaxed) != 0;
}

/* Whether USE and SYNC events are wanted now. */
static inline bool gmt_uses(void)
{
	return gmt_session.config.uses == GMT_USES_ALWAYS ||
	       (gmt_session.config.uses == GMT_USES_ASKED && __atomic_load_n(&gmt_session.region->uses, __ATOMIC_RELAXED));
}

/*
 * Whether the program has installed a filter of system calls since we were loaded, which may kill it for calls that only we
 * make. Filters that were inherited, such as a container's, do not count: they permit what programs do when they start.
 */
bool gmt_session_seccomp_installed(void);

/* Ends pooling, and all calls of the driver but the program's: the drivers may be unloaded from here on. */
void gmt_session_make_quiet(void);
bool gmt_session_is_quiet(void);

#endif
