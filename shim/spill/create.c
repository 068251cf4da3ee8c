/*
 * create.c: virtual buffers and sub-buffers: their creates, references, callbacks and queries. The driver judges what a create
 * asks for, once for each set of flags; it makes the object when a command needs it.
 */
#define _GNU_SOURCE
#include "create.h"

#include "../pool/budget.h"
#include "../pool/oom.h"
#include "backing.h"
#include "figures.h"
#include "pair.h"

#include <stdlib.h>
#include <string.h>

#define PROBE 64 /* bytes */

static cl_mem answer_create(cl_mem handle, cl_int error, cl_int *errcode)
{
	if (errcode)
		*errcode = error;
	return handle;
}

/* Whether the driver takes such a create: asks it with the real arguments where it may refuse them. */
static cl_int judge_create(struct gmt_spill_context *context, cl_mem_flags flags, size_t size, void *host)
{
	cl_int err = CL_SUCCESS;
	bool plain = size && size <= context->largest && !(flags & CL_MEM_COPY_HOST_PTR) == !host;
	bool known = gmt_spill_context_class(context, flags) < GMT_SPILL_CLASSES;
	if (plain && known)
		return CL_SUCCESS;
	cl_context handle = (cl_context)atomic_load(&context->object.handle);
	cl_mem probe;
	do
		probe = gmt_bare.clCreateBuffer(handle, flags, plain && size > PROBE ? PROBE : size, host, &err);
	while (!probe && gmt_spill_relieve(err));
	if (!probe)
		return err == CL_SUCCESS ? CL_OUT_OF_HOST_MEMORY : err;
	if (!known)
		gmt_spill_context_learn(context, flags, probe);
	gmt_bare.clReleaseMemObject(probe);
	return CL_SUCCESS;
}

static bool copy_host_contents(struct gmt_spill_object *object, const void *from)
{
	object->host = gmt_spill_backing_new(object->size);
	if (!object->host)
		return false;
	memcpy(object->host, from, object->size);
	object->contents = object->clean = true;
	atomic_fetch_add(&gmt_spill_figures.spilled, object->size);
	return true;
}

static cl_mem create_buffer(cl_context handle, cl_mem_flags flags, size_t size, void *host, cl_int *errcode)
{
	struct gmt_spill_context *context = gmt_budget_is_virtual(flags, NULL) ? gmt_spill_context_find(handle) : NULL;
	if (!context)
		return gmt_bare.clCreateBuffer(handle, flags, size, host, errcode);
	cl_int err = judge_create(context, flags, size, host);
	if (err != CL_SUCCESS)
		return answer_create(NULL, err, errcode);
	struct gmt_spill_object *object = gmt_spill_object_new(context);
	if (!object)
		return answer_create(NULL, CL_OUT_OF_HOST_MEMORY, errcode);
	object->size = size;
	object->flags = flags;
	if (flags & CL_MEM_COPY_HOST_PTR && !copy_host_contents(object, host)) {
		gmt_spill_object_free(object);
		return answer_create(NULL, CL_OUT_OF_HOST_MEMORY, errcode);
	}
	gmt_spill_context_hold(context);
	return answer_create(gmt_spill_handle(object), CL_SUCCESS, errcode);
}

static cl_mem create_buffer_with_properties(cl_context handle, const cl_mem_properties *properties, cl_mem_flags flags, size_t size, void *host,
			  cl_int *errcode)
{
	if (!gmt_budget_is_virtual(flags, properties))
		return gmt_bare.clCreateBufferWithProperties(handle, properties, flags, size, host, errcode);
	return create_buffer(handle, flags, size, host, errcode);
}

static void count_child(const struct gmt_spill_object *child, uint32_t by)
{
	atomic_fetch_add(&child->parent->holds, by);
	atomic_fetch_add(&child->parent->children, by);
	if (child->real) {
		atomic_fetch_add(&child->context->made, by);
		atomic_fetch_add(&child->root->parts, by);
	}
}

struct gmt_spill_object *gmt_spill_new_child(struct gmt_spill_object *parent, cl_mem_flags flags, const cl_buffer_region *region,
					     struct gmt_spill_image *image, cl_mem real)
{
	struct gmt_spill_object *child = gmt_spill_object_new(parent->context);
	if (!child)
		return NULL;
	child->parent = parent;
	child->root = parent->root;
	child->size = region->size;
	child->origin = region->origin;
	child->flags = flags;
	child->image = image;
	child->real = real;
	child->made += real != NULL;
	count_child(child, 1);
	gmt_spill_context_hold(parent->context);
	if (gmt_spill_add_to_root(child))
		return child;
	count_child(child, UINT32_MAX); /* one less */
	gmt_spill_context_drop(parent->context);
	gmt_spill_object_free(child);
	return NULL;
}

/* Whether any driver takes it: those that it may refuse are created at once, so that it says how. */
static bool is_accepted_by_any(const struct gmt_spill_object *parent, cl_mem_flags flags, cl_buffer_create_type type, const cl_buffer_region *r)
{
	return type == CL_BUFFER_CREATE_TYPE_REGION && r && r->size && !parent->parent && (flags == 0 || flags == parent->flags) &&
	       !(flags & ~(cl_mem_flags)(CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY)) && r->origin < parent->size &&
	       r->size <= parent->size - r->origin && r->origin % parent->context->align == 0;
}

