/*
 * fake_core.c: a C stand-in for the Go core, so that sanitizers can look at the shim without a Go runtime. Blocks are
 * powers of two, handed out last in first out. Knobs come from the environment:
 *
 *   FAKE_CORE_FAIL_AT=N      the Nth call and all after it fail
 *   FAKE_CORE_START_FAILS=1  start fails
 *   FAKE_CORE_EVICT=1        freed blocks are not kept
 *   FAKE_CORE_HASTY=1        blocks in use by queued commands are handed out: what a correct pool must never do
 *   FAKE_CORE_NO_ROOM=1      nothing may be noted in the ledger
 *   FAKE_CORE_ROOM=BYTES     the most that may be noted there
 *   FAKE_CORE_STALE=1        parts are said to be of slabs that have gone
 *   FAKE_CORE_SLAB=BYTES     requests that parts may serve are parts of slabs of that size, first fit
 */
#include "fake_core.h"

#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

struct fake_core core = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static uint64_t most = UINT64_MAX; /* bytes that may be noted */

EXPORT gmt_core_start_fn gmt_core_start;
EXPORT gmt_core_plan_fn gmt_core_plan;
EXPORT gmt_core_resume_fn gmt_core_resume;
EXPORT gmt_core_commit_fn gmt_core_commit;
EXPORT gmt_core_abort_fn gmt_core_abort;
EXPORT gmt_core_free_fn gmt_core_free;
EXPORT gmt_core_cooled_fn gmt_core_cooled;
EXPORT gmt_core_forget_fn gmt_core_forget;
EXPORT gmt_core_drain_fn gmt_core_drain;
EXPORT gmt_core_drop_class_fn gmt_core_drop_class;
EXPORT gmt_core_more_fn gmt_core_more;
EXPORT gmt_core_grown_fn gmt_core_grown;
EXPORT gmt_core_gauge_fn gmt_core_gauge;
EXPORT gmt_core_clock_fn gmt_core_clock;

void wrong(const char *what)
{
	fprintf(stderr, "fake core: %s\n", what);
	abort();
}

static struct block *find(uint64_t number, enum state state, const char *complaint)
{
	struct block *b = &core.block[number % BLOCKS];
	if (b->number != number || b->state != state)
		wrong(complaint);
	return b;
}

static void free_block(uint64_t block, bool busy, struct gmt_evictions *evictions)
{
	struct block *b = find(block, USED, "free of a block that is not in use");
	if (b->slab) {
		free_part(b, busy, core.evict, evictions);
		return;
	}
	b->state = busy && !core.hasty ? COOLING : FREE;
	b->since = ++core.clock;
	if (core.evict || core.dropped[b->class % 65536])
		put_out(evictions, b, core.evict ? GMT_EVICT_POLICY : GMT_EVICT_CONTEXT);
}

static void publish(void)
{
	core.ledger->latest = core.decisions + 1;
	core.ledger->room[0] = core.roomy && !core.evict && !core.drops ? most : 0;
	core.ledger->due = core.due;
}

/* What was noted has been freed before. */
static void settle(void)
{
	struct gmt_evictions none = {0};
	for (uint64_t i = 0; i < core.ledger->count; i++) {
		free_block(core.ledger->freed[i].block, false, &none);
		core.decisions++;
	}
	core.noted += core.ledger->count;
	core.ledger->count = 0;
	if (none.count)
		wrong("a block was noted that is evicted");
}

static int32_t enter(void)
{
	pthread_mutex_lock(&core.mutex);
	core.calls++;
	settle();
	return core.fail_at && core.calls >= core.fail_at ? -1 : 0;
}

static int64_t leave(int64_t result)
{
	publish();
	pthread_mutex_unlock(&core.mutex);
	return result;
}

/* The number of the decision that was made. */
static int64_t decided(void)
{
	return leave((int64_t)++core.decisions + 1);
}

/* The same of two. */
static int64_t decided_twice(int64_t *second)
{
	core.decisions += 2;
	*second = (int64_t)core.decisions + 1;
	return leave(*second - 1);
}

struct block *new_block(uint64_t size, uint32_t class, uint32_t tag)
{
	struct block *b = &core.block[++core.numbers % BLOCKS];
	if (b->state != NOTHING)
		wrong("more blocks than the table holds");
	*b = (struct block){.number = core.numbers, .size = size, .class = class, .tag = tag, .state = PLANNED};
	return b;
}

