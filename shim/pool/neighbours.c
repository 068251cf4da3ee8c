/* neighbours.c: see neighbours.h. */
#define _GNU_SOURCE
#include "neighbours.h"

#include "../base/call.h"
#include "../base/link.h"
#include "../base/lock.h"
#include "../base/ring.h"
#include "../base/session.h"

#define WAIT 500000000u /* ns: releases of the driver may take their time */
#define MOMENT 100000u
#define REST 100000000u /* after an ask that brought nothing: programs may try again and again */

static _Atomic uint32_t asking;
static _Atomic uint64_t vain; /* when the latest ask that brought nothing was over */

/* Not in a callback: the driver may wait for it. Not with --device-memory: other programs cannot add to that budget. */
static bool may_ask_session(const struct gmtregion *region, uint64_t now)
{
	return region && gmt_session.config.neighbours && !gmt_in_callback && !gmt_session_is_quiet() &&
	       !gmt_session.config.devicememory && now - atomic_load(&vain) > REST && !gmt_session_seccomp_installed() && !gmt_link_lost(0);
}

static bool ask_session(struct gmtregion *region, uint64_t need, uint64_t start)
{
	uint32_t number = region->asks + 1;
	__atomic_store_n(&region->lacks, need, __ATOMIC_RELAXED);
	__atomic_store_n(&region->asks, number, __ATOMIC_RELEASE);
	gmt_ring_wake_session();
	while (__atomic_load_n(&region->answered, __ATOMIC_ACQUIRE) != number)
		if (gmt_now() - start > WAIT || gmt_session_is_quiet())
			return false;
		else
			gmt_pause(MOMENT);
	return __atomic_load_n(&region->relieved, __ATOMIC_RELAXED) == 1;
}

bool gmt_neighbours_relieve(uint64_t need)
{
	struct gmtregion *region = gmt_session.region;
	uint64_t start = gmt_now();
	if (!may_ask_session(region, start))
		return false;
	while (atomic_exchange(&asking, 1)) { /* the memory that another thread is asking for may be enough for both */
		if (gmt_now() - start > WAIT)
			return false;
		gmt_pause(MOMENT);
	}
	bool some = ask_session(region, need, start);
	if (!some)
		atomic_store(&vain, gmt_now());
	atomic_store(&asking, 0);
	return some;
}
