/* choose.c: see choose.h. */
#define _GNU_SOURCE
#include "choose.h"

#include "../base/lock.h"
#include "../pool/budget.h"
#include "context.h"
#include "figures.h"
#include "next.h"

#define CANDIDATES 1024
#define SHARE 256 /* a look chooses one of that many */

static struct gmt_spill_object *first;
static size_t roots;

/*
 * Of those that no command uses the ones whose next use is farthest, the farthest first. A look takes time with the number of
 * objects, so with many of them it chooses several at once.
 */
static struct candidate {
	struct gmt_spill_object *root; /* NULL: it has left the list */
	uint64_t tick, distance;
} candidates[CANDIDATES];
static size_t chosen, next; /* from next on they can be taken */

void gmt_spill_list_add(struct gmt_spill_object *root)
{
	root->previous = NULL;
	root->next = first;
	if (first)
		first->previous = root;
	first = root;
	roots++;
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
	for (size_t i = next; root->chosen && i < chosen; i++)
		if (candidates[i].root == root)
			candidates[i].root = NULL;
	root->chosen = false;
	roots--;
	atomic_fetch_sub(&root->context->made, 1);
	atomic_fetch_sub(&gmt_spill_figures.resident, root->size);
}

struct gmt_spill_object *gmt_spill_list_find_stale(size_t size)
{
	for (struct gmt_spill_object *other = first; other; other = other->next) {
		if (other->size != size)
			continue;
		gmt_lock(&other->lock);
		bool stale = other->host && !other->clean;
		gmt_unlock(&other->lock);
		if (stale)
			return other;
	}
	return NULL;
}

/* Of its commands. Under the root's lock. */
static enum gmt_spill_state state_of_commands(const struct gmt_spill_object *root)
{
	if (root->many)
		return gmt_spill_queues_over() ? GMT_SPILL_IS_IDLE : gmt_spill_queues_go_on() ? GMT_SPILL_IS_BUSY : GMT_SPILL_IS_HELD;
	enum gmt_spill_state state = GMT_SPILL_IS_IDLE;
	for (uint32_t i = 0; i < root->lasts; i++) {
		const struct gmt_spill_last *last = &root->last[i];
		if (gmt_spill_queue_is_over(last->queue, last->id, last->position))
			continue;
		if (!gmt_spill_queue_may_go_on(last->queue))
			return GMT_SPILL_IS_STUCK;
		if (!gmt_spill_queue_goes_on(last->queue, last->position))
			state = GMT_SPILL_IS_HELD;
		else if (state == GMT_SPILL_IS_IDLE)
			state = GMT_SPILL_IS_BUSY;
	}
	return state;
}

enum gmt_spill_state gmt_spill_state_of(const struct gmt_spill_object *root)
{
	if (root->fixed || root->maps)
		return GMT_SPILL_IS_STUCK;
	return root->pins ? GMT_SPILL_IS_HELD : state_of_commands(root);
}

/* Whether nothing but the call that needs the room keeps it. */
static bool is_held_by_command_only(const struct gmt_spill_object *root, const struct gmt_spill_command *command)
{
	uint32_t own = 0;
	for (uint32_t i = 0; command && i < command->count; i++)
		own += command->uses[i].object->root == root;
	return own && root->pins <= own;
}

static enum gmt_spill_why why_not_chosen(const struct gmt_spill_object *root)
{
	static const enum gmt_spill_why of_commands[] = {
		[GMT_SPILL_IS_IDLE] = GMT_SPILL_IDLE,
		[GMT_SPILL_IS_BUSY] = GMT_SPILL_RUNNING,
		[GMT_SPILL_IS_HELD] = GMT_SPILL_WAITING,
		[GMT_SPILL_IS_STUCK] = GMT_SPILL_WAITING,
	};
	if (root->fixed)
		return GMT_SPILL_FIXED;
	if (root->maps)
		return GMT_SPILL_MAPPED;
	return root->pins ? GMT_SPILL_CALLED : of_commands[state_of_commands(root)];
}

