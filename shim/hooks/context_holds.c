/* context_holds.c: see context_holds.h. */
#define _GNU_SOURCE
#include "context_holds.h"

#include "../../internal/wire/event_access.h"
#include "../base/lock.h"
#include "../base/ring.h"
#include "../pool/release.h"

/* Most sleeping contexts that can wake: nothing reports that a context is gone, so we forget the oldest. */
#define ASLEEP 64
static _Atomic(struct gmt_context *) asleep[ASLEEP];
static _Atomic uint32_t turns;

void gmt_context_write_event(const struct gmt_context *context, enum gmtlife life)
{
	struct gmtevent event = GMT_EVENT_CONTEXT(.time = gmt_now(), .life = life, .scope = gmt_context_id(context),
						  .context = context->object.id,
						  .device = life == GMT_LIFE_CREATE ? context->object.id : 0);
	gmt_ring_write(&event);
}

/* A thread that finds another one waking the context waits for it under the lock, so that it returns with the context awake. */
void gmt_context_hold(struct gmt_context *context)
{
	gmt_lock(&context->lock);
	bool wakes = atomic_fetch_add(&context->life.holds, 1) == 0;
	if (wakes) {
		context->life.wakes++;
		atomic_store(&context->life.asleep, false);
	}
	gmt_unlock(&context->lock);
	if (wakes)
		gmt_context_write_event(context, GMT_LIFE_CREATE);
}

bool gmt_context_let_go(struct gmt_context *context)
{
	if (!gmt_last_reference(&context->life.holds))
		return false;
	gmt_release_context(context);
	gmt_context_write_event(context, GMT_LIFE_END);
	uint32_t turn = atomic_fetch_add(&turns, 1);
	atomic_store(&context->life.slept, turn);
	struct gmt_context *oldest = atomic_exchange(&asleep[turn % ASLEEP], context);
	if (oldest && atomic_load(&oldest->life.slept) == turn - ASLEEP && atomic_load(&oldest->life.holds) == 0)
		gmt_context_remove(oldest);
	return true;
}
