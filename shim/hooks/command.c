/* command.c: see command.h. */
#define _GNU_SOURCE
#include "command.h"

#include "../entry/sites.h"
#include "../entry/tags.h"
#include "../order/queue.h"
#include "../pool/cooling.h"
#include "../registry/finding.h"
#include "../registry/memory.h"

bool gmt_command_begin(struct gmt_command *c, cl_command_queue queue, enum gmtcommand op, const char *function)
{
	if (!gmt_enter_untimed_from(function))
		return false;
	c->function = function;
	c->before = c->fence = c->time = c->kernel = 0;
	c->site = c->took = 0;
	c->refused = CL_SUCCESS;
	c->op = (uint8_t)op;
	c->unknown = c->uncounted = c->indirect = c->moves = c->waits = false;
	c->uses = gmt_uses();
	c->reports = c->uses || (gmt_session.config.transfers && op >= GMT_COMMAND_READ && op <= GMT_COMMAND_MIGRATE);
	c->count = 0;
	c->queue = gmt_queue_find(queue);
	if (c->queue) {
		c->fence = atomic_load_explicit(&c->queue->fence, memory_order_acquire);
		c->before = atomic_load_explicit(&c->queue->enqueued, memory_order_acquire);
	}
	if (c->reports) {
		gmt_ring_prepare();
		c->time = gmt_now();
	}
	return true;
}

static enum gmt_effect effect_of_flags(const struct gmt_command *c, uint8_t flags)
{
	if (flags & GMT_FLAG_WRITES || c->op == GMT_COMMAND_NATIVE)
		return GMT_EFFECT_WRITES;
	return flags & GMT_FLAG_READS ? GMT_EFFECT_READS : GMT_EFFECT_NONE;
}

struct gmt_memory *gmt_command_uses(struct gmt_command *c, cl_mem handle, uint8_t flags, struct gmt_extent extent)
{
	struct gmt_memory *memory = gmt_memory_find(handle);
	if (gmt_unlikely(!memory)) {
		c->unknown |= handle && !gmt_finding_freed_handle(GMT_DIAG_USE_AFTER_RELEASE, c->function, handle);
		return NULL;
	}
	if (gmt_unlikely(gmt_finding_released(memory, c->function)))
		c->refused = CL_INVALID_MEM_OBJECT;
	gmt_command_note_access(c, (struct gmt_access){
		.memory = memory, .extent = extent, .flags = flags, .effect = (uint8_t)effect_of_flags(c, flags),
	});
	return memory;
}

/* Memory in the pool has no owner, and the host has none of its own at its address: NULL, so that the command is not refused. */
struct gmt_memory *gmt_command_uses_pointer(struct gmt_command *c, const void *pointer, uint8_t flags, size_t bytes)
{
	struct gmt_memory *memory = gmt_memory_at(pointer);
	if (!memory)
		return NULL;
	if (gmt_unlikely(gmt_finding_released(memory, c->function)))
		c->refused = CL_INVALID_VALUE;
	uint64_t offset = gmt_memory_offset(memory, pointer);
	if (!bytes && offset < memory->size)
		bytes = (size_t)(memory->size - offset);
	gmt_command_note_access(c, (struct gmt_access){.memory = memory, .extent = GMT_EXTENT(offset, bytes), .flags = flags});
	return memory;
}

void gmt_command_uses_all(struct gmt_command *c, cl_uint count, const cl_mem *handles)
{
	for (cl_uint i = 0; handles && i < count; i++) {
		const struct gmt_memory *memory = c->op == GMT_COMMAND_MIGRATE ? gmt_memory_find(handles[i]) : NULL;
		gmt_command_uses(c, handles[i], 0, memory ? GMT_EXTENT(0, memory->size) : GMT_SOMEWHERE);
	}
}

