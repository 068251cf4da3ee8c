/* hook_map.c: mapping and moving: commands that hand memory to the host or to a device. */
#define _GNU_SOURCE
#include "command.h"

static void count_map(cl_mem handle, int32_t by)
{
	for (struct gmt_memory *memory = gmt_memory_find(handle); memory; memory = memory->parent)
		atomic_fetch_add(&memory->maps, by);
}

static uint8_t map_flags(cl_map_flags flags)
{
	return (uint8_t)((flags & CL_MAP_READ ? GMT_FLAG_READS : 0u) |
			 (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION) ? GMT_FLAG_WRITES : 0u));
}

static void mapped(struct gmt_command *command, cl_mem handle, cl_bool blocking, cl_map_flags flags, uint64_t bytes, cl_int err)
{
	if (err == CL_SUCCESS)
		count_map(handle, 1);
	gmt_command_end(command, err, blocking);
	gmt_command_use(command, handle, map_flags(flags), bytes);
}

GMT_HOOK void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
				  size_t size, cl_uint waits, const cl_event *list, cl_event *event, cl_int *errcode)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_MAP))
		return gmt_next.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, waits, list, event, errcode);
	cl_int err = CL_INVALID_VALUE;
	void *pointer = NULL;
	if (!gmt_outside(gmt_memory_find(buffer), offset, size)) {
		do
			pointer = gmt_next.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, waits, list, event, &err);
		while (err != CL_SUCCESS && gmt_pool_drain(err, 0));
	}
	mapped(&command, buffer, blocking, flags, size, err);
	if (errcode)
		*errcode = err;
	gmt_leave();
	return pointer;
}

GMT_HOOK void *clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking, cl_map_flags flags,
				 const size_t *origin, const size_t *region, size_t *row, size_t *slice, cl_uint waits,
				 const cl_event *list, cl_event *event, cl_int *errcode)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_MAP))
		return gmt_next.clEnqueueMapImage(queue, image, blocking, flags, origin, region, row, slice, waits, list, event, errcode);
	cl_int err = CL_SUCCESS;
	void *pointer;
	do
		pointer = gmt_next.clEnqueueMapImage(queue, image, blocking, flags, origin, region, row, slice, waits, list, event, &err);
	while (err != CL_SUCCESS && gmt_pool_drain(err, 0));
	mapped(&command, image, blocking, flags, 0, err);
	if (errcode)
		*errcode = err;
	gmt_leave();
	return pointer;
}

GMT_HOOK cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem handle, void *pointer, cl_uint waits,
					const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_UNMAP))
		return gmt_next.clEnqueueUnmapMemObject(queue, handle, pointer, waits, list, event);
	cl_int err;
	GMT_TRY(err, gmt_next.clEnqueueUnmapMemObject(queue, handle, pointer, waits, list, event));
	if (err == CL_SUCCESS)
		count_map(handle, -1);
	gmt_command_end(&command, err, false);
	gmt_command_use(&command, handle, 0, 0);
	gmt_leave();
	return err;
}

GMT_HOOK cl_int clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count, const cl_mem *memories,
					   cl_mem_migration_flags flags, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_MIGRATE))
		return gmt_next.clEnqueueMigrateMemObjects(queue, count, memories, flags, waits, list, event);
	cl_int err;
	GMT_TRY(err, gmt_next.clEnqueueMigrateMemObjects(queue, count, memories, flags, waits, list, event));
	gmt_command_end(&command, err, false);
	for (cl_uint i = 0; memories && i < count; i++)
		gmt_command_use(&command, memories[i], 0, 0);
	gmt_leave();
	return err;
}
