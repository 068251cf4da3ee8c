/* hook_svm.c: shared virtual memory: pointers instead of handles; tracked, never pooled. */
#define _GNU_SOURCE
#include "hook_svm.h"

#include "../base/dispatch.h"
#include "../entry/tags.h"
#include "../pool/budget.h"
#include "../pool/driver_create.h"
#include "../registry/created.h"
#include "command.h"

#include <stdlib.h>

void gmt_pointer_allocated(struct gmt_call *call, const struct gmt_caller *caller, enum gmtmemory kind, cl_context context, size_t size,
			   void *pointer, cl_int error)
{
	struct gmt_created c = {
		.handle = pointer,
		.kind = kind,
		.context = gmt_context_find(context),
		.size = size,
		.tag = gmt_tag(call, caller, size),
		.served = {.granted = size, .outcome = pointer ? GMT_OUTCOME_DRIVER : GMT_OUTCOME_FAILED},
	};
	gmt_created_report(call, &c, error);
}

void gmt_pointer_freed(const struct gmt_call *call, void *pointer)
{
	struct gmt_memory *memory = gmt_memory_find(pointer);
	if (!memory || memory->kind < GMT_MEMORY_SVM)
		return;
	struct gmtevent event = GMT_EVENT_RELEASE(.time = call->start, .memory = (enum gmtmemory)memory->kind, .scope = memory->scope,
						  .tag = memory->tag, .object = memory->object.id, .requested = memory->size);
	gmt_budget_give(gmt_memory_unregister(memory));
	gmt_ring_write(&event);
}

GMT_HOOK void *clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_driver.clSVMAlloc(context, flags, size, alignment);
	const struct gmt_context *known = gmt_context_find(context);
	/* It fails without an error code; do not empty the pool for a call that cannot succeed. */
	bool possible = known && size > 0 && (!known->largest || size <= known->largest);
	cl_int error = possible ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_INVALID_VALUE;
	void *pointer;
	GMT_DRIVER_CREATE(&call, pointer, error, size, gmt_driver.clSVMAlloc(context, flags, size, alignment));
	gmt_pointer_allocated(&call, &GMT_CALLER, GMT_MEMORY_SVM, context, size, pointer, pointer ? CL_SUCCESS : error);
	gmt_leave();
	return pointer;
}

GMT_HOOK void clSVMFree(cl_context context, void *pointer)
{
	struct gmt_call call;
	if (!gmt_enter(&call)) {
		gmt_driver.clSVMFree(context, pointer);
		return;
	}
	gmt_pointer_freed(&call, pointer);
	gmt_driver.clSVMFree(context, pointer);
	gmt_leave();
}

typedef void(CL_CALLBACK *svm_free_notify)(cl_command_queue, cl_uint, void *[], void *);
struct free_callback {
	svm_free_notify notify;
	void *data;
};

static void CL_CALLBACK free_reached(cl_command_queue queue, cl_uint count, void *pointers[], void *data)
{
	struct free_callback callback = *(struct free_callback *)data;
	free(data);
	struct gmt_callback before = gmt_callback_begin();
	callback.notify(queue, count, pointers, callback.data);
	gmt_callback_end(before);
}

/* With a callback the program itself frees them, in the callback. */
static cl_int free_with(cl_command_queue queue, cl_uint count, void *pointers[], svm_free_notify notify, void *data, cl_uint waits,
			const cl_event *list, cl_event *event)
{
	struct free_callback *ours = malloc(sizeof *ours);
	if (!ours)
		return gmt_driver.clEnqueueSVMFree(queue, count, pointers, notify, data, waits, list, event);
	*ours = (struct free_callback){notify, data};
	cl_int err = gmt_driver.clEnqueueSVMFree(queue, count, pointers, free_reached, ours, waits, list, event);
	if (err != CL_SUCCESS)
		free(ours);
	return err;
}