static cl_int try_sub_buffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const cl_buffer_region *region,
			    cl_mem_flags *reported)
{
	cl_int err = CL_SUCCESS;
	cl_mem probe = gmt_bare.clCreateSubBuffer(buffer, flags, type, region, &err);
	if (!probe)
		return err;
	gmt_bare.clGetMemObjectInfo(probe, CL_MEM_FLAGS, sizeof *reported, reported, NULL);
	gmt_bare.clReleaseMemObject(probe);
	return CL_SUCCESS;
}

/* The driver sees a buffer that is as small as shows the same; the buffer itself for ranges outside, which some drivers take. */
cl_int gmt_spill_judge_sub(struct gmt_spill_object *parent, cl_mem_flags flags, cl_buffer_create_type type,
			   const cl_buffer_region *region, cl_mem_flags *reported)
{
	if (parent->parent)
		return CL_INVALID_MEM_OBJECT;
	size_t align = parent->context->align;
	bool inside = region && region->origin < parent->size && region->size <= parent->size - region->origin;
	cl_buffer_region small = {inside ? region->origin % align : 0, inside && region->size};
	cl_int err;
	if (!inside && gmt_spill_pin(parent, "clCreateSubBuffer") == CL_SUCCESS) {
		err = try_sub_buffer(parent->real, flags, type, region, reported);
		gmt_spill_unpin(parent);
		return err;
	}
	cl_mem stand_in = gmt_spill_create_stand_in(parent, 2 * align);
	if (!stand_in)
		return CL_MEM_OBJECT_ALLOCATION_FAILURE;
	err = try_sub_buffer(stand_in, flags, type, inside ? &small : region, reported);
	gmt_bare.clReleaseMemObject(stand_in);
	return err;
}

static cl_mem create_sub_buffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *errcode)
{
	struct gmt_spill_object *parent = gmt_spill_find(buffer);
	if (!parent)
		return gmt_spill_is_ours(buffer) ? answer_create(NULL, CL_INVALID_MEM_OBJECT, errcode)
						 : gmt_bare.clCreateSubBuffer(buffer, flags, type, info, errcode);
	cl_mem_flags reported = 0;
	cl_int err = is_accepted_by_any(parent, flags, type, info) ? CL_SUCCESS : gmt_spill_judge_sub(parent, flags, type, info, &reported);
	if (err != CL_SUCCESS)
		return answer_create(NULL, err, errcode);
	struct gmt_spill_object *child = gmt_spill_new_child(parent, flags, info, NULL, NULL);
	if (child)
		child->reported = reported;
	return child ? answer_create(gmt_spill_handle(child), CL_SUCCESS, errcode) : answer_create(NULL, CL_OUT_OF_HOST_MEMORY, errcode);
}

static cl_int retain_memory(cl_mem handle)
{
	struct gmt_spill_object *object = gmt_spill_find(handle);
	if (!object)
		return gmt_spill_is_ours(handle) ? CL_INVALID_MEM_OBJECT : gmt_bare.clRetainMemObject(handle);
	if (atomic_fetch_add(&object->references, 1) == 0) /* sub-buffers keep it, and a query returned it */
		atomic_fetch_add(&object->holds, 1);
	return CL_SUCCESS;
}

static cl_int release_memory(cl_mem handle)
{
	struct gmt_spill_object *object = gmt_spill_find(handle);
	if (!object)
		return gmt_spill_is_ours(handle) ? CL_INVALID_MEM_OBJECT : gmt_bare.clReleaseMemObject(handle);
	uint32_t count = atomic_load(&object->references);
	while (count > 0 && !atomic_compare_exchange_weak(&object->references, &count, count - 1))
		;
	if (count == 0)
		return CL_INVALID_MEM_OBJECT;
	if (count == 1)
		gmt_spill_drop_hold(object);
	return CL_SUCCESS;
}

static cl_int set_destructor_callback(cl_mem handle, void(CL_CALLBACK *notify)(cl_mem, void *), void *data)
{
	struct gmt_spill_object *object = gmt_spill_find(handle);
	if (!object)
		return gmt_spill_is_ours(handle) ? CL_INVALID_MEM_OBJECT
						 : gmt_bare.clSetMemObjectDestructorCallback(handle, notify, data);
	struct gmt_spill_ending *ending = notify ? malloc(sizeof *ending) : NULL;
	if (!ending)
		return notify ? CL_OUT_OF_HOST_MEMORY : CL_INVALID_VALUE;
	*ending = (struct gmt_spill_ending){atomic_load(&object->endings), notify, data};
	while (!atomic_compare_exchange_weak(&object->endings, &ending->next, ending))
		;
	return CL_SUCCESS;
}

void gmt_spill_override_creates(struct gmt_functions *over)
{
	GMT_SPILL_OVER(over, clCreateBuffer, create_buffer);
	GMT_SPILL_OVER(over, clCreateBufferWithProperties, create_buffer_with_properties);
	GMT_SPILL_OVER(over, clCreateSubBuffer, create_sub_buffer);
	GMT_SPILL_OVER(over, clRetainMemObject, retain_memory);
	GMT_SPILL_OVER(over, clReleaseMemObject, release_memory);
	GMT_SPILL_OVER(over, clSetMemObjectDestructorCallback, set_destructor_callback);
}
