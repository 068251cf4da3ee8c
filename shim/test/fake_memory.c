/* fake_memory.c: memory objects and the commands on them; shared virtual memory; extension functions. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <stdlib.h>
#include <string.h>

#define STORAGE_MAX (1u << 20) /* larger buffers cannot be mapped */

cl_mem fake_root(cl_mem memory)
{
	while (memory->parent)
		memory = memory->parent;
	return memory;
}

void fake_memory_ends(cl_mem memory)
{
	for (struct fake_callback *c = memory->callbacks; c;) {
		struct fake_callback *next = c->next;
		c->notify(memory, c->data);
		free(c);
		c = next;
	}
	fake.livememory--;
	if (memory->parent)
		fake_drop(memory->parent);
	else
		fake.livebytes -= memory->size;
	free(memory->storage);
	fake_drop(memory->context);
}

size_t fake_size(cl_mem memory)
{
	FAKE_LOCKED;
	return fake_alive(memory, FAKE_MEMORY) ? memory->size : 0;
}

void fake_hand_out(cl_mem memory)
{
	FAKE_LOCKED;
	if (fake_alive(memory, FAKE_MEMORY))
		memory->owner++;
}

static bool out_of_luck(cl_int *error)
{
	if (fake.failcreates == 0)
		return false;
	fake.failcreates--;
	*error = fake.createerror;
	return true;
}

static cl_mem new_memory(cl_context context, cl_mem_flags flags, size_t size, cl_mem parent, cl_int *errcode)
{
	FAKE_LOCKED;
	cl_int error = CL_SUCCESS;
	if (!fake_alive(context, FAKE_CONTEXT))
		error = CL_INVALID_CONTEXT;
	else if (size == 0 || size > fake.largest)
		error = CL_INVALID_BUFFER_SIZE;
	else if (!out_of_luck(&error) && !parent && fake.cap && fake.livebytes + size > fake.cap)
		error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	if (errcode)
		*errcode = error;
	if (error != CL_SUCCESS) {
		fake.failed++;
		return NULL;
	}
	cl_mem memory = fake_new(FAKE_MEMORY, sizeof *memory);
	memory->context = context;
	memory->flags = flags;
	memory->size = size;
	memory->parent = parent;
	fake_hold(context);
	fake.creates++;
	fake.livememory++;
	if (parent)
		fake_hold(parent);
	else
		fake.livebytes += size;
	return memory;
}

static bool host_matches(cl_mem_flags flags, const void *host, cl_int *errcode)
{
	if (!host == !(flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)))
		return true;
	if (errcode)
		*errcode = CL_INVALID_HOST_PTR;
	return false;
}

GMT_HOOK cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *errcode)
{
	return host_matches(flags, host, errcode) ? new_memory(context, flags, size, NULL, errcode) : NULL;
}

GMT_HOOK cl_mem clCreateBufferWithProperties(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
					     size_t size, void *host, cl_int *errcode)
{
	(void)properties;
	return clCreateBuffer(context, flags, size, host, errcode);
}

GMT_HOOK cl_mem clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *errcode)
{
	FAKE_LOCKED;
	const cl_buffer_region *region = info;
	cl_int error = CL_SUCCESS;
	if (!fake_alive(buffer, FAKE_MEMORY) || buffer->parent)
		error = CL_INVALID_MEM_OBJECT;
	else if (!region || type != CL_BUFFER_CREATE_TYPE_REGION || region->origin > buffer->size ||
		 region->size > buffer->size - region->origin)
		error = CL_INVALID_VALUE;
	if (error == CL_SUCCESS)
		return new_memory(buffer->context, flags, region->size, buffer, errcode);
	if (errcode)
		*errcode = error;
	return NULL;
}

static cl_mem new_image(cl_context context, cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc,
			cl_int *errcode)
{
	FAKE_LOCKED;
	if (!format || !desc) {
		if (errcode)
			*errcode = format ? CL_INVALID_IMAGE_DESCRIPTOR : CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
		return NULL;
	}
	size_t height = desc->image_height ? desc->image_height : 1, depth = desc->image_depth ? desc->image_depth : 1;
	cl_mem base = desc->mem_object && fake_alive(desc->mem_object, FAKE_MEMORY) ? desc->mem_object : NULL;
	cl_mem image = new_memory(context, flags, desc->image_width * height * depth * 4, base, errcode);
	if (image)
		image->element = 4;
	return image;
}

GMT_HOOK cl_mem clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc,
			      void *host, cl_int *errcode)
{
	(void)host;
	return new_image(context, flags, format, desc, errcode);
}

