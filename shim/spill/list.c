/* list.c: commands with lists of memory objects: migrations, native kernels, and objects of GL. */
#define _GNU_SOURCE
#include "list.h"

#include "../base/dispatch.h"
#include "context.h"
#include "pair.h"

#include <stdlib.h>

struct list {
	struct gmt_spill_command command;
	cl_mem *real; /* the program's list with the driver's handles */
};

static void list_free(struct list *list)
{
	free(list->command.uses);
	free(list->real);
}

/* Makes all of them resident. */
static cl_int list_begin(struct list *list, cl_command_queue queue, cl_uint count, const cl_mem *memory, bool native, cl_int refused)
{
	list->command = (struct gmt_spill_command){
		.name = native ? "clEnqueueNativeKernel" : "clEnqueueMigrateMemObjects", .queue = gmt_spill_queue_find(queue), .handle = queue, .native = native,
		.uses = calloc(count, sizeof *list->command.uses),
	};
	list->real = calloc(count, sizeof *list->real);
	cl_int err = list->command.uses && list->real ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
	for (cl_uint i = 0; i < count && err == CL_SUCCESS; i++) {
		struct gmt_spill_object *object = gmt_spill_find(memory[i]);
		if (object)
			list->command.uses[list->command.count++] = (struct gmt_spill_use){object, native};
		else if (gmt_spill_is_ours(memory[i]))
			err = CL_INVALID_MEM_OBJECT;
	}
	if (err == CL_SUCCESS)
		err = gmt_spill_begin_or_refuse(&list->command, refused);
	if (err != CL_SUCCESS)
		list_free(list);
	for (cl_uint i = 0; i < count && err == CL_SUCCESS; i++)
		list->real[i] = gmt_spill_real_handle(memory[i]);
	return err;
}

static cl_int list_end(struct list *list, cl_int err)
{
	gmt_spill_end_command(&list->command, err);
	list_free(list);
	return err;
}

static bool any_ours(cl_uint count, const cl_mem *memory)
{
	bool any = false;
	for (cl_uint i = 0; memory && i < count; i++)
		any = any || gmt_spill_is_ours(memory[i]);
	return any;
}

static cl_int migrate_objects(cl_command_queue queue, cl_uint count, const cl_mem *memory, cl_mem_migration_flags flags, cl_uint waits,
		      const cl_event *list, cl_event *event)
{
	gmt_spill_queue_note_gate(queue, waits, list);
	if (!any_ours(count, memory))
		return gmt_bare.clEnqueueMigrateMemObjects(queue, count, memory, flags, waits, list, event);
	struct list l;
	cl_int err = list_begin(&l, queue, count, memory, false, gmt_spill_wait_list_error(queue, waits, list));
	if (err != CL_SUCCESS)
		return err;
	GMT_SPILL_TRY(err, gmt_bare.clEnqueueMigrateMemObjects(queue, count, l.real, flags, waits, list, event));
	return list_end(&l, err);
}

/* The driver puts the addresses of these objects into the arguments of the function. */
static cl_int enqueue_native(cl_command_queue queue, void(CL_CALLBACK *function)(void *), void *arguments, size_t size, cl_uint count,
		     const cl_mem *memory, const void **places, cl_uint waits, const cl_event *list, cl_event *event)
{
	gmt_spill_queue_note_gate(queue, waits, list);
	gmt_spill_queue_note_native(gmt_spill_queue_find(queue));
	if (!any_ours(count, memory))
		return gmt_bare.clEnqueueNativeKernel(queue, function, arguments, size, count, memory, places, waits, list, event);
	struct list l;
	cl_int err = list_begin(&l, queue, count, memory, true, function ? gmt_spill_wait_list_error(queue, waits, list) : CL_INVALID_VALUE);
	if (err != CL_SUCCESS)
		return err;
	GMT_SPILL_TRY(err, gmt_bare.clEnqueueNativeKernel(queue, function, arguments, size, count, l.real, places, waits, list, event));
	return list_end(&l, err);
}

static cl_int acquire_gl(cl_command_queue queue, cl_uint count, const cl_mem *memory, cl_uint waits, const cl_event *list, cl_event *event)
{
	return any_ours(count, memory) ? CL_INVALID_GL_OBJECT
				       : gmt_bare.clEnqueueAcquireGLObjects(queue, count, memory, waits, list, event);
}

static cl_int release_gl(cl_command_queue queue, cl_uint count, const cl_mem *memory, cl_uint waits, const cl_event *list, cl_event *event)
{
	return any_ours(count, memory) ? CL_INVALID_GL_OBJECT
				       : gmt_bare.clEnqueueReleaseGLObjects(queue, count, memory, waits, list, event);
}

void gmt_spill_override_list_commands(struct gmt_functions *over)
{
	GMT_SPILL_OVER(over, clEnqueueMigrateMemObjects, migrate_objects);
	GMT_SPILL_OVER(over, clEnqueueNativeKernel, enqueue_native);
	GMT_SPILL_OVER(over, clEnqueueAcquireGLObjects, acquire_gl);
	GMT_SPILL_OVER(over, clEnqueueReleaseGLObjects, release_gl);
}
