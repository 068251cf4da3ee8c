/*
 * inflight.c: which queued commands still use which memory, and the blocks that wait for them. A use is a queue and a
 * position; it is over once the queue is known to have reached that.
 */
#define _GNU_SOURCE
#include "pool.h"

#include <stdlib.h>

static bool over(const struct gmt_use *use)
{
	if (use->queue->object.number != use->queuenumber)
		return true;
	return use->several ? atomic_load(&use->queue->done) >= use->position : gmt_queue_reached(use->queue, use->position);
}

/*
 * Whether the fresh use stands for an earlier one: only on one queue. A command that waits for one on another queue may
 * be given up before that has run, because something else that it waits for has failed; its own queue is then done.
 */
static bool covered(const struct gmt_use *use, const struct gmt_use *fresh, const struct gmt_covers *covers)
{
	for (uint32_t i = 0; covers && i < covers->count; i++) {
		const struct gmt_cover *c = &covers->cover[i];
		if (c->queue == use->queue && c->queuenumber == use->queuenumber && use->queue == fresh->queue &&
		    (use->position <= c->before || (use->position == c->position && !use->several)))
			return true;
	}
	return false;
}

/*
 * Notes one more use; those on its queue that it runs after are over when it is. Of several on one queue the latest is kept, and
 * stands for the others. Under the lock of whoever owns uses.
 */
