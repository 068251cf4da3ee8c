/* references.c: see references.h. */
#define _GNU_SOURCE
#include "references.h"

#include "../base/dispatch.h"
#include "../registry/finding.h"
#include "alias.h"
#include "budget.h"
#include "evict.h"
#include "release.h"

static cl_int release_with_parents(struct gmt_call *call, struct gmt_memory *memory)
{
	struct gmt_memory *parent = memory->parent;
	cl_int err = gmt_release_memory(call, memory);
	if (parent)
		gmt_references_unpin(call, parent);
	return err;
}

/* The last pin goes of memory that the driver has already released. */
static void end_after_last_pin(struct gmt_call *call, struct gmt_memory *memory)
{
	struct gmt_memory *parent = memory->parent, *slab = memory->slab;
	struct gmtreleasefields release = gmt_release_fields(call, memory);
	if (slab)
		gmt_alias_end(memory);
	gmt_budget_give_back(gmt_memory_unregister(memory));
	if (slab) /* a sub-allocation that the core does not know */
		gmt_suballoc_note_gone(slab);
	gmt_release_write_event(&release, CL_SUCCESS, gmt_now());
	if (parent)
		gmt_references_unpin(call, parent);
}

void gmt_references_unpin(struct gmt_call *call, struct gmt_memory *memory)
{
	if (atomic_fetch_sub(&memory->pins, 1) != 1)
		return;
	if (memory->block)
		release_with_parents(call, memory);
	else
		end_after_last_pin(call, memory);
}

/*
 * A pooled block keeps one reference in the driver. If a sub-buffer has revived the memory, the driver has counted that
 * reference in addition.
 */
cl_int gmt_references_end(struct gmt_call *call, struct gmt_memory *memory)
{
	bool again = atomic_exchange(&memory->released_once, 1), ours = memory->block && !again;
	if (gmt_likely(!again && atomic_load(&memory->pins) == 1)) /* no one can create further sub-buffers */
		return release_with_parents(call, memory);
	if (memory->slab && !again && atomic_load(&memory->maps) > 0)
		gmt_finding(GMT_DIAG_STILL_MAPPED, "clReleaseMemObject", memory, CL_SUCCESS);
	struct gmtreleasefields release = gmt_release_fields(call, memory);
	release.outcome = GMT_OUTCOME_PINNED;
	cl_int err = ours ? CL_SUCCESS : gmt_driver.clReleaseMemObject(gmt_memory_handle(memory));
	if (atomic_fetch_sub(&memory->pins, 1) != 1) {
		gmt_release_write_event(&release, err, gmt_now());
		return err;
	}
	if (memory->block)
		return release_with_parents(call, memory);
	end_after_last_pin(call, memory);
	return err;
}
