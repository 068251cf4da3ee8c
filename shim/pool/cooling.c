/* cooling.c: see cooling.h. */
#define _GNU_SOURCE
#include "cooling.h"

#include "../base/call.h"
#include "../base/lock.h"
#include "../base/ring.h"
#include "../base/signals.h"
#include "../order/closed_queues.h"
#include "../order/queue.h"
#include "evict.h"

#include <stdlib.h>

/* Blocks that were freed while in use: a ring that grows, oldest first. */
static struct cooling {
	struct gmt_cooled what;
	struct gmt_context *context;
	struct gmt_uses uses;
	struct gmt_use *more; /* instead, when they are too many */
	uint32_t mores;
} *cooling;
static size_t cooling_capacity /* a power of two */, cooling_first;
static _Atomic size_t cooling_count;
static size_t deferred; /* entries with a deferred release */
static _Atomic uint32_t cooling_lock;

static struct cooling *cooling_at(size_t i)
{
	return &cooling[(cooling_first + i) & (cooling_capacity - 1)];
}

static bool cooling_grow(void)
{
	size_t count = atomic_load(&cooling_count), capacity = cooling_capacity ? 2 * cooling_capacity : 256;
	struct cooling *bigger = malloc(capacity * sizeof *bigger);
	if (!bigger)
		return false;
	for (size_t i = 0; i < count; i++)
		bigger[i] = *cooling_at(i);
	free(cooling);
	cooling = bigger;
	cooling_capacity = capacity;
	cooling_first = 0;
	return true;
}

/* The block was used on more queues than an entry holds: it waits for all commands so far on all queues of the context. */
static void use_all_pending(struct cooling *entry)
{
	uint32_t room = 64;
	for (;;) {
		entry->more = malloc(room * sizeof *entry->more);
		if (!entry->more)
			return; /* it cools forever, which is safe */
		entry->mores = gmt_queue_list_pending(entry->context, entry->more, room);
		if (entry->mores <= room)
			break;
		room = entry->mores + 64;
		free(entry->more);
	}
	entry->uses.many = false;
	entry->uses.count = 0;
}

/* Takes the next deferred release of a context, from entry *from on; false if there is none. */
static bool take_deferred(const struct gmt_context *context, size_t *from, struct gmt_cooled *out)
{
	bool found = false;
	gmt_lock(&cooling_lock);
	size_t count = deferred ? atomic_load(&cooling_count) : 0;
	for (; *from < count && !found; (*from)++) {
		struct cooling *entry = cooling_at(*from);
		found = entry->what.deferred && entry->context == context;
		if (found) {
			*out = entry->what;
			entry->what.deferred = NULL;
			deferred--;
		}
	}
	gmt_unlock(&cooling_lock);
	return found;
}

/* Each release runs callbacks of the program, and entries move meanwhile. So this searches from the start until it finds none. */
void gmt_cooling_release_deferred(const struct gmt_context *context)
{
	struct gmt_cooled what;
	bool any;
	do {
		any = false;
		for (size_t from = 0; take_deferred(context, &from, &what); any = true)
			gmt_suballoc_release_deferred(what.deferred, what.block);
	} while (any);
}

static void append_entry(struct cooling *entry)
{
	gmt_lock(&cooling_lock);
	size_t count = atomic_load(&cooling_count);
	bool room = count < cooling_capacity || cooling_grow();
	if (room) {
		*cooling_at(count) = *entry;
		atomic_store(&cooling_count, count + 1);
		deferred += entry->what.deferred != NULL;
	}
	gmt_unlock(&cooling_lock);
	if (!room) /* it cools forever, a deferred release included */
		free(entry->more);
	/* Check after the entry is in the list: a thread that fails the context either finds the entry, or its mark is seen here. */
	if (gmt_unlikely(entry->what.deferred && atomic_load(&entry->context->pool.closed)))
		gmt_cooling_release_deferred(entry->context);
}

static bool take_first_entry(struct cooling *entry)
{
	gmt_lock(&cooling_lock);
	size_t count = atomic_load(&cooling_count);
	if (count) {
		*entry = *cooling_at(0);
		cooling_first = (cooling_first + 1) & (cooling_capacity - 1);
		atomic_store(&cooling_count, count - 1);
		deferred -= entry->what.deferred != NULL;
	}
	gmt_unlock(&cooling_lock);
	return count > 0;
}

void gmt_cooling_add(const struct gmt_cooled *what, const struct gmt_uses *uses, struct gmt_context *context)
{
	struct cooling entry = {*what, context, *uses, NULL, 0};
	if (uses->many)
		use_all_pending(&entry);
	append_entry(&entry);
}

