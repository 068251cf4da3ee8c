/* evict.c: see evict.h. */
#define _GNU_SOURCE
#include "evict.h"

#include "../base/call.h"
#include "../base/lock.h"
#include "../pool/budget.h"
#include "backing.h"
#include "choose.h"
#include "context.h"
#include "figures.h"
#include "queue.h"
#include "short.h"
#include "user_event.h"

#define PIECE ((size_t)256 << 10) /* bytes */
/*
 * How long to wait for calls, and for commands that may themselves wait for the program: where this thread may be the one that
 * they wait for, and else.
 */
#define PATIENCE 50000000u
#define OTHERS_PATIENCE 2000000000u
/* How long for a command, if what it uses is better to take than what is idle. */
#define LINGER 10000000u
/* How long for commands: there are drivers that never end one. */
#define LONG_PATIENCE 60000000000u

/* Marks it, unless a call was faster. From here on calls wait for the residency lock. */
static bool claim_root(struct gmt_spill_object *root)
{
	gmt_lock(&root->lock);
	bool idle = gmt_spill_state_of(root) == GMT_SPILL_IS_IDLE;
	root->leaving = idle;
	gmt_unlock(&root->lock);
	return idle;
}

/* By way of a small buffer, where the flags keep the host from reading. */
static cl_int read_through(cl_command_queue queue, const struct gmt_spill_object *root)
{
	cl_int err = CL_SUCCESS;
	size_t piece = root->size < PIECE ? root->size : PIECE;
	cl_context context = (cl_context)atomic_load(&root->context->object.handle);
	cl_mem way = gmt_bare.clCreateBuffer(context, CL_MEM_READ_WRITE, piece, NULL, &err);
	for (size_t at = 0; way && err == CL_SUCCESS && at < root->size; at += piece) {
		piece = root->size - at < piece ? root->size - at : piece;
		err = gmt_bare.clEnqueueCopyBuffer(queue, root->real, way, at, 0, piece, 0, NULL, NULL);
		if (err == CL_SUCCESS)
			err = gmt_bare.clEnqueueReadBuffer(queue, way, CL_TRUE, 0, piece, (char *)root->host + at, 0, NULL, NULL);
	}
	if (way)
		gmt_bare.clReleaseMemObject(way);
	return err;
}

static cl_int read_contents(cl_command_queue queue, const struct gmt_spill_object *root)
{
	if (root->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS))
		return read_through(queue, root);
	return gmt_bare.clEnqueueReadBuffer(queue, root->real, CL_TRUE, 0, root->size, root->host, 0, NULL, NULL);
}

static bool save_contents(struct gmt_spill_object *root)
{
	if (!root->contents || root->clean)
		return true;
	cl_command_queue queue = gmt_spill_backing_take(root) ? gmt_spill_context_queue(root->context) : NULL;
	if (!queue || read_contents(queue, root) != CL_SUCCESS)
		return false;
	return true;
}

void gmt_spill_release_children(struct gmt_spill_object *root)
{
	for (struct gmt_spill_object *child = root->child; child; child = child->sibling)
		if (child->real) {
			gmt_bare.clReleaseMemObject(child->real);
			child->real = NULL;
			atomic_fetch_sub(&root->context->made, 1);
			atomic_fetch_sub(&root->parts, 1);
		}
}

/* False: its contents could not be saved, and it stays. */
static bool evict_root(struct gmt_spill_object *root)
{
	uint64_t start = gmt_now();
	bool moves = root->contents && !root->clean, saved = save_contents(root);
	cl_mem real = root->real;
	if (saved) {
		gmt_spill_release_children(root);
		gmt_spill_list_remove(root);
		if (root->contents)
			atomic_fetch_add(&gmt_spill_figures.spilled, root->size);
	}
	gmt_lock(&root->lock);
	root->leaving = false;
	if (saved) {
		root->real = NULL;
		root->clean = root->taken = true;
		root->lasts = 0;
		root->many = false;
	} else {
		root->tick = UINT64_MAX; /* the last to be tried again */
		root->gaps = 0;
	}
	gmt_unlock(&root->lock);
	if (!saved)
		return false;
	gmt_bare.clReleaseMemObject(real);
	gmt_budget_give_back(root->size);
	gmt_spill_record(moves ? GMT_SPILL_OUT : GMT_SPILL_CLEAN, root, start);
	gmt_spill_note_short();
	return true;
}

/*
 * Calls that wait while they have pins may wait for each other. The first of them holds out: once the next one has given up, what
 * that had pinned can go.
 */
static _Atomic(const struct gmt_spill_patience *) first_waiting;

static bool may_hold_out(const struct gmt_spill_patience *patience)
{
	const struct gmt_spill_patience *none = NULL;
	return patience->command || atomic_compare_exchange_strong(&first_waiting, &none, patience) || none == patience;
}

void gmt_spill_end_wait(const struct gmt_spill_patience *patience)
{
	atomic_compare_exchange_strong(&first_waiting, &patience, NULL);
}

/* Whether what stands in the way may go by itself, and soon enough. */
static bool may_wait(struct gmt_spill_patience *patience, enum gmt_spill_state some)
{
	uint64_t now = gmt_now(), most = LONG_PATIENCE;
	bool ended = gmt_spill_has_any_ended(&patience->seen);
	if (ended && some == GMT_SPILL_IS_STUCK)
		some = GMT_SPILL_IS_BUSY;
	if (some == GMT_SPILL_IS_HELD)
		most = !may_hold_out(patience) || gmt_spill_gated_here() ? PATIENCE : OTHERS_PATIENCE;
	patience->alone = some == GMT_SPILL_IS_BUSY && !ended && now - patience->start > OTHERS_PATIENCE;
	return !gmt_in_callback && some != GMT_SPILL_IS_STUCK && now - patience->start <= most;
}

/* Nothing idle is taken in place of what would be better for some time. */
static bool may_linger(const struct gmt_spill_patience *patience, const struct gmt_spill_choice *choice)
{
	return choice->better && !gmt_in_callback && gmt_now() - patience->start < LINGER;
}

enum gmt_spill_outcome gmt_spill_evict_one(struct gmt_spill_patience *patience)
{
	patience->start = patience->start ? patience->start : gmt_now();
	for (;;) {
		struct gmt_spill_choice choice = gmt_spill_choose(patience->command, false);
		if (!choice.root || choice.better) {
			gmt_spill_queues_poll();
			choice = gmt_spill_choose(patience->command, true);
		}
		if (choice.root && may_linger(patience, &choice))
			return patience->outcome = GMT_SPILL_LATER;
		if (!choice.root)
			return patience->outcome = may_wait(patience, choice.some) ? GMT_SPILL_LATER : GMT_SPILL_NOTHING;
		if (!claim_root(choice.root))
			continue;
		if (evict_root(choice.root))
			return patience->outcome = GMT_SPILL_GONE;
		if (++patience->failed > 8)
			return patience->outcome = GMT_SPILL_NOTHING;
	}
}