void gmt_command_migrates(struct gmt_command *c, cl_mem_migration_flags flags)
{
	if (!(flags & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED))
		return;
	c->moves = false;
	c->site = 0;
	for (uint32_t i = 0; i < c->count; i++)
		c->access[i].extent = GMT_SOMEWHERE;
}

/* Only the driver knows where an image's elements lie, so a region's extent is known only if it covers the whole image. */
uint64_t gmt_command_uses_image(struct gmt_command *c, cl_mem image, uint8_t flags, const size_t *region)
{
	const struct gmt_memory *memory = gmt_memory_find(image);
	uint64_t bytes = memory ? gmt_region_volume(region) * memory->element : 0;
	bool whole = bytes && bytes == memory->size;
	gmt_command_uses(c, image, flags, whole ? GMT_EXTENT(0, bytes) : GMT_SCATTERED(0, bytes));
	return bytes;
}

void gmt_command_copies(struct gmt_command *c, const struct gmt_caller *caller)
{
	if (!c->reports || !c->queue || !c->count)
		return;
	struct gmt_call call;
	if (!c->uses) { /* only a recording is searched for superfluous copies */
		c->site = gmt_tag_command(caller, c->access[0].extent.bytes, &c->time);
		return;
	}
	c->site = gmt_tag(&call, caller, c->access[0].extent.bytes);
	c->time = gmt_now(); /* later than the TAG event, if that has just been written */
}

void gmt_command_transfers(struct gmt_command *c, const struct gmt_caller *caller, const void *host, uint64_t bytes)
{
	c->moves = gmt_session.config.transfers && c->queue && c->count;
	if (!c->moves)
		return;
	c->transfer = (struct gmt_transfer){0};
	if (c->refused)
		return;
	c->site = gmt_tag_command(caller, bytes, &c->time);
	if (host)
		gmt_transfer_look(&c->transfer, c->time, c->op == GMT_COMMAND_READ, host, bytes);
}

void gmt_command_copies_pointers(struct gmt_command *c, const void *to, const void *from, uint64_t bytes, const struct gmt_caller *caller)
{
	bool reads = gmt_command_uses_pointer(c, from, GMT_FLAG_READS, bytes);
	bool writes = gmt_command_uses_pointer(c, to, GMT_FLAG_WRITES, bytes);
	if (reads == writes) {
		gmt_command_copies(c, caller);
		return;
	}
	c->op = reads ? GMT_COMMAND_READ : GMT_COMMAND_WRITE;
	gmt_command_transfers(c, caller, reads ? to : from, bytes);
}

void gmt_command_done(struct gmt_command *c)
{
	if (!c->reports)
		return;
	c->took = gmt_took(c->time, gmt_now());
	if (c->moves && c->op == GMT_COMMAND_WRITE)
		gmt_transfer_hash(&c->transfer);
}

static void complete_earlier_commands(struct gmt_command *c)
{
	atomic_store_explicit(&gmt_flushed, true, memory_order_relaxed);
	if (c->queue->inorder) {
		gmt_queue_note_completed(c->queue, c->before);
		gmt_queue_poll_markers(c->queue);
	}
	gmt_cooling_collect(64, false);
	if (!c->reports)
		return;
	struct gmtevent event = GMT_EVENT_SYNC(.time = c->time, .duration = c->took, .sync = GMT_SYNC_BLOCKING,
					       .scope = gmt_context_id(c->queue->context), .queue = c->queue->object.id);
	gmt_ring_write(&event);
}

static uint64_t position_it_runs_after(const struct gmt_command *c)
{
	return c->queue->inorder ? c->before : c->fence;
}

static void add_covers(struct gmt_covers *covers, const struct gmt_command *c, const struct gmt_wait_list *waits)
{
	covers->count = 1;
	covers->cover[0] = (struct gmt_cover){c->queue, c->queue->object.id, position_it_runs_after(c), 0};
	for (cl_uint i = 0; waits->list && i < waits->waits && covers->count < GMT_COVERS; i++) {
		const struct gmt_event *event = gmt_event_find(waits->list[i]);
		if (event && event->of.what.queue)
			covers->cover[covers->count++] = event->of.what;
	}
}

