/* frag_stats.c: see frag_stats.h. */
#define _GNU_SOURCE
#include "frag_stats.h"

#include "../base/call.h"
#include "../base/ring.h"
#include "../base/signals.h"

#define INTERVAL 1000000 /* ns */

static _Atomic uint64_t last; /* 0: there has been no slab */

/* Whether it is this thread's turn to write. */
static bool take_turn_if_due(uint64_t time, bool now)
{
	uint64_t written = atomic_load_explicit(&last, memory_order_relaxed);
	if (!now && (!written || time < written + INTERVAL))
		return false;
	return atomic_compare_exchange_strong(&last, &written, time) || now;
}

void gmt_frag_stats_write(uint64_t time, bool now)
{
	struct gmt_gauge gauge;
	if (gmt_likely(!take_turn_if_due(time, now)) || !gmt_pooling() || GMT_CORE(gauge(&gauge)) < 0)
		return;
	struct gmtevent event = GMT_EVENT_GAUGE(.time = time, .free = gauge.bytes, .largest = gauge.largest, .ranges = gauge.ranges,
						.squares = gauge.squares);
	gmt_ring_write(&event);
}

void gmt_frag_stats_end(void)
{
	if (atomic_load(&last))
		gmt_frag_stats_write(gmt_now(), true);
}
