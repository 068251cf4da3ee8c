/* hook_image.c: images and pipes. The driver reports their size, and pipes never come from the pool. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/start.h"
#include "../entry/tags.h"
#include "../pool/alias.h"
#include "../pool/budget.h"
#include "../pool/eager.h"
#include "../pool/images.h"
#include "../pool/oom.h"
#include "../pool/plan.h"
#include "../pool/pool.h"
#include "../pool/shapes.h"
#include "../registry/created.h"
#include "../registry/finding.h"
#include "../registry/memory.h"
#include "../registry/objects.h"
#include "hook_svm.h"

/* Counts an image in the budget, now that its size is known. False if it does not fit: it is released. */
static bool fits_budget(cl_mem handle, size_t size, cl_int *error)
{
	if (gmt_budget_take(size))
		return true;
	gmt_driver.clReleaseMemObject(handle);
	*error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	return false;
}

static size_t size_of_image(cl_mem handle)
{
	size_t size = 0;
	return gmt_driver.clGetMemObjectInfo(handle, CL_MEM_SIZE, sizeof size, &size, NULL) == CL_SUCCESS ? size : 0;
}

static size_t channel_count(cl_channel_order order)
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
		return channel_count(format->image_channel_order);
	case CL_SNORM_INT16:
	case CL_UNORM_INT16:
	case CL_SIGNED_INT16:
	case CL_UNSIGNED_INT16:
	case CL_HALF_FLOAT:
		return 2 * channel_count(format->image_channel_order);
	case CL_SIGNED_INT32:
	case CL_UNSIGNED_INT32:
	case CL_FLOAT:
		return 4 * channel_count(format->image_channel_order);
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

/* A call that creates an image or a pipe. */
struct creation {
	struct gmt_caller caller;
	enum gmtmemory kind;
	struct gmt_image_call image; /* of a pipe: context and flags */
	cl_image_desc shown;         /* the description that image.desc points to once share_alias has changed it */
	cl_uint packet, packets;
	const cl_pipe_properties *properties;
};

static cl_mem ask_driver_for_image(const struct creation *n, cl_int *error)
{
	const struct gmt_image_call *i = &n->image;
	if (n->kind == GMT_MEMORY_PIPE)
		return gmt_driver.clCreatePipe(i->context, i->flags, n->packet, n->packets, n->properties, error);
	return gmt_image_call(i, error);
}

/* The handle of the memory that an image shares, or NULL. */
static cl_mem shared_memory_of(const struct creation *n)
{
	return n->image.desc ? n->image.desc->mem_object : NULL;
}

/* Whether the image has memory: see gmt_eager_migrate. If it has none, it does not count in the budget. */
static bool has_real_memory(const struct creation *n, const struct gmt_created *c, cl_int *error)
{
	bool real = n->kind == GMT_MEMORY_PIPE || gmt_eager_migrate(c->context, c->handle, error);
	if (!real)
		gmt_budget_give_back(c->size);
	return real;
}

/* Has the driver create the image, without the pool. */
static void make_image(struct gmt_call *call, const struct creation *n, struct gmt_created *c, cl_int *error)
{
	struct gmt_shortage shortage = gmt_shortage();
	do {
		c->handle = ask_driver_for_image(n, error);
		gmt_driver_returned(call);
		c->size = c->handle ? size_of_image(c->handle) : 0;
		if (c->handle && !c->parent && !(fits_budget(c->handle, c->size, error) && has_real_memory(n, c, error)))
			c->handle = NULL;
	} while (!c->handle && gmt_oom_drain(&shortage, *error, c->size));
	c->served.outcome = c->handle ? GMT_OUTCOME_DRIVER : GMT_OUTCOME_FAILED;
	if (!c->parent)
		c->served.granted = c->size; /* an image of a buffer owns no memory */
}

/*
 * Whether the pool may serve the image: it owns all its memory and has no properties, since queries return those word for word.
 */
