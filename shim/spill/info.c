/* info.c: queries of memory. What we know we answer; for the rest the object gets a real one, and the driver answers. */
#define _GNU_SOURCE
#include "info.h"

#include "create.h"
#include "residency.h"

#include <string.h>

static cl_int copy_answer(const void *from, size_t size, size_t room, void *value, size_t *needed)
{
	if (value && room < size)
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, from, size);
	if (needed)
		*needed = size;
	return CL_SUCCESS;
}

/* Drivers count sub-buffers, and for a moment commands, in the references of a buffer. */
static cl_uint references_to_show(struct gmt_spill_object *object)
{
	cl_uint count = atomic_load(&object->references), hidden = 1;
	uint32_t children = atomic_load(&object->children);
	if (!gmt_spill_pin_now(object, false))
		return count + children;
	cl_uint real = atomic_load(&object->parts);
	gmt_bare.clGetMemObjectInfo(object->real, CL_MEM_REFERENCE_COUNT, sizeof hidden, &hidden, NULL);
	gmt_spill_unpin(object);
	hidden = hidden > 1 + real ? hidden - 1 - real : 0;
	return count + hidden + children;
}

static cl_int ask_driver(struct gmt_spill_object *object, cl_mem_info what, size_t room, void *value, size_t *needed)
{
	cl_int err = gmt_spill_pin(object, "clGetMemObjectInfo");
	if (err != CL_SUCCESS)
		return err;
	err = gmt_bare.clGetMemObjectInfo(object->real, what, room, value, needed);
	gmt_spill_unpin(object);
	return err;
}

/* CL_MEM_COPY_HOST_PTR comes and goes with the real object of a root. */
static cl_int flags_to_show(struct gmt_spill_object *object, size_t room, void *value, size_t *needed)
{
	const cl_mem_flags copy = CL_MEM_COPY_HOST_PTR;
	uint32_t class = gmt_spill_context_class(object->context, object->root->flags);
	cl_mem_flags all = class < GMT_SPILL_CLASSES ? object->context->reported[class] : object->root->flags;
	if (!object->parent)
		return copy_answer(&all, sizeof all, room, value, needed);
	cl_mem_flags own = atomic_load(&object->reported);
	if (object->image)
		return copy_answer(&own, sizeof own, room, value, needed);
	cl_buffer_region region = {object->origin, object->size};
	cl_int err = own ? CL_SUCCESS : gmt_spill_judge_sub(object->parent, object->flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &own);
	if (err != CL_SUCCESS)
		return err;
	atomic_store(&object->reported, own);
	own = (own & ~copy) | (all & copy);
	return copy_answer(&own, sizeof own, room, value, needed);
}

static bool has_no_address(const struct gmt_spill_object *object)
{
	uint32_t class = gmt_spill_context_class(object->context, object->root->flags);
	return class < GMT_SPILL_CLASSES && !object->context->addressed[class];
}

/* What is the same for all objects without a real one: instead asks the dummy. */
static cl_int ask_real_or_dummy(struct gmt_spill_object *object, cl_mem_info what, size_t room, void *value, size_t *needed)
{
	if (!gmt_spill_pin_now(object, false)) {
		cl_mem dummy = gmt_spill_dummy(object);
		return dummy ? gmt_bare.clGetMemObjectInfo(dummy, what, room, value, needed) : CL_OUT_OF_RESOURCES;
	}
	cl_int err = gmt_bare.clGetMemObjectInfo(object->real, what, room, value, needed);
	gmt_spill_unpin(object);
	return err;
}

/* The driver may have none for an image. */
static cl_int ask_for_parent(struct gmt_spill_object *object, cl_mem_info what, size_t room, void *value, size_t *needed)
{
	cl_int err = ask_driver(object, what, room, value, needed);
	if (err == CL_SUCCESS && value && *(cl_mem *)value && object->parent)
		*(cl_mem *)value = gmt_spill_handle(object->parent);
	return err;
}