/* The pool needs the uses of its blocks; hidden_references.c needs the uses of other memory. */
static void add_uses(const struct gmt_command *c, uint64_t position, const struct gmt_covers *covers)
{
	for (uint32_t i = 0; i < c->count; i++) {
		struct gmt_memory *root = gmt_memory_root(c->access[i].memory);
		if (root->kind >= GMT_MEMORY_SVM && !root->block)
			continue;
		gmt_use_add(root, c->queue, position, covers);
		if (root->slab)
			gmt_use_add(root->slab, c->queue, position, covers);
		if (gmt_unlikely(atomic_load_explicit(&root->has_destructor, memory_order_relaxed)))
			gmt_queue_ensure_marker(c->queue); /* now: the deferred release must not wait for later commands */
	}
	if (c->uncounted && c->queue->context)
		gmt_use_add_hidden(c->queue->context, c->queue, position);
	if (gmt_unlikely(c->indirect) && c->queue->context)
		gmt_use_add_indirect(c->queue->context, c->queue, position);
}

/* For a queue whose create was not seen: nothing reports when its commands complete, so their memory is not reused. */
static void forbid_reuse(const struct gmt_command *c)
{
	for (uint32_t i = 0; i < c->count; i++)
		atomic_store(&gmt_memory_root(c->access[i].memory)->no_reuse, 1);
	if (c->uncounted || c->indirect)
		gmt_pooling_stop(GMT_DIAG_TRANSPARENT, "a command that cannot be followed, on a queue that was not seen made");
}

/* Whether USE events of a command have an offset. */
static bool has_offset(const struct gmt_command *c)
{
	return c->op != GMT_COMMAND_KERNEL && c->op != GMT_COMMAND_NATIVE;
}

static void write_use(const struct gmt_command *c, const struct gmt_access *a)
{
	struct gmtevent event = GMT_EVENT_USE(
		.time = c->time,
		.argument_number = a->argument,
		.duration = c->took,
		.command = (enum gmtcommand)c->op,
		.reads = a->flags & GMT_FLAG_READS,
		.writes = a->flags & GMT_FLAG_WRITES,
		.scattered = has_offset(c) && a->extent.scattered,
		.scope = gmt_context_id(a->memory->context),
		.tag = c->op == GMT_COMMAND_COPY ? c->site : a->memory->object.tag,
		.object = a->memory->object.id,
		.bytes = a->extent.bytes,
		.kernel = c->op == GMT_COMMAND_KERNEL ? c->kernel : 0,
		.offset = has_offset(c) ? a->extent.offset : 0,
		.queue = c->queue->object.id);
	if (c->moves && a == c->access)
		gmt_transfer_write(&c->transfer, c->site, &event);
	else
		gmt_ring_write(&event);
}

/* A USE event without an object: the command uses more memory, which we do not know. */
static void write_unknown_use(const struct gmt_command *c)
{
	struct gmtevent event = GMT_EVENT_USE(
		.time = c->time,
		.command = (enum gmtcommand)c->op,
		.scattered = has_offset(c),
		.scope = gmt_context_id(c->queue->context),
		.kernel = c->op == GMT_COMMAND_KERNEL ? c->kernel : 0,
		.queue = c->queue->object.id);
	gmt_ring_write(&event);
}

#define AWAITS 64 /* most events written for one command; beyond that a recording lacks some dependencies */

