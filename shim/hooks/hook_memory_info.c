/* hook_memory_info.c: queries of memory. The driver answers first; we correct what the pool would change. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/start.h"
#include "../registry/finding.h"
#include "../registry/memory.h"

#include <string.h>

/*
 * Drivers that count sub-buffers and mappings in the references of their buffer have counted these in the slab's. If the
 * program holds no reference of the sub-allocation, one of its references is ours.
 */
static cl_uint suballoc_references(const struct gmt_memory *memory, cl_uint references)
{
	const struct gmt_memory *slab = memory->slab;
	cl_uint slab_references = 0, children = atomic_load(&slab->children), maps = (cl_uint)atomic_load(&memory->maps);
	gmt_driver.clGetMemObjectInfo(gmt_memory_handle(slab), CL_MEM_REFERENCE_COUNT, sizeof slab_references, &slab_references, NULL);
	if (atomic_load(&memory->references) == 0)
		references--;
	if (slab_references <= children)
		return references;
	references += atomic_load(&memory->children);
	return slab_references > children + (cl_uint)atomic_load(&slab->maps) ? references + maps : references;
}

static cl_uint suballoc_map_count(const struct gmt_memory *memory, cl_uint maps)
{
	cl_uint slab_maps = 0;
	gmt_driver.clGetMemObjectInfo(gmt_memory_handle(memory->slab), CL_MEM_MAP_COUNT, sizeof slab_maps, &slab_maps, NULL);
	return slab_maps ? (cl_uint)atomic_load(&memory->maps) : maps; /* else the driver counts them on the sub-buffer */
}

/* References and mappings that the driver counts on the alias; images of the program's buffer would count on the buffer. */
static cl_uint alias_count(const struct gmt_memory *memory, cl_mem_info what)
{
	cl_mem alias = memory->slab->store ? atomic_load(&memory->alias) : NULL;
	cl_uint count = 0;
	if (gmt_likely(!alias) || gmt_driver.clGetMemObjectInfo(alias, what, sizeof count, &count, NULL) != CL_SUCCESS)
		return 0;
	return what == CL_MEM_REFERENCE_COUNT ? count - 1 : count;
}

/* Hides the store: queries of memory in its slab would show it. */
static void hide_store(const struct gmt_memory *slab, cl_mem_info what, void *value)
{
	cl_mem_flags *flags = value;
	if (gmt_likely(!slab->store))
		return;
	if (what == CL_MEM_HOST_PTR)
		*(void **)value = NULL;
	else if (what == CL_MEM_FLAGS && *flags & CL_MEM_USE_HOST_PTR)
		*flags = (*flags & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR) | (slab->flags & CL_MEM_ALLOC_HOST_PTR);
}

/* Corrects an answer about a sub-buffer or image of a sub-allocation. */
static void correct_child(const struct gmt_memory *child, cl_mem_info what, void *value)
{
	if (what == CL_MEM_ASSOCIATED_MEMOBJECT)
		*(cl_mem *)value = gmt_memory_handle(child->parent);
	else if (what == CL_MEM_OFFSET && child->kind == GMT_MEMORY_SUBBUFFER)
		*(size_t *)value -= child->parent->offset;
	else
		hide_store(child->parent->slab, what, value);
}

/* Makes a sub-allocation look like a buffer of its own. */
static void correct_suballoc(const struct gmt_memory *memory, cl_mem_info what, void *value)
{
	if (!memory->slab) {
		correct_child(memory, what, value);
		return;
	}
	switch (what) {
	case CL_MEM_FLAGS: /* the slab was created with the program's flags, and the driver may have added some */
		gmt_driver.clGetMemObjectInfo(gmt_memory_handle(memory->slab), what, sizeof(cl_mem_flags), value, NULL);
		hide_store(memory->slab, what, value);
		break;
	case CL_MEM_ASSOCIATED_MEMOBJECT:
	case CL_MEM_HOST_PTR:
		*(void **)value = NULL;
		break;
	case CL_MEM_OFFSET:
		*(size_t *)value = 0;
		break;
	case CL_MEM_REFERENCE_COUNT:
		*(cl_uint *)value = suballoc_references(memory, *(cl_uint *)value) + alias_count(memory, what);
		break;
	case CL_MEM_MAP_COUNT:
		*(cl_uint *)value = suballoc_map_count(memory, *(cl_uint *)value) + alias_count(memory, what);
		break;
	default:
		break;
	}
}

