/* command.c: the common part of every enqueue. */
#define _GNU_SOURCE
#include "command.h"

bool gmt_command_begin(struct gmt_command *c, cl_command_queue queue, enum gmtcommand op, const char *function)
{
	if (!gmt_enter_untimed())
		return false;
	c->function = function;
	c->before = c->fence = c->time = c->kernel = 0;
	c->site = 0;
	c->refused = CL_SUCCESS;
	c->op = (uint8_t)op;
	c->stranger = c->uncounted = false;
	c->count = 0;
	c->queue = gmt_queue_find(queue);
	if (c->queue) {
		c->fence = atomic_load_explicit(&c->queue->fence, memory_order_acquire);
		c->before = atomic_load_explicit(&c->queue->enqueued, memory_order_acquire);
	}
	if (gmt_session.config.uses) {
		gmt_ring_prepare();
		c->time = gmt_now();
	}
	return true;
}

void gmt_command_access(struct gmt_command *c, struct gmt_access access)
{
	if (c->count == GMT_ACCESSES)
		c->uncounted = true;
	else
		c->access[c->count++] = access;
}

static enum gmt_effect effect_of(const struct gmt_command *c, uint8_t flags)
{
	if (flags & GMT_FLAG_WRITES || c->op == GMT_COMMAND_NATIVE)
		return GMT_EFFECT_WRITES;
	return flags & GMT_FLAG_READS ? GMT_EFFECT_READS : GMT_EFFECT_NONE;
}

struct gmt_memory *gmt_command_uses(struct gmt_command *c, cl_mem handle, uint8_t flags, struct gmt_extent extent)
{
	struct gmt_memory *memory = gmt_memory_find(handle);
	if (gmt_unlikely(!memory)) {
		c->stranger |= handle && !gmt_finding_ghost(GMT_DIAG_USE_AFTER_RELEASE, c->function, handle);
		return NULL;
	}
	if (gmt_unlikely(gmt_memory_released(memory, c->function)))
		c->refused = CL_INVALID_MEM_OBJECT;
	gmt_command_access(c, (struct gmt_access){
		.memory = memory, .extent = extent, .flags = flags, .effect = (uint8_t)effect_of(c, flags),
	});
	return memory;
}

void gmt_command_uses_all(struct gmt_command *c, cl_uint count, const cl_mem *handles)
{
	for (cl_uint i = 0; handles && i < count; i++) {
		const struct gmt_memory *memory = c->op == GMT_COMMAND_MIGRATE ? gmt_memory_find(handles[i]) : NULL;
		gmt_command_uses(c, handles[i], 0, memory ? GMT_EXTENT(0, memory->size) : GMT_SOMEWHERE);
	}
}

/* Where elements lie in an image is the driver's affair, but all of them are all of it. */
uint64_t gmt_command_uses_image(struct gmt_command *c, cl_mem image, uint8_t flags, const size_t *region)
{
	const struct gmt_memory *memory = gmt_memory_find(image);
	uint64_t bytes = memory ? gmt_volume(region) * memory->element : 0;
	bool whole = bytes && bytes == memory->size;
	gmt_command_uses(c, image, flags, whole ? GMT_EXTENT(0, bytes) : GMT_SCATTERED(0, bytes));
	return bytes;
}

void gmt_command_copies(struct gmt_command *c, const void *caller)
{
	if (!gmt_session.config.uses || !c->queue || !c->count)
		return;
	struct gmt_call call;
	c->site = gmt_tag(&call, caller, c->access[0].extent.bytes);
	c->time = gmt_now(); /* what defines the tag may have been written, and comes first */
}