/* Skips events of the same in-order queue: its order implies them. */
void gmt_command_write_awaits(uint64_t time, const struct gmt_queue *queue, cl_uint waits, const cl_event *list)
{
	uint32_t written = 0;
	if (!list)
		return;
	for (cl_uint i = 0; i < waits && written < AWAITS; i++) {
		const struct gmt_event *event = gmt_event_find(list[i]);
		if (!event || !event->time)
			continue;
		if (queue && queue->inorder && event->of.what.queue_id == queue->object.id)
			continue;
		struct gmtevent await = GMT_EVENT_AWAIT(.time = time, .await = (enum gmtawait)event->await,
							.scope = queue ? gmt_context_id(queue->context) : 0,
							.awaited_queue = event->of.what.queue_id, .awaited_time = event->time,
							.queue = queue ? queue->object.id : 0);
		gmt_ring_write(&await);
		written++;
	}
}

static void end_succeeded_command(const struct gmt_command *c, const struct gmt_wait_list *waits)
{
	bool foreign = false; /* a command is one mistake, however many of its arguments belong to another context */
	for (uint32_t i = 0; i < c->count; i++) {
		const struct gmt_access *a = &c->access[i];
		struct gmt_memory *root = gmt_memory_root(a->memory);
		if (gmt_unlikely(atomic_load_explicit(&root->unused, memory_order_relaxed)))
			atomic_store_explicit(&root->unused, 0, memory_order_relaxed);
		if (gmt_unlikely(atomic_load_explicit(&root->unwritten, memory_order_relaxed)))
			gmt_unwritten_note_use(root, (enum gmt_effect)a->effect, c->function, c->kernel);
		if (gmt_unlikely(c->queue && c->queue->context && root->context && c->queue->context != root->context) && !foreign) {
			gmt_finding_kernel(GMT_DIAG_WRONG_CONTEXT, c->function, root, c->kernel);
			foreign = true;
		}
	}
	if (!c->reports || !c->queue)
		return;
	if (c->uses)
		gmt_command_write_awaits(c->time, c->queue, waits->waits, waits->list);
	for (uint32_t i = 0; i < c->count; i++) /* after all findings, so that both USE events of a copy are adjacent */
		write_use(c, &c->access[i]);
	if (gmt_unlikely(c->uncounted))
		write_unknown_use(c);
}

static void end_failed_command(const struct gmt_command *c, cl_int err, const struct gmt_caller *caller)
{
	gmt_call_failed(c->function, err, caller);
	if (c->unknown && err == CL_INVALID_MEM_OBJECT)
		gmt_finding_unknown_memory(c->function, err);
	gmt_finding_out_of_memory(c->function, c->count == 1 ? c->access[0].memory : NULL, c->kernel, err);
	for (uint32_t i = 0; err == CL_INVALID_CONTEXT && i < c->count; i++) {
		const struct gmt_memory *memory = c->access[i].memory;
		if (c->queue && c->queue->context && memory->context && c->queue->context != memory->context) {
			gmt_finding(GMT_DIAG_WRONG_CONTEXT, c->function, memory, err);
			break;
		}
	}
}

/* Notes a transfer whose duration the profiling of its queue will say: see time_transfer of hook_event.c. */
static void note_transfer(const struct gmt_command *c, struct gmt_event *event)
{
	event->moved = c->access[0].extent.bytes;
	for (uint32_t i = 1; i < c->count && c->op == GMT_COMMAND_MIGRATE; i++)
		event->moved += c->access[i].extent.bytes;
	event->moved_at = c->site;
	atomic_store_explicit(&event->moves, c->op, memory_order_relaxed);
}

/* Adds the event that the program got and must release. */
static struct gmt_event *add_event(const struct gmt_command *c, const struct gmt_wait_list *waits)
{
	struct gmt_event *event = gmt_event_add(*waits->event);
	gmt_count_event(event, waits->caller, c->time);
	if (c->site && !c->took && event && c->queue && c->queue->profiled)
		note_transfer(c, event);
	return event;
}