GMT_HOOK cl_mem clCreateImageWithProperties(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
					    const cl_image_format *format, const cl_image_desc *desc, void *host, cl_int *errcode)
{
	(void)properties, (void)host;
	return new_image(context, flags, format, desc, errcode);
}

GMT_HOOK cl_mem clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width,
				size_t height, size_t pitch, void *host, cl_int *errcode)
{
	(void)pitch, (void)host;
	return new_image(context, flags, format, &(cl_image_desc){.image_width = width, .image_height = height}, errcode);
}

GMT_HOOK cl_mem clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width,
				size_t height, size_t depth, size_t row, size_t slice, void *host, cl_int *errcode)
{
	(void)row, (void)slice, (void)host;
	cl_image_desc desc = {.image_width = width, .image_height = height, .image_depth = depth};
	return new_image(context, flags, format, &desc, errcode);
}

GMT_HOOK cl_mem clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet, cl_uint packets,
			     const cl_pipe_properties *properties, cl_int *errcode)
{
	(void)properties;
	return new_memory(context, flags, (size_t)packet * packets, NULL, errcode);
}

GMT_HOOK cl_int clRetainMemObject(cl_mem memory)
{
	return fake_retain(memory, FAKE_MEMORY, CL_INVALID_MEM_OBJECT);
}

GMT_HOOK cl_int clReleaseMemObject(cl_mem memory)
{
	fake.releases++;
	return fake_release(memory, FAKE_MEMORY, CL_INVALID_MEM_OBJECT);
}

GMT_HOOK cl_int clGetMemObjectInfo(cl_mem memory, cl_mem_info what, size_t room, void *out, size_t *needed)
{
	FAKE_LOCKED;
	if (!fake_alive(memory, FAKE_MEMORY))
		return CL_INVALID_MEM_OBJECT;
	if (what == CL_MEM_SIZE)
		return fake_answer(&memory->size, sizeof memory->size, room, out, needed);
	if (what == CL_MEM_FLAGS)
		return fake_answer(&memory->flags, sizeof memory->flags, room, out, needed);
	if (what == CL_MEM_REFERENCE_COUNT)
		return fake_answer(&memory->object.references, sizeof(cl_uint), room, out, needed);
	if (what == CL_MEM_MAP_COUNT)
		return fake_answer(&memory->maps, sizeof memory->maps, room, out, needed);
	return CL_INVALID_VALUE;
}

GMT_HOOK cl_int clGetImageInfo(cl_mem image, cl_image_info what, size_t room, void *out, size_t *needed)
{
	FAKE_LOCKED;
	if (!fake_alive(image, FAKE_MEMORY) || !image->element)
		return CL_INVALID_MEM_OBJECT;
	return what == CL_IMAGE_ELEMENT_SIZE ? fake_answer(&image->element, sizeof(size_t), room, out, needed) : CL_INVALID_VALUE;
}

GMT_HOOK cl_int clSetMemObjectDestructorCallback(cl_mem memory, void(CL_CALLBACK *notify)(cl_mem, void *), void *data)
{
	FAKE_LOCKED;
	if (!fake_alive(memory, FAKE_MEMORY))
		return CL_INVALID_MEM_OBJECT;
	struct fake_callback *callback = notify ? malloc(sizeof *callback) : NULL;
	if (!callback)
		return CL_INVALID_VALUE;
	*callback = (struct fake_callback){memory->callbacks, notify, data};
	memory->callbacks = callback;
	return CL_SUCCESS;
}

/* A command on one range of a buffer, with the driver's own check. */
static cl_int on_range(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, const void *pointer,
		       cl_uint waits, const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	if (fake_alive(buffer, FAKE_MEMORY) && (!pointer || offset > buffer->size || size > buffer->size - offset))
		return CL_INVALID_VALUE;
	return fake_submit(queue, blocking, 1, &buffer, waits, list, event);
}

static cl_int on_two(cl_command_queue queue, cl_mem source, cl_mem destination, cl_uint waits, const cl_event *list, cl_event *event)
{
	cl_mem both[] = {source, destination};
	return fake_submit(queue, CL_FALSE, 2, both, waits, list, event);
}

static size_t last_byte(const size_t *origin, const size_t *region, size_t row, size_t slice)
{
	row = row ? row : region[0];
	slice = slice ? slice : row * region[1];
	return (origin[2] + region[2] - 1) * slice + (origin[1] + region[1] - 1) * row + origin[0] + region[0];
}

GMT_HOOK cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				    void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	return on_range(queue, buffer, blocking, offset, size, pointer, waits, list, event);
}

