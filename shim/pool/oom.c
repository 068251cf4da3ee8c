/*
 * oom.c: out of memory. The pool gives blocks back and the hook tries the program's call again. Memory that another thread has
 * given back, or is about to, counts as well: if several calls fail together, they do not empty the pool for one of them, nor
 * does a call give up while memory is on its way.
 */
#define _GNU_SOURCE
#include "oom.h"

#include "../base/call.h"
#include "../base/lock.h"
#include "../base/ring.h"
#include "../base/signals.h"
#include "budget.h"
#include "neighbours.h"

/*
 * How long a thread waits for others inside the driver: a release may wait there for commands, and these for a user event
 * that the waiting thread is to set. For a thread inside the core, or just leaving it, a moment is enough.
 */
#define WAIT_FOR_DRIVER 100000000u /* ns */
#define WAIT_FOR_CORE 1000000u
#define MOMENT 20000u
#define OTHERS_MAX 64 /* retries because of other threads: the memory that they free need not help this call */
#define ASKS_MAX 3    /* retries because of other programs */

static _Alignas(64) _Atomic uint32_t draining;

bool gmt_out_of_memory(cl_int error)
{
	return error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_RESOURCES || error == CL_OUT_OF_HOST_MEMORY;
}

/* Whether blocks have reached the driver since the latest attempt began. */
static bool was_memory_freed(struct gmt_shortage *s)
{
	uint64_t given = atomic_load(&gmt_given_back);
	if (given == s->seen || s->others == OTHERS_MAX)
		return false;
	s->seen = given;
	s->others++;
	return true;
}

/*
 * Waits until other threads have freed memory or left, at most for most ns. Never in a callback: the other threads may be in a call
 * of the driver that waits for the callback.
 */
static bool wait_for_freed(struct gmt_shortage *s, _Atomic uint32_t *others, uint64_t most)
{
	uint64_t start = gmt_now();
	while (!was_memory_freed(s)) {
		if (!atomic_load(others) || gmt_in_callback || gmt_now() - start > most)
			return was_memory_freed(s);
		gmt_pause(MOMENT);
	}
	return true;
}

/* Gives ask bytes back, or more. False: nothing was left. */
static bool give_back_blocks(struct gmt_shortage *s, uint64_t ask)
{
	struct gmt_evictions evictions = {0};
	int64_t number = GMT_CORE_EVICTS(drain(ask, &evictions), &evictions);
	if (number < 0)
		gmt_pool_fail();
	if (number > 0)
		gmt_decision_write((struct gmtorderfields){
			.order = GMT_ORDER_DRAIN, .number = (uint64_t)number, .time = gmt_now(), .bytes = ask,
		});
	uint64_t sum = 0;
	for (uint32_t i = 0; i < evictions.count; i++)
		sum += evictions.list[i].size;
	s->given += evictions.more && sum < ask ? ask : sum;
	bool some = number >= 0 && evictions.count > 0;
	if (some)
		gmt_evict_all(&evictions);
	s->seen = atomic_load(&gmt_given_back);
	return some || number < 0; /* a pool that fails gives back all that it has */
}

/*
 * How many bytes to give back next: those that the budget lacks; else one block, and then each time as much as so far, so that at
 * most twice the need goes back.
 */
static uint64_t next_give_back_bytes(const struct gmt_shortage *s, uint64_t need)
{
	uint64_t lacks = gmt_budget_missing_bytes(need);
	return lacks ? lacks : s->given ? s->given : 1;
}

void gmt_oom_forestall(uint64_t need)
{
	uint64_t crowded = gmt_pooling() ? gmt_budget_crowded_bytes(need) : 0;
	if (gmt_likely(!crowded))
		return;
	struct gmt_shortage s = gmt_shortage();
	give_back_blocks(&s, crowded);
}

/* One thread drains at a time, unless that takes long. False: it took long. */
static bool take_drain_turn(void)
{
	if (!atomic_exchange(&draining, 1))
		return true;
	uint64_t start = gmt_now();
	while (atomic_exchange(&draining, 1)) {
		if (gmt_in_callback || gmt_now() - start > WAIT_FOR_DRIVER)
			return false;
		gmt_pause(MOMENT);
	}
	return true;
}

static bool drain_or_wait(struct gmt_shortage *s, uint64_t need)
{
	if (was_memory_freed(s) || wait_for_freed(s, &gmt_evict_leaving, WAIT_FOR_DRIVER))
		return true;
	bool turn = take_drain_turn();
	bool some = was_memory_freed(s) || give_back_blocks(s, next_give_back_bytes(s, need));
	if (turn)
		atomic_store(&draining, 0);
	return some || wait_for_freed(s, &gmt_evict_running, WAIT_FOR_CORE) || wait_for_freed(s, &gmt_evict_leaving, WAIT_FOR_DRIVER);
}

bool gmt_oom_drain(struct gmt_shortage *s, cl_int error, uint64_t need)
{
	if (!gmt_out_of_memory(error))
		return false;
	/* A command (need is 0) may lack something else than memory: other programs are not asked for that. */
	return (gmt_pooling() && drain_or_wait(s, need)) || (need && s->asked++ < ASKS_MAX && gmt_neighbours_relieve(need));
}
