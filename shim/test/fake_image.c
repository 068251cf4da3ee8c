/* fake_image.c: images and pipes, and commands on them. Each element has four bytes. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <string.h>

static void copy_in(cl_mem image, const cl_image_desc *desc, const void *host)
{
	unsigned char *bytes = fake_bytes(image, 0);
	size_t row = desc->image_width * 4, pitch = desc->image_row_pitch ? desc->image_row_pitch : row;
	for (size_t y = 0; bytes && y < image->size / row; y++)
		memcpy(bytes + y * row, (const char *)host + y * pitch, row);
}

static cl_mem new_image(cl_context context, cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc,
			const void *host, cl_int *errcode)
{
	FAKE_LOCKED;
	if (!host != !(flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR))) {
		if (errcode)
			*errcode = CL_INVALID_HOST_PTR;
		return NULL;
	}
	if (!format || !desc || !desc->image_width) {
		if (errcode)
			*errcode = format ? CL_INVALID_IMAGE_DESCRIPTOR : CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
		return NULL;
	}
	size_t height = desc->image_height ? desc->image_height : 1, depth = desc->image_depth ? desc->image_depth : 1;
	cl_mem base = desc->mem_object && fake_alive(desc->mem_object, FAKE_MEMORY) ? desc->mem_object : NULL;
	size_t row = desc->image_row_pitch ? desc->image_row_pitch : desc->image_width * 4;
	if (base && base->parent && fake.imagesofwholes == 1) {
		if (errcode)
			*errcode = CL_INVALID_MEM_OBJECT;
		return NULL;
	}
	if ((desc->mem_object && !base) || (base && (height > SIZE_MAX / row || row * height > base->size))) {
		if (errcode)
			*errcode = CL_INVALID_IMAGE_DESCRIPTOR;
		return NULL;
	}
	cl_mem_flags inherited = base && fake.givesaccess ? base->flags : 0;
	cl_mem image = fake_new_memory(context, flags | inherited, desc->image_width * height * depth * 4, base, errcode);
	if (image)
		image->element = 4;
	if (image && flags & CL_MEM_COPY_HOST_PTR)
		copy_in(image, desc, host);
	return image;
}

GMT_HOOK cl_mem clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc,
			      void *host, cl_int *errcode)
{
	return new_image(context, flags, format, desc, host, errcode);
}

GMT_HOOK cl_mem clCreateImageWithProperties(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
					    const cl_image_format *format, const cl_image_desc *desc, void *host, cl_int *errcode)
{
	(void)properties;
	return new_image(context, flags, format, desc, host, errcode);
}

GMT_HOOK cl_mem clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width,
				size_t height, size_t pitch, void *host, cl_int *errcode)
{
	cl_image_desc desc = {.image_width = width, .image_height = height, .image_row_pitch = pitch};
	return new_image(context, flags, format, &desc, host, errcode);
}

GMT_HOOK cl_mem clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width,
				size_t height, size_t depth, size_t row, size_t slice, void *host, cl_int *errcode)
{
	(void)slice;
	cl_image_desc desc = {.image_width = width, .image_height = height, .image_depth = depth, .image_row_pitch = row};
	return new_image(context, flags, format, &desc, host, errcode);
}

GMT_HOOK cl_mem clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet, cl_uint packets,
			     const cl_pipe_properties *properties, cl_int *errcode)
{
	(void)properties;
	return fake_new_memory(context, flags, (size_t)packet * packets, NULL, errcode);
}

static cl_int on_two(cl_command_queue queue, cl_mem source, cl_mem destination, cl_uint waits, const cl_event *list, cl_event *event)
{
	cl_mem both[] = {source, destination};
	return fake_submit(queue, CL_FALSE, 2, both, waits, list, event);
}

/* Whether what a copy from or to an image touches lies in the buffer. */
static bool inside(cl_mem image, cl_mem buffer, const size_t *region, size_t offset)
{
	FAKE_LOCKED;
	if (!fake_alive(image, FAKE_MEMORY) || !fake_alive(buffer, FAKE_MEMORY))
		return true; /* another error */
	fake_not_fragile(buffer);
	size_t bytes = region[0] * region[1] * region[2] * image->element;
	return fake.copiesbeyond || (offset <= buffer->size && bytes <= buffer->size - offset);
}

GMT_HOOK cl_int clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem image, cl_mem buffer, const size_t *origin,
					   const size_t *region, size_t offset, cl_uint waits, const cl_event *list, cl_event *event)
{
	return origin && region && inside(image, buffer, region, offset) ? on_two(queue, image, buffer, waits, list, event)
									 : CL_INVALID_VALUE;
}

GMT_HOOK cl_int clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem buffer, cl_mem image, size_t offset,
					   const size_t *origin, const size_t *region, cl_uint waits, const cl_event *list,
					   cl_event *event)
{
	return origin && region && inside(image, buffer, region, offset) ? on_two(queue, buffer, image, waits, list, event)
									 : CL_INVALID_VALUE;
}

/* An image of a buffer has one row. */
static bool inside_row(cl_mem image, const size_t *origin, const size_t *region)
{
	return origin && region && !origin[1] && !origin[2] && region[1] == 1 && region[2] == 1 &&
	       (origin[0] + region[0]) * image->element <= image->size;
}

GMT_HOOK cl_int clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin,
				   const size_t *region, size_t row, size_t slice, void *pointer, cl_uint waits,
				   const cl_event *list, cl_event *event)
{
	(void)row, (void)slice;
	cl_mem base;
	{
		FAKE_LOCKED;
		base = fake_alive(image, FAKE_MEMORY) ? image->parent : NULL;
	}
	if (!base)
		return fake_submit(queue, blocking, 1, &image, waits, list, event);
	if (!inside_row(image, origin, region))
		return CL_INVALID_VALUE;
	struct fake_action action = {.kind = FAKE_READ, .from = origin[0] * image->element, .size = region[0] * image->element, .host.out = pointer};
	cl_mem shown = fake.imagesofwholes == 2 && base->parent ? base->parent : base;
	return fake_submit_action(queue, blocking, 1, &shown, &action, waits, list, event);
}

GMT_HOOK cl_int clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin,
				    const size_t *region, size_t row, size_t slice, const void *pointer, cl_uint waits,
				    const cl_event *list, cl_event *event)
{
	(void)slice;
	bool alive;
	{
		FAKE_LOCKED;
		alive = fake_alive(image, FAKE_MEMORY);
	}
	if (alive && image->parent && !inside_row(image, origin, region))
		return CL_INVALID_VALUE;
	if (!alive || !origin || !region || origin[0] || origin[1] || origin[2])
		return fake_submit(queue, blocking, 1, &image, waits, list, event);
	struct fake_action action = {
		.kind = FAKE_WRITE, .size = region[0] * image->element, .region = {0, region[1] * region[2], 0}, .host.in = pointer,
		.row = row ? row : region[0] * image->element,
	};
	return fake_submit_action(queue, blocking, 1, &image, &action, waits, list, event);
}

GMT_HOOK cl_int clEnqueueCopyImage(cl_command_queue queue, cl_mem source, cl_mem destination, const size_t *from,
				   const size_t *to, const size_t *region, cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)from, (void)to, (void)region;
	return on_two(queue, source, destination, waits, list, event);
}

GMT_HOOK cl_int clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void *colour, const size_t *origin,
				   const size_t *region, cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)colour, (void)origin, (void)region;
	return fake_submit(queue, CL_FALSE, 1, &image, waits, list, event);
}
