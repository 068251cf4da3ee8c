/* residency.c: see residency.h. */
#define _GNU_SOURCE
#include "residency.h"

#include "../base/lock.h"
#include "context.h"
#include "next.h"

#include <string.h>

cl_int gmt_spill_begin_command(struct gmt_spill_command *command)
{
	for (uint32_t i = 0; i < command->count; i++) {
		const struct gmt_spill_use *use = &command->uses[i];
		if (gmt_unlikely(!gmt_spill_pin_now(use->object, use->writes))) {
			gmt_spill_unpin_all(command, i);
			return gmt_spill_begin_slowly(command);
		}
	}
	return CL_SUCCESS;
}

cl_int gmt_spill_begin_or_refuse(struct gmt_spill_command *command, cl_int refused)
{
	command->may_split |= refused != CL_SUCCESS;
	cl_int err = gmt_spill_begin_command(command);
	return err != CL_SUCCESS && refused != CL_SUCCESS ? refused : err;
}

/* Under the root's lock. */
static void add_use(struct gmt_spill_object *root, const struct gmt_spill_command *command, uint64_t id, uint64_t position)
{
	struct gmt_spill_last *free_one = NULL;
	for (uint32_t i = 0; i < root->lasts; i++) {
		struct gmt_spill_last *last = &root->last[i];
		if (gmt_likely(last->queue == command->queue && last->id == id)) {
			last->position = position > last->position ? position : last->position;
			return;
		}
		if (gmt_spill_queue_is_over(last->queue, last->id, last->position))
			free_one = last;
	}
	if (!free_one && root->lasts < GMT_SPILL_LASTS)
		free_one = &root->last[root->lasts++];
	if (free_one)
		*free_one = (struct gmt_spill_last){command->queue, id, position};
	else
		root->many = true;
}

void gmt_spill_end_command(struct gmt_spill_command *command, cl_int status)
{
	if (!command->count)
		return;
	uint64_t position = 0, id = 0, tick = gmt_spill_next_tick();
	if (status == CL_SUCCESS && command->queue) {
		position = gmt_spill_queue_count_command(command->queue, command->native);
		id = atomic_load_explicit(&command->queue->object.id, memory_order_relaxed);
	}
	for (uint32_t i = 0; i < command->count; i++) {
		struct gmt_spill_object *root = command->uses[i].object->root;
		gmt_lock(&root->lock);
		if (position)
			add_use(root, command, id, position);
		else if (status == CL_SUCCESS)
			root->fixed = true; /* of a queue that we do not know: it must no longer move */
		gmt_spill_note_used(root, tick);
		root->pins--;
		gmt_unlock(&root->lock);
	}
}

cl_int gmt_spill_pin(struct gmt_spill_object *object, const char *name)
{
	struct gmt_spill_use use = {object, false};
	struct gmt_spill_command command = {.name = name, .count = 1, .uses = &use};
	return gmt_spill_begin_command(&command);
}

void gmt_spill_fix_on_device(struct gmt_spill_object *object)
{
	gmt_lock(&object->root->lock);
	object->root->fixed = true;
	object->root->contents = true; /* written unseen */
	object->root->clean = false;
	gmt_unlock(&object->root->lock);
}

bool gmt_spill_host_bytes(struct gmt_spill_object *object, size_t offset, size_t size, void *to)
{
	struct gmt_spill_object *root = object->root;
	if (offset > object->size || size > object->size - offset || !gmt_spill_lock())
		return false;
	bool inside = object->origin <= root->size && object->size <= root->size - object->origin;
	bool there = inside && !root->real && root->contents && root->host;
	if (there)
		memcpy(to, (const char *)root->host + object->origin + offset, size);
	gmt_spill_unlock();
	return there;
}

cl_mem gmt_spill_dummy(const struct gmt_spill_object *object)
{
	cl_mem dummy = atomic_load(&object->context->dummy); /* it stays as long as any object does */
	if (dummy || !gmt_spill_lock())
		return dummy;
	dummy = gmt_spill_context_dummy(object->context);
	gmt_spill_unlock();
	return dummy;
}
