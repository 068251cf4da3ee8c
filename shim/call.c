/* call.c: the clock and the guard of every hook, and what a create says. */
#define _GNU_SOURCE
#include "shim.h"

#include <sched.h>
#include <time.h>

__thread int gmt_inside __attribute__((tls_model("initial-exec")));

uint64_t gmt_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void gmt_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Held for a few instructions only, so spinning beats sleeping; yields in case the holder was descheduled. */
void gmt_lock(_Atomic uint32_t *lock)
{
	for (unsigned spins = 0; atomic_exchange_explicit(lock, 1, memory_order_acquire); spins++) {
		while (atomic_load_explicit(lock, memory_order_relaxed)) {
			if (++spins % 64 == 0)
				sched_yield();
			else
				gmt_pause();
		}
	}
}

void gmt_write_create(const struct gmt_call *call, const struct gmt_memory *memory, const struct gmt_served *served, cl_int status)
{
	struct gmtevent event = {
		.time = call->last,
		.duration = gmt_clamp32(call->last - call->start),
		.cost = gmt_clamp32(call->driver),
		.kind = GMT_KIND_CREATE,
		.op = memory->kind,
		.outcome = (uint8_t)served->outcome,
		.reason = served->reason,
		.scope = memory->scope,
		.status = status,
		.tag = memory->tag,
		.object = memory->object.number,
		.size = memory->size,
		.granted = memory->granted,
		.link = memory->parent ? memory->parent->object.number : memory->block,
	};
	gmt_ring_write(&event);
}
