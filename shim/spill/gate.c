/* gate.c: commands that use no virtual object, but may keep others behind them waiting for a user event. */
#define _GNU_SOURCE
#include "gate.h"

#include "context.h"
#include "queue.h"

static cl_int enqueue_marker(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event)
{
	gmt_spill_queue_note_gate(queue, waits, list);
	return gmt_bare.clEnqueueMarkerWithWaitList(queue, waits, list, event);
}

static cl_int enqueue_barrier(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event)
{
	gmt_spill_queue_note_gate(queue, waits, list);
	return gmt_bare.clEnqueueBarrierWithWaitList(queue, waits, list, event);
}

static cl_int enqueue_wait_for_events(cl_command_queue queue, cl_uint waits, const cl_event *list)
{
	gmt_spill_queue_note_gate(queue, waits, list);
	return gmt_bare.clEnqueueWaitForEvents(queue, waits, list);
}

static cl_int svm_copy(cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t size, cl_uint waits,
		       const cl_event *list, cl_event *event)
{
	gmt_spill_queue_note_gate(queue, waits, list);
	return gmt_bare.clEnqueueSVMMemcpy(queue, blocking, to, from, size, waits, list, event);
}

static cl_int svm_fill(cl_command_queue queue, void *to, const void *pattern, size_t length, size_t size, cl_uint waits,
		       const cl_event *list, cl_event *event)
{
	gmt_spill_queue_note_gate(queue, waits, list);
	return gmt_bare.clEnqueueSVMMemFill(queue, to, pattern, length, size, waits, list, event);
}

static cl_int svm_map(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void *memory, size_t size, cl_uint waits,
		      const cl_event *list, cl_event *event)
{
	gmt_spill_queue_note_gate(queue, waits, list);
	return gmt_bare.clEnqueueSVMMap(queue, blocking, flags, memory, size, waits, list, event);
}

static cl_int svm_unmap(cl_command_queue queue, void *memory, cl_uint waits, const cl_event *list, cl_event *event)
{
	gmt_spill_queue_note_gate(queue, waits, list);
	return gmt_bare.clEnqueueSVMUnmap(queue, memory, waits, list, event);
}

static cl_int svm_migrate(cl_command_queue queue, cl_uint count, const void **memory, const size_t *sizes,
			  cl_mem_migration_flags flags, cl_uint waits, const cl_event *list, cl_event *event)
{
	gmt_spill_queue_note_gate(queue, waits, list);
	return gmt_bare.clEnqueueSVMMigrateMem(queue, count, memory, sizes, flags, waits, list, event);
}

static cl_int svm_free(cl_command_queue queue, cl_uint count, void *memory[],
		       void(CL_CALLBACK *notify)(cl_command_queue, cl_uint, void *[], void *), void *data, cl_uint waits,
		       const cl_event *list, cl_event *event)
{
	gmt_spill_queue_note_gate(queue, waits, list);
	if (notify) /* called in the queue */
		gmt_spill_queue_note_native(gmt_spill_queue_find(queue));
	return gmt_bare.clEnqueueSVMFree(queue, count, memory, notify, data, waits, list, event);
}

void gmt_spill_override_gates(struct gmt_functions *over)
{
	GMT_SPILL_OVER(over, clEnqueueMarkerWithWaitList, enqueue_marker);
	GMT_SPILL_OVER(over, clEnqueueBarrierWithWaitList, enqueue_barrier);
	GMT_SPILL_OVER(over, clEnqueueWaitForEvents, enqueue_wait_for_events);
	GMT_SPILL_OVER(over, clEnqueueSVMMemcpy, svm_copy);
	GMT_SPILL_OVER(over, clEnqueueSVMMemFill, svm_fill);
	GMT_SPILL_OVER(over, clEnqueueSVMMap, svm_map);
	GMT_SPILL_OVER(over, clEnqueueSVMUnmap, svm_unmap);
	GMT_SPILL_OVER(over, clEnqueueSVMMigrateMem, svm_migrate);
	GMT_SPILL_OVER(over, clEnqueueSVMFree, svm_free);
}