/* Whether all commands of an entry have completed. It drops uses that are over from the long list, if there is one. */
static bool has_cooled(struct cooling *entry)
{
	for (; entry->mores; entry->mores--) {
		const struct gmt_use *use = &entry->more[entry->mores - 1];
		if (!gmt_use_is_over(use))
			gmt_queue_poll_markers(use->queue);
		if (!gmt_use_is_over(use))
			return false;
	}
	return gmt_uses_state(&entry->uses, NULL) == GMT_FLIGHT_DONE;
}

#define ASKED_MAX 32
/* Queues that entries wait for. */
struct asked {
	struct gmt_queue *queue[ASKED_MAX];
	unsigned count;
};

static void add_asked_queue(struct asked *asked, const struct gmt_use *use)
{
	for (unsigned i = 0; i < asked->count; i++)
		if (asked->queue[i] == use->queue)
			return;
	if (asked->count < ASKED_MAX && !gmt_use_is_over(use))
		asked->queue[asked->count++] = use->queue;
}

static void add_asked_queues_of(struct asked *asked, const struct cooling *entry)
{
	for (uint32_t i = 0; i < entry->uses.count; i++)
		add_asked_queue(asked, &entry->uses.use[i]);
	if (entry->mores) /* one after the other */
		add_asked_queue(asked, &entry->more[entry->mores - 1]);
}

/*
 * An entry that is still in use goes to the end, so that no stuck block hides the others. The driver is asked without the
 * lock: it may run a callback of the program, which may release memory that has to cool.
 */
static bool take_next_cooled(struct gmt_cooled *out, struct cooling *entry, struct asked *asked)
{
	if (has_cooled(entry)) {
		free(entry->more);
		*out = entry->what;
		return true;
	}
	add_asked_queues_of(asked, entry);
	append_entry(entry);
	return false;
}

/*
 * Looks at no more than most entries, and takes up to room of those that have cooled. With markers, it puts a marker after commands
 * whose end nothing else reports.
 */
static unsigned take_cooled(struct gmt_cooled *out, unsigned room, unsigned most, bool markers)
{
	size_t count = atomic_load_explicit(&cooling_count, memory_order_relaxed);
	unsigned found = 0;
	struct asked asked;
	struct cooling entry;
	asked.count = 0;
	for (size_t looked = 0; looked < most && looked < count && found < room && take_first_entry(&entry); looked++)
		found += take_next_cooled(&out[found], &entry, &asked);
	for (unsigned i = 0; markers && i < asked.count; i++)
		gmt_queue_ensure_marker(asked.queue[i]);
	return found;
}

/* Gives up all entries of a context. */
static void drop_entries(struct gmt_context *context)
{
	gmt_lock(&cooling_lock);
	size_t count = atomic_load(&cooling_count), kept = 0;
	for (size_t i = 0; i < count; i++) {
		struct cooling entry = *cooling_at(i);
		if (entry.context != context) {
			*cooling_at(kept++) = entry;
			continue;
		}
		deferred -= entry.what.deferred != NULL;
		free(entry.more);
	}
	atomic_store(&cooling_count, kept);
	gmt_unlock(&cooling_lock);
}

/* Whether the pool still has a block: another thread may have evicted it while it cooled. */
static bool is_still_pooled(const struct gmt_cooled *what)
{
	return what->suballoc || gmt_memory_is_pooled(what->handle, what->block);
}

/*
 * The event is written before the core knows that the block is free: from then on another thread may evict the block, and the
 * event of that eviction must come later.
 */
static void give_to_core(const struct gmt_cooled *what)
{
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	if (gmt_unlikely(what->deferred != NULL))
		gmt_suballoc_release_deferred(what->deferred, what->block);
	if (gmt_unlikely(what->deferred_only))
		return;
	uint64_t now = gmt_now();
	if (!is_still_pooled(what))
		return;
	struct gmtevent event = GMT_EVENT_COOLED(.time = now, .sub_allocation = what->suballoc, .tag = what->tag, .bytes = what->size,
						 .block = what->block);
	gmt_ring_write(&event);
	if (gmt_decision_note(GMT_CORE_EVICTS(cooled(what->block, (int64_t)now, &evictions), &evictions), now))
		gmt_evict_all(&evictions);
	else
		gmt_pool_fail();
}

void gmt_cooling_collect(unsigned most, bool markers)
{
	if (gmt_likely(!atomic_load_explicit(&cooling_count, memory_order_relaxed)))
		return;
	struct gmt_cooled done[16];
	unsigned count = take_cooled(done, sizeof done / sizeof done[0], most, markers);
	for (unsigned i = 0; i < count; i++)
		if (gmt_pooling())
			give_to_core(&done[i]);
		else if (done[i].deferred)
			gmt_suballoc_release_deferred(done[i].deferred, done[i].block);
}

void gmt_cooling_drop_context(struct gmt_context *context)
{
	gmt_cooling_release_deferred(context);
	drop_entries(context);
}
