/*
 * hook_svm.c: shared virtual memory. Its address takes the place of a handle. clSVMFree does not wait for commands: the
 * program must.
 */
#define _GNU_SOURCE
#include "hook_svm.h"

#include "../base/dispatch.h"
#include "../entry/start.h"
#include "../entry/tags.h"
#include "../pool/budget.h"
#include "../pool/plan.h"
#include "../pool/pool.h"
#include "../pool/release.h"
#include "../registry/created.h"
#include "../registry/finding.h"
#include "../registry/host_range.h"
#include "../registry/memory.h"

#include <stdlib.h>

/* The shape of an allocation: with the context it makes the class. A kind of shared memory equals no type of image. */
static struct gmt_shape shape_of_allocation(const struct gmt_pointer_call *p)
{
	return (struct gmt_shape){{p->flags, 0, p->kind, p->alignment, (uintptr_t)p->device}};
}

static void serve_pointer(struct gmt_call *call, struct gmt_created *c, struct gmt_pointer_call *p, cl_int *error)
{
	struct gmt_request_for r = {.context = c->context, .flags = c->flags, .size = (size_t)c->size, .tag = c->tag, .pointer = p};
	struct gmt_shape shape = shape_of_allocation(p);
	*error = CL_SUCCESS;
	if (gmt_pooling() && gmt_plan_pointer_eligible(&r) && gmt_shape_find_pointer_class(c->context, &shape, &p->class)) {
		gmt_pool_create(call, &r, &c->served, error);
		c->handle = c->served.handle;
		if (gmt_unlikely(c->handle && !p->class.size))
			gmt_shape_note_succeeded(c->context, &shape);
		return;
	}
	c->handle = gmt_driver_create(call, &r, error);
	c->served = (struct gmt_served){.granted = c->size, .outcome = c->handle ? GMT_OUTCOME_DRIVER : GMT_OUTCOME_FAILED, .written = true};
}

void *gmt_pointer_create(struct gmt_call *call, const struct gmt_caller *caller, struct gmt_pointer_call *p, size_t size, cl_int *error)
{
	struct gmt_created c = {
		.kind = p->kind,
		.context = gmt_context_find(p->context),
		.size = size,
		/* Host memory that the device accesses: buffers have this flag for it. */
		.flags = p->kind == GMT_MEMORY_USM_HOST ? CL_MEM_ALLOC_HOST_PTR : p->flags,
		.tag = gmt_tag(call, caller, size),
	};
	serve_pointer(call, &c, p, error);
	gmt_created_register_and_write(call, &c, *error);
	if (p->kind == GMT_MEMORY_USM_HOST && c.handle && c.served.outcome != GMT_OUTCOME_HIT)
		gmt_host_range_add(c.handle, c.handle, (size_t)c.served.granted); /* all of the block: a later owner may ask for more than this one */
	gmt_leave();
	return c.handle;
}

/* Reports memory that the pool has or had and the program frees again. The driver must not free it. */
static void report_freed_again(const struct gmt_call *call, const struct gmt_memory *memory, const char *function)
{
	struct gmtreleasefields release = gmt_release_fields(call, NULL);
	gmt_finding(GMT_DIAG_DOUBLE_RELEASE, function, memory, CL_INVALID_VALUE);
	gmt_release_write_event(&release, CL_INVALID_VALUE, gmt_now());
}

/* Ends memory that the pool never had. Its event is written before the driver can reuse the address. */
static void end_unpooled_pointer(const struct gmt_call *call, struct gmt_memory *memory)
{
	struct gmtreleasefields release = gmt_release_fields(call, memory);
	gmt_budget_give_back(gmt_memory_unregister(memory));
	gmt_release_write_event(&release, CL_SUCCESS, call->start);
}

static bool is_in_flight(struct gmt_memory *memory)
{
	struct gmt_uses uses = gmt_uses_of(memory);
	return gmt_uses_state(&uses, NULL) != GMT_FLIGHT_DONE;
}

bool gmt_pointer_free(struct gmt_call *call, void *pointer, const char *function, bool waits)
{
	struct gmt_memory *memory = pointer ? gmt_memory_find(pointer) : NULL;
	if (!memory || !gmt_memory_is_shared(memory)) {
		if (pointer && !memory)
			gmt_finding_freed_handle(GMT_DIAG_DOUBLE_RELEASE, function, pointer);
		return false;
	}
	uint32_t one = 1;
	if (!atomic_compare_exchange_strong(&memory->references, &one, 0)) {
		report_freed_again(call, memory, function);
	} else if (!memory->block) {
		end_unpooled_pointer(call, memory);
		return false;
	} else {
		if (waits && is_in_flight(memory)) /* the driver can wait for commands, we cannot */
			atomic_store(&memory->no_reuse, 2);
		gmt_release_memory(call, memory);
	}
	return true;
}