static bool may_be_pooled(const struct creation *n)
{
	const struct gmt_image_call *i = &n->image;
	return n->kind == GMT_MEMORY_IMAGE && gmt_pooling() && i->format && i->desc && !i->properties && !i->desc->mem_object &&
	       !i->desc->num_mip_levels && !i->desc->num_samples && !(i->flags & CL_MEM_USE_HOST_PTR);
}

static void serve_image(struct gmt_call *call, struct creation *n, struct gmt_created *c, cl_int *error)
{
	struct gmt_image_call *i = &n->image;
	bool shaped = c->context && may_be_pooled(n);
	if (i->flags & CL_MEM_USE_HOST_PTR)
		gmt_pointer_is_host(i->host, 0);
	struct gmt_shape shape;
	if (shaped)
		shape = gmt_shape_of(i->flags, i->format, i->desc);
	if (shaped && gmt_shape_find_class(c->context, &shape, &i->class)) {
		struct gmt_request_for request = {
			.context = c->context, .flags = i->flags, .size = i->class.size, .host = i->host, .image = i,
		};
		if (gmt_plan_image_eligible(&request)) {
			request.tag = c->tag = gmt_tag(call, &n->caller, request.size);
			c->size = request.size;
			*error = CL_SUCCESS;
			gmt_pool_create(call, &request, &c->served, error);
			c->handle = c->served.handle;
			return;
		}
	}
	make_image(call, n, c, error);
	if (shaped && c->handle)
		gmt_shape_note_made(c->context, &shape, c->size);
	c->tag = gmt_tag(call, &n->caller, c->size);
}

/* See gmt_host_may_serve. It is asked again when the driver has said how large the image is. */
static void serve_image_from_host(struct gmt_call *call, const struct creation *n, struct gmt_created *c, cl_int *error)
{
	if (n->kind != GMT_MEMORY_IMAGE || shared_memory_of(n) || n->image.properties ||
	    !gmt_host_may_serve(c->context, n->image.flags, c->size, *error))
		return;
	struct creation hosted = *n;
	hosted.image.flags |= CL_MEM_ALLOC_HOST_PTR;
	cl_int status = CL_SUCCESS;
	cl_mem handle = ask_driver_for_image(&hosted, &status);
	gmt_driver_returned(call);
	uint64_t size = handle ? size_of_image(handle) : 0;
	if (handle && !gmt_host_may_serve(c->context, n->image.flags, size, *error)) {
		gmt_driver.clReleaseMemObject(handle);
		return;
	}
	if (!handle)
		return;
	c->handle = handle;
	c->size = size;
	c->served = (struct gmt_served){.granted = size, .outcome = GMT_OUTCOME_DRIVER, .written = true, .hosted = true};
	*error = CL_SUCCESS;
}

/* Has the image share the alias of a sub-allocation instead of the sub-allocation. False: memory is short. */
static bool share_alias(struct creation *n, struct gmt_memory *memory)
{
	bool alone = !memory || !memory->slab || !memory->slab->store;
	if (alone || !n->image.desc || memory->context != gmt_context_find(n->image.context))
		return true;
	cl_mem alias = gmt_alias_of(memory);
	if (!alias)
		return false;
	n->shown = *n->image.desc;
	n->shown.mem_object = alias;
	n->image.desc = &n->shown;
	return true;
}

static cl_mem create_image(struct gmt_call *call, struct creation *n, bool refused, cl_int *errcode)
{
	cl_int error = CL_INVALID_MEM_OBJECT;
	struct gmt_created c = {
		.kind = n->kind,
		.context = gmt_context_find(n->image.context),
		.flags = n->image.flags,
		.parent = gmt_memory_find(shared_memory_of(n)),
		.served = {.outcome = GMT_OUTCOME_FAILED},
	};
	if (!refused && !share_alias(n, c.parent)) {
		error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
		refused = true;
	}
	if (refused)
		c.tag = gmt_tag(call, &n->caller, 0);
	else
		serve_image(call, n, &c, &error);
	if (gmt_unlikely(!c.handle))
		serve_image_from_host(call, n, &c, &error);
	if (c.handle && n->image.format)
		c.element = element_size(n->image.format);
	gmt_created_register_and_write(call, &c, error);
	if (errcode)
		*errcode = error;
	gmt_leave();
	return c.handle;
}