GMT_HOOK cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				     const void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	return on_range(queue, buffer, blocking, offset, size, pointer, waits, list, event);
}

GMT_HOOK cl_int clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
					const size_t *hostorigin, const size_t *region, size_t row, size_t slice, size_t hostrow,
					size_t hostslice, void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)hostrow, (void)hostslice;
	if (!origin || !hostorigin || !region)
		return CL_INVALID_VALUE;
	return on_range(queue, buffer, blocking, 0, last_byte(origin, region, row, slice), pointer, waits, list, event);
}

GMT_HOOK cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin,
					 const size_t *hostorigin, const size_t *region, size_t row, size_t slice, size_t hostrow,
					 size_t hostslice, const void *pointer, cl_uint waits, const cl_event *list,
					 cl_event *event)
{
	(void)hostrow, (void)hostslice;
	if (!origin || !hostorigin || !region)
		return CL_INVALID_VALUE;
	return on_range(queue, buffer, blocking, 0, last_byte(origin, region, row, slice), pointer, waits, list, event);
}

GMT_HOOK cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem source, cl_mem destination, size_t from, size_t to,
				    size_t size, cl_uint waits, const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	if (!fake_alive(source, FAKE_MEMORY) || !fake_alive(destination, FAKE_MEMORY))
		return CL_INVALID_MEM_OBJECT;
	if (from + size > source->size || to + size > destination->size)
		return CL_INVALID_VALUE;
	return on_two(queue, source, destination, waits, list, event);
}

GMT_HOOK cl_int clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem source, cl_mem destination, const size_t *from,
					const size_t *to, const size_t *region, size_t row, size_t slice, size_t torow,
					size_t toslice, cl_uint waits, const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	if (!fake_alive(source, FAKE_MEMORY) || !fake_alive(destination, FAKE_MEMORY))
		return CL_INVALID_MEM_OBJECT;
	if (!from || !to || !region || last_byte(from, region, row, slice) > source->size ||
	    last_byte(to, region, torow, toslice) > destination->size)
		return CL_INVALID_VALUE;
	return on_two(queue, source, destination, waits, list, event);
}

GMT_HOOK cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t patternsize, size_t offset,
				    size_t size, cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)patternsize;
	return on_range(queue, buffer, CL_FALSE, offset, size, pattern, waits, list, event);
}

GMT_HOOK cl_int clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem image, cl_mem buffer, const size_t *origin,
					   const size_t *region, size_t offset, cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)offset;
	return origin && region ? on_two(queue, image, buffer, waits, list, event) : CL_INVALID_VALUE;
}

GMT_HOOK cl_int clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem buffer, cl_mem image, size_t offset,
					   const size_t *origin, const size_t *region, cl_uint waits, const cl_event *list,
					   cl_event *event)
{
	(void)offset;
	return origin && region ? on_two(queue, buffer, image, waits, list, event) : CL_INVALID_VALUE;
}

static void *map(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t end, cl_uint waits, const cl_event *list,
		 cl_event *event, cl_int *errcode)
{
	FAKE_LOCKED;
	cl_int error = CL_INVALID_MEM_OBJECT;
	if (fake_alive(memory, FAKE_MEMORY))
		error = end > memory->size || memory->size > STORAGE_MAX ? CL_INVALID_VALUE
									 : fake_submit(queue, blocking, 1, &memory, waits, list, event);
	if (errcode)
		*errcode = error;
	if (error != CL_SUCCESS)
		return NULL;
	memory->maps++;
	if (!memory->storage)
		memory->storage = malloc(memory->size);
	return memory->storage;
}

GMT_HOOK void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
				  size_t size, cl_uint waits, const cl_event *list, cl_event *event, cl_int *errcode)
{
	(void)flags;
	return map(queue, buffer, blocking, offset + size, waits, list, event, errcode);
}

GMT_HOOK void *clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking, cl_map_flags flags,
				 const size_t *origin, const size_t *region, size_t *row, size_t *slice, cl_uint waits,
				 const cl_event *list, cl_event *event, cl_int *errcode)
{
	(void)flags, (void)origin, (void)region, (void)row, (void)slice;
	return map(queue, image, blocking, 0, waits, list, event, errcode);
}

GMT_HOOK cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void *pointer, cl_uint waits,
					const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	if (!fake_alive(memory, FAKE_MEMORY))
		return CL_INVALID_MEM_OBJECT;
	if (!pointer || memory->maps == 0)
		return CL_INVALID_VALUE;
	cl_int err = fake_submit(queue, CL_FALSE, 1, &memory, waits, list, event);
	memory->maps -= err == CL_SUCCESS;
	return err;
}
