/* cooling.h: blocks that the program released while commands use them. They cool until these have completed. */
#ifndef GMT_COOLING_H
#define GMT_COOLING_H

#include "../order/inflight.h"

struct gmt_cooled {
	uint64_t block, size;
	uint32_t tag;
	bool suballoc;
	cl_mem handle;      /* of a whole block */
	cl_mem deferred;    /* of a sub-allocation to release then, because of its destructors; else NULL */
	bool deferred_only; /* the release is all that is left to do: the range is free already, or stays taken */
};

void gmt_cooling_add(const struct gmt_cooled *what, const struct gmt_uses *uses, struct gmt_context *context);
/*
 * Makes blocks free whose commands have completed. Looks at no more than most of them and never waits. With markers, puts
 * markers behind commands whose end nothing else reports.
 */
void gmt_cooling_collect(unsigned most, bool markers);
/*
 * Runs the deferred releases of a context in which a command has failed: drivers may report nothing there from then on (PoCL 3.1
 * makes no callback when a command fails).
 */
void gmt_cooling_release_deferred(const struct gmt_context *context);
/* A context's last reference goes: runs its deferred releases and drops its other entries. */
void gmt_cooling_drop_context(struct gmt_context *context);

#endif
