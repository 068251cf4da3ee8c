/* object.h: the head of all entries. */
#ifndef GMT_OBJECT_H
#define GMT_OBJECT_H

#include "../base/opencl.h"

struct gmt_object {
	_Atomic(struct gmt_object *) chain;
	_Atomic(const void *) handle;
	_Atomic uint64_t id; /* from 1, never reused within its table; 0 while the entry is free */
	uint16_t site;       /* site that counts its end, see held.h; 0: none */
	uint8_t stripe;      /* of its table, see table.h */
	bool large;          /* the entry is a large one of its table */
	uint32_t tag;        /* of memory; nothing else needs a tag of its own */
};

/* Drops one reference; true if it was the last. The count stays 0 at an over-release, which the driver reports. */
static inline bool gmt_last_reference(_Atomic uint32_t *references)
{
	uint32_t count = atomic_load(references);
	while (count > 0 && !atomic_compare_exchange_weak(references, &count, count - 1))
		;
	return count == 1;
}

#endif
