/* evict.c: see evict.h. */
#define _GNU_SOURCE
#include "evict.h"

#include "../base/call.h"
#include "../base/lock.h"
#include "../pool/budget.h"
#include "context.h"
#include "figures.h"
#include "next.h"
#include "queue.h"

#include <stdlib.h>

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

static struct gmt_spill_object *first;
static _Atomic bool is_short;

bool gmt_spill_is_short(void)
{
	return atomic_load_explicit(&is_short, memory_order_relaxed);
}

void gmt_spill_list_add(struct gmt_spill_object *root)
{
	root->previous = NULL;
	root->next = first;
	if (first)
		first->previous = root;
	first = root;
	atomic_fetch_add(&root->context->made, 1);
	atomic_fetch_add(&gmt_spill_figures.resident, root->size);
}

void gmt_spill_list_remove(struct gmt_spill_object *root)
{
	if (root->next)
		root->next->previous = root->previous;
	if (root->previous)
		root->previous->next = root->next;
	else
		first = root->next;
	atomic_fetch_sub(&root->context->made, 1);
	atomic_fetch_sub(&gmt_spill_figures.resident, root->size);
}

enum state { IDLE, BUSY, HELD, STUCK };

/* Of its commands. Under the root's lock. */
static enum state commands_of(const struct gmt_spill_object *root)
{
	if (root->many)
		return gmt_spill_queues_over() ? IDLE : gmt_spill_queues_go_on() ? BUSY : HELD;
	enum state state = IDLE;
	for (uint32_t i = 0; i < root->lasts; i++) {
		const struct gmt_spill_last *last = &root->last[i];
		if (gmt_spill_queue_over(last->queue, last->id, last->position))
			continue;
		if (!gmt_spill_queue_may_go_on(last->queue))
			return STUCK;
		state = !gmt_spill_queue_goes_on(last->queue, last->position) ? HELD : state == IDLE ? BUSY : state;
	}
	return state;
}

/* Under the root's lock. BUSY: commands that complete by themselves use it; HELD: a call does, or that is not certain; STUCK: it may stay for long. */
static enum state state_of(const struct gmt_spill_object *root)
{
	if (root->fixed || root->maps)
		return STUCK;
	return root->pins ? HELD : commands_of(root);
}

/* Whether nothing but the call that needs the room keeps it. */
static bool is_own(const struct gmt_spill_object *root, const struct gmt_spill_command *command)
{
	uint32_t own = 0;
	for (uint32_t i = 0; command && i < command->count; i++)
		own += command->uses[i].object->root == root;
	return own && root->pins <= own;
}

static enum gmt_spill_why why(const struct gmt_spill_object *root)
{
	static const enum gmt_spill_why of_commands[] = {
		[IDLE] = GMT_SPILL_IDLE, [BUSY] = GMT_SPILL_RUNNING, [HELD] = GMT_SPILL_WAITING, [STUCK] = GMT_SPILL_WAITING,
	};
	if (root->fixed)
		return GMT_SPILL_FIXED;
	if (root->maps)
		return GMT_SPILL_MAPPED;
	return root->pins ? GMT_SPILL_CALLED : of_commands[commands_of(root)];
}

void gmt_spill_account(struct gmt_spill_account *account)
{
	uint64_t resident = 0, taken = gmt_budget_taken();
	*account = (struct gmt_spill_account){{0}};
	for (struct gmt_spill_object *root = first; root; root = root->next) {
		gmt_lock(&root->lock);
		account->bytes[why(root)] += root->size;
		gmt_unlock(&root->lock);
		resident += root->size;
	}
	account->bytes[GMT_SPILL_OTHERS] = taken > resident ? taken - resident : 0;
}

/* What could leave. */
struct choice {
	struct gmt_spill_object *root; /* of those that no command uses the one whose next use is farthest, or NULL */
	enum state some;               /* of others: whether they may follow by themselves */
	bool better;                   /* one of them, soon, would be better than root */
};