static int number_from(const char *name)
{
	const char *text = getenv(name);
	return text ? atoi(text) : 0;
}

int64_t gmt_core_start(const struct gmtconfig *config, const struct gmt_callbacks *callbacks, struct gmtregion *region,
		       struct gmt_ledger *ledger)
{
	if (!config || !callbacks || !region || !ledger)
		wrong("started without what it needs");
	core.ledger = ledger;
	core.fail_at = (unsigned long)number_from("FAKE_CORE_FAIL_AT");
	core.evict = number_from("FAKE_CORE_EVICT");
	core.hasty = number_from("FAKE_CORE_HASTY");
	core.stale = number_from("FAKE_CORE_STALE");
	core.slab = (uint64_t)number_from("FAKE_CORE_SLAB");
	core.lowest = 1;
	core.roomy = !number_from("FAKE_CORE_NO_ROOM");
	most = getenv("FAKE_CORE_ROOM") ? (uint64_t)number_from("FAKE_CORE_ROOM") : most;
	core.due = number_from("FAKE_CORE_DUE") ? 0 : INT64_MAX;
	publish();
	return number_from("FAKE_CORE_START_FAILS") ? -1 : 0;
}

static uint64_t rounded(uint64_t size, uint64_t max)
{
	uint64_t power = 1;
	while (power < size)
		power *= 2;
	return max && power > max ? size : power;
}

static struct block *best(uint64_t size, uint32_t class, int any)
{
	struct block *found = NULL;
	for (uint64_t n = core.lowest; n <= core.numbers; n++) {
		struct block *b = &core.block[n % BLOCKS];
		if (b->state == NOTHING && n == core.lowest)
			core.lowest++;
		int fits = b->state == FREE && (any || (b->size == size && b->class == class));
		if (fits && (!found || b->since > found->since))
			found = b;
	}
	return found;
}

static void serve_whole(const struct gmt_request *request, struct gmt_plan *plan)
{
	uint64_t size = request->exact ? request->size : rounded(request->size, request->round);
	struct block *b = best(size, request->class, 0);
	int hit = b != NULL;
	if (hit)
		b->state = USED;
	else
		b = new_block(size, request->class, request->tag);
	b->tag = request->tag;
	b->wanted = request->size;
	*plan = (struct gmt_plan){
		.block = b->number, .size = b->size, .handle = b->handle, .tag = b->tag, .hit = (uint8_t)hit,
		.reason = hit ? GMT_MISS_NONE : GMT_MISS_COLD, .route = GMT_ROUTE_NO_ARENA,
	};
}

static bool carves(const struct gmt_request *request)
{
	return core.slab && request->align && request->size <= core.slab;
}

int64_t gmt_core_plan(const struct gmt_request *request, struct gmt_plan *plan, struct gmt_evictions *evictions)
{
	(void)evictions;
	if (enter() != 0)
		return leave(-1);
	if (carves(request) && wait_for_growing(request, plan))
		return decided();
	if (carves(request) && carve(request, plan))
		return plan->hit ? decided_twice(&plan->committed) : decided();
	serve_whole(request, plan);
	return decided();
}

/* A plan that waits has nothing yet: once its slab is known it is given up for a part, or a whole block. */
int64_t gmt_core_resume(const struct gmt_request *request, struct gmt_plan *plan, uint32_t late, struct gmt_evictions *evictions)
{
	(void)evictions;
	if (enter() != 0)
		return leave(-1);
	int64_t number = plan->number;
	if (!late && growing(plan->slab))
		return leave(number);
	bool part = !growing(plan->slab) && carve(request, plan);
	if (!part)
		serve_whole(request, plan);
	plan->waived = number;
	core.decisions++; /* which gave it up */
	return part && plan->hit ? decided_twice(&plan->committed) : decided();
}

int64_t gmt_core_commit(const struct gmt_plan *plan, uint64_t handle)
{
	if (enter() != 0)
		return leave(-1);
	struct block *b = find(plan->block, PLANNED, "commit of a block that was not planned");
	b->handle = handle;
	b->state = USED;
	return decided();
}

