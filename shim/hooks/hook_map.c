/* hook_map.c: commands that map memory for the host. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../pool/references.h"
#include "../registry/host_range.h"
#include "../registry/mapping.h"
#include "command.h"

/* Counts a mapping, and pins its sub-allocation: the program may release a buffer before it unmaps it. */
static void count_mapping(cl_mem handle)
{
	struct gmt_memory *memory = gmt_memory_find(handle), *shown = gmt_memory_shown(memory);
	if (gmt_unlikely(shown)) { /* the driver counts it on the alias */
		atomic_fetch_add(&memory->maps, 1);
		atomic_fetch_add(&shown->pins, 1);
		return;
	}
	for (; memory; memory = memory->parent ? memory->parent : memory->slab) {
		atomic_fetch_add(&memory->maps, 1);
		if (memory->slab)
			atomic_fetch_add(&memory->pins, 1);
	}
}

/* Counts the end of a mapping and returns the sub-allocation to unpin, or NULL: never more often than it was mapped. */
static struct gmt_memory *count_unmapping(cl_mem handle)
{
	struct gmt_memory *suballoc = NULL, *memory = gmt_memory_find(handle), *shown = gmt_memory_shown(memory);
	if (gmt_unlikely(shown))
		return atomic_fetch_sub(&memory->maps, 1) > 0 ? shown : NULL;
	for (; memory; memory = memory->parent ? memory->parent : memory->slab)
		if (atomic_fetch_sub(&memory->maps, 1) > 0 && memory->slab)
			suballoc = memory;
	return suballoc;
}

GMT_HOOK void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
				  size_t size, cl_uint waits, const cl_event *list, cl_event *event, cl_int *errcode)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_MAP, __func__))
		return gmt_driver.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, waits, list, event, errcode);
	struct gmt_memory *memory = gmt_command_uses(&command, buffer, gmt_map_flags(flags), GMT_EXTENT(offset, size));
	gmt_command_transfers(&command, &GMT_CALLER, NULL, size);
	size_t bytes = size;
	offset = gmt_command_range(memory, offset, size, &size);
	cl_int err = command.refused;
	void *pointer = NULL;
	struct gmt_shortage shortage = gmt_shortage();
	gmt_command_note_blocking(&command, blocking);
	do
		if (!command.refused)
			pointer = gmt_driver.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, waits, list, event, &err);
	while (err != CL_SUCCESS && gmt_oom_drain(&shortage, err, 0));
	if (err == CL_SUCCESS) {
		gmt_mapping_add(buffer, pointer);
		gmt_host_range_add(buffer, pointer, bytes);
		count_mapping(buffer);
	}
	gmt_command_end(&command, err, blocking, GMT_WAIT_LIST);
	if (errcode)
		*errcode = err;
	return pointer;
}

GMT_HOOK void *clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking, cl_map_flags flags,
				 const size_t *origin, const size_t *region, size_t *row, size_t *slice, cl_uint waits,
				 const cl_event *list, cl_event *event, cl_int *errcode)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_MAP, __func__))
		return gmt_driver.clEnqueueMapImage(queue, image, blocking, flags, origin, region, row, slice, waits, list, event, errcode);
	gmt_command_uses_image(&command, image, gmt_map_flags(flags), region);
	gmt_command_transfers(&command, &GMT_CALLER, NULL, 0);
	cl_int err = command.refused;
	void *pointer = NULL;
	struct gmt_shortage shortage = gmt_shortage();
	gmt_command_note_blocking(&command, blocking);
	do
		if (!command.refused)
			pointer = gmt_driver.clEnqueueMapImage(queue, image, blocking, flags, origin, region, row, slice, waits, list,
							     event, &err);
	while (err != CL_SUCCESS && gmt_oom_drain(&shortage, err, 0));
	if (err == CL_SUCCESS)
		count_mapping(image);
	gmt_command_end(&command, err, blocking, GMT_WAIT_LIST);
	if (errcode)
		*errcode = err;
	return pointer;
}

GMT_HOOK cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem handle, void *pointer, cl_uint waits,
					const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_UNMAP, __func__))
		return gmt_driver.clEnqueueUnmapMemObject(queue, handle, pointer, waits, list, event);
	gmt_command_uses(&command, handle, 0, GMT_SOMEWHERE);
	gmt_command_transfers(&command, &GMT_CALLER, NULL, 0);
	static char nowhere;
	if (pointer && !gmt_mapping_known(handle, pointer))
		pointer = &nowhere;
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueUnmapMemObject(queue, handle, pointer, waits, list, event));
	if (err == CL_SUCCESS) {
		gmt_mapping_remove(handle, pointer);
		gmt_host_range_remove(handle, pointer);
	}
	struct gmt_memory *suballoc = err == CL_SUCCESS ? count_unmapping(handle) : NULL;
	gmt_command_end(&command, err, false, GMT_WAIT_LIST);
	struct gmt_call call;
	if (suballoc && gmt_enter(&call)) { /* after the command has become one of its uses */
		gmt_references_unpin(&call, suballoc);
		gmt_leave();
	}
	return err;
}
