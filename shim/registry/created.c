/* created.c: registers new memory and reports it. */
#define _GNU_SOURCE
#include "created.h"

#include "../base/ring.h"
#include "../base/session.h"
#include "../base/usdt.h"
#include "finding.h"

/* The entry of new memory: a hit reuses its block's entry, and a parked sub-allocation its own. */
static struct gmt_memory *entry_of_created(const struct gmt_created *c)
{
	if (!c->served.again && (c->served.outcome != GMT_OUTCOME_HIT || c->served.slab))
		return gmt_memory_add(c->handle, c->served.slab || (c->parent && c->parent->slab) || c->kind >= GMT_MEMORY_SVM);
	struct gmt_memory *memory = gmt_memory_find(c->handle);
	if (memory)
		gmt_memory_renew(memory);
	return memory;
}

struct gmt_memory *gmt_created_register(const struct gmt_created *c)
{
	struct gmt_memory *memory = c->handle ? entry_of_created(c) : NULL;
	if (!memory)
		return NULL;
	memory->kind = (uint8_t)c->kind;
	memory->context = c->context;
	memory->size = c->size;
	memory->flags = (uint32_t)c->flags;
	memory->element = (uint8_t)c->element;
	memory->object.tag = c->tag;
	memory->parent = c->parent;
	if (c->parent)
		atomic_fetch_add(&c->parent->pins, 1);
	if (c->parent && c->parent->slab && c->kind == GMT_MEMORY_SUBBUFFER)
		gmt_memory_count_child(c->parent, 1);
	memory->granted = c->served.granted;
	atomic_store_explicit(&memory->block, c->served.block, memory_order_relaxed);
	memory->slab = c->served.slab;
	if (memory->object.large)
		memory->offset = c->served.offset;
	memory->counted = !c->parent && !c->served.slab && !c->served.hosted && !c->served.virtual;
	memory->hosted = c->served.hosted || (c->parent && c->parent->hosted);
	if (gmt_unlikely(c->served.hosted))
		atomic_fetch_add_explicit(&gmt_memory_hosted, memory->granted, memory_order_relaxed);
	if (gmt_unlikely(gmt_memory_is_shared(memory)) && c->served.outcome != GMT_OUTCOME_HIT) {
		memory->owner = c->context ? (cl_context)atomic_load(&c->context->object.handle) : NULL;
		if (!gmt_memory_add_range(memory)) /* a command may use it through a pointer unnoticed */
			atomic_store(&memory->no_reuse, 1);
	}
	bool recycled = c->served.slab || c->served.outcome == GMT_OUTCOME_HIT;
	atomic_store_explicit(&memory->exposed, GMT_EXPOSED_NO, memory_order_relaxed);
	atomic_store_explicit(&memory->unwritten, recycled && !c->served.written, memory_order_relaxed);
	return memory;
}

static void write_create(const struct gmt_call *call, const struct gmt_memory *memory, const struct gmt_created *created, cl_int status)
{
	const struct gmt_served *served = &created->served;
	bool subbuffer = memory->kind == GMT_MEMORY_SUBBUFFER, suballoc = served->slab && served->block;
	struct gmtevent event = GMT_EVENT_CREATE(
		.time = call->last,
		.duration = gmt_took(call->start, call->last),
		.cost = gmt_clamp32(call->driver),
		.memory = (enum gmtmemory)memory->kind,
		.outcome = served->outcome,
		.reason = (enum gmtmiss)served->reason,
		.route = served->block ? (enum gmtroute)served->route : GMT_ROUTE_NONE,
		.sub_allocation = suballoc,
		.needs_block = !suballoc && served->alone,
		.off_page = created->off_page,
		.arm = GMT_ARM_OF(served->block),
		.access = (uint16_t)memory->flags,
		.scope = gmt_context_id(memory->context),
		.status = gmt_clamp16(status),
		.shape = served->block ? served->shape : 0,
		.tag = memory->object.tag,
		.object = memory->object.id,
		.requested = memory->size,
		.granted = subbuffer ? 0 : memory->granted,
		.origin_number = subbuffer && memory->size ? 1 + served->offset : 0, /* a size of 0: the call had no region */
		.parent = memory->parent ? memory->parent->object.id : 0,
		.block = memory->parent ? 0 : memory->block);
	gmt_ring_write(&event);
	if (gmt_usdt_allocs())
		gmt_usdt_created(&event);
}

void gmt_created_write_event(const struct gmt_call *call, const struct gmt_created *c, const struct gmt_memory *memory, cl_int status)
{
	if (gmt_likely(memory != NULL)) {
		write_create(call, memory, c, status);
		if (gmt_unlikely(c->served.hosted))
			gmt_finding(GMT_DIAG_HOSTED, c->kind == GMT_MEMORY_IMAGE ? "clCreateImage" : "clCreateBuffer", memory, status);
		return;
	}
	struct gmt_memory failed = {
		.object = {.tag = c->tag}, .kind = (uint8_t)c->kind, .context = c->context, .size = c->size,
		.granted = c->served.granted, .flags = (uint32_t)c->flags, .parent = c->parent,
	};
	write_create(call, &failed, c, status);
}

void gmt_created_register_and_write(const struct gmt_call *call, const struct gmt_created *c, cl_int status)
{
	gmt_created_write_event(call, c, gmt_created_register(c), status);
}
