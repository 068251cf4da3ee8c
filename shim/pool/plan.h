/* plan.h: asks the core how to serve a request. */
#ifndef GMT_PLAN_H
#define GMT_PLAN_H

#include "driver_create.h"

/*
 * Whether the pool may serve the request: internal/wire/eligible.def lets it, and the shim knows the context. An image has
 * no properties: hooks/hook_image.c leaves those with some to the driver.
 */
bool gmt_plan_eligible(const struct gmt_request_for *r);
bool gmt_plan_image_eligible(const struct gmt_request_for *r);
bool gmt_plan_pointer_eligible(const struct gmt_request_for *r);
/* Set once a function that we do not hook may free shared memory: from then on the pool serves no shared memory. */
extern _Atomic int gmt_pointers_elsewhere;
/* The class of (context, flags); 0 if the context uses more combinations of flags than it has room for. */
uint32_t gmt_plan_class(struct gmt_context *context, cl_mem_flags flags);
/*
 * Fills in plan; align: of sub-allocations, 0 if none may serve the request; again: an earlier plan came to nothing. False: the
 * core has failed.
 */
bool gmt_plan_for(const struct gmt_call *call, const struct gmt_request_for *r, uint32_t class, uint32_t align, bool again,
		  struct gmt_plan *plan);
/* A slab was created, or was not: wakes the plans that wait for one. */
void gmt_plan_wake_waiters(void);
/* Gives back the block that was planned for r and already counts as in use, because it cannot serve r. */
void gmt_plan_return_block(const struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan);
/* The plan for r cannot be carried out. grown: this thread's latest decision was that the plan's slab exists. */
void gmt_plan_abort(const struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, bool grown);

#endif