/* The array may be gone when the call returns. */
static cl_int free_all(const struct gmt_call *call, cl_command_queue queue, cl_uint count, void *pointers[], cl_uint waits,
		       const cl_event *list, cl_event *event)
{
	void **copy = pointers && count ? malloc(count * sizeof *copy) : NULL;
	for (cl_uint i = 0; copy && i < count; i++)
		copy[i] = pointers[i];
	cl_int err = gmt_driver.clEnqueueSVMFree(queue, count, pointers, NULL, NULL, waits, list, event);
	for (cl_uint i = 0; copy && err == CL_SUCCESS && i < count; i++)
		gmt_pointer_freed(call, copy[i]);
	free(copy);
	return err;
}

GMT_HOOK cl_int clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void *pointers[], svm_free_notify notify, void *data,
				 cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_driver.clEnqueueSVMFree(queue, count, pointers, notify, data, waits, list, event);
	cl_int err = notify ? free_with(queue, count, pointers, notify, data, waits, list, event)
			    : free_all(&call, queue, count, pointers, waits, list, event);
	gmt_leave();
	return err;
}

/* The allocation that starts at pointer. We do not find the one that it points into the middle of. */
static void uses(struct gmt_command *command, const void *pointer, uint8_t flags, struct gmt_extent extent)
{
	struct gmt_memory *memory = gmt_memory_find(pointer);
	if (memory && memory->kind >= GMT_MEMORY_SVM)
		gmt_command_access(command, (struct gmt_access){.memory = memory, .extent = extent, .flags = flags});
}

GMT_HOOK cl_int clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t size,
				   cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_COPY, __func__))
		return gmt_driver.clEnqueueSVMMemcpy(queue, blocking, to, from, size, waits, list, event);
	uses(&command, from, GMT_FLAG_READS, GMT_EXTENT(0, size));
	uses(&command, to, GMT_FLAG_WRITES, GMT_EXTENT(0, size));
	gmt_command_copies(&command, &GMT_CALLER);
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueSVMMemcpy(queue, blocking, to, from, size, waits, list, event));
	return gmt_command_end(&command, err, blocking, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueSVMMemFill(cl_command_queue queue, void *pointer, const void *pattern, size_t patternsize, size_t size,
				    cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_FILL, __func__))
		return gmt_driver.clEnqueueSVMMemFill(queue, pointer, pattern, patternsize, size, waits, list, event);
	uses(&command, pointer, GMT_FLAG_WRITES, GMT_EXTENT(0, size));
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueSVMMemFill(queue, pointer, pattern, patternsize, size, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void *pointer, size_t size,
				cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_MAP, __func__))
		return gmt_driver.clEnqueueSVMMap(queue, blocking, flags, pointer, size, waits, list, event);
	uses(&command, pointer, gmt_map_flags(flags), GMT_EXTENT(0, size));
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueSVMMap(queue, blocking, flags, pointer, size, waits, list, event));
	return gmt_command_end(&command, err, blocking, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueSVMUnmap(cl_command_queue queue, void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_UNMAP, __func__))
		return gmt_driver.clEnqueueSVMUnmap(queue, pointer, waits, list, event);
	uses(&command, pointer, 0, GMT_SOMEWHERE);
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueSVMUnmap(queue, pointer, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

/* A size of 0 stands for all of it. */
static void migrates(struct gmt_command *command, const void *pointer, size_t size)
{
	const struct gmt_memory *memory = gmt_memory_find(pointer);
	if (memory)
		uses(command, pointer, 0, GMT_EXTENT(0, size ? size : memory->size));
}

GMT_HOOK cl_int clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint count, const void **pointers, const size_t *sizes,
				       cl_mem_migration_flags flags, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_MIGRATE, __func__))
		return gmt_driver.clEnqueueSVMMigrateMem(queue, count, pointers, sizes, flags, waits, list, event);
	for (cl_uint i = 0; pointers && i < count; i++)
		migrates(&command, pointers[i], sizes ? sizes[i] : 0);
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueSVMMigrateMem(queue, count, pointers, sizes, flags, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}
