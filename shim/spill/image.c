/*
 * image.c: images are the driver's own. One that is made of a virtual buffer keeps the buffer where it is. Buffers where the
 * program should have passed an image are the driver's to refuse.
 */
#define _GNU_SOURCE
#include "image.h"

#include "../base/lock.h"
#include "context.h"
#include "residency.h"

#include <stdlib.h>

/* Pins the buffer that the image is to be made of, and puts its real object into desc. */
static cl_int of_buffer(struct gmt_spill_object **object, cl_image_desc *desc)
{
	cl_int err = CL_SUCCESS;
	*object = gmt_spill_find(desc->mem_object);
	if (*object)
		err = gmt_spill_pin(*object, "clCreateImage");
	else if (gmt_spill_is_ours(desc->mem_object))
		err = CL_INVALID_MEM_OBJECT;
	if (err == CL_SUCCESS && *object)
		desc->mem_object = (*object)->real;
	return err;
}

/* Images made of virtual buffers. Not every driver calls back at the end of one, so we count references. */
struct image {
	struct image *next;
	cl_mem handle;
	uint32_t references;
	struct gmt_spill_object *object;
};
static struct image *images;
static _Atomic uint32_t lock, count;

/* Under the lock. */
static struct image **link_of(cl_mem handle)
{
	struct image **link = &images;
	while (*link && (*link)->handle != handle)
		link = &(*link)->next;
	return link;
}

/* An image inherits flags of its buffer, but CL_MEM_COPY_HOST_PTR is ours where the program did not pass it. */
void gmt_spill_image_flags(cl_mem handle, cl_mem_flags *flags)
{
	if (gmt_likely(!atomic_load_explicit(&count, memory_order_relaxed)))
		return;
	gmt_lock(&lock);
	const struct image *image = *link_of(handle);
	if (image && !(image->object->root->flags & CL_MEM_COPY_HOST_PTR))
		*flags &= ~(cl_mem_flags)CL_MEM_COPY_HOST_PTR;
	gmt_unlock(&lock);
}

/* Commands on the image may still run when it has ended, so the buffer stays; but it need not outlive its own references. */
void gmt_spill_image_references(cl_mem handle, int by)
{
	if (gmt_likely(!atomic_load_explicit(&count, memory_order_relaxed)))
		return;
	struct image *ended = NULL;
	gmt_lock(&lock);
	struct image **link = link_of(handle);
	if (*link && ((*link)->references += (uint32_t)by) == 0) {
		ended = *link;
		*link = ended->next;
	}
	gmt_unlock(&lock);
	if (!ended)
		return;
	atomic_fetch_sub(&count, 1);
	gmt_spill_let_go(ended->object);
	free(ended);
}

static cl_mem made(struct gmt_spill_object *object, cl_mem handle)
{
	struct image *image = object && handle ? malloc(sizeof *image) : NULL;
	if (object && handle)
		gmt_spill_fix(object);
	if (image) {
		atomic_fetch_add(&object->holds, 1);
		gmt_lock(&lock);
		*image = (struct image){images, handle, 1, object};
		images = image;
		gmt_unlock(&lock);
		atomic_fetch_add(&count, 1);
	}
	if (object)
		gmt_spill_unpin(object);
	return handle;
}

static cl_mem create(cl_context context, cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc, void *host,
		     cl_int *errcode)
{
	if (!desc || !gmt_spill_is_ours(desc->mem_object))
		return gmt_bare.clCreateImage(context, flags, format, desc, host, errcode);
	cl_image_desc changed = *desc;
	struct gmt_spill_object *object;
	cl_int err = of_buffer(&object, &changed);
	if (err == CL_SUCCESS)
		return made(object, gmt_bare.clCreateImage(context, flags, format, &changed, host, errcode));
	if (errcode)
		*errcode = err;
	return NULL;
}

