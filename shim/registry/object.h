/* object.h: what all entries begin with. */
#ifndef GMT_OBJECT_H
#define GMT_OBJECT_H

#include "../base/opencl.h"

struct gmt_object {
	_Atomic(struct gmt_object *) chain;
	_Atomic(const void *) handle;
	_Atomic uint64_t id; /* from 1, never reused within its table; 0 while the entry is free */
	uint32_t site;       /* where its end is counted, see held.h; 0: it is not */
	uint32_t stripe;     /* of its table, see table.h */
};

/* Counts one reference down; true for the last. Never below zero: over-release is the driver's to report. */
static inline bool gmt_last_reference(_Atomic uint32_t *references)
{
	uint32_t count = atomic_load(references);
	while (count > 0 && !atomic_compare_exchange_weak(references, &count, count - 1))
		;
	return count == 1;
}

#endif