/*
 * Returns the description to give to the driver. An image that shares a buffer must fit into the bytes that the program asked
 * for, not just into our block. If it does not, *moved describes one so large that the driver refuses it with its own error.
 */
static const cl_image_desc *description_to_fit(const cl_image_format *format, const cl_image_desc *desc, cl_image_desc *moved)
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

/* Whether an image is to share memory that the program has released; writes the finding. */
static bool shares_released(const cl_image_desc *desc, const char *function)
{
	atomic_store_explicit(&gmt_images_wanted, 1, memory_order_relaxed);
	const struct gmt_memory *base = desc ? gmt_memory_find(desc->mem_object) : NULL;
	if (!base && desc && desc->mem_object)
		gmt_finding_freed_handle(GMT_DIAG_USE_AFTER_RELEASE, function, desc->mem_object);
	return base && gmt_finding_released(base, function);
}

/* The program's call, unchanged. */
#define CREATION(memory, ...)                                                                                          \
	((struct creation){.caller = GMT_CALLER, .kind = (memory),                                    \
			   .image = {.context = context, .flags = flags, __VA_ARGS__}})

GMT_HOOK cl_mem clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc,
			      void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clCreateImage(context, flags, format, desc, host, errcode);
	bool refused = shares_released(desc, __func__);
	cl_image_desc moved;
	struct creation n = CREATION(GMT_MEMORY_IMAGE, .format = format, .desc = description_to_fit(format, desc, &moved), .host = host);
	return create_image(&call, &n, refused, errcode);
}

GMT_HOOK cl_mem clCreateImageWithProperties(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
					    const cl_image_format *format, const cl_image_desc *desc, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clCreateImageWithProperties(context, properties, flags, format, desc, host, errcode);
	bool refused = shares_released(desc, __func__);
	cl_image_desc moved;
	struct creation n = CREATION(GMT_MEMORY_IMAGE, .entry = GMT_IMAGE_PROPERTIES, .properties = properties, .format = format,
				     .desc = description_to_fit(format, desc, &moved), .host = host);
	return create_image(&call, &n, refused, errcode);
}

GMT_HOOK cl_mem clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width,
				size_t height, size_t pitch, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clCreateImage2D(context, flags, format, width, height, pitch, host, errcode);
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = width, .image_height = height, .image_row_pitch = pitch,
	};
	struct creation n = CREATION(GMT_MEMORY_IMAGE, .entry = GMT_IMAGE_2D, .format = format, .desc = &desc, .host = host);
	return create_image(&call, &n, false, errcode);
}

GMT_HOOK cl_mem clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width,
				size_t height, size_t depth, size_t row, size_t slice, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clCreateImage3D(context, flags, format, width, height, depth, row, slice, host, errcode);
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE3D, .image_width = width, .image_height = height, .image_depth = depth,
		.image_row_pitch = row, .image_slice_pitch = slice,
	};
	struct creation n = CREATION(GMT_MEMORY_IMAGE, .entry = GMT_IMAGE_3D, .format = format, .desc = &desc, .host = host);
	return create_image(&call, &n, false, errcode);
}

GMT_HOOK cl_mem clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet, cl_uint packets,
			     const cl_pipe_properties *properties, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clCreatePipe(context, flags, packet, packets, properties, errcode);
	struct creation n = CREATION(GMT_MEMORY_PIPE, .host = NULL);
	n.packet = packet;
	n.packets = packets;
	n.properties = properties;
	return create_image(&call, &n, false, errcode);
}
