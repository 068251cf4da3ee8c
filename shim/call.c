/* call.c: the clock, the guard and the locks of every hook. */
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
			if (++spins % 4096 == 0) /* a holder of lower priority would never run */
				nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
			else if (spins % 64 == 0)
				sched_yield();
			else
				gmt_pause();
		}
	}
}

__thread int gmt_holding __attribute__((tls_model("initial-exec")));
__thread int gmt_barred __attribute__((tls_model("initial-exec")));

/* A bounded wait in callbacks: a driver might call them with a lock of its own, which another thread's call needs. */
static bool lock_soon(_Atomic uint32_t *lock)
{
	for (unsigned spins = 0; spins < 4096; spins++) {
		if (!atomic_exchange_explicit(lock, 1, memory_order_acquire))
			return true;
		if (spins % 64 == 63)
			sched_yield();
		else
			gmt_pause();
	}
	return false;
}

bool gmt_lock_driver(_Atomic uint32_t *lock)
{
	if (gmt_unlikely(gmt_barred)) {
		if (gmt_holding || !lock_soon(lock))
			return false;
	} else {
		gmt_lock(lock);
	}
	gmt_holding++;
	return true;
}

void gmt_unlock_driver(_Atomic uint32_t *lock)
{
	gmt_holding--;
	gmt_unlock(lock);
}
