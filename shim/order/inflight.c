/* inflight.c: see inflight.h. */
#define _GNU_SOURCE
#include "inflight.h"

#include "../base/lock.h"
#include "../registry/memory.h"
#include "queue.h"

#include <stdlib.h>

bool gmt_use_is_over(const struct gmt_use *use)
{
	if (use->queue->object.id != use->queue_id)
		return true;
	return use->several ? atomic_load(&use->queue->done) >= use->position : gmt_queue_has_reached(use->queue, use->position);
}

/*
 * Whether the fresh use stands for an earlier one: only on the same queue. The driver may give up a command that waits for
 * one on another queue before that has run, because something else that it waits for failed; its own queue is then done.
 */
static bool is_covered(const struct gmt_use *use, const struct gmt_use *fresh, const struct gmt_covers *covers)
{
	for (uint32_t i = 0; covers && i < covers->count; i++) {
		const struct gmt_cover *c = &covers->cover[i];
		if (c->queue == use->queue && c->queue_id == use->queue_id && use->queue == fresh->queue &&
		    (use->position <= c->before || (use->position == c->position && !use->several)))
			return true;
	}
	return false;
}

/*
 * Adds a use, and drops those that are over and those on its queue that it runs after. If several remain on one queue, the
 * latest stands for all. Under the lock of the owner of uses.
 */
static void add_use(struct gmt_uses *uses, struct gmt_use fresh, const struct gmt_covers *covers)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < uses->count; i++) {
		struct gmt_use *use = &uses->use[i];
		if (gmt_use_is_over(use) || is_covered(use, &fresh, covers))
			continue;
		if (use->queue == fresh.queue && use->queue_id == fresh.queue_id) {
			if (use->position > fresh.position)
				fresh.position = use->position;
			fresh.several = true;
			continue;
		}
		uses->use[kept++] = *use;
	}
	if (kept < GMT_USES)
		uses->use[kept++] = fresh;
	else
		uses->many = true;
	uses->count = kept;
}

/* Under the lock of memory, as write_uses. */
static struct gmt_uses read_uses(struct gmt_memory *memory)
{
	struct gmt_uses uses; /* without those beyond count: to clear them would take as long as all else here */
	uses.count = memory->uses;
	uses.many = memory->many;
	for (uint32_t i = 0; i < uses.count; i++)
		uses.use[i] = gmt_memory_uses(memory)[i];
	return uses;
}

static void write_uses(struct gmt_memory *memory, const struct gmt_uses *uses)
{
	struct gmt_use *list = uses->count > 1 && !memory->listed ? malloc(GMT_USES * sizeof *list) : NULL;
	if (list) {
		memory->list = list;
		memory->listed = true;
	}
	bool fit = uses->count <= 1 || memory->listed; /* else memory is short */
	memory->uses = fit ? uses->count & 127 : 1;
	memory->many = uses->many || !fit;
	for (uint32_t i = 0; i < memory->uses; i++)
		gmt_memory_uses(memory)[i] = uses->use[i];
}

void gmt_use_add(struct gmt_memory *memory, struct gmt_queue *queue, uint64_t position, const struct gmt_covers *covers)
{
	struct gmt_use fresh = gmt_use_of(queue, position, false);
	gmt_lock(&memory->lock);
	/* The usual case: the same queue again, in order. */
	struct gmt_use *use = gmt_memory_uses(memory);
	if (gmt_likely(memory->uses == 1 && use->queue == queue && use->queue_id == fresh.queue_id && use->position <= covers->cover[0].before)) {
		*use = fresh;
	} else {
		struct gmt_uses uses = read_uses(memory);
		add_use(&uses, fresh, covers);
		write_uses(memory, &uses);
	}
	gmt_unlock(&memory->lock);
}

void gmt_use_add_hidden(struct gmt_context *context, struct gmt_queue *queue, uint64_t position)
{
	gmt_lock(&context->lock);
	add_use(&context->order.hidden, gmt_use_of(queue, position, false), NULL);
	gmt_unlock(&context->lock);
}

void gmt_use_add_indirect(struct gmt_context *context, struct gmt_queue *queue, uint64_t position)
{
	gmt_lock(&context->lock);
	add_use(&context->order.indirect, gmt_use_of(queue, position, false), NULL);
	gmt_unlock(&context->lock);
}

static void add_all_uses(struct gmt_uses *uses, const struct gmt_uses *more)
{
	for (uint32_t i = 0; i < more->count; i++)
		add_use(uses, more->use[i], NULL);
	uses->many |= more->many;
}

struct gmt_uses gmt_uses_of(struct gmt_memory *memory)
{
	struct gmt_context *context = memory->context;
	gmt_lock(&memory->lock);
	struct gmt_uses uses = read_uses(memory);
	gmt_unlock(&memory->lock);
	bool shared = context && gmt_memory_is_shared(memory);
	if (gmt_likely(!context || (!context->order.hidden.count && !context->order.hidden.many && !shared)))
		return uses;
	gmt_lock(&context->lock);
	add_all_uses(&uses, &context->order.hidden);
	if (shared)
		add_all_uses(&uses, &context->order.indirect);
	gmt_unlock(&context->lock);
	return uses;
}

/* Whether all commands that come next in the context will run after everything enqueued so far. */
static bool orders_all_commands(const struct gmt_queue *queue, const struct gmt_context *context)
{
	return queue->inorder && queue->context == context && atomic_load(&queue->references) > 0 &&
	       atomic_load(&context->order.queues) == 1 && !atomic_load(&context->order.unordered) && !gmt_is_gated(context);
}

enum gmt_flight gmt_uses_state(const struct gmt_uses *uses, struct gmt_context *context)
{
	enum gmt_flight state = uses->many ? GMT_FLIGHT_BUSY : GMT_FLIGHT_DONE;
	for (uint32_t i = 0; i < uses->count && state != GMT_FLIGHT_BUSY; i++) {
		const struct gmt_use *use = &uses->use[i];
		if (gmt_use_is_over(use))
			continue;
		gmt_queue_poll_markers(use->queue);
		if (gmt_use_is_over(use))
			continue;
		state = context && orders_all_commands(use->queue, context) ? GMT_FLIGHT_ORDERED : GMT_FLIGHT_BUSY;
	}
	return state;
}

bool gmt_uses_hand_out(const struct gmt_uses *uses, struct gmt_context *context)
{
	bool ordered = !uses->many;
	gmt_lock(&context->lock);
	for (uint32_t i = 0; i < uses->count && ordered; i++)
		ordered = gmt_use_is_over(&uses->use[i]) || orders_all_commands(uses->use[i].queue, context);
	for (uint32_t i = 0; i < uses->count && ordered; i++)
		if (!gmt_use_is_over(&uses->use[i])) /* else the entry may be a new queue's */
			gmt_raise_position(&uses->use[i].queue->handed, uses->use[i].position);
	gmt_unlock(&context->lock);
	return ordered;
}
