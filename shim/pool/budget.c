/* budget.c: see budget.h. */
#define _GNU_SOURCE
#include "budget.h"

#include "../base/session.h"

static _Atomic uint64_t used;

bool gmt_budget_take(uint64_t bytes)
{
	uint64_t most = gmt_session.config.devicememory, now = atomic_load(&used);
	if (gmt_likely(!most))
		return true;
	do
		if (bytes > most || now > most - bytes)
			return false;
	while (!atomic_compare_exchange_weak(&used, &now, now + bytes));
	return true;
}

void gmt_budget_give(uint64_t bytes)
{
	if (gmt_session.config.devicememory)
		atomic_fetch_sub(&used, bytes);
}

uint64_t gmt_budget_lacks(uint64_t bytes)
{
	uint64_t most = gmt_session.config.devicememory, now = atomic_load(&used);
	return most && now + bytes > most ? now + bytes - most : 0;
}

cl_ulong gmt_budget_cap(cl_ulong bytes)
{
	uint64_t most = gmt_session.config.devicememory;
	return most && bytes > most ? most : bytes;
}
