/* hook_image.c: images and pipes: tracked, never pooled. The driver reports their size. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/start.h"
#include "../entry/tags.h"
#include "../pool/budget.h"
#include "../pool/images.h"
#include "../pool/oom.h"
#include "../registry/created.h"
#include "../registry/finding.h"
#include "../registry/memory.h"
#include "../registry/objects.h"

/* Counts it in the budget now that its size is known; false, and it is released, if it does not fit. */
static bool fits(cl_mem handle, size_t size, cl_int *error)
{
	if (gmt_budget_take(size))
		return true;
	gmt_driver.clReleaseMemObject(handle);
	*error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	return false;
}

static size_t size_of(cl_mem handle)
{
	size_t size = 0;
	return gmt_driver.clGetMemObjectInfo(handle, CL_MEM_SIZE, sizeof size, &size, NULL) == CL_SUCCESS ? size : 0;
}

static size_t channels(cl_channel_order order)
{
	switch (order) {
	case CL_R:
	case CL_A:
	case CL_Rx:
	case CL_INTENSITY:
	case CL_LUMINANCE:
	case CL_DEPTH:
		return 1;
	case CL_RG:
	case CL_RA:
	case CL_RGx:
		return 2;
	case CL_RGB:
	case CL_RGBx:
	case CL_sRGB:
		return 3;
	default:
		return 4;
	}
}

/* Bytes of one element; 0 if the format is unknown. (API specification, image format descriptor.) */
static size_t element_size(const cl_image_format *format)
{
	switch (format->image_channel_data_type) {
	case CL_SNORM_INT8:
	case CL_UNORM_INT8:
	case CL_SIGNED_INT8:
	case CL_UNSIGNED_INT8:
		return channels(format->image_channel_order);
	case CL_SNORM_INT16:
	case CL_UNORM_INT16:
	case CL_SIGNED_INT16:
	case CL_UNSIGNED_INT16:
	case CL_HALF_FLOAT:
		return 2 * channels(format->image_channel_order);
	case CL_SIGNED_INT32:
	case CL_UNSIGNED_INT32:
	case CL_FLOAT:
		return 4 * channels(format->image_channel_order);
	case CL_UNORM_SHORT_565:
	case CL_UNORM_SHORT_555:
		return 2;
	case CL_UNORM_INT_101010:
	case CL_UNORM_INT_101010_2:
		return 4;
	default:
		return 0;
	}
}

/* What to create, without what only the driver needs. */
struct creation {
	const void *caller;
	enum gmtmemory kind;
	cl_context context;
	cl_mem_flags flags;
	cl_mem base; /* memory that it shares, or NULL */
	const cl_image_format *format; /* NULL: no image */
	size_t size;
};

static void report(struct gmt_call *call, const struct creation *n, cl_mem handle, cl_int error)
{
	struct gmt_created c = {
		.handle = handle,
		.kind = n->kind,
		.context = gmt_context_find(n->context),
		.size = n->size,
		.flags = n->flags,
		.element = handle && n->format ? element_size(n->format) : 0,
		.tag = gmt_tag(call, n->caller, n->size),
		.parent = gmt_memory_find(n->base),
		.served = {.outcome = handle ? GMT_OUTCOME_DRIVER : GMT_OUTCOME_FAILED},
	};
	if (!c.parent)
		c.served.granted = n->size; /* an image of a buffer owns no memory */
	gmt_created_report(call, &c, error);
}

#define CREATE(wanted, refused, expression)                                                                            \
	struct creation n = wanted;                                                                                    \
	cl_int error = CL_INVALID_MEM_OBJECT;                                                                          \
	cl_mem handle;                                                                                                 \
	struct gmt_shortage shortage = gmt_shortage();                                                                 \
	do {                                                                                                           \
		handle = (refused) ? NULL : (expression);                                                              \
		gmt_driver_returned(&call);                                                                            \
		n.size = handle ? size_of(handle) : 0;                                                                 \
		if (handle && !gmt_memory_find(n.base) && !fits(handle, n.size, &error))                               \
			handle = NULL;                                                                                 \
	} while (!handle && gmt_oom_drain(&shortage, error, n.size));                                                            \
	report(&call, &n, handle, error);                                                                              \
	if (errcode)                                                                                                   \
		*errcode = error;                                                                                      \
	gmt_leave();                                                                                                   \
	return handle

