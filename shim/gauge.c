/* gauge.c: how free memory lies in slabs, as the policy sees it: where slabs come and go, and now and then in between. */
#define _GNU_SOURCE
#include "pool.h"
#include "signals.h"

#include <string.h>

#define BETWEEN 1000000 /* ns */

static _Atomic uint64_t last; /* 0: there has been no slab */

/* Whether it is this thread's turn to tell. */
static bool due(uint64_t time, bool now)
{
	uint64_t told = atomic_load_explicit(&last, memory_order_relaxed);
	if (!now && (!told || time < told + BETWEEN))
		return false;
	return atomic_compare_exchange_strong(&last, &told, time) || now;
}

void gmt_gauge(uint64_t time, bool now)
{
	struct gmt_gauge gauge;
	if (gmt_likely(!due(time, now)) || !gmt_pooling() || GMT_CORE(gauge(&gauge)) < 0)
		return;
	struct gmtevent event = {
		.time = time, .kind = GMT_KIND_GAUGE, .granted = gauge.bytes, .size = gauge.largest, .object = gauge.ranges,
	};
	memcpy(&event.link, &gauge.squares, sizeof event.link);
	gmt_ring_write(&event);
}

void gmt_gauge_end(void)
{
	if (atomic_load(&last))
		gmt_gauge(gmt_now(), true);
}
