/* command.c: the common part of every enqueue. */
#define _GNU_SOURCE
#include "command.h"

static void blocked(const struct gmt_command *c)
{
	if (c->queue->inorder) {
		gmt_queue_done(c->queue, c->before);
		gmt_queue_poll(c->queue);
	}
	gmt_pool_settle(64);
	if (!gmt_session.config.uses)
		return;
	struct gmtevent event = {
		.time = c->time,
		.duration = gmt_clamp32(gmt_now() - c->time),
		.kind = GMT_KIND_SYNC,
		.op = GMT_SYNC_BLOCKING,
		.scope = gmt_scope(c->queue->context),
		.link = c->queue->object.number,
	};
	gmt_ring_write(&event);
}

void gmt_command_end(struct gmt_command *c, cl_int err, bool blocking)
{
	if (!c->queue || err != CL_SUCCESS) {
		c->queue = NULL;
		return;
	}
	if (blocking)
		blocked(c);
	else
		c->position = atomic_fetch_add_explicit(&c->queue->enqueued, 1, memory_order_acq_rel) + 1;
}

void gmt_command_use(const struct gmt_command *c, cl_mem handle, uint8_t flags, uint64_t bytes)
{
	struct gmt_memory *memory = c->queue ? gmt_memory_find(handle) : NULL;
	if (!memory)
		return;
	struct gmt_memory *root = memory;
	while (root->parent)
		root = root->parent;
	if (c->position && root->block)
		gmt_use_add(root, c->queue, c->position);
	if (!gmt_session.config.uses)
		return;
	struct gmtevent event = {
		.time = c->time,
		.kind = GMT_KIND_USE,
		.op = c->op,
		.flags = flags,
		.scope = memory->scope,
		.tag = memory->tag,
		.object = memory->object.number,
		.size = bytes,
		.granted = c->kernel,
		.link = c->queue->object.number,
	};
	gmt_ring_write(&event);
}
