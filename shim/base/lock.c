/* lock.c: spin locks. Spinning beats sleeping, because holders keep them for a few instructions. */
#define _GNU_SOURCE
#include "lock.h"

#include "call.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static __thread int holding __attribute__((tls_model("initial-exec"))); /* locks of gmt_lock_driver that this thread holds */
static __thread int cancel_before __attribute__((tls_model("initial-exec")));

void gmt_pause(uint32_t nanoseconds)
{
	struct timespec time = {.tv_nsec = (long)nanoseconds};
	syscall(SYS_nanosleep, &time, NULL);
}

void gmt_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t nanoseconds)
{
	int saved = errno;
	struct timespec most = {.tv_nsec = (long)nanoseconds};
	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, nanoseconds ? &most : NULL, NULL, 0);
	errno = saved;
}

void gmt_futex_wake(_Atomic uint32_t *word, int threads)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

/* Spins, then yields in case the holder was descheduled, then sleeps in case it has a lower priority. */
void gmt_lock_wait(_Atomic uint32_t *lock)
{
	unsigned spins = 0;
	do {
		while (atomic_load_explicit(lock, memory_order_relaxed)) {
			if (++spins % 4096 == 0)
				gmt_pause(50000);
			else if (spins % 64 == 0)
				sched_yield();
			else
				gmt_cpu_pause();
		}
	} while (atomic_exchange_explicit(lock, 1, memory_order_acquire));
}

/*
 * Waits for a bounded time. The driver may have called the callback with a lock of its own, which the holder of our
 * lock needs in its own call of the driver.
 */
static bool lock_within_bound(_Atomic uint32_t *lock)
{
	for (unsigned spins = 0; spins < 4096; spins++) {
		if (!atomic_exchange_explicit(lock, 1, memory_order_acquire))
			return true;
		if (spins % 64 == 63)
			sched_yield();
		else
			gmt_cpu_pause();
	}
	return false;
}

bool gmt_lock_driver(_Atomic uint32_t *lock)
{
	if (gmt_unlikely(gmt_in_callback)) {
		if (holding || !lock_within_bound(lock))
			return false;
	} else {
		gmt_lock(lock);
	}
	holding++;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before);
	return true;
}

void gmt_unlock_driver(_Atomic uint32_t *lock)
{
	holding--;
	gmt_unlock(lock);
	pthread_setcancelstate(cancel_before, NULL);
}
