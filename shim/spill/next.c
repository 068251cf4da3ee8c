/*
 * next.c: see next.h. Where a program repeats its commands, the times between two uses of an object repeat, too: after one, two
 * or three of them. Its next use is where that puts it. What has missed it for as long again is no longer expected. All
 * others are taken to rest as long as they have rested so far, so the least recently used is the farthest.
 */
#define _GNU_SOURCE
#include "next.h"

static _Atomic uint64_t ticks;

uint64_t gmt_spill_next_tick(void)
{
	return atomic_fetch_add_explicit(&ticks, 1, memory_order_relaxed) + 1;
}

void gmt_spill_note_used(struct gmt_spill_object *root, uint64_t tick)
{
	if (tick <= root->tick) {
		root->tick = root->tick == UINT64_MAX ? tick : root->tick;
		return;
	}
	uint64_t gap = tick - root->tick;
	root->gap[root->gaps++ % GMT_SPILL_GAPS] = gap > UINT32_MAX ? UINT32_MAX : (uint32_t)gap;
	root->tick = tick;
}

/* The time between uses, counted back from the latest. */
static uint32_t use_gap(const struct gmt_spill_object *root, uint32_t back)
{
	return root->gap[(root->gaps - 1 - back) % GMT_SPILL_GAPS];
}

static bool is_near(uint32_t a, uint32_t b)
{
	uint32_t less = a < b ? a : b;
	return (a < b ? b : a) - less <= less / 8;
}

/* The time from its last use to the next; 0: nothing repeats. */
static uint64_t expected_gap(const struct gmt_spill_object *root)
{
	for (uint32_t period = 1; 2 * period <= GMT_SPILL_GAPS && 2 * period < root->gaps; period++) { /* the first gap is none */
		bool repeats = true;
		for (uint32_t i = 0; i < period && repeats; i++)
			repeats = is_near(use_gap(root, i), use_gap(root, i + period));
		if (repeats)
			return use_gap(root, period - 1);
	}
	return 0;
}

uint64_t gmt_spill_next_use_distance(const struct gmt_spill_object *root)
{
	uint64_t now = atomic_load_explicit(&ticks, memory_order_relaxed), rest = now > root->tick ? now - root->tick : 0;
	uint64_t next = expected_gap(root);
	if (!next || (rest > next && rest <= 2 * next))
		return rest;
	return rest <= next ? next - rest : UINT64_MAX / 2 + rest;
}
