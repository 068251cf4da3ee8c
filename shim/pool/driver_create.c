/* driver_create.c: see driver_create.h. */
#define _GNU_SOURCE
#include "driver_create.h"

#include "../base/dispatch.h"
#include "../base/signals.h"
#include "eager.h"

cl_mem gmt_image_call(const struct gmt_image_call *i, cl_int *error)
{
	const cl_image_desc *d = i->desc;
	switch (i->entry) {
	case GMT_IMAGE_PROPERTIES:
		return gmt_driver.clCreateImageWithProperties(i->context, i->properties, i->flags, i->format, d, i->host, error);
	case GMT_IMAGE_2D:
		return gmt_driver.clCreateImage2D(i->context, i->flags, i->format, d->image_width, d->image_height, d->image_row_pitch,
						  i->host, error);
	case GMT_IMAGE_3D:
		return gmt_driver.clCreateImage3D(i->context, i->flags, i->format, d->image_width, d->image_height, d->image_depth,
						  d->image_row_pitch, d->image_slice_pitch, i->host, error);
	default:
		return gmt_driver.clCreateImage(i->context, i->flags, i->format, d, i->host, error);
	}
}

#define INTEL(name) atomic_load_explicit(&gmt_driver.name, memory_order_acquire)

/* Whether the device reports that it has such memory; alignments go up to the size of a long16, 128 bytes. */
static bool is_svm_supported(const struct gmt_request_for *r)
{
	const struct gmt_pointer_call *p = r->pointer;
	const cl_svm_mem_flags access = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
	const cl_svm_mem_flags known = access | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS;
	bool one = !(p->flags & access & ((p->flags & access) - 1));
	bool valid = one && !(p->flags & ~known) && !(p->alignment & (p->alignment - 1)) && p->alignment <= sizeof(cl_long16);
	cl_device_svm_capabilities can = 0, wanted = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
	if (p->flags & CL_MEM_SVM_FINE_GRAIN_BUFFER)
		wanted = CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
	if (p->flags & CL_MEM_SVM_ATOMICS)
		wanted |= CL_DEVICE_SVM_ATOMICS;
	return valid && r->context->devices.first &&
	       gmt_driver.clGetDeviceInfo(r->context->devices.first, CL_DEVICE_SVM_CAPABILITIES, sizeof can, &can, NULL) == CL_SUCCESS &&
	       (can & wanted) == wanted;
}

/*
 * clSVMAlloc has no error code. Only if the device can serve the call at all may lack of memory be the reason: the pool must not
 * be emptied for a call that cannot succeed.
 */
static cl_int svm_create_error(const struct gmt_request_for *r)
{
	const struct gmt_pointer_call *p = r->pointer;
	if (!r->context || !r->size || (r->context->devices.largest && r->size > r->context->devices.largest))
		return CL_INVALID_VALUE;
	bool can_be = p->class.size || is_svm_supported(r);
	void *least = can_be ? NULL : gmt_driver.clSVMAlloc(p->context, p->flags, 1, p->alignment);
	if (least)
		gmt_driver.clSVMFree(p->context, least);
	return least || can_be ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_INVALID_VALUE;
}

static void *ask_driver_for_pointer(const struct gmt_request_for *r, cl_int *error)
{
	const struct gmt_pointer_call *p = r->pointer;
	void *pointer;
	switch (p->kind) {
	case GMT_MEMORY_USM_HOST:
		return INTEL(clHostMemAllocINTEL)(p->context, p->properties, r->size, p->alignment, error);
	case GMT_MEMORY_USM_DEVICE:
		return INTEL(clDeviceMemAllocINTEL)(p->context, p->device, p->properties, r->size, p->alignment, error);
	case GMT_MEMORY_USM_SHARED:
		return INTEL(clSharedMemAllocINTEL)(p->context, p->device, p->properties, r->size, p->alignment, error);
	default:
		pointer = gmt_driver.clSVMAlloc(p->context, p->flags, r->size, p->alignment);
		*error = pointer ? CL_SUCCESS : svm_create_error(r);
		return pointer;
	}
}

static cl_mem ask_driver(const struct gmt_request_for *r, cl_int *error)
{
	if (gmt_unlikely(r->pointer != NULL))
		return ask_driver_for_pointer(r, error);
	if (gmt_unlikely(r->image != NULL))
		return gmt_image_call(r->image, error);
	cl_context context = (cl_context)atomic_load(&r->context->object.handle);
	return gmt_driver.clCreateBuffer(context, r->flags, r->size, r->host, error);
}

static cl_mem create_within_budget(const struct gmt_request_for *r, cl_int *error)
{
	if (gmt_budget_cap(r->size) < r->size) {
		*error = CL_INVALID_BUFFER_SIZE;
		return NULL;
	}
	uint64_t bytes = !r->image && !r->pointer && gmt_budget_is_virtual(r->flags, NULL) ? 0 : r->size;
	gmt_oom_forestall(bytes);
	if (!gmt_budget_take(bytes)) {
		*error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
		return NULL;
	}
	cl_mem handle = ask_driver(r, error);
	if (handle && !r->pointer && gmt_unlikely(!gmt_eager_migrate(r->context, handle, error)))
		handle = NULL;
	if (!handle)
		gmt_budget_give_back(bytes);
	return handle;
}

cl_mem gmt_driver_create_once(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error)
{
	cl_mem handle = create_within_budget(r, error);
	gmt_driver_returned(call);
	return handle;
}

cl_mem gmt_driver_create(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error)
{
	cl_mem handle;
	struct gmt_shortage shortage = gmt_shortage();
	do {
		handle = gmt_driver_create_once(call, r, error);
	} while (!handle && gmt_oom_drain(&shortage, *error, r->size));
	return handle;
}

bool gmt_host_may_serve(const struct gmt_context *context, cl_mem_flags flags, uint64_t bytes, cl_int error)
{
	const cl_mem_flags plain = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY | CL_MEM_KERNEL_READ_AND_WRITE |
				   CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS | CL_MEM_COPY_HOST_PTR;
	struct gmt_gauge gauge = {0};
	if (!gmt_out_of_memory(error) || !context || flags & ~plain || !gmt_pooling() || GMT_CORE(gauge(&gauge)) < 0)
		return false;
	return gmt_budget_fits_without(gauge.excess, bytes, context->devices.heap);
}