int64_t gmt_core_abort(const struct gmt_plan *plan)
{
	if (enter() != 0)
		return leave(-1);
	find(plan->block, PLANNED, "abort of a block that was not planned")->state = NOTHING;
	struct block *slab = &core.block[plan->slab % BLOCKS];
	if (plan->slabsize && slab->number == plan->slab && slab->state == PLANNED)
		slab->state = NOTHING;
	return decided();
}

void put_out(struct gmt_evictions *out, struct block *b, enum gmtevict reason)
{
	out->list[out->count++] = (struct gmt_eviction){b->number, b->size, b->handle, b->tag, (uint8_t)reason};
	b->state = NOTHING;
}

int64_t gmt_core_free(uint64_t block, uint32_t busy, int64_t time, struct gmt_evictions *evictions)
{
	(void)time;
	if (enter() != 0)
		return leave(-1);
	free_block(block, busy != 0, evictions);
	return decided();
}

int64_t gmt_core_cooled(uint64_t block, int64_t time, struct gmt_evictions *evictions)
{
	(void)time;
	if (enter() != 0)
		return leave(-1);
	struct block *b = &core.block[block % BLOCKS];
	if (b->slab && b->number == block && b->state == COOLING)
		free_part(b, false, core.evict, evictions);
	else if (b->number == block && b->state == COOLING) { /* else it was drained meanwhile */
		b->state = FREE;
		b->since = ++core.clock;
	}
	return decided();
}

int64_t gmt_core_forget(uint64_t block)
{
	if (enter() != 0)
		return leave(-1);
	struct block *b = find(block, USED, "forget of a block that is not in use");
	if (b->slab)
		wrong("a part is forgotten, and its range lost");
	b->state = NOTHING;
	return decided();
}

/* No more than what is needed; the caller tries again when that was not enough. */
int64_t gmt_core_drain(uint64_t need, struct gmt_evictions *evictions)
{
	if (enter() != 0)
		return leave(-1);
	for (uint64_t given = 0; given < need && evictions->count < GMT_EVICTIONS_MAX;) {
		struct block *b = best(0, 0, 1);
		for (uint64_t n = core.lowest; !b && n <= core.numbers; n++)
			if (core.block[n % BLOCKS].state == COOLING && !core.block[n % BLOCKS].slab)
				b = &core.block[n % BLOCKS];
		if (!b)
			b = unused_slab();
		if (!b)
			break;
		given += b->size;
		put_out(evictions, b, GMT_EVICT_DRAIN);
	}
	return evictions->count ? decided() : leave(0);
}

static void evict_marked(struct gmt_evictions *evictions)
{
	evictions->count = evictions->more = 0;
	for (uint64_t n = core.lowest; n <= core.numbers; n++) {
		struct block *b = &core.block[n % BLOCKS];
		if (b->state != EVICTED)
			continue;
		if (evictions->count == GMT_EVICTIONS_MAX) {
			evictions->more = 1;
			return;
		}
		put_out(evictions, b, GMT_EVICT_CONTEXT);
	}
}

int64_t gmt_core_drop_class(uint32_t class, struct gmt_evictions *evictions)
{
	if (enter() != 0)
		return leave(-1);
	core.dropped[class % 65536] = 1;
	core.drops = true;
	for (uint64_t n = core.lowest; n <= core.numbers; n++) {
		struct block *b = &core.block[n % BLOCKS];
		if (b->class == class && !b->slab && (b->state == FREE || b->state == COOLING))
			b->state = EVICTED;
	}
	for (struct block *slab; (slab = unused_slab_of(class));)
		slab->state = EVICTED;
	evict_marked(evictions);
	return decided();
}

int64_t gmt_core_more(struct gmt_evictions *evictions)
{
	if (enter() != 0)
		return leave(-1);
	evict_marked(evictions);
	return leave(0);
}

int64_t gmt_core_grown(const struct gmt_plan *plan, uint64_t handle)
{
	if (enter() != 0)
		return leave(-1);
	struct block *slab = find(plan->slab, PLANNED, "a slab that was not planned has grown");
	slab->state = SLAB;
	slab->handle = handle;
	return decided();
}

int64_t gmt_core_clock(void)
{
	return 0;
}

int64_t gmt_core_gauge(struct gmt_gauge *gauge)
{
	if (enter() != 0)
		return leave(-1);
	measure(gauge);
	return leave(0);
}
