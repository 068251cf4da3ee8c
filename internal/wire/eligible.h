/*
 * eligible.h: whether the pool may serve a request for memory. The shim asks before it serves one, and attach to say which
 * creates a pool could have served. eligible.def has the rules.
 */
#ifndef GMT_ELIGIBLE_H
#define GMT_ELIGIBLE_H

#include <CL/cl.h>
#include <stdbool.h>

#include "event.h"

enum gmtineligible {
	GMT_INELIGIBLE_NONE, /* the pool may serve it */
#define REASON(name, condition) GMT_INELIGIBLE_##name,
#include "eligible.def"
};

/* What the rules look at. internal/wire/gen reads these lines. */
struct gmtpoolrequest {
	enum gmtmemory memory; /* what is requested */
	uint64_t flags;        /* CL_MEM_* */
	uint64_t size;         /* in bytes */
	uint64_t largest;      /* bytes that the device allocates at most; 0: unknown, or known to suffice */
	uint64_t smallest;     /* bytes from which memory with contents comes from the pool */
	uint64_t alignment;    /* of shared memory; 0: the driver's */
	bool properties;       /* there is a list of them */
	bool contents;         /* there is a pointer to them */
	bool array;            /* it is an image that is neither 2D nor 3D */
};

/* Inline: fields that are constants decide at compile time. */
static inline enum gmtineligible gmt_ineligible(struct gmtpoolrequest r)
{
#define GROUP(name, flags) const uint64_t name = flags;
#include "eligible.def"
	uint64_t known = 0;
	bool served = true;
	switch (r.memory) {
#define KNOWN(memory, flags) \
	case GMT_MEMORY_##memory: \
		known = flags; \
		break;
#include "eligible.def"
	default:
		served = false;
	}
#define several(bits) (((bits) & ((bits) - 1)) != 0)
#define REASON(name, condition) \
	if (condition) \
		return GMT_INELIGIBLE_##name;
#include "eligible.def"
#undef several
	return GMT_INELIGIBLE_NONE;
}

#endif
