/* hook_svm_command.c: commands on shared virtual memory. The address may lie in the middle of an allocation. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "command.h"
#include "hook_svm.h"

#include <stdlib.h>
#include <string.h>

GMT_HOOK cl_int clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t size,
				   cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY, __func__))
		return gmt_driver.clEnqueueSVMMemcpy(queue, blocking, to, from, size, waits, list, event);
	gmt_command_copies_pointers(&command, to, from, size, &GMT_CALLER);
	cl_int err;
	gmt_command_note_blocking(&command, blocking);
	GMT_TRY(err, command, gmt_driver.clEnqueueSVMMemcpy(queue, blocking, to, from, size, waits, list, event));
	return gmt_command_end(&command, err, blocking, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueSVMMemFill(cl_command_queue queue, void *pointer, const void *pattern, size_t patternsize, size_t size,
				    cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_FILL, __func__))
		return gmt_driver.clEnqueueSVMMemFill(queue, pointer, pattern, patternsize, size, waits, list, event);
	gmt_command_uses_pointer(&command, pointer, GMT_FLAG_WRITES, size);
	gmt_command_transfers(&command, &GMT_CALLER, NULL, 0);
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueSVMMemFill(queue, pointer, pattern, patternsize, size, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

/* Counts the mapping before the enqueue: the command may complete at once. A driver may remember mapped memory. */
GMT_HOOK cl_int clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void *pointer, size_t size,
				cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_MAP, __func__))
		return gmt_driver.clEnqueueSVMMap(queue, blocking, flags, pointer, size, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses_pointer(&command, pointer, gmt_map_flags(flags), size);
	if (memory)
		atomic_fetch_add(&memory->maps, 1);
	gmt_command_transfers(&command, &GMT_CALLER, NULL, 0);
	cl_int err;
	gmt_command_note_blocking(&command, blocking);
	GMT_TRY(err, command, gmt_driver.clEnqueueSVMMap(queue, blocking, flags, pointer, gmt_pointer_bytes(memory, pointer, size), waits, list, event));
	if (memory && err != CL_SUCCESS)
		atomic_fetch_sub(&memory->maps, 1);
	return gmt_command_end(&command, err, blocking, GMT_WAIT_LIST);
}

static void count_unmapping(struct gmt_memory *memory)
{
	int32_t maps = atomic_load(&memory->maps);
	while (maps > 0 && !atomic_compare_exchange_weak(&memory->maps, &maps, maps - 1))
		;
}

GMT_HOOK cl_int clEnqueueSVMUnmap(cl_command_queue queue, void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_UNMAP, __func__))
		return gmt_driver.clEnqueueSVMUnmap(queue, pointer, waits, list, event);
	struct gmt_memory *memory = gmt_command_uses_pointer(&command, pointer, 0, 0);
	if (memory)
		command.access[0].extent = GMT_SOMEWHERE;
	gmt_command_transfers(&command, &GMT_CALLER, NULL, 0);
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueSVMUnmap(queue, pointer, waits, list, event));
	if (memory && err == CL_SUCCESS)
		count_unmapping(memory);
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint count, const void **pointers, const size_t *sizes,
				       cl_mem_migration_flags flags, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_MIGRATE, __func__))
		return gmt_driver.clEnqueueSVMMigrateMem(queue, count, pointers, sizes, flags, waits, list, event);
	size_t *longer = NULL;
	for (cl_uint i = 0; pointers && i < count; i++) {
		const struct gmt_memory *memory = gmt_command_uses_pointer(&command, pointers[i], 0, sizes ? sizes[i] : 0);
		size_t bytes = sizes ? gmt_pointer_bytes(memory, pointers[i], sizes[i]) : 0;
		if (!sizes || bytes == sizes[i])
			continue;
		if (!longer && (longer = malloc(count * sizeof *longer)))
			memcpy(longer, sizes, count * sizeof *longer);
		if (longer)
			longer[i] = bytes;
	}
	gmt_command_transfers(&command, &GMT_CALLER, NULL, 0);
	gmt_command_migrates(&command, flags);
	const size_t *given = longer ? longer : sizes;
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueSVMMigrateMem(queue, count, pointers, given, flags, waits, list, event));
	free(longer);
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}