/* Notes what has completed once the event has: the command, and the commands that it waited for. */
static void note_event_completion(const struct gmt_command *c, uint64_t all, uint64_t position, const struct gmt_covers *covers,
		       const struct gmt_wait_list *waits)
{
	struct gmt_queue *queue = c->queue;
	struct gmt_event *event = add_event(c, waits);
	if (!event)
		return;
	struct gmt_completion *of = &event->of;
	for (uint32_t i = 1; i < covers->count && of->waits < GMT_WAITS; i++)
		of->wait[of->waits++] = covers->cover[i];
	of->context = queue->context;
	of->what = (struct gmt_cover){queue, queue->object.id, all, position};
	event->await = all == c->before ? GMT_AWAIT_ALL : GMT_AWAIT_ONE;
	event->time = c->time;
}

/* For a recording without a pool, which shows only which command waits for which. */
static void note_waits(const struct gmt_command *c, uint64_t all, uint64_t position, const struct gmt_wait_list *waits)
{
	if (!waits->event)
		return;
	if (!gmt_follows_events()) {
		add_event(c, waits);
		return;
	}
	struct gmt_covers covers;
	covers.count = 0;
	if (gmt_pooling())
		add_covers(&covers, c, waits);
	note_event_completion(c, all, position, &covers, waits);
}

void gmt_command_write_sync(const struct gmt_call *call, enum gmtsync op, const struct gmt_queue *queue)
{
	if (!gmt_uses() && (op == GMT_SYNC_FLUSH || !gmt_session.config.transfers))
		return;
	struct gmtevent event = GMT_EVENT_SYNC(.time = call->start, .duration = gmt_took(call->start, gmt_now()), .sync = op,
					       .scope = queue ? gmt_context_id(queue->context) : 0,
					       .queue = queue ? queue->object.id : 0);
	gmt_ring_write(&event);
}

void gmt_command_note_blocking(struct gmt_command *c, cl_bool blocking)
{
	if (!blocking || !c->queue || !gmt_pooling())
		return;
	c->waits = true;
	gmt_queue_begin_wait(c->queue);
}

cl_int gmt_command_end(struct gmt_command *c, cl_int err, bool blocking, const struct gmt_wait_list *waits)
{
	if (c->waits)
		gmt_queue_end_wait(c->queue);
	if (gmt_unlikely(err != CL_SUCCESS)) {
		end_failed_command(c, err, waits->caller);
		gmt_leave();
		return err;
	}
	if (gmt_unlikely(!c->queue) || blocking) {
		if (blocking)
			gmt_command_done(c);
		if (waits->event)
			add_event(c, waits);
		if (c->queue)
			complete_earlier_commands(c);
		else
			forbid_reuse(c);
	} else {
		uint64_t position = atomic_fetch_add_explicit(&c->queue->enqueued, 1, memory_order_acq_rel) + 1;
		if (gmt_pooling()) {
			struct gmt_covers covers;
			add_covers(&covers, c, waits);
			add_uses(c, position, &covers);
			if (waits->event)
				note_event_completion(c, position_it_runs_after(c), position, &covers, waits);
		} else {
			note_waits(c, position_it_runs_after(c), position, waits);
		}
	}
	end_succeeded_command(c, waits);
	gmt_leave();
	return err;
}

cl_int gmt_command_end_fence(struct gmt_command *c, cl_int err, bool barrier, const struct gmt_wait_list *waits)
{
	if (err == CL_SUCCESS && !c->queue && waits->event) {
		add_event(c, waits);
	} else if (err == CL_SUCCESS && c->queue) {
		bool all = !waits->waits || c->queue->inorder;
		uint64_t position = atomic_fetch_add_explicit(&c->queue->enqueued, 1, memory_order_acq_rel) + 1;
		if (barrier && all)
			gmt_raise_position(&c->queue->fence, c->before);
		note_waits(c, all ? c->before : c->fence, position, waits);
		if (c->uses)
			gmt_command_write_awaits(c->time, c->queue, waits->waits, waits->list);
	} else if (err != CL_SUCCESS) {
		gmt_call_failed(c->function, err, waits->caller);
	}
	gmt_leave();
	return err;
}
