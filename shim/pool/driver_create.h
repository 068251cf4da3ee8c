/* driver_create.h: creates that reach the driver: within the budget, and retried when memory runs out. */
#ifndef GMT_DRIVER_CREATE_H
#define GMT_DRIVER_CREATE_H

#include "../../internal/wire/event.h"
#include "../base/call.h"
#include "budget.h"
#include "oom.h"
#include "shapes.h"

/* A call that creates an image. */
struct gmt_image_call {
	enum { GMT_IMAGE, GMT_IMAGE_PROPERTIES, GMT_IMAGE_2D, GMT_IMAGE_3D } entry;
	cl_context context;
	const cl_mem_properties *properties;
	cl_mem_flags flags;
	const cl_image_format *format;
	const cl_image_desc *desc;
	void *host;
	struct gmt_shape_class class; /* where the pool may serve it */
};
cl_mem gmt_image_call(const struct gmt_image_call *call, cl_int *error);

/* A call that allocates shared memory. */
struct gmt_pointer_call {
	enum gmtmemory kind;
	cl_context context;
	cl_device_id device; /* of unified shared memory, or NULL */
	const cl_mem_properties_intel *properties;
	cl_svm_mem_flags flags; /* of shared virtual memory */
	cl_uint alignment;
	struct gmt_shape_class class; /* where the pool may serve it */
};

/* Memory that the program asks for: a buffer, unless image or pointer is not NULL. */
struct gmt_request_for {
	struct gmt_context *context;
	cl_mem_flags flags;
	size_t size;
	void *host; /* to copy from, or NULL */
	const void *properties; /* of a buffer: a list, or NULL */
	uint32_t tag;
	const struct gmt_image_call *image;
	const struct gmt_pointer_call *pointer;
};

/*
 * The last resort for a create that failed for lack of memory although the device has room for the memory that the program
 * holds: the bytes that rounding and slabs waste cannot go back to the driver. The create may then be tried once more with
 * CL_MEM_ALLOC_HOST_PTR, which is slower; queries do not show that flag. False where the flag means something else or does not help.
 */
bool gmt_host_may_serve(const struct gmt_context *context, cl_mem_flags flags, uint64_t bytes, cl_int error);

/* The shape of memory whose class depends on more than context and flags; NULL: a buffer. */
static inline const struct gmt_shape_class *gmt_request_shape(const struct gmt_request_for *r)
{
	return gmt_unlikely(r->image != NULL) ? &r->image->class : gmt_unlikely(r->pointer != NULL) ? &r->pointer->class : NULL;
}

static inline int16_t gmt_request_shape_number(const struct gmt_request_for *r)
{
	const struct gmt_shape_class *shape = gmt_request_shape(r);
	return shape ? shape->number : 0;
}

/* One attempt. */
cl_mem gmt_driver_create_once(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error);
/* Retries for as long as the pool has something to give back. */
cl_mem gmt_driver_create(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error);

/*
 * The same for any create that never comes from the pool; expression makes the call. bytes count against the budget, if
 * they are known beforehand.
 */
#define GMT_DRIVER_CREATE(call, handle, error, bytes, expression)                                                      \
	do {                                                                                                           \
		struct gmt_shortage gmt_short = gmt_shortage();                                                        \
		do {                                                                                                   \
			(handle) = NULL;                                                                               \
			gmt_oom_forestall(bytes);                                                                      \
			if (gmt_budget_take(bytes)) {                                                                  \
				(handle) = (expression);                                                               \
				if (!(handle))                                                                         \
					gmt_budget_give_back(bytes);                                                        \
			} else {                                                                                       \
				(error) = CL_MEM_OBJECT_ALLOCATION_FAILURE;                                            \
			}                                                                                              \
			gmt_driver_returned(call);                                                                     \
		} while (!(handle) && gmt_oom_drain(&gmt_short, (error), (bytes)));                                    \
	} while (0)

#endif
