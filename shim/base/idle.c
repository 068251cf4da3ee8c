/* idle.c: see idle.h. Each side first announces itself and then looks for the other, so that one of them sees the other. */
#define _GNU_SOURCE
#include "idle.h"

#include "lock.h"
#include "session.h"

#define WAITS 100 /* of a millisecond each: bounded, because the driver may wait for a lock that the caller holds */

static _Atomic uint32_t stopped; /* threads that keep the core's thread out */
static _Atomic uint32_t inside;
static __thread bool own __attribute__((tls_model("initial-exec"))); /* this is the core's thread */

bool gmt_idle_begin(void)
{
	atomic_store(&inside, 1);
	own = true;
	if (!atomic_load(&stopped) && !gmt_session_is_quiet())
		return true;
	gmt_idle_end();
	return false;
}

void gmt_idle_end(void)
{
	own = false;
	atomic_store(&inside, 0);
	if (atomic_load(&stopped))
		gmt_futex_wake(&inside, 1 << 30);
}

void gmt_idle_stop(void)
{
	atomic_fetch_add(&stopped, 1);
	for (int i = 0; i < WAITS && !own && atomic_load(&inside); i++)
		gmt_futex_wait(&inside, 1, 1000000);
}

void gmt_idle_go(void)
{
	atomic_fetch_sub(&stopped, 1);
}

void gmt_idle_forget(void)
{
	atomic_store(&stopped, 0);
	atomic_store(&inside, 0);
}
