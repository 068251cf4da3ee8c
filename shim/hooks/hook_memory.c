/* hook_memory.c: buffers and sub-buffers, and what all memory objects share: retain and release. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/sites.h"
#include "../entry/start.h"
#include "../entry/tags.h"
#include "../pool/budget.h"
#include "../pool/eager.h"
#include "../pool/driver_create.h"
#include "../pool/evict.h"
#include "../pool/plan.h"
#include "../pool/pool.h"
#include "../pool/references.h"
#include "../pool/release.h"
#include "../pool/suballoc.h"
#include "../registry/created.h"
#include "../registry/finding.h"
#include "../registry/host_range.h"
#include "../registry/memory.h"
#include "../registry/objects.h"
#include "hook_svm.h"

static void set_error(cl_int *errcode, cl_int error)
{
	if (errcode)
		*errcode = error;
}

/* A call that creates a buffer. */
struct buffer_call {
	cl_context context;
	const void *properties;
	cl_mem_flags flags;
	size_t size;
	void *host;
	enum { PLAIN, WITH_PROPERTIES, WITH_PROPERTIES_INTEL } entry;
};

static cl_mem ask_driver_for_buffer(const struct buffer_call *b, cl_int *error)
{
	switch (b->entry) {
	case WITH_PROPERTIES:
		return gmt_driver.clCreateBufferWithProperties(b->context, b->properties, b->flags, b->size, b->host, error);
	case WITH_PROPERTIES_INTEL:
		return atomic_load(&gmt_driver.clCreateBufferWithPropertiesINTEL)(b->context, b->properties, b->flags, b->size,
									       b->host, error);
	default:
		return gmt_driver.clCreateBuffer(b->context, b->flags, b->size, b->host, error);
	}
}

static cl_mem create_by_driver(const struct buffer_call *b, struct gmt_context *context, cl_int *error)
{
	cl_mem handle = ask_driver_for_buffer(b, error);
	return handle && gmt_eager_migrate(context, handle, error) ? handle : NULL;
}

/* See gmt_host_may_serve. */
static void serve_buffer_from_host(struct gmt_call *call, const struct buffer_call *b, struct gmt_created *c, cl_int *error)
{
	struct buffer_call hosted = *b;
	hosted.flags |= CL_MEM_ALLOC_HOST_PTR;
	cl_int refused = CL_SUCCESS;
	c->handle = ask_driver_for_buffer(&hosted, &refused);
	gmt_driver_returned(call);
	if (!c->handle)
		return;
	*error = CL_SUCCESS;
	c->served = (struct gmt_served){.granted = b->size, .outcome = GMT_OUTCOME_DRIVER, .written = true, .hosted = true};
}

static cl_mem create_buffer(struct gmt_call *call, const struct gmt_caller *caller, const struct buffer_call *b, cl_int *errcode)
{
	cl_int error = CL_SUCCESS;
	struct gmt_created c = {
		.kind = GMT_MEMORY_BUFFER,
		.context = gmt_context_find(b->context),
		.size = b->size,
		.flags = b->flags,
		.tag = gmt_tag_untimed(call, caller, b->size),
		.off_page = b->flags & CL_MEM_USE_HOST_PTR && (uintptr_t)b->host % GMT_PAGE,
		.served = {.granted = b->size, .written = true},
	};
	struct gmt_request_for request = {
		.context = c.context, .flags = b->flags, .size = b->size, .host = b->host, .properties = b->properties, .tag = c.tag,
	};
	bool pooled = gmt_plan_eligible(&request);
	if (gmt_unlikely(!pooled))
		gmt_call_driver_begins(call);
	if (gmt_unlikely(b->flags & CL_MEM_USE_HOST_PTR) && !gmt_pointer_is_host(b->host, b->size)) {
		error = CL_INVALID_BUFFER_SIZE;
		c.served.outcome = GMT_OUTCOME_FAILED;
	} else if (gmt_likely(pooled)) {
		gmt_pool_create(call, &request, &c.served, &error);
		c.handle = c.served.handle;
	} else if (gmt_budget_cap(b->size) < b->size) { /* larger than the device as the budget has it, which would refuse it even if empty */
		error = CL_INVALID_BUFFER_SIZE;
		c.served.outcome = GMT_OUTCOME_FAILED;
	} else {
		uint64_t bytes = gmt_budget_is_virtual(b->flags, b->properties) ? 0 : b->size;
		GMT_DRIVER_CREATE(call, c.handle, error, bytes, create_by_driver(b, c.context, &error));
		c.served.outcome = c.handle ? GMT_OUTCOME_DRIVER : GMT_OUTCOME_FAILED;
	}
	if (gmt_unlikely(!c.handle) && !b->properties && gmt_host_may_serve(c.context, b->flags, b->size, error))
		serve_buffer_from_host(call, b, &c, &error);
	c.served.virtual = gmt_budget_is_virtual(b->flags, b->properties);
	struct gmt_memory *memory = gmt_created_register(&c);
	if (gmt_unlikely(!memory && c.served.slab)) /* without an entry: the driver's own references keep the slab alive as long as needed */
		gmt_suballoc_note_gone(c.served.slab);
	if (memory && b->flags & CL_MEM_USE_HOST_PTR)
		gmt_host_range_add(c.handle, b->host, b->size);
	gmt_created_write_event(call, &c, memory, error);
	set_error(errcode, error);
	gmt_leave();
	return c.handle;
}