static void blocked(const struct gmt_command *c)
{
	if (c->queue->inorder) {
		gmt_queue_done(c->queue, c->before);
		gmt_queue_poll(c->queue);
	}
	gmt_pool_settle(64, false);
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

static uint64_t before(const struct gmt_command *c)
{
	return c->queue->inorder ? c->before : c->fence;
}

static void add_covers(struct gmt_covers *covers, const struct gmt_command *c, struct gmt_order order)
{
	covers->count = 1;
	covers->cover[0] = (struct gmt_cover){c->queue, c->queue->object.number, before(c), 0};
	for (cl_uint i = 0; order.list && i < order.waits && covers->count < GMT_COVERS; i++) {
		const struct gmt_event *event = gmt_event_find(order.list[i]);
		if (event && event->of.what.queue)
			covers->cover[covers->count++] = event->of.what;
	}
}

static struct gmt_memory *root_of(struct gmt_memory *memory)
{
	while (memory->parent)
		memory = memory->parent;
	return memory;
}

/* The pool must know what uses its blocks until when; hook_references.c what other memory keeps alive. */
static void follow(const struct gmt_command *c, uint64_t position, const struct gmt_covers *covers)
{
	for (uint32_t i = 0; i < c->count; i++) {
		struct gmt_memory *root = root_of(c->access[i].memory);
		if (root->kind >= GMT_MEMORY_SVM)
			continue;
		gmt_use_add(root, c->queue, position, covers);
		if (root->slab)
			gmt_use_add(root->slab, c->queue, position, covers);
		if (gmt_unlikely(atomic_load_explicit(&root->calls_back, memory_order_relaxed)))
			gmt_queue_mark(c->queue); /* here: what is enqueued later need not end for its destructors, see late.c */
	}
	if (c->uncounted && c->queue->context)
		gmt_use_hidden(c->queue->context, c->queue, position);
}

/* The command went to a queue that we did not see made: nobody can tell when its memory is free again. */
static void lost(const struct gmt_command *c)
{
	for (uint32_t i = 0; i < c->count; i++)
		atomic_store(&root_of(c->access[i].memory)->unfit, 1);
	if (c->uncounted)
		gmt_pooling_off(GMT_DIAG_TRANSPARENT, "a command that cannot be followed, on a queue that was not seen made");
}

/* Its first owner filled it, and this one may be about to see that. Told once. */
static void touch_blank(const struct gmt_command *c, const struct gmt_access *a, struct gmt_memory *root)
{
	if (a->effect == GMT_EFFECT_NONE || !atomic_exchange(&root->blank, 0) || a->effect == GMT_EFFECT_WRITES)
		return;
	gmt_finding_kernel(c->kernel ? GMT_DIAG_STALE_ARGUMENT : GMT_DIAG_STALE_READ, c->function, root, c->kernel);
}

static void write_use(const struct gmt_command *c, const struct gmt_access *a)
{
	struct gmtevent event = {
		.time = c->time,
		.duration = a->argument,
		.kind = GMT_KIND_USE,
		.op = c->op,
		.flags = a->flags,
		.scope = a->memory->scope,
		.tag = c->op == GMT_COMMAND_COPY ? c->site : a->memory->tag,
		.object = a->memory->object.number,
		.size = a->extent.bytes,
		.link = c->queue->object.number,
	};
	if (c->op == GMT_COMMAND_KERNEL)
		event.granted = c->kernel;
	else if (c->op != GMT_COMMAND_NATIVE) {
		event.granted = a->extent.offset;
		event.flags |= a->extent.scattered ? GMT_FLAG_SCATTERED : 0u;
	}
	gmt_ring_write(&event);
}

/* What else it uses cannot be told. */
static void write_untold(const struct gmt_command *c)
{
	struct gmtevent event = {
		.time = c->time,
		.kind = GMT_KIND_USE,
		.op = c->op,
		.scope = gmt_scope(c->queue->context),
		.link = c->queue->object.number,
	};
	if (c->op == GMT_COMMAND_KERNEL)
		event.granted = c->kernel;
	else if (c->op != GMT_COMMAND_NATIVE)
		event.flags = GMT_FLAG_SCATTERED;
	gmt_ring_write(&event);
}

/* An in-order queue's own events tell nothing. */
#define AWAITS 64 /* told of one command; fewer only mean that less is known */
void gmt_command_awaits(uint64_t time, const struct gmt_queue *queue, cl_uint waits, const cl_event *list)
{
	uint32_t told = 0;
	if (!gmt_session.config.uses || !list)
		return;
	for (cl_uint i = 0; i < waits && told < AWAITS; i++) {
		const struct gmt_event *event = gmt_event_find(list[i]);
		if (!event || !event->time)
			continue;
		struct gmtevent await = {
			.time = time, .kind = GMT_KIND_AWAIT, .op = event->await, .object = event->of.what.queuenumber, .size = event->time,
		};
		if (queue) {
			await.scope = gmt_scope(queue->context);
			await.link = queue->object.number;
		}
		if (queue && queue->inorder && await.link == await.object)
			continue;
		gmt_ring_write(&await);
		told++;
	}
}

static void succeeded(const struct gmt_command *c, struct gmt_order order)
{
	for (uint32_t i = 0; i < c->count; i++) {
		const struct gmt_access *a = &c->access[i];
		struct gmt_memory *root = root_of(a->memory);
		if (gmt_unlikely(atomic_load_explicit(&root->fresh, memory_order_relaxed)))
			atomic_store_explicit(&root->fresh, 0, memory_order_relaxed);
		if (gmt_unlikely(atomic_load_explicit(&root->blank, memory_order_relaxed)))
			touch_blank(c, a, root);
		if (gmt_unlikely(c->queue && c->queue->context && root->context && c->queue->context != root->context))
			gmt_finding_kernel(GMT_DIAG_WRONG_CONTEXT, c->function, root, c->kernel);
	}
	if (!gmt_session.config.uses || !c->queue)
		return;
	gmt_command_awaits(c->time, c->queue, order.waits, order.list);
	for (uint32_t i = 0; i < c->count; i++) /* behind all findings: both sides of a copy stand together */
		write_use(c, &c->access[i]);
	if (gmt_unlikely(c->uncounted))
		write_untold(c);
}

static void failed(const struct gmt_command *c, cl_int err)
{
	if (c->stranger && err == CL_INVALID_MEM_OBJECT)
		gmt_finding_unknown(c->function, err);
	for (uint32_t i = 0; err == CL_INVALID_CONTEXT && i < c->count; i++) {
		const struct gmt_memory *memory = c->access[i].memory;
		if (c->queue && c->queue->context && memory->context && c->queue->context != memory->context)
			gmt_finding(GMT_DIAG_WRONG_CONTEXT, c->function, memory, err);
	}
}

/* The program can learn from its event that the command has completed, and with it what it waited for. */
static void note_event(cl_event handle, const struct gmt_command *c, uint64_t all, uint64_t position,
		       const struct gmt_covers *covers)
{
	struct gmt_queue *queue = c->queue;
	struct gmt_event *event = gmt_event_add(handle);
	if (!event)
		return;
	struct gmt_completion *of = &event->of;
	for (uint32_t i = 1; i < covers->count && of->waits < GMT_WAITS; i++)
		of->wait[of->waits++] = covers->cover[i];
	of->context = queue->context;
	of->what = (struct gmt_cover){queue, queue->object.number, all, position};
	event->await = all == c->before ? GMT_AWAIT_ALL : GMT_AWAIT_ONE;
	event->time = c->time;
}

/* Without a pool nobody asks what has completed, but a recording tells what waits for what. */
static void note_order(const struct gmt_command *c, uint64_t all, uint64_t position, struct gmt_order order)
{
	struct gmt_covers covers = {0};
	if (!order.event || !(gmt_pooling() || gmt_session.config.uses))
		return;
	if (gmt_pooling())
		add_covers(&covers, c, order);
	note_event(*order.event, c, all, position, &covers);
}

cl_int gmt_command_end(struct gmt_command *c, cl_int err, bool blocking, struct gmt_order order)
{
	if (gmt_unlikely(err != CL_SUCCESS)) {
		failed(c, err);
		gmt_leave();
		return err;
	}
	if (gmt_unlikely(!c->queue)) {
		lost(c);
	} else if (blocking) {
		blocked(c);
	} else {
		uint64_t position = atomic_fetch_add_explicit(&c->queue->enqueued, 1, memory_order_acq_rel) + 1;
		if (gmt_pooling()) {
			struct gmt_covers covers;
			add_covers(&covers, c, order);
			follow(c, position, &covers);
			if (order.event)
				note_event(*order.event, c, before(c), position, &covers);
		} else {
			note_order(c, before(c), position, order);
		}
	}
	succeeded(c, order);
	gmt_leave();
	return err;
}

static void raise_fence(struct gmt_queue *queue, uint64_t position)
{
	uint64_t fence = atomic_load(&queue->fence);
	while (fence < position && !atomic_compare_exchange_weak(&queue->fence, &fence, position))
		;
}

cl_int gmt_command_end_fence(struct gmt_command *c, cl_int err, bool barrier, struct gmt_order order)
{
	if (err == CL_SUCCESS && c->queue) {
		bool all = !order.waits || c->queue->inorder;
		uint64_t position = atomic_fetch_add_explicit(&c->queue->enqueued, 1, memory_order_acq_rel) + 1;
		if (barrier && all)
			raise_fence(c->queue, c->before);
		note_order(c, all ? c->before : c->fence, position, order);
		gmt_command_awaits(c->time, c->queue, order.waits, order.list);
	}
	gmt_leave();
	return err;
}