bool gmt_pointer_is_host(const void *host, size_t size)
{
	struct gmt_memory *memory = gmt_memory_at(host);
	if (gmt_likely(!memory))
		return true;
	atomic_store(&memory->no_reuse, 1);
	return size <= memory->size || size > memory->granted;
}

size_t gmt_pointer_bytes(const struct gmt_memory *memory, const void *pointer, size_t size)
{
	if (!memory || !gmt_memory_beyond(memory, (size_t)gmt_memory_offset(memory, pointer), size))
		return size;
	size_t rest = (size_t)(memory->granted - memory->size);
	return size > SIZE_MAX - rest ? size : size + rest;
}

GMT_HOOK void *clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clSVMAlloc(context, flags, size, alignment);
	struct gmt_pointer_call p = {.kind = GMT_MEMORY_SVM, .context = context, .flags = flags, .alignment = alignment};
	cl_int error;
	return gmt_pointer_create(&call, &GMT_CALLER, &p, size, &error);
}

GMT_HOOK void clSVMFree(cl_context context, void *pointer)
{
	struct gmt_call call;
	if (!gmt_enter(&call)) {
		gmt_driver.clSVMFree(context, pointer);
		return;
	}
	if (!gmt_pointer_free(&call, pointer, __func__, false))
		gmt_driver.clSVMFree(context, pointer);
	gmt_leave();
}

typedef void(CL_CALLBACK *svm_free_notify)(cl_command_queue, cl_uint, void *[], void *);
struct free_callback {
	svm_free_notify notify; /* the program's callback, which frees the pointers; NULL: we free them */
	void *data;
	cl_context context;
};

/* Frees the pointers as the program would, when the command runs. */
static void CL_CALLBACK run_free_command(cl_command_queue queue, cl_uint count, void *pointers[], void *data)
{
	struct free_callback callback = *(struct free_callback *)data;
	free(data);
	struct gmt_callback before = gmt_callback_begin();
	if (callback.notify)
		callback.notify(queue, count, pointers, callback.data);
	for (cl_uint i = 0; !callback.notify && i < count; i++)
		clSVMFree(callback.context, pointers[i]);
	gmt_callback_end(before);
}

/* A call of clEnqueueSVMFree. */
struct free_command {
	cl_command_queue queue;
	cl_uint count;
	void **pointers;
	cl_uint waits;
	const cl_event *list;
	cl_event *event;
};

static cl_int enqueue_free_with_callback(const struct free_command *f, struct free_callback callback)
{
	struct free_callback *ours = malloc(sizeof *ours);
	if (!ours && callback.notify)
		return gmt_driver.clEnqueueSVMFree(f->queue, f->count, f->pointers, callback.notify, callback.data, f->waits, f->list, f->event);
	if (!ours)
		return CL_OUT_OF_HOST_MEMORY;
	*ours = callback;
	cl_int err = gmt_driver.clEnqueueSVMFree(f->queue, f->count, f->pointers, run_free_command, ours, f->waits, f->list, f->event);
	if (err != CL_SUCCESS)
		free(ours);
	return err;
}

/*
 * The first pointer that we must free when the command runs; NULL if the driver may free all. The driver must not free the
 * pool's blocks. While there is a pool, it frees no known memory: a new block could get the address before we know it is free.
 */
static const struct gmt_memory *first_pointer_of_ours(const struct free_command *f)
{
	for (cl_uint i = 0; f->pointers && i < f->count; i++) {
		const struct gmt_memory *memory = gmt_memory_find(f->pointers[i]);
		if (memory && gmt_memory_is_shared(memory) && (memory->block || gmt_pooling()))
			return memory;
	}
	return NULL;
}

/* Copies the array first: it may be gone when the call returns. */
static cl_int enqueue_free_of_copy(struct gmt_call *call, const struct free_command *f)
{
	void **copy = f->pointers && f->count ? malloc(f->count * sizeof *copy) : NULL;
	for (cl_uint i = 0; copy && i < f->count; i++)
		copy[i] = f->pointers[i];
	cl_int err = gmt_driver.clEnqueueSVMFree(f->queue, f->count, f->pointers, NULL, NULL, f->waits, f->list, f->event);
	for (cl_uint i = 0; copy && err == CL_SUCCESS && i < f->count; i++)
		gmt_pointer_free(call, copy[i], "clEnqueueSVMFree", false);
	free(copy);
	return err;
}

GMT_HOOK cl_int clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void *pointers[], svm_free_notify notify, void *data,
				 cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_driver.clEnqueueSVMFree(queue, count, pointers, notify, data, waits, list, event);
	struct free_command f = {queue, count, pointers, waits, list, event};
	const struct gmt_memory *ours = notify ? NULL : first_pointer_of_ours(&f);
	cl_int err = notify || ours ? enqueue_free_with_callback(&f, (struct free_callback){notify, data, ours ? ours->owner : NULL})
	                            : enqueue_free_of_copy(&call, &f);
	gmt_leave();
	return err;
}
