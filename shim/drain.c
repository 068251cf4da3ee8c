/*
 * drain.c: running out of memory. The pool gives blocks back and the program's call is tried again. What another thread
 * has given back, or is about to, counts as well: several that fail together neither empty the pool for one of them, nor
 * give up while memory is on its way.
 */
#define _GNU_SOURCE
#include "pool.h"
#include "signals.h"

#include <time.h>

/*
 * How long one waits for others, who are inside the driver: a release may wait there for commands, and these for a user
 * event that the waiting thread is to set. For one that is inside the core, or just leaving it, a moment is enough.
 */
#define WAIT_FOR_DRIVER 100000000u /* ns */
#define WAIT_FOR_CORE 1000000u
#define OTHERS_MAX 64 /* what others do need not be of use to this call */

/* On lines of their own: every create and release of the pool writes the others, every create and command reads this. */
_Alignas(64) _Atomic uint64_t gmt_given_back;
static _Alignas(64) _Atomic uint32_t evicting, leaving, draining;

void gmt_evicting(void)
{
	atomic_fetch_add(&evicting, 1);
}

void gmt_evicted(void)
{
	atomic_fetch_sub(&evicting, 1);
}

void gmt_leaving(void)
{
	atomic_fetch_add(&leaving, 1);
}

void gmt_left(void)
{
	atomic_fetch_add(&gmt_given_back, 1);
	atomic_fetch_sub(&leaving, 1);
}

static bool out_of_memory(cl_int error)
{
	return error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_RESOURCES || error == CL_OUT_OF_HOST_MEMORY;
}

/* Whether blocks have reached the driver since the latest attempt began. */
static bool news(struct gmt_shortage *s)
{
	uint64_t given = atomic_load(&gmt_given_back);
	if (given == s->seen || s->others == OTHERS_MAX)
		return false;
	s->seen = given;
	s->others++;
	return true;
}

/* Waits until there are news, or nobody is there any more, or for so many ns. Never in a callback, which the driver of
 * those others may wait for. */
static bool wait_for(struct gmt_shortage *s, _Atomic uint32_t *others, uint64_t most)
{
	const struct timespec moment = {.tv_nsec = 20000};
	if (!atomic_load(others) || gmt_barred)
		return news(s);
	uint64_t start = gmt_now();
	while (!news(s)) {
		if (!atomic_load(others) || gmt_now() - start > most)
			return news(s);
		nanosleep(&moment, NULL);
	}
	return true;
}

/*
 * What is known to lack; otherwise one block, and then as much again as there was so far, so that no more than twice
 * what is needed goes back. False: nothing was left.
 */
static bool give_back(struct gmt_shortage *s, uint64_t need)
{
	uint64_t lacks = gmt_budget_lacks(need), ask = lacks ? lacks : s->given ? s->given : 1;
	struct gmt_evictions evictions = {0};
	gmt_evicting();
	int64_t number = GMT_CORE(drain(ask, &evictions));
	if (number < 0)
		gmt_pool_failed();
	if (number > 0)
		gmt_order(GMT_ORDER_DRAIN, number, (struct gmtevent){.time = gmt_now(), .size = ask});
	uint64_t sum = 0;
	for (uint32_t i = 0; i < evictions.count; i++)
		sum += evictions.list[i].size;
	s->given += evictions.more && sum < ask ? ask : sum;
	bool some = number >= 0 && evictions.count > 0;
	if (some)
		gmt_pool_evicted(&evictions);
	gmt_evicted();
	s->seen = atomic_load(&gmt_given_back);
	return some;
}

/* One thread drains at a time, unless that takes long. */
static bool take_turn(void)
{
	const struct timespec moment = {.tv_nsec = 20000};
	if (!atomic_exchange(&draining, 1))
		return true;
	uint64_t start = gmt_now();
	while (atomic_exchange(&draining, 1)) {
		if (gmt_barred || gmt_now() - start > WAIT_FOR_DRIVER)
			return false;
		nanosleep(&moment, NULL);
	}
	return true;
}

bool gmt_pool_drain(struct gmt_shortage *s, cl_int error, uint64_t need)
{
	if (!out_of_memory(error) || !gmt_pooling())
		return false;
	if (news(s) || wait_for(s, &leaving, WAIT_FOR_DRIVER))
		return true;
	bool turn = take_turn();
	bool some = news(s) || give_back(s, need);
	if (turn)
		atomic_store(&draining, 0);
	return some || wait_for(s, &evicting, WAIT_FOR_CORE) || wait_for(s, &leaving, WAIT_FOR_DRIVER);
}