static struct choice choose(const struct gmt_spill_command *command)
{
	struct choice choice = {.some = STUCK};
	uint64_t most = 0, busy = 0;
	for (struct gmt_spill_object *root = first; root; root = root->next) {
		gmt_lock(&root->lock);
		enum state state = state_of(root);
		if (state == HELD && root->pins && is_own(root, command))
			state = STUCK;
		uint64_t distance = state == IDLE || state == BUSY ? gmt_spill_distance(root) : 0;
		gmt_unlock(&root->lock);
		if (state == IDLE && (!choice.root || distance > most)) {
			choice.root = root;
			most = distance;
		} else if (state == BUSY || (state == HELD && choice.some == STUCK))
			choice.some = state;
		if (state == BUSY && distance > busy)
			busy = distance;
	}
	choice.better = choice.root && busy > most;
	return choice;
}

/* Marks it, unless a call was faster. From here on calls wait for the residency lock. */
static bool claim(struct gmt_spill_object *root)
{
	gmt_lock(&root->lock);
	bool idle = state_of(root) == IDLE;
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

static cl_int read_all(cl_command_queue queue, const struct gmt_spill_object *root)
{
	if (root->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS))
		return read_through(queue, root);
	return gmt_bare.clEnqueueReadBuffer(queue, root->real, CL_TRUE, 0, root->size, root->host, 0, NULL, NULL);
}

static bool save(struct gmt_spill_object *root)
{
	if (!root->contents || root->clean)
		return true;
	if (!root->host)
		root->host = malloc(root->size);
	cl_command_queue queue = root->host ? gmt_spill_context_queue(root->context) : NULL;
	if (!queue || read_all(queue, root) != CL_SUCCESS)
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
static bool evict(struct gmt_spill_object *root)
{
	uint64_t start = gmt_now();
	bool moves = root->contents && !root->clean, saved = save(root);
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
	gmt_budget_give(root->size);
	gmt_spill_record(moves ? GMT_SPILL_OUT : GMT_SPILL_CLEAN, root, start);
	atomic_store(&is_short, true);
	return true;
}

/* Whether what stands in the way may go by itself, and soon enough. */
static bool may_wait(struct gmt_spill_patience *patience, enum state some)
{
	uint64_t now = gmt_now(), most = LONG_PATIENCE;
	if (gmt_spill_has_ended(&patience->seen) && some == STUCK)
		some = BUSY;
	if (some == HELD)
		most = !patience->command || gmt_spill_queues_gated_here() ? PATIENCE : OTHERS_PATIENCE;
	patience->alone = some == BUSY && now - patience->start > OTHERS_PATIENCE;
	return !gmt_in_callback && some != STUCK && now - patience->start <= most;
}

/* Nothing idle is taken in place of what would be better for some time. */
static bool lingers(const struct gmt_spill_patience *patience, const struct choice *choice)
{
	return choice->better && !gmt_in_callback && gmt_now() - patience->start < LINGER;
}

enum gmt_spill_outcome gmt_spill_evict_one(struct gmt_spill_patience *patience)
{
	patience->start = patience->start ? patience->start : gmt_now();
	for (;;) {
		struct choice choice = choose(patience->command);
		if (!choice.root || choice.better) {
			gmt_spill_queues_poll();
			choice = choose(patience->command);
		}
		if (choice.root && lingers(patience, &choice))
			return patience->outcome = GMT_SPILL_LATER;
		if (!choice.root)
			return patience->outcome = may_wait(patience, choice.some) ? GMT_SPILL_LATER : GMT_SPILL_NOTHING;
		if (!claim(choice.root))
			continue;
		if (evict(choice.root))
			return patience->outcome = GMT_SPILL_GONE;
		if (++patience->failed > 8)
			return patience->outcome = GMT_SPILL_NOTHING;
	}
}
