/* fake_svm.c: shared virtual memory and unified shared memory. Commands change contents when they run. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <stdlib.h>
#include <string.h>

/* An allocation. */
struct pointer {
	struct pointer *next;
	unsigned char *first;
	size_t size;
	cl_context context;
	cl_device_id device;
	cl_uint type; /* CL_MEM_TYPE_*_INTEL, 0: shared virtual memory */
	uint32_t pending; /* commands that use it */
};
static struct pointer *pointers; /* under the driver's lock */

static struct pointer *pointer_at(const void *address)
{
	for (struct pointer *p = pointers; p; p = p->next)
		if ((uintptr_t)address - (uintptr_t)p->first < p->size)
			return p;
	return NULL;
}

uint32_t fake_pending_at(const void *address)
{
	FAKE_LOCKED;
	const struct pointer *p = pointer_at(address);
	return p ? p->pending : 0;
}

bool fake_is_freed(const void *address)
{
	FAKE_LOCKED;
	return pointer_at(address) == NULL;
}

static cl_int refusal(cl_context context, size_t size, cl_uint alignment)
{
	cl_int error = CL_SUCCESS;
	if (!fake_alive(context, FAKE_CONTEXT))
		return CL_INVALID_CONTEXT;
	if (context->terminated)
		return CL_CONTEXT_TERMINATED_KHR;
	if (!size || size > fake.largest)
		return CL_INVALID_BUFFER_SIZE;
	if (alignment & (alignment - 1) || alignment > 4096)
		return CL_INVALID_VALUE;
	if (fake_out_of_luck(&error))
		return error;
	return fake.cap && fake.livebytes + size > fake.cap ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_SUCCESS;
}

static void *allocate(cl_context context, cl_device_id device, cl_uint type, size_t size, cl_uint alignment, cl_int *errcode)
{
	FAKE_LOCKED;
	cl_int error = refusal(context, size, alignment);
	if (errcode)
		*errcode = error;
	if (error != CL_SUCCESS) {
		fake.failed++;
		return NULL;
	}
	struct pointer *p = malloc(sizeof *p);
	void *first = NULL;
	if (!p || posix_memalign(&first, alignment > 128 ? alignment : 128, size) != 0)
		fake_fail("out of memory");
	memset(first, FAKE_FRESH, size);
	*p = (struct pointer){pointers, first, size, context, device, type, 0};
	pointers = p;
	fake_hold(context);
	fake.creates++;
	fake.livepointers++;
	fake.livebytes += size;
	return first;
}

static cl_int release(cl_context context, void *address)
{
	FAKE_LOCKED;
	if (!fake_alive(context, FAKE_CONTEXT))
		return CL_INVALID_CONTEXT;
	if (!address)
		return CL_SUCCESS;
	struct pointer **at = &pointers;
	while (*at && (*at)->first != address)
		at = &(*at)->next;
	if (!*at)
		fake_fail("what is freed was never allocated, or is freed already");
	struct pointer *p = *at;
	*at = p->next;
	fake.hazards += p->pending > 0;
	fake.livepointers--;
	fake.livebytes -= p->size;
	fake_drop(p->context);
	free(p->first);
	free(p);
	return CL_SUCCESS;
}

GMT_HOOK void *clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
	return fake.nofinegrain && flags & CL_MEM_SVM_FINE_GRAIN_BUFFER ? NULL : allocate(context, NULL, 0, size, alignment, NULL);
}

GMT_HOOK void clSVMFree(cl_context context, void *pointer)
{
	FAKE_LOCKED;
	const struct pointer *p = pointer_at(pointer);
	if (p && p->type)
		fake_fail("unified shared memory is freed as shared virtual memory");
	release(context, pointer);
}

static cl_int free_unified(cl_context context, void *pointer)
{
	FAKE_LOCKED;
	const struct pointer *p = pointer_at(pointer);
	if (p && !p->type)
		fake_fail("shared virtual memory is freed as unified shared memory");
	return release(context, pointer);
}

/* The command no longer uses its addresses. */
static void let_go(const struct fake_action *a)
{
	for (unsigned i = 0; i < a->pointers; i++) {
		struct pointer *p = pointer_at(a->pointer[i]);
		if (p)
			p->pending--;
	}
}

void fake_hold_pointers(const struct fake_action *a)
{
	for (unsigned i = 0; i < a->pointers; i++) {
		struct pointer *p = pointer_at(a->pointer[i]);
		if (p)
			p->pending++;
	}
}

