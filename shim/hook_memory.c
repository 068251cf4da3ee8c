/* hook_memory.c: buffers and sub-buffers, and what all memory objects share: retain, release, queries. */
#define _GNU_SOURCE
#include "shim.h"

#include "memory.h"

/* The entry for something that the driver has just returned; NULL when it cannot be kept. */
static struct gmt_memory *add_entry(const struct gmt_created *c)
{
	struct gmt_memory *memory = gmt_memory_add(c->handle);
	if (!memory)
		return NULL;
	memory->kind = (uint8_t)c->kind;
	memory->context = c->context;
	memory->scope = gmt_scope(c->context);
	memory->size = c->size;
	memory->tag = c->tag;
	memory->parent = c->parent;
	if (c->parent)
		atomic_fetch_add(&c->parent->pins, 1);
	memory->granted = c->served.granted;
	memory->block = c->served.block;
	return memory;
}

void gmt_memory_report(const struct gmt_call *call, const struct gmt_created *c, cl_int status)
{
	struct gmt_memory *memory = c->handle ? add_entry(c) : NULL;
	struct gmt_memory failed = {
		.kind = (uint8_t)c->kind, .scope = gmt_scope(c->context), .size = c->size, .granted = c->served.granted,
		.tag = c->tag, .parent = c->parent,
	};
	gmt_write_create(call, memory ? memory : &failed, &c->served, status);
}

/* A create that never comes from the pool, tried again after handing blocks back. */
#define DRIVER_CREATE(call, handle, error, expression)                                                                 \
	do {                                                                                                           \
		(handle) = (expression);                                                                               \
		gmt_driver_returned(call);                                                                             \
	} while (!(handle) && gmt_pool_drain((error), 0))

static void set_error(cl_int *errcode, cl_int error)
{
	if (errcode)
		*errcode = error;
}

GMT_HOOK cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clCreateBuffer(context, flags, size, host, errcode);
	cl_int error = CL_SUCCESS;
	struct gmt_created c = {
		.kind = GMT_MEMORY_BUFFER,
		.context = gmt_context_find(context),
		.size = size,
		.tag = gmt_tag(&call, __builtin_return_address(0), size),
		.served = {.granted = size},
	};
	if (gmt_pool_eligible(c.context, flags, size, host)) {
		c.served = gmt_pool_create(&call, c.context, flags, size, c.tag, &error);
		c.handle = c.served.handle;
	} else {
		DRIVER_CREATE(&call, c.handle, error, gmt_next.clCreateBuffer(context, flags, size, host, &error));
		c.served.outcome = c.handle ? GMT_OUTCOME_DRIVER : GMT_OUTCOME_FAILED;
	}
	gmt_memory_report(&call, &c, error);
	set_error(errcode, error);
	gmt_leave();
	return c.handle;
}

/* Properties are given back by queries word for word, so only a create without any may be pooled. */
static cl_mem with_properties(struct gmt_call *call, const void *caller, cl_context context, const void *properties,
			      cl_mem_flags flags, size_t size, void *host, cl_int *errcode, bool intel)
{
	cl_int error = CL_SUCCESS;
	struct gmt_created c = {
		.kind = GMT_MEMORY_BUFFER,
		.context = gmt_context_find(context),
		.size = size,
		.tag = gmt_tag(call, caller, size),
		.served = {.granted = size},
	};
	if (!properties && gmt_pool_eligible(c.context, flags, size, host)) {
		c.served = gmt_pool_create(call, c.context, flags, size, c.tag, &error);
		c.handle = c.served.handle;
	} else {
		DRIVER_CREATE(call, c.handle, error,
			      intel ? atomic_load(&gmt_next.clCreateBufferWithPropertiesINTEL)(context, properties, flags, size, host, &error)
				    : gmt_next.clCreateBufferWithProperties(context, properties, flags, size, host, &error));
		c.served.outcome = c.handle ? GMT_OUTCOME_DRIVER : GMT_OUTCOME_FAILED;
	}
	gmt_memory_report(call, &c, error);
	set_error(errcode, error);
	return c.handle;
}

GMT_HOOK cl_mem clCreateBufferWithProperties(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
					     size_t size, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clCreateBufferWithProperties(context, properties, flags, size, host, errcode);
	cl_mem handle = with_properties(&call, __builtin_return_address(0), context, properties, flags, size, host, errcode, false);
	gmt_leave();
	return handle;
}

cl_mem clCreateBufferWithPropertiesINTEL(cl_context context, const cl_mem_properties_intel *properties, cl_mem_flags flags,
					 size_t size, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return atomic_load(&gmt_next.clCreateBufferWithPropertiesINTEL)(context, properties, flags, size, host, errcode);
	cl_mem handle = with_properties(&call, __builtin_return_address(0), context, properties, flags, size, host, errcode, true);
	gmt_leave();
	return handle;
}

GMT_HOOK cl_mem clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clCreateSubBuffer(buffer, flags, type, info, errcode);
	cl_int error = CL_SUCCESS;
	struct gmt_memory *parent = gmt_memory_find(buffer);
	const cl_buffer_region *region = type == CL_BUFFER_CREATE_TYPE_REGION ? info : NULL;
	struct gmt_created c = {
		.kind = GMT_MEMORY_SUBBUFFER,
		.context = parent ? parent->context : NULL,
		.size = region ? region->size : 0,
		.tag = gmt_tag(&call, __builtin_return_address(0), region ? region->size : 0),
		.parent = parent,
		.served = {.outcome = GMT_OUTCOME_DRIVER},
	};
	if (region && gmt_outside(parent, region->origin, region->size))
		error = CL_INVALID_VALUE;
	else
		DRIVER_CREATE(&call, c.handle, error, gmt_next.clCreateSubBuffer(buffer, flags, type, info, &error));
	if (!c.handle)
		c.served.outcome = GMT_OUTCOME_FAILED;
	gmt_memory_report(&call, &c, error);
	set_error(errcode, error);
	gmt_leave();
	return c.handle;
}

