/*
 * image.c: images. Those made of a virtual buffer move with it; all others are the driver's own. Buffers where the program should
 * have passed an image are refused.
 */
#define _GNU_SOURCE
#include "image.h"

#include "create.h"
#include "pair.h"

#include <stdlib.h>

struct creation {
	const cl_mem_properties *properties;
	bool with; /* properties, even none */
	cl_mem_flags flags;
	const cl_image_format *format;
	const cl_image_desc *desc;
	void *host;
};

static cl_mem create_image_by_driver(cl_context context, const struct creation *c, const cl_image_desc *desc, cl_int *err)
{
	cl_mem real;
	do
		real = c->with ? gmt_bare.clCreateImageWithProperties(context, c->properties, c->flags, c->format, desc, c->host, err)
			       : gmt_bare.clCreateImage(context, c->flags, c->format, desc, c->host, err);
	while (!real && gmt_spill_relieve(*err));
	return real;
}

/* An image inherits flags of its buffer, but CL_MEM_COPY_HOST_PTR is ours where the program did not pass it. */
static struct gmt_spill_object *adopt_image(struct gmt_spill_object *parent, const struct creation *c, cl_mem real)
{
	cl_mem_flags reported = 0;
	cl_buffer_region region = {0, 0};
	struct gmt_spill_image *image = malloc(sizeof *image);
	if (!image)
		return NULL;
	*image = (struct gmt_spill_image){*c->format, *c->desc};
	gmt_bare.clGetMemObjectInfo(real, CL_MEM_FLAGS, sizeof reported, &reported, NULL);
	gmt_bare.clGetMemObjectInfo(real, CL_MEM_SIZE, sizeof region.size, &region.size, NULL);
	if (!(parent->root->flags & CL_MEM_COPY_HOST_PTR))
		reported &= ~(cl_mem_flags)CL_MEM_COPY_HOST_PTR;
	struct gmt_spill_object *object = gmt_spill_new_child(parent, c->flags, &region, image, real);
	if (object)
		atomic_store(&object->reported, reported);
	else
		free(image);
	return object;
}

/* The driver judges it, so its buffer gets a real one. */
static cl_mem create_image_of_buffer(cl_context context, const struct creation *c, cl_int *err)
{
	struct gmt_spill_object *parent = gmt_spill_find(c->desc->mem_object), *object = NULL;
	*err = parent ? gmt_spill_pin(parent, "clCreateImage") : CL_INVALID_MEM_OBJECT;
	if (*err != CL_SUCCESS)
		return NULL;
	cl_image_desc desc = *c->desc;
	desc.mem_object = parent->real;
	cl_mem real = create_image_by_driver(context, c, &desc, err);
	if (real)
		object = adopt_image(parent, c, real);
	if (real && !object) {
		gmt_bare.clReleaseMemObject(real);
		*err = CL_OUT_OF_HOST_MEMORY;
	}
	if (object && c->properties && c->properties[0]) /* they may mean anything */
		gmt_spill_fix_on_device(parent);
	gmt_spill_unpin(parent);
	return object ? gmt_spill_handle(object) : NULL;
}

static cl_mem create_image(cl_context context, cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc, void *host,
		     cl_int *errcode)
{
	if (!desc || !gmt_spill_is_ours(desc->mem_object))
		return gmt_bare.clCreateImage(context, flags, format, desc, host, errcode);
	cl_int err;
	cl_mem image = create_image_of_buffer(context, &(struct creation){.flags = flags, .format = format, .desc = desc, .host = host}, &err);
	if (errcode)
		*errcode = err;
	return image;
}

static cl_mem create_image_with_properties(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags, const cl_image_format *format,
			  const cl_image_desc *desc, void *host, cl_int *errcode)
{
	if (!desc || !gmt_spill_is_ours(desc->mem_object))
		return gmt_bare.clCreateImageWithProperties(context, properties, flags, format, desc, host, errcode);
	cl_int err;
	struct creation c = {.properties = properties, .with = true, .flags = flags, .format = format, .desc = desc, .host = host};
	cl_mem image = create_image_of_buffer(context, &c, &err);
	if (errcode)
		*errcode = err;
	return image;
}

static cl_int read_image(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin, const size_t *region, size_t row,
			 size_t slice, void *to, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueReadImage", waits, list);
	gmt_spill_pair_add_image(&p, image, false);
	gmt_spill_pair_check_host(&p, to, CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS);
	if (!gmt_spill_pair_make_resident(&p))
		return p.err;
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueReadImage(queue, p.real[0], blocking, origin, region, row, slice, to, waits, list, event));
	return gmt_spill_pair_end(&p);
}

static cl_int write_image(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin, const size_t *region,
			  size_t row, size_t slice, const void *from, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueWriteImage", waits, list);
	gmt_spill_pair_add_image(&p, image, true);
	gmt_spill_pair_check_host(&p, from, CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS);
	if (!gmt_spill_pair_make_resident(&p))
		return p.err;
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueWriteImage(queue, p.real[0], blocking, origin, region, row, slice, from, waits, list, event));
	return gmt_spill_pair_end(&p);
}

static cl_int copy_image(cl_command_queue queue, cl_mem source, cl_mem target, const size_t *from, const size_t *to,
			 const size_t *region, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueCopyImage", waits, list);
	gmt_spill_pair_add_image(&p, source, false);
	gmt_spill_pair_add_image(&p, target, true);
	if (!gmt_spill_pair_make_resident(&p))
		return p.err;
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueCopyImage(queue, p.real[0], p.real[1], from, to, region, waits, list, event));
	return gmt_spill_pair_end(&p);
}

static cl_int fill_image(cl_command_queue queue, cl_mem image, const void *color, const size_t *origin, const size_t *region,
			 cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueFillImage", waits, list);
	gmt_spill_pair_add_image(&p, image, true);
	gmt_spill_pair_check_host(&p, color, 0);
	if (!gmt_spill_pair_make_resident(&p))
		return p.err;
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueFillImage(queue, p.real[0], color, origin, region, waits, list, event));
	return gmt_spill_pair_end(&p);
}

void gmt_spill_override_images(struct gmt_functions *over)
{
	GMT_SPILL_OVER(over, clCreateImage, create_image);
	GMT_SPILL_OVER(over, clCreateImageWithProperties, create_image_with_properties);
	GMT_SPILL_OVER(over, clEnqueueReadImage, read_image);
	GMT_SPILL_OVER(over, clEnqueueWriteImage, write_image);
	GMT_SPILL_OVER(over, clEnqueueCopyImage, copy_image);
	GMT_SPILL_OVER(over, clEnqueueFillImage, fill_image);
}