void fake_act_on_pointers(const struct fake_command *c, bool runs)
{
	const struct fake_action *a = &c->action;
	unsigned char *to = (unsigned char *)(uintptr_t)a->pointer[0];
	let_go(a);
	if (runs && a->kind == FAKE_POINTER_COPY)
		memmove(to, a->pointer[1], a->size);
	for (size_t i = 0; runs && a->kind == FAKE_POINTER_FILL && i < a->size; i++)
		to[i] = a->pattern[i % a->patternsize];
	if (a->kind != FAKE_POINTER_FREE)
		return;
	if (runs && a->notify)
		a->notify(c->queue, a->freed, a->free, a->data);
	for (cl_uint i = 0; runs && !a->notify && i < a->freed; i++)
		release(c->queue->context, a->free[i]);
	free(a->free);
}

GMT_HOOK cl_int clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void *list_of[],
				 void(CL_CALLBACK *notify)(cl_command_queue, cl_uint, void *[], void *), void *data, cl_uint waits,
				 const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	if (count == 0 || !list_of)
		return CL_INVALID_VALUE;
	struct fake_action action = {.kind = FAKE_POINTER_FREE, .notify = notify, .data = data, .freed = count};
	action.free = malloc(count * sizeof *action.free);
	if (!action.free)
		fake_fail("out of memory");
	memcpy(action.free, list_of, count * sizeof *action.free);
	cl_int err = fake_submit_action(queue, CL_FALSE, 0, NULL, &action, waits, list, event);
	if (err != CL_SUCCESS)
		free(action.free);
	return err;
}

static cl_int copy(cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t size, cl_uint waits,
		   const cl_event *list, cl_event *event)
{
	struct fake_action action = {.kind = FAKE_POINTER_COPY, .pointers = 2, .pointer = {to, from}, .size = size};
	return to && from ? fake_submit_action(queue, blocking, 0, NULL, &action, waits, list, event) : CL_INVALID_VALUE;
}

static cl_int fill(cl_command_queue queue, void *pointer, const void *pattern, size_t patternsize, size_t size, cl_uint waits,
		   const cl_event *list, cl_event *event)
{
	struct fake_action action = {.kind = FAKE_POINTER_FILL, .pointers = 1, .pointer = {pointer}, .size = size, .patternsize = patternsize};
	if (!pointer || !pattern || !patternsize || patternsize > sizeof action.pattern)
		return CL_INVALID_VALUE;
	memcpy(action.pattern, pattern, patternsize);
	return fake_submit_action(queue, CL_FALSE, 0, NULL, &action, waits, list, event);
}

/* Does nothing to it, but checks that all of the bytes are there. */
static cl_int touch(cl_command_queue queue, cl_bool blocking, const void *pointer, size_t size, bool valid, cl_uint waits, const cl_event *list,
		    cl_event *event)
{
	struct fake_action action = {.kind = FAKE_POINTERS, .pointers = 1, .pointer = {pointer}};
	{
		FAKE_LOCKED;
		const struct pointer *p = pointer_at(pointer);
		valid = valid && (!p || size <= p->size - ((uintptr_t)pointer - (uintptr_t)p->first));
	}
	return valid ? fake_submit_action(queue, blocking, 0, NULL, &action, waits, list, event) : CL_INVALID_VALUE;
}

GMT_HOOK cl_int clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t size,
				   cl_uint waits, const cl_event *list, cl_event *event)
{
	return copy(queue, blocking, to, from, size, waits, list, event);
}

GMT_HOOK cl_int clEnqueueSVMMemFill(cl_command_queue queue, void *pointer, const void *pattern, size_t patternsize, size_t size,
				    cl_uint waits, const cl_event *list, cl_event *event)
{
	return fill(queue, pointer, pattern, patternsize, size, waits, list, event);
}

GMT_HOOK cl_int clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void *pointer, size_t size,
				cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)flags;
	return touch(queue, blocking, pointer, size, pointer && size, waits, list, event);
}

GMT_HOOK cl_int clEnqueueSVMUnmap(cl_command_queue queue, void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	return touch(queue, CL_FALSE, pointer, 0, pointer != NULL, waits, list, event);
}

GMT_HOOK cl_int clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint count, const void **list_of, const size_t *sizes,
				       cl_mem_migration_flags flags, cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)flags;
	for (cl_uint i = 1; sizes && list_of && i < count; i++)
		if (touch(NULL, CL_FALSE, list_of[i], sizes[i], true, 0, NULL, NULL) == CL_INVALID_VALUE)
			return CL_INVALID_VALUE;
	return touch(queue, CL_FALSE, count && list_of ? list_of[0] : NULL, sizes && list_of ? sizes[0] : 0, count && list_of, waits, list, event);
}