static void add(struct gmt_uses *uses, struct gmt_use fresh, const struct gmt_covers *covers)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < uses->count; i++) {
		struct gmt_use *use = &uses->use[i];
		if (over(use) || covered(use, &fresh, covers))
			continue;
		if (use->queue == fresh.queue && use->queuenumber == fresh.queuenumber) {
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

void gmt_use_add(struct gmt_memory *memory, struct gmt_queue *queue, uint64_t position, const struct gmt_covers *covers)
{
	uint64_t number = queue->object.number;
	gmt_lock(&memory->lock);
	struct gmt_uses *uses = &memory->uses;
	/* What most programs do: the same queue again, in order. */
	if (gmt_likely(uses->count == 1 && uses->use[0].queue == queue && uses->use[0].queuenumber == number &&
		       uses->use[0].position <= covers->cover[0].before))
		uses->use[0] = (struct gmt_use){queue, number, position, false};
	else
		add(uses, (struct gmt_use){queue, number, position, false}, covers);
	gmt_unlock(&memory->lock);
}

void gmt_use_hidden(struct gmt_context *context, struct gmt_queue *queue, uint64_t position)
{
	gmt_lock(&context->lock);
	add(&context->hidden, (struct gmt_use){queue, queue->object.number, position, false}, NULL);
	gmt_unlock(&context->lock);
}

struct gmt_uses gmt_uses_of(struct gmt_memory *memory)
{
	struct gmt_context *context = memory->context;
	gmt_lock(&memory->lock);
	struct gmt_uses uses = memory->uses;
	gmt_unlock(&memory->lock);
	if (gmt_likely(!context || (!context->hidden.count && !context->hidden.many)))
		return uses;
	gmt_lock(&context->lock);
	for (uint32_t i = 0; i < context->hidden.count; i++)
		add(&uses, context->hidden.use[i], NULL);
	uses.many |= context->hidden.many;
	gmt_unlock(&context->lock);
	return uses;
}

/* True when whatever the context does next runs behind everything that this queue has been given. */
static bool orders_all(const struct gmt_queue *queue, const struct gmt_context *context)
{
	return queue->inorder && queue->context == context && atomic_load(&queue->references) > 0 &&
	       atomic_load(&context->queues) == 1 && !atomic_load(&context->unordered) && !gmt_gated(context);
}

enum gmt_flight gmt_uses_state(const struct gmt_uses *uses, struct gmt_context *context)
{
	enum gmt_flight state = uses->many ? GMT_FLIGHT_BUSY : GMT_FLIGHT_DONE;
	for (uint32_t i = 0; i < uses->count && state != GMT_FLIGHT_BUSY; i++) {
		const struct gmt_use *use = &uses->use[i];
		if (over(use))
			continue;
		gmt_queue_poll(use->queue);
		if (over(use))
			continue;
		state = context && orders_all(use->queue, context) ? GMT_FLIGHT_ORDERED : GMT_FLIGHT_BUSY;
	}
	return state;
}

/* Blocks that were freed while in use: a ring that grows, oldest first. */
static struct cooling {
	struct gmt_cooled what;
	struct gmt_context *context;
	struct gmt_uses uses;
	struct gmt_use *more; /* instead, when they are too many */
	uint32_t mores;
} *cooling;
static size_t cooling_capacity /* a power of two */, cooling_first;
static _Atomic size_t cooling_count;
static _Atomic uint32_t cooling_lock;

static struct cooling *cooling_at(size_t i)
{
	return &cooling[(cooling_first + i) & (cooling_capacity - 1)];
}

static bool cooling_grow(void)
{
	size_t count = atomic_load(&cooling_count), capacity = cooling_capacity ? 2 * cooling_capacity : 256;
	struct cooling *bigger = malloc(capacity * sizeof *bigger);
	if (!bigger)
		return false;
	for (size_t i = 0; i < count; i++)
		bigger[i] = *cooling_at(i);
	free(cooling);
	cooling = bigger;
	cooling_capacity = capacity;
	cooling_first = 0;
	return true;
}

/* Used on more queues than we keep apart: it waits for all that the context's queues have been given. */
static void wait_for_all(struct cooling *entry)
{
	uint32_t room = 64;
	for (;;) {
		entry->more = malloc(room * sizeof *entry->more);
		if (!entry->more)
			return; /* it cools for ever, which is safe */
		entry->mores = gmt_queue_pending(entry->context, entry->more, room);
		if (entry->mores <= room)
			break;
		room = entry->mores + 64;
		free(entry->more);
	}
	entry->uses.many = false;
	entry->uses.count = 0;
}

static void put_in(struct cooling *entry)
{
	gmt_lock(&cooling_lock);
	size_t count = atomic_load(&cooling_count);
	bool room = count < cooling_capacity || cooling_grow();
	if (room) {
		*cooling_at(count) = *entry;
		atomic_store(&cooling_count, count + 1);
	}
	gmt_unlock(&cooling_lock);
	if (!room) /* it cools for ever, too; a sub-buffer with destructors as well */
		free(entry->more);
}

static bool take_first(struct cooling *entry)
{
	gmt_lock(&cooling_lock);
	size_t count = atomic_load(&cooling_count);
	if (count) {
		*entry = *cooling_at(0);
		cooling_first = (cooling_first + 1) & (cooling_capacity - 1);
		atomic_store(&cooling_count, count - 1);
	}
	gmt_unlock(&cooling_lock);
	return count > 0;
}

void gmt_cooling_add(const struct gmt_cooled *what, const struct gmt_uses *uses, struct gmt_context *context)
{
	struct cooling entry = {*what, context, *uses, NULL, 0};
	if (uses->many)
		wait_for_all(&entry);
	put_in(&entry);
}

/* Forgets what is over, which only a long list is worth. */
static bool cooled(struct cooling *entry)
{
	for (; entry->mores; entry->mores--) {
		const struct gmt_use *use = &entry->more[entry->mores - 1];
		if (!over(use))
			gmt_queue_poll(use->queue);
		if (!over(use))
			return false;
	}
	return gmt_uses_state(&entry->uses, NULL) == GMT_FLIGHT_DONE;
}

#define ASKED_MAX 32
/* Queues that entries wait for. */
struct asked {
	struct gmt_queue *queue[ASKED_MAX];
	unsigned count;
};

static void ask(struct asked *asked, const struct gmt_use *use)
{
	for (unsigned i = 0; i < asked->count; i++)
		if (asked->queue[i] == use->queue)
			return;
	if (asked->count < ASKED_MAX && !over(use))
		asked->queue[asked->count++] = use->queue;
}

static void ask_all(struct asked *asked, const struct cooling *entry)
{
	for (uint32_t i = 0; i < entry->uses.count; i++)
		ask(asked, &entry->uses.use[i]);
	if (entry->mores) /* one after the other */
		ask(asked, &entry->more[entry->mores - 1]);
}

/*
 * Takes the first entry out; one that is still in use goes to the end, so that no stuck block hides the others. The
 * driver is asked without the lock: a callback of the program may run in there, and release memory that is to cool.
 */
static bool next_cooled(struct gmt_cooled *out, struct cooling *entry, struct asked *asked)
{
	if (cooled(entry)) {
		free(entry->more);
		*out = entry->what;
		return true;
	}
	ask_all(asked, entry);
	put_in(entry);
	return false;
}

unsigned gmt_cooling_take(struct gmt_cooled *out, unsigned room, unsigned most, bool markers)
{
	size_t count = atomic_load_explicit(&cooling_count, memory_order_relaxed);
	unsigned found = 0;
	struct asked asked = {.count = 0};
	struct cooling entry;
	for (size_t looked = 0; looked < most && looked < count && found < room && take_first(&entry); looked++)
		found += next_cooled(&out[found], &entry, &asked);
	for (unsigned i = 0; markers && i < asked.count; i++)
		gmt_queue_mark(asked.queue[i]);
	return found;
}

bool gmt_cooling_late(const struct gmt_context *context, struct gmt_cooled *out)
{
	bool found = false;
	gmt_lock(&cooling_lock);
	size_t count = atomic_load(&cooling_count);
	for (size_t i = 0; i < count && !found; i++) {
		struct cooling *entry = cooling_at(i);
		found = entry->what.late && entry->context == context;
		if (found) {
			*out = entry->what;
			entry->what.late = NULL;
		}
	}
	gmt_unlock(&cooling_lock);
	return found;
}

void gmt_inflight_drop(struct gmt_context *context)
{
	gmt_lock(&cooling_lock);
	size_t count = atomic_load(&cooling_count), kept = 0;
	for (size_t i = 0; i < count; i++) {
		struct cooling entry = *cooling_at(i);
		if (entry.context == context)
			free(entry.more);
		else
			*cooling_at(kept++) = entry;
	}
	atomic_store(&cooling_count, kept);
	gmt_unlock(&cooling_lock);
	gmt_queue_drop(context);
}