static cl_mem create_with(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags, const cl_image_format *format,
			  const cl_image_desc *desc, void *host, cl_int *errcode)
{
	if (!desc || !gmt_spill_is_ours(desc->mem_object))
		return gmt_bare.clCreateImageWithProperties(context, properties, flags, format, desc, host, errcode);
	cl_image_desc changed = *desc;
	struct gmt_spill_object *object;
	cl_int err = of_buffer(&object, &changed);
	if (err == CL_SUCCESS)
		return made(object, gmt_bare.clCreateImageWithProperties(context, properties, flags, format, &changed, host, errcode));
	if (errcode)
		*errcode = err;
	return NULL;
}

static cl_int read_image(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin, const size_t *region, size_t row,
			 size_t slice, void *to, cl_uint waits, const cl_event *list, cl_event *event)
{
	cl_int err = CL_INVALID_MEM_OBJECT;
	gmt_spill_queue_gate(queue, waits, list);
	if (!gmt_spill_is_ours(image))
		GMT_SPILL_TRY(err, gmt_bare.clEnqueueReadImage(queue, image, blocking, origin, region, row, slice, to, waits, list, event));
	return err;
}

static cl_int write_image(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin, const size_t *region,
			  size_t row, size_t slice, const void *from, cl_uint waits, const cl_event *list, cl_event *event)
{
	cl_int err = CL_INVALID_MEM_OBJECT;
	gmt_spill_queue_gate(queue, waits, list);
	if (!gmt_spill_is_ours(image))
		GMT_SPILL_TRY(err, gmt_bare.clEnqueueWriteImage(queue, image, blocking, origin, region, row, slice, from, waits, list, event));
	return err;
}

static cl_int copy_image(cl_command_queue queue, cl_mem source, cl_mem target, const size_t *from, const size_t *to,
			 const size_t *region, cl_uint waits, const cl_event *list, cl_event *event)
{
	cl_int err = CL_INVALID_MEM_OBJECT;
	gmt_spill_queue_gate(queue, waits, list);
	if (!gmt_spill_is_ours(source) && !gmt_spill_is_ours(target))
		GMT_SPILL_TRY(err, gmt_bare.clEnqueueCopyImage(queue, source, target, from, to, region, waits, list, event));
	return err;
}

static cl_int fill_image(cl_command_queue queue, cl_mem image, const void *color, const size_t *origin, const size_t *region,
			 cl_uint waits, const cl_event *list, cl_event *event)
{
	cl_int err = CL_INVALID_MEM_OBJECT;
	gmt_spill_queue_gate(queue, waits, list);
	if (!gmt_spill_is_ours(image))
		GMT_SPILL_TRY(err, gmt_bare.clEnqueueFillImage(queue, image, color, origin, region, waits, list, event));
	return err;
}

static void *map_image(cl_command_queue queue, cl_mem image, cl_bool blocking, cl_map_flags flags, const size_t *origin,
		       const size_t *region, size_t *row, size_t *slice, cl_uint waits, const cl_event *list, cl_event *event,
		       cl_int *errcode)
{
	cl_int err = CL_INVALID_MEM_OBJECT;
	void *address = NULL;
	gmt_spill_queue_gate(queue, waits, list);
	if (!gmt_spill_is_ours(image)) {
		do
			address = gmt_bare.clEnqueueMapImage(queue, image, blocking, flags, origin, region, row, slice, waits, list, event, &err);
		while (!address && gmt_spill_relieve(err));
	}
	if (errcode)
		*errcode = err;
	return address;
}

void gmt_spill_put_images(struct gmt_functions *over)
{
	GMT_SPILL_OVER(over, clCreateImage, create);
	GMT_SPILL_OVER(over, clCreateImageWithProperties, create_with);
	GMT_SPILL_OVER(over, clEnqueueReadImage, read_image);
	GMT_SPILL_OVER(over, clEnqueueWriteImage, write_image);
	GMT_SPILL_OVER(over, clEnqueueCopyImage, copy_image);
	GMT_SPILL_OVER(over, clEnqueueFillImage, fill_image);
	GMT_SPILL_OVER(over, clEnqueueMapImage, map_image);
}
