/*
 * ranges.c: see ranges.h.
 *
 * An allocation of at most 2^n bytes, and of more than 2^(n-1), lies in one or two pieces of the address space that
 * begin at multiples of 2^n, and few of its size lie in the same piece. So a hash table by n and piece needs one short
 * look for each n that any allocation has: no tree, and no cost that grows with their number.
 */
#define _GNU_SOURCE
#include "ranges.h"

#include "../base/lock.h"

#include <stdlib.h>

#define LEAST 6 /* the smallest n */
#define BUCKETS (1u << 14)

struct range {
	struct range *next;
	void *what;
	uintptr_t first, last;
	uintptr_t piece;
	unsigned n;
};

static struct range *buckets[BUCKETS];
static uint32_t counts[64];      /* ranges by n */
static _Atomic uint64_t levels;  /* bit n: counts[n] is not 0 */
static _Atomic uint32_t lock;    /* guards all of these */

static unsigned level_of_size(uint64_t bytes)
{
	unsigned n = LEAST;
	while (n < 63 && (uint64_t)1 << n < bytes)
		n++;
	return n;
}

static struct range **bucket_of_piece(uintptr_t piece, unsigned n)
{
	uint64_t hash = (piece ^ (uint64_t)n << 58) * 0x9e3779b97f4a7c15u;
	return &buckets[hash >> 32 & (BUCKETS - 1)];
}

static void count_at_level(unsigned n, int by)
{
	counts[n] += (uint32_t)by;
	uint64_t now = atomic_load(&levels), bit = (uint64_t)1 << n;
	atomic_store(&levels, counts[n] ? now | bit : now & ~bit);
}

/* Removes the allocation that begins at first from a piece. Under the lock. */
static void unlink_from_piece(uintptr_t piece, unsigned n, uintptr_t first)
{
	struct range **link = bucket_of_piece(piece, n);
	for (struct range *r; (r = *link);) {
		if (r->n != n || r->piece != piece || r->first != first) {
			link = &r->next;
			continue;
		}
		*link = r->next;
		free(r);
		count_at_level(n, -1);
	}
}

/* Under the lock. */
static const struct range *find_range(uintptr_t address)
{
	for (uint64_t left = atomic_load(&levels); left; left &= left - 1) {
		unsigned n = (unsigned)__builtin_ctzll(left);
		for (const struct range *r = *bucket_of_piece(address >> n, n); r; r = r->next)
			if (r->n == n && address >= r->first && address <= r->last)
				return r;
	}
	return NULL;
}

static bool add_piece(struct range like)
{
	struct range *r = malloc(sizeof *r), **bucket = bucket_of_piece(like.piece, like.n);
	if (!r)
		return false;
	*r = like;
	r->next = *bucket;
	*bucket = r;
	count_at_level(like.n, 1);
	return true;
}

static void remove_range(uintptr_t first, uintptr_t last)
{
	unsigned n = level_of_size(last - first + 1);
	unlink_from_piece(first >> n, n, first);
	unlink_from_piece(last >> n, n, first);
}

static uintptr_t last_address(uintptr_t first, uint64_t bytes)
{
	return first + (uintptr_t)(bytes ? bytes - 1 : 0);
}

bool gmt_range_add(const void *address, uint64_t bytes, void *what)
{
	uintptr_t first = (uintptr_t)address;
	struct range like = {.what = what, .first = first, .last = last_address(first, bytes)};
	gmt_lock(&lock);
	for (const struct range *stale; (stale = find_range(first)) || (stale = find_range(like.last));) /* an allocation whose end was not seen */
		remove_range(stale->first, stale->last);
	like.n = level_of_size(like.last - first + 1);
	like.piece = first >> like.n;
	bool added = add_piece(like);
	if (added && like.piece != like.last >> like.n) {
		like.piece = like.last >> like.n;
		added = add_piece(like);
	}
	gmt_unlock(&lock);
	return added;
}

void gmt_range_remove(const void *address, uint64_t bytes)
{
	uintptr_t first = (uintptr_t)address;
	gmt_lock(&lock);
	remove_range(first, last_address(first, bytes));
	gmt_unlock(&lock);
}

bool gmt_ranges_any(void)
{
	return atomic_load_explicit(&levels, memory_order_acquire) != 0;
}

void *gmt_range_at(const void *address)
{
	gmt_lock(&lock);
	const struct range *range = find_range((uintptr_t)address);
	void *what = range ? range->what : NULL;
	gmt_unlock(&lock);
	return what;
}