GMT_HOOK cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clCreateBuffer(context, flags, size, host, errcode);
	struct buffer_call b = {context, NULL, flags, size, host, PLAIN};
	return create_buffer(&call, &GMT_CALLER, &b, errcode);
}

GMT_HOOK cl_mem clCreateBufferWithProperties(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
					     size_t size, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clCreateBufferWithProperties(context, properties, flags, size, host, errcode);
	struct buffer_call b = {context, properties, flags, size, host, WITH_PROPERTIES};
	return create_buffer(&call, &GMT_CALLER, &b, errcode);
}

cl_mem clCreateBufferWithPropertiesINTEL(cl_context context, const cl_mem_properties_intel *properties, cl_mem_flags flags,
					 size_t size, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return atomic_load(&gmt_driver.clCreateBufferWithPropertiesINTEL)(context, properties, flags, size, host, errcode);
	struct buffer_call b = {context, properties, flags, size, host, WITH_PROPERTIES_INTEL};
	return create_buffer(&call, &GMT_CALLER, &b, errcode);
}

/* Moves a region that lies in the block, but beyond what the program asked for, beyond the block, so that the driver refuses it. */
static cl_mem create_subbuffer(cl_mem buffer, const struct gmt_memory *parent, cl_mem_flags flags, cl_buffer_create_type type,
			  const void *info, cl_int *error)
{
	if (parent && parent->slab)
		return gmt_suballoc_subbuffer(parent, flags, type, info, error);
	const cl_buffer_region *region = type == CL_BUFFER_CREATE_TYPE_REGION ? info : NULL;
	if (!region || !parent || !gmt_memory_beyond(parent, region->origin, region->size))
		return gmt_driver.clCreateSubBuffer(buffer, flags, type, info, error);
	cl_buffer_region moved = *region;
	moved.origin = (((size_t)parent->granted + 4096) & ~(size_t)4095) + (moved.origin & 4095); /* as aligned as it was */
	return gmt_driver.clCreateSubBuffer(buffer, flags, type, &moved, error);
}

GMT_HOOK cl_mem clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clCreateSubBuffer(buffer, flags, type, info, errcode);
	cl_int error = CL_INVALID_MEM_OBJECT;
	struct gmt_memory *parent = gmt_memory_find(buffer);
	cl_buffer_region none = {0, 0}, region = type == CL_BUFFER_CREATE_TYPE_REGION && info ? *(const cl_buffer_region *)info : none;
	struct gmt_created c = {
		.kind = GMT_MEMORY_SUBBUFFER,
		.context = parent ? parent->context : NULL,
		.size = region.size,
		.flags = flags,
		.tag = gmt_tag(&call, &GMT_CALLER, region.size),
		.parent = parent,
		.served = {.outcome = GMT_OUTCOME_DRIVER, .offset = region.origin},
	};
	if (!parent && buffer)
		gmt_finding_freed_handle(GMT_DIAG_USE_AFTER_RELEASE, __func__, buffer);
	if (!parent || !gmt_finding_released(parent, __func__))
		GMT_DRIVER_CREATE(&call, c.handle, error, 0, create_subbuffer(buffer, parent, flags, type, info, &error));
	if (!c.handle)
		c.served.outcome = GMT_OUTCOME_FAILED;
	gmt_created_register_and_write(&call, &c, error);
	set_error(errcode, error);
	gmt_leave();
	return c.handle;
}

