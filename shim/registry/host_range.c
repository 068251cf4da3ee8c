/* host_range.c: see host_range.h. Readers take no lock, so they may or may not see a range that is added or removed meanwhile. */
#define _GNU_SOURCE
#include "host_range.h"

#include "../base/lock.h"

#define RANGES 32

static struct {
	const void *owner; /* NULL: a free entry; under lock */
	_Atomic uintptr_t begin, end;
} ranges[RANGES];
static _Atomic uint32_t lock, used; /* used: number of entries up to the last that is taken */

void gmt_host_range_add(const void *owner, const void *pointer, size_t bytes)
{
	if (!owner || !pointer || !bytes)
		return;
	gmt_lock(&lock);
	uint32_t i = 0;
	while (i < RANGES && ranges[i].owner)
		i++;
	if (i < RANGES) {
		ranges[i].owner = owner;
		atomic_store(&ranges[i].begin, (uintptr_t)pointer);
		atomic_store(&ranges[i].end, (uintptr_t)pointer + bytes);
		if (i >= atomic_load(&used))
			atomic_store(&used, i + 1);
	}
	gmt_unlock(&lock);
}

void gmt_host_range_remove(const void *owner, const void *pointer)
{
	if (gmt_likely(!atomic_load_explicit(&used, memory_order_relaxed)))
		return;
	gmt_lock(&lock);
	uint32_t last = 0;
	for (uint32_t i = 0, count = atomic_load(&used); i < count; i++) {
		if (ranges[i].owner == owner && (!pointer || atomic_load(&ranges[i].begin) == (uintptr_t)pointer)) {
			ranges[i].owner = NULL;
			atomic_store(&ranges[i].end, 0);
			owner = pointer ? NULL : owner; /* of several mappings at one address, remove only one */
		}
		if (ranges[i].owner)
			last = i + 1;
	}
	atomic_store(&used, last);
	gmt_unlock(&lock);
}

bool gmt_host_range_holds(const void *pointer)
{
	uintptr_t address = (uintptr_t)pointer;
	for (uint32_t i = 0, count = atomic_load_explicit(&used, memory_order_relaxed); i < count; i++) {
		uintptr_t end = atomic_load(&ranges[i].end);
		/* The same end again: the begin is not another range's. */
		if (address < end && address >= atomic_load(&ranges[i].begin) && atomic_load(&ranges[i].end) == end)
			return true;
	}
	return false;
}
