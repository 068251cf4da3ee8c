/* suballoc.h: buffers that are sub-buffers of slabs. */
#ifndef GMT_SUBALLOC_H
#define GMT_SUBALLOC_H

#include "../registry/created.h"
#include "plan.h"

/* The alignment of sub-allocations that may serve r, in bytes; 0 if none may. */
uint32_t gmt_suballoc_align(const struct gmt_request_for *r);
/* Carries out a plan with a slab. False: the plan is aborted. */
bool gmt_suballoc_create(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, struct gmt_served *served);
/* Creates the program's own sub-buffer of a sub-allocation. */
cl_mem gmt_suballoc_subbuffer(const struct gmt_memory *memory, cl_mem_flags flags, cl_buffer_create_type type, const void *info,
			      cl_int *error);
/*
 * For commands that drivers carry out wrongly on sub-buffers: returns the slab, and moves offset into it. Returns handle if
 * memory is no sub-allocation.
 */
cl_mem gmt_suballoc_to_slab(const struct gmt_memory *memory, cl_mem handle, size_t *offset);

#endif
