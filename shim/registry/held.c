/*
 * held.c: see held.h. A program may create and release a million events a second, and a record for each would double the
 * records. So the shim counts by call site. At most every 10 ms a thread writes OBJECT records with all counts so far, so a lost
 * one does no harm. An event and its release cost 35 ns on PoCL, an enqueue without an event 1 ns. Of more than 262,144 live
 * events only the number is known, so that a leak does not grow our tables further.
 */
#define _GNU_SOURCE
#include "held.h"

#include "../base/call.h"
#include "../base/ring.h"

#define SITES 4096u           /* power of two */
#define SITES_MAX (SITES / 2) /* so that probing stays short */
#define INTERVAL 10000000u    /* ns between two records of a site */
#define CHANGES 64u           /* of one thread before it reads the clock */

static struct site {
	_Alignas(64) _Atomic uint64_t key; /* type and tag; 0: free */
	_Atomic uint64_t created, released;
	_Atomic uint64_t most;    /* held since the latest record */
	_Atomic uint64_t untracked;
	_Atomic uint64_t written; /* created + released + untracked in the latest record */
} sites[SITES];
static _Atomic uint32_t count;
static _Atomic uint64_t due;  /* time of the next records about events */
static _Atomic bool at_once;  /* each change is written at once: the process exits */

static uint64_t site_key(enum gmtheld type, uint32_t tag)
{
	return ((uint64_t)type + 1) << 32 | tag;
}

static uint32_t find_site(uint64_t key)
{
	for (uint32_t i = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 40);; i++) {
		struct site *site = &sites[i % SITES];
		uint64_t seen = atomic_load_explicit(&site->key, memory_order_acquire);
		/* Sites of tag 0 always get an entry: there are few. */
		if (!seen && atomic_load_explicit(&count, memory_order_relaxed) >= SITES_MAX && (uint32_t)key != 0)
			return find_site(key & ~(uint64_t)UINT32_MAX);
		if (!seen && atomic_compare_exchange_strong(&site->key, &seen, key)) {
			atomic_fetch_add(&count, 1);
			seen = key;
		}
		if (seen == key)
			return i % SITES + 1;
	}
}

uint32_t gmt_held_site(enum gmtheld type, uint32_t tag)
{
	return find_site(site_key(type, tag));
}

static bool is_event(const struct site *site)
{
	return atomic_load_explicit(&site->key, memory_order_relaxed) >> 32 == GMT_HELD_EVENT + 1;
}

/* Writes a record for a site that has changed. Counts only grow, so the order of two threads' records does not matter. */
static void write_site(struct site *site, uint64_t time)
{
	uint64_t key = atomic_load_explicit(&site->key, memory_order_acquire);
	uint64_t released = atomic_load_explicit(&site->released, memory_order_acquire); /* first: never more than created */
	uint64_t created = atomic_load_explicit(&site->created, memory_order_acquire);
	uint64_t untracked = atomic_load_explicit(&site->untracked, memory_order_relaxed), all = created + released + untracked;
	if (!key || atomic_exchange_explicit(&site->written, all, memory_order_relaxed) == all)
		return;
	uint64_t most = atomic_exchange_explicit(&site->most, created - released, memory_order_relaxed);
	struct gmtevent event = GMT_EVENT_OBJECT(.time = time, .held = (enum gmtheld)((key >> 32) - 1), .tag = (uint32_t)key,
						 .created = created, .released = released, .most = most, .untracked = untracked);
	gmt_ring_write(&event);
}

static void write_changed_sites(uint64_t time)
{
	for (uint32_t i = 0, left = atomic_load(&count); i < SITES && left > 0; i++)
		if (atomic_load_explicit(&sites[i].key, memory_order_relaxed)) {
			write_site(&sites[i], time);
			left--;
		}
}

void gmt_held_write_due(uint64_t time)
{
	uint64_t next = atomic_load_explicit(&due, memory_order_relaxed);
	if (gmt_likely(time < next))
		return;
	/* Longer with more sites, so that the number of records stays the same. */
	uint64_t interval = INTERVAL * (1 + (uint64_t)atomic_load_explicit(&count, memory_order_relaxed) / 16);
	if (atomic_compare_exchange_strong_explicit(&due, &next, time + interval, memory_order_relaxed, memory_order_relaxed))
		write_changed_sites(time);
}

static void note_change(struct site *site, uint64_t time)
{
	static __thread uint32_t changes __attribute__((tls_model("initial-exec")));
	if (gmt_unlikely(!is_event(site) || atomic_load_explicit(&at_once, memory_order_relaxed)))
		write_site(site, gmt_now());
	else if (time)
		gmt_held_write_due(time);
	else if (gmt_unlikely(++changes % CHANGES == 0))
		gmt_held_write_due(gmt_now());
}

void gmt_held_count_created(uint32_t number, uint64_t time)
{
	struct site *site = &sites[number - 1];
	uint64_t created = atomic_fetch_add_explicit(&site->created, 1, memory_order_release) + 1;
	uint64_t released = atomic_load_explicit(&site->released, memory_order_relaxed);
	uint64_t held = created - (released < created ? released : created);
	if (held > atomic_load_explicit(&site->most, memory_order_relaxed))
		atomic_store_explicit(&site->most, held, memory_order_relaxed);
	note_change(site, time);
}

void gmt_held_count_untracked(uint32_t number, uint64_t time)
{
	struct site *site = &sites[number - 1];
	atomic_fetch_add_explicit(&site->untracked, 1, memory_order_relaxed);
	note_change(site, time);
}

void gmt_held_count_released(uint32_t number)
{
	if (!number)
		return;
	struct site *site = &sites[number - 1];
	atomic_fetch_add_explicit(&site->released, 1, memory_order_release);
	note_change(site, 0);
}

void gmt_held_write_rest(void)
{
	atomic_store(&at_once, true);
	write_changed_sites(gmt_now());
}