void gmt_spill_account(struct gmt_spill_account *account)
{
	uint64_t resident = 0, taken = gmt_budget_taken();
	*account = (struct gmt_spill_account){{0}};
	for (struct gmt_spill_object *root = first; root; root = root->next) {
		gmt_lock(&root->lock);
		account->bytes[why_not_chosen(root)] += root->size;
		gmt_unlock(&root->lock);
		resident += root->size;
	}
	account->bytes[GMT_SPILL_OTHERS] = taken > resident ? taken - resident : 0;
}

/* Moves one down in the heap of the first count, whose top is nearest. */
static void sift_down(size_t at, size_t count)
{
	for (size_t least = at;; at = least) {
		for (size_t i = 2 * at + 1; i <= 2 * at + 2 && i < count; i++)
			if (candidates[i].distance < candidates[least].distance)
				least = i;
		if (least == at)
			return;
		struct candidate moved = candidates[at];
		candidates[at] = candidates[least];
		candidates[least] = moved;
	}
}

static void make_heap(void)
{
	for (size_t i = chosen / 2; i-- > 0;)
		sift_down(i, chosen);
}

static void offer_candidate(struct gmt_spill_object *root, uint64_t distance)
{
	const size_t most = roots / SHARE < 1 ? 1 : roots / SHARE > CANDIDATES ? CANDIDATES : roots / SHARE;
	const struct candidate now = {root, root->tick, distance};
	if (chosen < most) {
		candidates[chosen++] = now;
		if (chosen == most)
			make_heap();
	} else if (distance > candidates[0].distance) {
		candidates[0] = now;
		sift_down(0, chosen);
	}
}

static void sort_candidates(void)
{
	make_heap();
	for (size_t count = chosen; count > 1;) {
		struct candidate nearest = candidates[0];
		candidates[0] = candidates[--count];
		candidates[count] = nearest;
		sift_down(0, count);
	}
}

/* An object that an earlier look has found, and that no command has used since; NULL: none. */
static struct gmt_spill_object *earlier_candidate(void)
{
	while (next < chosen) {
		const struct candidate *c = &candidates[next++];
		if (!c->root)
			continue;
		c->root->chosen = false;
		gmt_lock(&c->root->lock);
		bool same = c->root->tick == c->tick && gmt_spill_state_of(c->root) == GMT_SPILL_IS_IDLE;
		gmt_unlock(&c->root->lock);
		if (same)
			return c->root;
	}
	return NULL;
}

static struct gmt_spill_choice look_at_candidates(const struct gmt_spill_command *command)
{
	struct gmt_spill_choice choice = {.some = GMT_SPILL_IS_STUCK};
	uint64_t busy = 0;
	for (; next < chosen; next++)
		if (candidates[next].root)
			candidates[next].root->chosen = false;
	chosen = next = 0;
	for (struct gmt_spill_object *root = first; root; root = root->next) {
		gmt_lock(&root->lock);
		enum gmt_spill_state state = gmt_spill_state_of(root);
		if (state == GMT_SPILL_IS_HELD && root->pins && is_held_by_command_only(root, command))
			state = GMT_SPILL_IS_STUCK;
		uint64_t distance = state == GMT_SPILL_IS_IDLE || state == GMT_SPILL_IS_BUSY ? gmt_spill_next_use_distance(root) : 0;
		if (state == GMT_SPILL_IS_IDLE)
			offer_candidate(root, distance);
		gmt_unlock(&root->lock);
		if (state == GMT_SPILL_IS_BUSY || (state == GMT_SPILL_IS_HELD && choice.some == GMT_SPILL_IS_STUCK))
			choice.some = state;
		if (state == GMT_SPILL_IS_BUSY && distance > busy)
			busy = distance;
	}
	sort_candidates();
	for (size_t i = 1; i < chosen; i++)
		candidates[i].root->chosen = true;
	next = chosen > 0;
	choice.root = chosen ? candidates[0].root : NULL;
	choice.better = chosen && busy > candidates[0].distance;
	return choice;
}

struct gmt_spill_choice gmt_spill_choose(const struct gmt_spill_command *command, bool look_again)
{
	struct gmt_spill_object *root = look_again ? NULL : earlier_candidate();
	return root ? (struct gmt_spill_choice){.root = root} : look_at_candidates(command);
}