static void *host_alloc(cl_context context, const cl_mem_properties_intel *properties, size_t size, cl_uint alignment, cl_int *errcode)
{
	(void)properties;
	return allocate(context, NULL, CL_MEM_TYPE_HOST_INTEL, size, alignment, errcode);
}

static void *device_alloc(cl_context context, cl_device_id device, const cl_mem_properties_intel *properties, size_t size,
			  cl_uint alignment, cl_int *errcode)
{
	(void)properties;
	return allocate(context, device, CL_MEM_TYPE_DEVICE_INTEL, size, alignment, errcode);
}

static void *shared_alloc(cl_context context, cl_device_id device, const cl_mem_properties_intel *properties, size_t size,
			  cl_uint alignment, cl_int *errcode)
{
	(void)properties;
	return allocate(context, device, CL_MEM_TYPE_SHARED_INTEL, size, alignment, errcode);
}

/* Waits for all commands, not only for those that use it. */
static cl_int blocking_free(cl_context context, void *pointer)
{
	fake_complete_all();
	fake.waits++;
	return release(context, pointer);
}

static cl_int info(cl_context context, const void *address, cl_mem_info_intel what, size_t room, void *value, size_t *needed)
{
	FAKE_LOCKED;
	const struct pointer none = {.type = CL_MEM_TYPE_UNKNOWN_INTEL}, *p = pointer_at(address);
	if (!fake_alive(context, FAKE_CONTEXT))
		return CL_INVALID_CONTEXT;
	if (!p || !p->type)
		p = &none;
	switch (what) {
	case CL_MEM_ALLOC_TYPE_INTEL:
		return fake_answer(&p->type, sizeof p->type, room, value, needed);
	case CL_MEM_ALLOC_BASE_PTR_INTEL:
		return fake_answer(&p->first, sizeof p->first, room, value, needed);
	case CL_MEM_ALLOC_SIZE_INTEL:
		return fake_answer(&p->size, sizeof p->size, room, value, needed);
	case CL_MEM_ALLOC_DEVICE_INTEL:
		return fake_answer(&p->device, sizeof p->device, room, value, needed);
	default:
		return CL_INVALID_VALUE;
	}
}

static cl_int set(cl_command_queue queue, void *pointer, cl_int value, size_t size, cl_uint waits, const cl_event *list, cl_event *event)
{
	unsigned char byte = (unsigned char)value;
	return fill(queue, pointer, &byte, 1, size, waits, list, event);
}

static cl_int migrate(cl_command_queue queue, const void *pointer, size_t size, cl_mem_migration_flags flags, cl_uint waits,
		      const cl_event *list, cl_event *event)
{
	(void)flags;
	return touch(queue, CL_FALSE, pointer, size, pointer && size, waits, list, event);
}

static cl_int advise(cl_command_queue queue, const void *pointer, size_t size, cl_mem_advice_intel advice, cl_uint waits,
		     const cl_event *list, cl_event *event)
{
	(void)advice;
	return touch(queue, CL_FALSE, pointer, size, pointer && size, waits, list, event);
}

void *fake_unified(const char *name)
{
	typedef void (*function)(void);
	static const struct {
		const char *name;
		function address;
	} known[] = {
		{"clHostMemAllocINTEL", (function)host_alloc},
		{"clDeviceMemAllocINTEL", (function)device_alloc},
		{"clSharedMemAllocINTEL", (function)shared_alloc},
		{"clMemFreeINTEL", (function)free_unified},
		{"clMemBlockingFreeINTEL", (function)blocking_free},
		{"clGetMemAllocInfoINTEL", (function)info},
		{"clSetKernelArgMemPointerINTEL", (function)clSetKernelArgSVMPointer},
		{"clEnqueueMemcpyINTEL", (function)copy},
		{"clEnqueueMemFillINTEL", (function)fill},
		{"clEnqueueMemsetINTEL", (function)set},
		{"clEnqueueMigrateMemINTEL", (function)migrate},
		{"clEnqueueMemAdviseINTEL", (function)advise},
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (strcmp(known[i].name, name) == 0) {
			void *address;
			memcpy(&address, &known[i].address, sizeof address);
			return address;
		}
	}
	return NULL;
}