/* The program holds a reference, so the entry stays valid. */
static void write_retain(const struct gmt_call *call, const struct gmt_memory *memory, uint32_t references,
			 const struct gmt_caller *caller)
{
	uint64_t time = call->start, end = gmt_now();
	uint32_t site = gmt_session.config.tagmode == GMT_TAGS_SIZE ? 0 : gmt_tag_command(caller, 0, &time);
	struct gmtevent event = GMT_EVENT_RETAIN(.time = time, .duration = gmt_took(call->start, end), .site = site,
						 .memory = (enum gmtmemory)memory->kind, .scope = gmt_context_id(memory->context), .tag = memory->object.tag,
						 .object = memory->object.id, .requested = memory->size, .references = references,
						 .block = memory->block);
	gmt_ring_write(&event);
}

GMT_HOOK cl_int clRetainMemObject(cl_mem handle)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_driver.clRetainMemObject(handle);
	struct gmt_memory *memory = gmt_memory_find(handle);
	if (!memory && handle)
		gmt_finding_freed_handle(GMT_DIAG_USE_AFTER_RELEASE, __func__, handle);
	cl_int err = memory && gmt_finding_released(memory, __func__) ? CL_INVALID_MEM_OBJECT : gmt_driver.clRetainMemObject(handle);
	if (memory && err == CL_SUCCESS) {
		uint32_t before = atomic_fetch_add(&memory->references, 1);
		if (gmt_unlikely(before == 0)) /* revived: a query of a sub-buffer returned the handle */
			atomic_fetch_add(&memory->pins, 1);
		write_retain(&call, memory, before + 1, &GMT_CALLER);
	}
	if (gmt_unlikely(err != CL_SUCCESS))
		gmt_call_failed(__func__, err, &GMT_CALLER);
	gmt_leave();
	return err;
}

/* Handles one release too many of known memory, which must not reach the driver: it would release the pool's block. */
static cl_int handle_excess_release(const struct gmt_call *call, const struct gmt_memory *memory, cl_mem handle)
{
	bool ours = memory->block != 0;
	struct gmtreleasefields release = gmt_release_fields(call, NULL);
	cl_int err = ours ? CL_INVALID_MEM_OBJECT : gmt_driver.clReleaseMemObject(handle);
	gmt_finding(GMT_DIAG_DOUBLE_RELEASE, "clReleaseMemObject", memory, err);
	gmt_release_write_event(&release, err, gmt_now());
	return err;
}

/* Passes the release of an unknown handle to the driver: a function without a hook may have created the memory. */
static cl_int release_unknown_handle(const struct gmt_call *call, cl_mem handle)
{
	bool freed = handle && gmt_finding_freed_handle(GMT_DIAG_DOUBLE_RELEASE, "clReleaseMemObject", handle);
	struct gmtreleasefields release = gmt_release_fields(call, NULL);
	cl_int err = gmt_driver.clReleaseMemObject(handle);
	if (handle && !freed)
		gmt_finding_unknown_memory("clReleaseMemObject", err);
	gmt_release_write_event(&release, err, gmt_now());
	return err;
}

static cl_int release_memory(struct gmt_call *call, cl_mem handle)
{
	struct gmt_memory *memory = gmt_memory_find(handle);
	if (gmt_unlikely(!memory))
		return release_unknown_handle(call, handle);
	uint32_t count = atomic_load(&memory->references);
	struct gmtreleasefields release = {0};
	do
		if (count > 1)
			release = gmt_release_fields(call, memory);
	while (count > 0 && !atomic_compare_exchange_weak(&memory->references, &count, count - 1));
	if (gmt_likely(count == 1))
		return gmt_references_end(call, memory);
	if (count == 0)
		return handle_excess_release(call, memory, handle);
	cl_int err = gmt_driver.clReleaseMemObject(handle);
	release.references = count - 1;
	gmt_release_write_event(&release, err, gmt_now());
	return err;
}

GMT_HOOK cl_int clReleaseMemObject(cl_mem handle)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_driver.clReleaseMemObject(handle);
	cl_int err = release_memory(&call, handle);
	if (gmt_unlikely(err != CL_SUCCESS))
		gmt_call_failed(__func__, err, &GMT_CALLER);
	gmt_leave();
	return err;
}
