/* hook_query.c: answers that a pool would change. The driver answers first; what it says of blocks is put right. */
#define _GNU_SOURCE
#include "memory.h"

#include <string.h>

/*
 * Drivers may let go of a block a moment after its last command has completed, and a block that parts keep alive has
 * a reference of ours: a fresh object would show neither.
 */
static cl_uint references_of(const struct gmt_memory *memory, cl_uint references)
{
	uint32_t ours = atomic_load(&memory->references);
	if (memory->block && ours == 0)
		return references - 1;
	return atomic_load(&memory->fresh) && atomic_load(&memory->pins) == 1 ? ours : references;
}

static void correct(const struct gmt_memory *memory, cl_mem_info what, void *value)
{
	if (memory->slab || (memory->kind == GMT_MEMORY_SUBBUFFER && memory->parent && memory->parent->slab)) {
		gmt_part_correct(memory, what, value);
		return;
	}
	switch (what) {
	case CL_MEM_SIZE:
		if (memory->kind == GMT_MEMORY_BUFFER)
			*(size_t *)value = memory->size;
		break;
	case CL_MEM_REFERENCE_COUNT:
		*(cl_uint *)value = references_of(memory, *(cl_uint *)value);
		break;
	case CL_MEM_MAP_COUNT:
		if (atomic_load(&memory->fresh))
			*(cl_uint *)value = 0;
		break;
	default:
		break;
	}
}

GMT_HOOK cl_int clGetMemObjectInfo(cl_mem handle, cl_mem_info what, size_t room, void *value, size_t *needed)
{
	if (!gmt_enter_untimed())
		return gmt_next.clGetMemObjectInfo(handle, what, room, value, needed);
	struct gmt_memory *memory = gmt_memory_find(handle);
	if (!memory && handle)
		gmt_finding_ghost(GMT_DIAG_USE_AFTER_RELEASE, __func__, handle);
	/* Of one that is only kept alive by parts, these tell the handle. */
	bool idle = memory && atomic_load(&memory->idle) && gmt_memory_released(memory, __func__);
	cl_int err = idle ? CL_INVALID_MEM_OBJECT : gmt_next.clGetMemObjectInfo(handle, what, room, value, needed);
	if (err == CL_SUCCESS && memory && value)
		correct(memory, what, value);
	gmt_leave();
	return err;
}

/* A smaller card says so: programs size their work by it. */
GMT_HOOK cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *needed)
{
	bool memory = what == CL_DEVICE_GLOBAL_MEM_SIZE || what == CL_DEVICE_MAX_MEM_ALLOC_SIZE;
	if ((!memory && gmt_next_ready()) || !gmt_enter_untimed())
		return gmt_next.clGetDeviceInfo(device, what, room, value, needed);
	cl_int err = gmt_next.clGetDeviceInfo(device, what, room, value, needed);
	if (err == CL_SUCCESS && value && memory)
		*(cl_ulong *)value = gmt_budget_cap(*(cl_ulong *)value);
	gmt_leave();
	return err;
}
