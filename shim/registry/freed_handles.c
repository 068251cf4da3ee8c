/* freed_handles.c: a table with one slot per hash of a handle; the latest handle of a slot wins. */
#define _GNU_SOURCE
#include "freed_handles.h"

#include "../base/lock.h"

#define SLOTS 1024 /* a power of two, small enough for the processor's cache */
static struct slot {
	_Atomic uint32_t lock;
	uint32_t tag;
	const void *handle;
	uint64_t object, size;
} slots[SLOTS];

static struct slot *slot_of(const void *handle)
{
	return &slots[((uintptr_t)handle * 0x9e3779b97f4a7c15u) >> 54];
}

void gmt_freed_handle_remember(const void *handle, struct gmt_freed_handle memory)
{
	struct slot *slot = slot_of(handle);
	gmt_lock(&slot->lock);
	slot->handle = handle;
	slot->tag = memory.tag;
	slot->object = memory.object;
	slot->size = memory.size;
	gmt_unlock(&slot->lock);
}

bool gmt_freed_handle_find(const void *handle, struct gmt_freed_handle *memory)
{
	struct slot *slot = slot_of(handle);
	gmt_lock(&slot->lock);
	bool known = slot->handle == handle;
	*memory = (struct gmt_freed_handle){slot->tag, slot->object, slot->size};
	gmt_unlock(&slot->lock);
	return known;
}