/* What a retain or release of memory says; NULL: of something unknown. Made while the entry is certain to be there. */
static struct gmtevent references_event(const struct gmt_call *call, const struct gmt_memory *memory, enum gmtkind kind,
					enum gmtoutcome outcome)
{
	struct gmtevent event = {.time = call->start, .kind = (uint16_t)kind, .outcome = (uint8_t)outcome};
	if (memory) {
		event.op = memory->kind;
		event.scope = memory->scope;
		event.tag = memory->tag;
		event.object = memory->object.number;
		event.size = memory->size;
		event.link = memory->block;
	}
	return event;
}

static void write_references(struct gmtevent *event, uint32_t left, cl_int status)
{
	event->granted = left;
	event->status = status;
	event->duration = gmt_clamp32(gmt_now() - event->time);
	gmt_ring_write(event);
}

GMT_HOOK cl_int clRetainMemObject(cl_mem handle)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clRetainMemObject(handle);
	cl_int err = gmt_next.clRetainMemObject(handle);
	struct gmt_memory *memory = err == CL_SUCCESS ? gmt_memory_find(handle) : NULL;
	if (memory) {
		struct gmtevent event = references_event(&call, memory, GMT_KIND_RETAIN, 0);
		write_references(&event, atomic_fetch_add(&memory->references, 1) + 1, err);
	}
	gmt_leave();
	return err;
}

/* One part of a buffer less. Its memory goes when that was the last thing that kept it. */
static void unpin(struct gmt_call *call, struct gmt_memory *memory);

static cl_int let_go(struct gmt_call *call, struct gmt_memory *memory)
{
	struct gmt_memory *parent = memory->parent;
	cl_int err = gmt_pool_release(call, memory);
	if (parent)
		unpin(call, parent);
	return err;
}

static void unpin(struct gmt_call *call, struct gmt_memory *memory)
{
	if (atomic_fetch_sub(&memory->pins, 1) != 1)
		return;
	if (memory->block) {
		let_go(call, memory);
		return;
	}
	/* The driver has had the release of one that is not pooled already. */
	struct gmt_memory *parent = memory->parent;
	struct gmtevent event = references_event(call, memory, GMT_KIND_RELEASE, GMT_OUTCOME_DRIVER);
	gmt_memory_remove(memory);
	write_references(&event, 0, CL_SUCCESS);
	if (parent)
		unpin(call, parent);
}

/* The last reference has gone: the memory goes too, unless parts of it are still out there. */
static cl_int end(struct gmt_call *call, struct gmt_memory *memory)
{
	if (gmt_likely(atomic_load(&memory->pins) == 1)) /* nobody can make new parts any more */
		return let_go(call, memory);
	struct gmtevent event = references_event(call, memory, GMT_KIND_RELEASE, GMT_OUTCOME_PINNED);
	cl_mem handle = (cl_mem)atomic_load(&memory->object.handle);
	bool pooled = memory->block != 0;
	if (atomic_fetch_sub(&memory->pins, 1) == 1)
		return let_go(call, memory);
	cl_int err = pooled ? CL_SUCCESS : gmt_next.clReleaseMemObject(handle);
	write_references(&event, 0, err);
	return err;
}

GMT_HOOK cl_int clReleaseMemObject(cl_mem handle)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clReleaseMemObject(handle);
	struct gmt_memory *memory = gmt_memory_find(handle);
	uint32_t count = memory ? atomic_load(&memory->references) : 0;
	struct gmtevent event = {0};
	do
		if (count != 1) /* also what we do not know, and one release too many: the driver answers */
			event = references_event(&call, count ? memory : NULL, GMT_KIND_RELEASE, GMT_OUTCOME_DRIVER);
	while (count > 0 && !atomic_compare_exchange_weak(&memory->references, &count, count - 1));
	cl_int err;
	if (count == 1) {
		err = end(&call, memory);
	} else {
		err = gmt_next.clReleaseMemObject(handle);
		write_references(&event, count ? count - 1 : 0, err);
	}
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clGetMemObjectInfo(cl_mem handle, cl_mem_info what, size_t room, void *value, size_t *needed)
{
	if (!gmt_enter_untimed())
		return gmt_next.clGetMemObjectInfo(handle, what, room, value, needed);
	cl_int err = gmt_next.clGetMemObjectInfo(handle, what, room, value, needed);
	struct gmt_memory *memory = err == CL_SUCCESS && what == CL_MEM_SIZE && value ? gmt_memory_find(handle) : NULL;
	if (memory && memory->kind == GMT_MEMORY_BUFFER)
		*(size_t *)value = memory->size;
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clSetMemObjectDestructorCallback(cl_mem handle, void(CL_CALLBACK *notify)(cl_mem, void *), void *data)
{
	if (!gmt_enter_untimed())
		return gmt_next.clSetMemObjectDestructorCallback(handle, notify, data);
	cl_int err = gmt_next.clSetMemObjectDestructorCallback(handle, notify, data);
	/* The driver calls back when the object dies, so the block is not recycled. */
	struct gmt_memory *memory = err == CL_SUCCESS ? gmt_memory_find(handle) : NULL;
	if (memory)
		atomic_store(&memory->callbacks, 1);
	gmt_leave();
	return err;
}
