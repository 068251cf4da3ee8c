/* fake_memory.c: memory objects and what is asked of them. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <stdlib.h>
#include <string.h>

cl_mem fake_root(cl_mem memory)
{
	while (memory->parent)
		memory = memory->parent;
	return memory;
}

static void call_back(cl_mem memory)
{
	for (struct fake_callback *c; (c = memory->callbacks);) {
		memory->callbacks = c->next;
		c->notify(memory, c->data);
		free(c);
	}
}

void fake_memory_ends(cl_mem memory)
{
	call_back(memory);
	fake.livememory--;
	if (memory->parent && !memory->element)
		memory->parent->parts--;
	if (memory->parent)
		fake_drop(memory->parent);
	else
		fake.livebytes -= memory->size;
	free(memory->storage);
	if (memory->last)
		fake_drop(memory->last);
	fake_drop(memory->context);
}

void fake_not_fragile(cl_mem memory)
{
	if (fake.fragile && memory->parent && !memory->element)
		fake_fail("a sub-buffer in a command that drivers get wrong");
}

size_t fake_size(cl_mem memory)
{
	FAKE_LOCKED;
	return fake_alive(memory, FAKE_MEMORY) ? memory->size : 0;
}

cl_mem_flags fake_flags(cl_mem memory)
{
	FAKE_LOCKED;
	return fake_alive(memory, FAKE_MEMORY) ? memory->flags : 0;
}

void fake_hand_out(cl_mem memory)
{
	FAKE_LOCKED;
	if (fake_alive(memory, FAKE_MEMORY))
		memory->owner++;
}

static uint64_t births;

bool fake_out_of_luck(cl_int *error)
{
	if (fake.failcreates == 0)
		return false;
	fake.failcreates--;
	*error = fake.createerror;
	return true;
}

cl_mem fake_new_memory(cl_context context, cl_mem_flags flags, size_t size, cl_mem parent, cl_int *errcode)
{
	FAKE_LOCKED;
	cl_int error = CL_SUCCESS;
	if (!fake_alive(context, FAKE_CONTEXT))
		error = CL_INVALID_CONTEXT;
	else if (context->terminated)
		error = CL_CONTEXT_TERMINATED_KHR;
	else if (size == 0 || size > fake.largest)
		error = CL_INVALID_BUFFER_SIZE;
	else if (!fake_out_of_luck(&error) && !parent && fake.cap && fake.livebytes + size > fake.cap)
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
	fake.copies += (flags & CL_MEM_COPY_HOST_PTR) != 0;
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

static cl_mem new_buffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *errcode)
{
	FAKE_LOCKED;
	cl_mem buffer = host_matches(flags, host, errcode) ? fake_new_memory(context, flags || !fake.givesaccess ? flags : CL_MEM_READ_WRITE, size, NULL, errcode) : NULL;
	if (buffer && flags & CL_MEM_USE_HOST_PTR && fake.processor == 1)
		buffer->host = host;
	bool copies = flags & CL_MEM_COPY_HOST_PTR || (flags & CL_MEM_USE_HOST_PTR && fake.processor == 2);
	unsigned char *bytes = buffer && copies ? fake_bytes(buffer, 0) : NULL;
	if (bytes)
		memcpy(bytes, host, size);
	return buffer;
}

GMT_HOOK cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *errcode)
{
	cl_mem buffer = new_buffer(context, flags, size, host, errcode);
	void (*after)(size_t) = fake.aftercreate;
	if (after)
		after(buffer ? 0 : size);
	return buffer;
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
	const cl_mem_flags access = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY;
	const cl_mem_flags inherited = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR;
	const cl_buffer_region *region = info;
	cl_int error = CL_SUCCESS;
	if (!fake_alive(buffer, FAKE_MEMORY) || buffer->parent)
		error = CL_INVALID_MEM_OBJECT;
	else if (!region || type != CL_BUFFER_CREATE_TYPE_REGION || flags & inherited ||
		 (!fake.fragile && region->origin > buffer->size) || region->origin + region->size > buffer->size ||
		 (!fake.fragile && region->size > buffer->size))
		error = CL_INVALID_VALUE;
	else if (region->size && region->origin % (fake.alignbits / 8))
		error = CL_MISALIGNED_SUB_BUFFER_OFFSET;
	else if (fake.failparts && fake.failparts--)
		error = CL_OUT_OF_RESOURCES;
	cl_mem part = NULL;
	if (error == CL_SUCCESS)
		part = fake_new_memory(buffer->context, flags | (buffer->flags & (flags & access || !fake.givesaccess ? inherited : inherited | access)), region->size, buffer, &error);
	if (part) {
		part->origin = region->origin;
		part->born = ++births;
		buffer->parts++;
	}
	if (errcode)
		*errcode = error;
	return part;
}

GMT_HOOK cl_int clRetainMemObject(cl_mem memory)
{
	fake.queries++;
	return fake_retain(memory, FAKE_MEMORY, CL_INVALID_MEM_OBJECT);
}

GMT_HOOK cl_int clReleaseMemObject(cl_mem memory)
{
	fake.releases++;
	void (*before)(cl_mem) = fake.beforerelease;
	if (before)
		before(memory);
	fake_lock();
	if (memory && fake_alive(memory, FAKE_MEMORY) && memory->object.references == 1) {
		memory->died = ++births;
		if (fake.earlyends)
			call_back(memory);
	}
	fake_unlock(NULL);
	return fake_release(memory, FAKE_MEMORY, CL_INVALID_MEM_OBJECT);
}

GMT_HOOK cl_int clGetMemObjectInfo(cl_mem memory, cl_mem_info what, size_t room, void *out, size_t *needed)
{
	FAKE_LOCKED;
	fake.queries++;
	if (!fake_alive(memory, FAKE_MEMORY))
		return CL_INVALID_MEM_OBJECT;
	bool holds = fake.countcommands || fake.keepsarguments; /* sub-buffers among them */
	cl_uint references = fake_references(&memory->object, holds);
	cl_uint maps = fake.countparts && !memory->element ? (memory->parent ? 0 : memory->maps) : memory->maps;
	if (fake.countparts && !holds)
		references += memory->parts + maps;
	cl_mem none = NULL;
	if (what == CL_MEM_SIZE)
		return fake_answer(&memory->size, sizeof memory->size, room, out, needed);
	if (what == CL_MEM_FLAGS)
		return fake_answer(&memory->flags, sizeof memory->flags, room, out, needed);
	if (what == CL_MEM_REFERENCE_COUNT)
		return fake_answer(&references, sizeof references, room, out, needed);
	if (what == CL_MEM_MAP_COUNT)
		return fake_answer(&maps, sizeof maps, room, out, needed);
	if (what == CL_MEM_ASSOCIATED_MEMOBJECT)
		return fake_answer(&memory->parent, sizeof none, room, out, needed);
	if (what == CL_MEM_OFFSET)
		return fake_answer(&memory->origin, sizeof memory->origin, room, out, needed);
	if (what == CL_MEM_HOST_PTR) /* as some drivers do for what they allocate themselves */
		return fake_answer(memory->parent ? &memory->parent : &none, sizeof none, room, out, needed);
	return CL_INVALID_VALUE;
}

GMT_HOOK cl_int clGetImageInfo(cl_mem image, cl_image_info what, size_t room, void *out, size_t *needed)
{
	FAKE_LOCKED;
	if (!fake_alive(image, FAKE_MEMORY) || !image->element)
		return CL_INVALID_MEM_OBJECT;
	if (what == CL_IMAGE_BUFFER)
		return fake_answer(&image->parent, sizeof image->parent, room, out, needed);
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