/*
 * The references to show for a block, without those that a new object would not have: a driver may drop its own a moment after
 * the last command has completed, and we hold one of a block that sub-buffers keep alive.
 */
static cl_uint references_to_show(const struct gmt_memory *memory, cl_uint references)
{
	uint32_t ours = atomic_load(&memory->references);
	if (memory->block && ours == 0)
		return references - 1;
	return atomic_load(&memory->unused) && atomic_load(&memory->pins) == 1 ? ours : references;
}

static void correct_answer(const struct gmt_memory *memory, cl_mem_info what, void *value)
{
	if (gmt_unlikely(memory->hosted) && what == CL_MEM_FLAGS)
		*(cl_mem_flags *)value &= ~(cl_mem_flags)CL_MEM_ALLOC_HOST_PTR;
	else if (gmt_unlikely(memory->hosted) && what == CL_MEM_HOST_PTR)
		*(void **)value = NULL;
	bool child = memory->parent && memory->parent->slab && (memory->kind == GMT_MEMORY_SUBBUFFER || gmt_memory_shown(memory));
	if (memory->slab || child) {
		correct_suballoc(memory, what, value);
		return;
	}
	switch (what) {
	case CL_MEM_SIZE:
		if (memory->kind == GMT_MEMORY_BUFFER)
			*(size_t *)value = memory->size;
		break;
	case CL_MEM_REFERENCE_COUNT:
		*(cl_uint *)value = references_to_show(memory, *(cl_uint *)value);
		break;
	case CL_MEM_MAP_COUNT:
		if (atomic_load(&memory->unused))
			*(cl_uint *)value = 0;
		break;
	default:
		break;
	}
}

GMT_HOOK cl_int clGetMemObjectInfo(cl_mem handle, cl_mem_info what, size_t room, void *value, size_t *needed)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clGetMemObjectInfo(handle, what, room, value, needed);
	struct gmt_memory *memory = gmt_memory_find(handle);
	if (!memory && handle)
		gmt_finding_freed_handle(GMT_DIAG_USE_AFTER_RELEASE, __func__, handle);
	/* If only sub-buffers keep memory alive, queries of these return its handle, which the program may use. */
	bool idle = memory && atomic_load(&memory->pooled) && gmt_finding_released(memory, __func__);
	cl_int err = idle ? CL_INVALID_MEM_OBJECT : gmt_driver.clGetMemObjectInfo(handle, what, room, value, needed);
	if (err == CL_SUCCESS && memory && value)
		correct_answer(memory, what, value);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clGetImageInfo(cl_mem handle, cl_image_info what, size_t room, void *value, size_t *needed)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clGetImageInfo(handle, what, room, value, needed);
	struct gmt_memory *memory = gmt_memory_find(handle);
	if (!memory && handle)
		gmt_finding_freed_handle(GMT_DIAG_USE_AFTER_RELEASE, __func__, handle);
	bool idle = memory && atomic_load(&memory->pooled) && gmt_finding_released(memory, __func__);
	cl_int err = idle ? CL_INVALID_MEM_OBJECT : gmt_driver.clGetImageInfo(handle, what, room, value, needed);
	if (err == CL_SUCCESS && value && what == CL_IMAGE_BUFFER && gmt_memory_shown(memory))
		*(cl_mem *)value = gmt_memory_handle(memory->parent);
	gmt_leave();
	return err;
}

/* The driver answers these queries. They are hooks because with --spill a handle may be ours, see spill/info.c. */
GMT_HOOK cl_int clGetPipeInfo(cl_mem handle, cl_pipe_info what, size_t room, void *value, size_t *needed)
{
	return gmt_dispatch_ready() ? gmt_driver.clGetPipeInfo(handle, what, room, value, needed) : CL_INVALID_MEM_OBJECT;
}

GMT_HOOK cl_int clGetGLObjectInfo(cl_mem handle, cl_gl_object_type *type, cl_GLuint *name)
{
	return gmt_dispatch_ready() ? gmt_driver.clGetGLObjectInfo(handle, type, name) : CL_INVALID_MEM_OBJECT;
}

GMT_HOOK cl_int clGetGLTextureInfo(cl_mem handle, cl_gl_texture_info what, size_t room, void *value, size_t *needed)
{
	return gmt_dispatch_ready() ? gmt_driver.clGetGLTextureInfo(handle, what, room, value, needed) : CL_INVALID_MEM_OBJECT;
}