#define WANTED(kind, base, format) ((struct creation){__builtin_return_address(0), kind, context, flags, base, format, 0})

/*
 * An image that shares a buffer must fit into what the program asked for, not into our block. Makes one that does not fit so
 * large that the driver refuses it, with an error of its own choice. Returns what the driver gets.
 */
static const cl_image_desc *within(const cl_image_format *format, const cl_image_desc *desc, cl_image_desc *moved)
{
	const struct gmt_memory *buffer = desc ? gmt_memory_find(desc->mem_object) : NULL;
	size_t element = format ? element_size(format) : 0;
	if (!buffer || buffer->kind != GMT_MEMORY_BUFFER || buffer->granted <= buffer->size || !element || !desc->image_width)
		return desc;
	bool rows = desc->image_type == CL_MEM_OBJECT_IMAGE2D;
	size_t row = rows && desc->image_row_pitch ? desc->image_row_pitch : desc->image_width * element;
	if ((rows ? row * desc->image_height : row) <= buffer->size)
		return desc;
	*moved = *desc;
	if (rows)
		moved->image_height += (size_t)buffer->granted / row + 1;
	else
		moved->image_width += (size_t)buffer->granted / element + 1;
	return moved;
}

/* True, and a finding, if an image is to share memory that the program has released. */
static bool released(const cl_image_desc *desc, const char *function)
{
	atomic_store_explicit(&gmt_images_wanted, 1, memory_order_relaxed);
	const struct gmt_memory *base = desc ? gmt_memory_find(desc->mem_object) : NULL;
	if (!base && desc && desc->mem_object)
		gmt_finding_freed_handle(GMT_DIAG_USE_AFTER_RELEASE, function, desc->mem_object);
	return base && gmt_finding_released(base, function);
}

GMT_HOOK cl_mem clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc,
			      void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_driver.clCreateImage(context, flags, format, desc, host, errcode);
	bool refused = released(desc, __func__);
	cl_image_desc moved;
	desc = within(format, desc, &moved);
	CREATE(WANTED(GMT_MEMORY_IMAGE, desc ? desc->mem_object : NULL, format), refused,
	       gmt_driver.clCreateImage(context, flags, format, desc, host, &error));
}

GMT_HOOK cl_mem clCreateImageWithProperties(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
					    const cl_image_format *format, const cl_image_desc *desc, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_driver.clCreateImageWithProperties(context, properties, flags, format, desc, host, errcode);
	bool refused = released(desc, __func__);
	cl_image_desc moved;
	desc = within(format, desc, &moved);
	CREATE(WANTED(GMT_MEMORY_IMAGE, desc ? desc->mem_object : NULL, format), refused,
	       gmt_driver.clCreateImageWithProperties(context, properties, flags, format, desc, host, &error));
}

GMT_HOOK cl_mem clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width,
				size_t height, size_t pitch, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_driver.clCreateImage2D(context, flags, format, width, height, pitch, host, errcode);
	CREATE(WANTED(GMT_MEMORY_IMAGE, NULL, format), false,
	       gmt_driver.clCreateImage2D(context, flags, format, width, height, pitch, host, &error));
}

GMT_HOOK cl_mem clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width,
				size_t height, size_t depth, size_t row, size_t slice, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_driver.clCreateImage3D(context, flags, format, width, height, depth, row, slice, host, errcode);
	CREATE(WANTED(GMT_MEMORY_IMAGE, NULL, format), false,
	       gmt_driver.clCreateImage3D(context, flags, format, width, height, depth, row, slice, host, &error));
}

GMT_HOOK cl_mem clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet, cl_uint packets,
			     const cl_pipe_properties *properties, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_driver.clCreatePipe(context, flags, packet, packets, properties, errcode);
	CREATE(WANTED(GMT_MEMORY_PIPE, NULL, NULL), false,
	       gmt_driver.clCreatePipe(context, flags, packet, packets, properties, &error));
}
