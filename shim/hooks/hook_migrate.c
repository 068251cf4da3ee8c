/*
 * hook_migrate.c: moves memory between devices and the host. Migration is a hint. A sub-allocation cannot follow it without
 * its neighbours in the slab, and a driver may make this command wait for their commands (PoCL 3.1: forever if one has
 * failed). PoCL 3.1 also releases an event twice when a part of a buffer goes to the host while another thread uses another
 * part. So sub-allocations, their sub-buffers and images stay where they are, and the command migrates a buffer of one byte
 * instead, in the same order.
 */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "command.h"

#include <stdlib.h>

/* The list to give to the driver. */
struct stand_in {
	const cl_mem *memories;
	cl_mem *copy, byte; /* ours; NULL: the program's list is given as it is */
};

static struct stand_in stand_in_for_suballocs(const struct gmt_command *c, cl_uint count, const cl_mem *memories)
{
	struct stand_in s = {.memories = memories};
	const struct gmt_context *context = NULL;
	for (uint32_t i = 0; i < c->count; i++)
		if (gmt_memory_root(c->access[i].memory)->slab)
			context = c->access[i].memory->context;
	cl_context handle = context ? (cl_context)atomic_load(&context->object.handle) : NULL;
	if (gmt_likely(!handle))
		return s;
	cl_int err = CL_SUCCESS;
	s.byte = gmt_driver.clCreateBuffer(handle, 0, 1, NULL, &err);
	s.copy = calloc(count, sizeof *s.copy);
	for (cl_uint i = 0; s.byte && s.copy && i < count; i++) {
		struct gmt_memory *memory = gmt_memory_find(memories[i]);
		s.copy[i] = memory && gmt_memory_root(memory)->slab ? s.byte : memories[i];
	}
	if (s.byte && s.copy)
		s.memories = s.copy;
	return s;
}

static void free_stand_in(const struct stand_in *s)
{
	if (s->byte)
		gmt_driver.clReleaseMemObject(s->byte);
	free(s->copy);
}

GMT_HOOK cl_int clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count, const cl_mem *memories,
					   cl_mem_migration_flags flags, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_MIGRATE, __func__))
		return gmt_driver.clEnqueueMigrateMemObjects(queue, count, memories, flags, waits, list, event);
	gmt_command_uses_all(&command, count, memories);
	gmt_command_transfers(&command, &GMT_CALLER, NULL, 0);
	gmt_command_migrates(&command, flags);
	struct stand_in s = stand_in_for_suballocs(&command, count, memories);
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueMigrateMemObjects(queue, count, s.memories, flags, waits, list, event));
	free_stand_in(&s);
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

cl_int clEnqueueMigrateMemObjectEXT(cl_command_queue queue, cl_uint count, const cl_mem *memories, cl_mem_migration_flags_ext flags,
				    cl_uint waits, const cl_event *list, cl_event *event)
{
	__typeof__(&clEnqueueMigrateMemObjectEXT) driver = atomic_load(&gmt_driver.clEnqueueMigrateMemObjectEXT);
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_MIGRATE, __func__))
		return driver(queue, count, memories, flags, waits, list, event);
	gmt_command_uses_all(&command, count, memories);
	gmt_command_transfers(&command, &GMT_CALLER, NULL, 0);
	struct stand_in s = stand_in_for_suballocs(&command, count, memories);
	cl_int err;
	GMT_TRY(err, command, driver(queue, count, s.memories, flags, waits, list, event));
	free_stand_in(&s);
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}
