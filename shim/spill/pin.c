/* pin.c: see pin.h. */
#define _GNU_SOURCE
#include "pin.h"

#include "../base/call.h"
#include "../base/lock.h"
#include "../pool/budget.h"
#include "../pool/oom.h"
#include "choose.h"
#include "context.h"
#include "figures.h"
#include "short.h"

#include <stdlib.h>

static cl_mem make_image(const struct gmt_spill_object *object, cl_int *err)
{
	cl_image_desc desc = object->image->desc;
	desc.mem_object = object->parent->real;
	return gmt_bare.clCreateImage((cl_context)atomic_load(&object->context->object.handle), object->flags, &object->image->format, &desc,
				      NULL, err);
}

/* With its contents. NVIDIA's driver takes 7 times as long for a create that copies as for a create and a write. */
static cl_mem make_with_contents(const struct gmt_spill_object *object, cl_context context, cl_mem_flags flags, cl_int *err)
{
	bool writes = object->context->discrete && !(flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS));
	cl_command_queue queue = writes ? gmt_spill_context_queue(object->context) : NULL;
	if (!queue)
		return gmt_bare.clCreateBuffer(context, flags | CL_MEM_COPY_HOST_PTR, object->size, object->host, err);
	cl_mem real = gmt_bare.clCreateBuffer(context, flags, object->size, NULL, err);
	if (!real)
		return NULL;
	*err = gmt_bare.clEnqueueWriteBuffer(queue, real, CL_TRUE, 0, object->size, object->host, 0, NULL, NULL);
	if (*err == CL_SUCCESS)
		return real;
	gmt_bare.clReleaseMemObject(real);
	return NULL;
}

/* The driver's object, or NULL: what fails for lack of memory is tried again as long as something can go. */
static cl_mem make_real(const struct gmt_spill_object *object, struct gmt_spill_patience *patience, cl_int *err)
{
	cl_context context = (cl_context)atomic_load(&object->context->object.handle);
	cl_buffer_region region = {object->origin, object->size};
	cl_mem_flags given = object->parent ? object->flags : gmt_spill_context_access(object->context, object->flags);
	cl_mem_flags flags = given & ~(cl_mem_flags)CL_MEM_COPY_HOST_PTR;
	cl_mem real;
	do {
		if (object->parent && object->image)
			real = make_image(object, err);
		else if (object->parent)
			real = gmt_bare.clCreateSubBuffer(object->root->real, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, err);
		else if (object->contents)
			real = make_with_contents(object, context, flags, err);
		else
			real = gmt_bare.clCreateBuffer(context, flags, object->size, NULL, err);
	} while (!real && gmt_out_of_memory(*err) && gmt_spill_evict_one(patience) == GMT_SPILL_GONE);
	return real;
}

static cl_int make_root(struct gmt_spill_object *root, struct gmt_spill_patience *patience)
{
	cl_int err = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	while (!gmt_budget_take_now(root->size))
		if (gmt_spill_evict_one(patience) != GMT_SPILL_GONE)
			return err;
	uint64_t start = gmt_now();
	cl_mem real = make_real(root, patience, &err);
	if (!real) {
		gmt_budget_give_back(root->size);
		return err;
	}
	if (root->contents)
		atomic_fetch_sub(&gmt_spill_figures.spilled, root->size);
	void *host = NULL;
	gmt_lock(&root->lock);
	root->real = real;
	root->made++;
	root->clean = root->contents;
	if (!gmt_spill_is_short()) { /* the copy is worth its memory only where objects go */
		host = root->host;
		root->host = NULL;
		root->clean = false;
	}
	gmt_unlock(&root->lock);
	free(host);
	gmt_spill_list_add(root);
	gmt_spill_record(root->taken && root->contents ? GMT_SPILL_IN : GMT_SPILL_FIRST, root, start);
	return CL_SUCCESS;
}

static cl_int make_child(struct gmt_spill_object *child, struct gmt_spill_patience *patience)
{
	cl_int err = CL_SUCCESS;
	if (!child->parent->real) /* not a root: that has one */
		err = make_child(child->parent, patience);
	cl_mem real = err == CL_SUCCESS ? make_real(child, patience, &err) : NULL;
	if (!real)
		return err;
	atomic_fetch_add(&child->context->made, 1);
	atomic_fetch_add(&child->root->parts, 1);
	gmt_lock(&child->root->lock);
	child->real = real;
	child->made++;
	gmt_unlock(&child->root->lock);
	return CL_SUCCESS;
}

bool gmt_spill_pin_now(struct gmt_spill_object *object, bool writes)
{
	struct gmt_spill_object *root = object->root;
	gmt_lock(&root->lock);
	bool there = object->real && root->real && !root->leaving;
	if (gmt_likely(there)) {
		root->pins++;
		if (writes) {
			root->contents = true;
			root->clean = false;
		}
	}
	gmt_unlock(&root->lock);
	return there;
}

void gmt_spill_unpin(struct gmt_spill_object *object)
{
	gmt_lock(&object->root->lock);
	object->root->pins--;
	gmt_unlock(&object->root->lock);
}

/* Under the residency lock: no one else takes a real object away. */
static cl_int pin_made(struct gmt_spill_object *object, bool writes, struct gmt_spill_patience *patience)
{
	cl_int err = CL_SUCCESS;
	while (err == CL_SUCCESS && !gmt_spill_pin_now(object, false)) {
		struct gmt_spill_object *root = object->root;
		err = root->real ? CL_SUCCESS : make_root(root, patience);
		if (err != CL_SUCCESS || root == object)
			continue;
		gmt_lock(&root->lock); /* making a sub-buffer may need room, but not its own root's */
		root->pins++;
		gmt_unlock(&root->lock);
		err = object->real ? CL_SUCCESS : make_child(object, patience);
		gmt_spill_unpin(object);
	}
	if (err == CL_SUCCESS && writes) {
		gmt_spill_pin_now(object, true);
		gmt_spill_unpin(object);
	}
	return err;
}

void gmt_spill_unpin_all(const struct gmt_spill_command *command, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		gmt_spill_unpin(command->uses[i].object);
}

cl_int gmt_spill_pin_all(struct gmt_spill_command *command, struct gmt_spill_patience *patience)
{
	cl_int err = CL_SUCCESS;
	uint32_t count = 0;
	while (count < command->count && err == CL_SUCCESS) {
		err = pin_made(command->uses[count].object, command->uses[count].writes, patience);
		count += err == CL_SUCCESS;
	}
	if (err != CL_SUCCESS)
		gmt_spill_unpin_all(command, count);
	return err;
}
