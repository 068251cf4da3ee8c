/* lock.h: spin locks. */
#ifndef GMT_LOCK_H
#define GMT_LOCK_H

#include "opencl.h"

/* Sleeps. A thread is not cancelled here, since it may hold a lock of ours. */
void gmt_pause(uint32_t nanoseconds);

/* Sleeps while word has the value; at most nanoseconds, less than a second, unless they are 0. Keeps errno. */
void gmt_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t nanoseconds);
void gmt_futex_wake(_Atomic uint32_t *word, int threads);

/* Called for each look of a thread that spins. */
static inline void gmt_cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Waits for a lock that is taken. For locks that are held for a few instructions, without a call of the driver. */
void gmt_lock_wait(_Atomic uint32_t *lock);
static inline void gmt_lock(_Atomic uint32_t *lock)
{
	if (gmt_unlikely(atomic_exchange_explicit(lock, 1, memory_order_acquire)))
		gmt_lock_wait(lock);
}
static inline void gmt_unlock(_Atomic uint32_t *lock)
{
#ifdef GMT_CHECKS_LOCKS /* builds for tests: a lock that no thread has taken guards nothing */
	if (!atomic_load_explicit(lock, memory_order_relaxed))
		__builtin_trap();
#endif
	atomic_store_explicit(lock, 0, memory_order_release);
}

/*
 * For locks that are held during calls of the driver. Such a call may run a callback of the program, and the callback
 * may come back here. Returns false, without the lock, on a thread that already holds such a lock, and in a callback
 * that would wait long. All others wait. A thread is not cancelled while it holds such a lock.
 */
bool gmt_lock_driver(_Atomic uint32_t *lock);
void gmt_unlock_driver(_Atomic uint32_t *lock);

#endif