static cl_int answer_info(struct gmt_spill_object *object, cl_mem_info what, size_t room, void *value, size_t *needed)
{
	cl_mem_object_type type = object->image ? object->image->desc.image_type : CL_MEM_OBJECT_BUFFER;
	const void *context = (const void *)atomic_load(&object->context->object.handle);
	cl_mem parent = object->parent ? gmt_spill_handle(object->parent) : NULL;
	cl_uint references;
	bool parts = gmt_bare.clCreateSubBuffer && !object->image;
	switch (what) {
	case CL_MEM_TYPE:
		return copy_answer(&type, sizeof type, room, value, needed);
	case CL_MEM_SIZE:
		return copy_answer(&object->size, sizeof object->size, room, value, needed);
	case CL_MEM_CONTEXT:
		return copy_answer(&context, sizeof context, room, value, needed);
	case CL_MEM_FLAGS:
		return flags_to_show(object, room, value, needed);
	case CL_MEM_REFERENCE_COUNT:
		references = references_to_show(object);
		return copy_answer(&references, sizeof references, room, value, needed);
	case CL_MEM_ASSOCIATED_MEMOBJECT:
		return parts ? copy_answer(&parent, sizeof parent, room, value, needed) : ask_for_parent(object, what, room, value, needed);
	case CL_MEM_OFFSET:
		return parts ? copy_answer(&object->origin, sizeof object->origin, room, value, needed) : ask_driver(object, what, room, value, needed);
	case CL_MEM_MAP_COUNT:
		return ask_real_or_dummy(object, what, room, value, needed);
	case CL_MEM_HOST_PTR:
		if (!object->image && has_no_address(object))
			return copy_answer(&(void *){NULL}, sizeof(void *), room, value, needed);
		return ask_driver(object, what, room, value, needed);
	default: /* the driver may not know it */
		return object->image ? ask_driver(object, what, room, value, needed) : ask_real_or_dummy(object, what, room, value, needed);
	}
}

static cl_int get_memory_info(cl_mem handle, cl_mem_info what, size_t room, void *value, size_t *needed)
{
	struct gmt_spill_object *object = gmt_spill_find(handle);
	if (object)
		return answer_info(object, what, room, value, needed);
	if (gmt_spill_is_ours(handle))
		return CL_INVALID_MEM_OBJECT;
	return gmt_bare.clGetMemObjectInfo(handle, what, room, value, needed);
}

static cl_int ask_about_image(struct gmt_spill_object *object, cl_image_info what, size_t room, void *value, size_t *needed)
{
	cl_int err = gmt_spill_pin(object, "clGetImageInfo");
	if (err != CL_SUCCESS)
		return err;
	err = gmt_bare.clGetImageInfo(object->real, what, room, value, needed);
	gmt_spill_unpin(object);
	if (err == CL_SUCCESS && value && what == CL_IMAGE_BUFFER && *(cl_mem *)value)
		*(cl_mem *)value = gmt_spill_handle(object->parent);
	return err;
}

static cl_int get_image_info(cl_mem handle, cl_image_info what, size_t room, void *value, size_t *needed)
{
	struct gmt_spill_object *object = gmt_spill_find(handle);
	if (object && object->image)
		return ask_about_image(object, what, room, value, needed);
	cl_mem dummy = object ? gmt_spill_dummy(object) : NULL; /* drivers answer something for a buffer, too */
	cl_int err = dummy ? gmt_bare.clGetImageInfo(dummy, what, room, value, needed) : CL_INVALID_MEM_OBJECT;
	if (gmt_spill_is_ours(handle))
		return err;
	return gmt_bare.clGetImageInfo(handle, what, room, value, needed);
}

/* Of these kinds none is ours. */
static cl_int get_pipe_info(cl_mem handle, cl_pipe_info what, size_t room, void *value, size_t *needed)
{
	return gmt_spill_is_ours(handle) ? CL_INVALID_MEM_OBJECT : gmt_bare.clGetPipeInfo(handle, what, room, value, needed);
}

static cl_int get_gl_info(cl_mem handle, cl_gl_object_type *type, cl_GLuint *name)
{
	return gmt_spill_is_ours(handle) ? CL_INVALID_GL_OBJECT : gmt_bare.clGetGLObjectInfo(handle, type, name);
}

static cl_int get_texture_info(cl_mem handle, cl_gl_texture_info what, size_t room, void *value, size_t *needed)
{
	return gmt_spill_is_ours(handle) ? CL_INVALID_GL_OBJECT : gmt_bare.clGetGLTextureInfo(handle, what, room, value, needed);
}

void gmt_spill_override_info(struct gmt_functions *over)
{
	GMT_SPILL_OVER(over, clGetMemObjectInfo, get_memory_info);
	GMT_SPILL_OVER(over, clGetImageInfo, get_image_info);
	GMT_SPILL_OVER(over, clGetPipeInfo, get_pipe_info);
	GMT_SPILL_OVER(over, clGetGLObjectInfo, get_gl_info);
	GMT_SPILL_OVER(over, clGetGLTextureInfo, get_texture_info);
}
