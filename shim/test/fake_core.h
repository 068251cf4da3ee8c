/* fake_core.h: the fake core's insides. Everything is under its lock. */
#ifndef FAKE_CORE_H
#define FAKE_CORE_H

#include "../base/core.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define BLOCKS 65536u

enum state { NOTHING, PLANNED, USED, COOLING, FREE, EVICTED, SLAB };

struct block {
	uint64_t number, size, wanted, handle;
	uint64_t slab, offset; /* of a part */
	uint64_t touched;      /* of a slab: what lies behind was never used */
	uint32_t class, tag;
	bool grows; /* a slab */
	enum state state;
	uint64_t since; /* orders free blocks */
};

extern struct fake_core {
	pthread_mutex_t mutex;
	struct block block[BLOCKS]; /* by number modulo BLOCKS */
	uint64_t numbers, clock, calls, decisions, noted;
	uint64_t lowest; /* no block below is anything but NOTHING */
	uint8_t dropped[65536]; /* classes */
	unsigned long fail_at;
	int evict, hasty, stale;
	bool roomy, drops; /* whether what was freed may be noted; whether a class was dropped */
	int64_t due;       /* when what was freed may no longer be noted */
	struct gmt_ledger *ledger;
	uint64_t slab;
} core;

void wrong(const char *what);
struct block *new_block(uint64_t size, uint32_t class, uint32_t tag);
void put_out(struct gmt_evictions *out, struct block *b, enum gmtevict reason);

/* fake_carve.c */
/* Whether a slab that another thread creates has room for a first part. */
bool wait_for_growing(const struct gmt_request *request, struct gmt_plan *plan);
bool growing(uint64_t slab);
bool carve(const struct gmt_request *request, struct gmt_plan *plan);
void free_part(struct block *part, bool busy, int evict, struct gmt_evictions *evictions);
struct block *unused_slab(void);
struct block *unused_slab_of(uint32_t class);
void measure(struct gmt_gauge *gauge);

#endif
