/* fake_more.c: native kernels, migration, memory of OpenGL, shared virtual memory. */
#define _GNU_SOURCE
#include "fake_objects.h"

#include <stdlib.h>
#include <string.h>

static cl_int on_list(cl_command_queue queue, cl_uint count, const cl_mem *memories, cl_uint waits, const cl_event *list,
		      cl_event *event)
{
	if (count == 0 || !memories || count > FAKE_USES)
		return CL_INVALID_VALUE;
	return fake_submit(queue, CL_FALSE, count, memories, waits, list, event);
}

/* At once, with a copy of its arguments. */
static void run_native(void(CL_CALLBACK *function)(void *), void *arguments, size_t bytes, cl_uint count, const cl_mem *memories,
		       const void **places)
{
	char *copy = malloc(bytes ? bytes : 1);
	if (!copy)
		fake_fail("out of memory");
	memcpy(copy, arguments, bytes);
	fake_lock();
	for (cl_uint i = 0; i < count; i++) {
		fake_not_fragile(memories[i]);
		unsigned char *pointer = fake_bytes(memories[i], 0);
		memcpy(copy + ((const char *)places[i] - (const char *)arguments), &pointer, sizeof pointer);
	}
	fake_unlock(NULL);
	function(copy);
	free(copy);
}

GMT_HOOK cl_int clEnqueueNativeKernel(cl_command_queue queue, void(CL_CALLBACK *function)(void *), void *arguments, size_t bytes,
				      cl_uint count, const cl_mem *memories, const void **places, cl_uint waits,
				      const cl_event *list, cl_event *event)
{
	if (fake.runnative && function)
		run_native(function, arguments, bytes, count, memories, places);
	return function ? on_list(queue, count, memories, waits, list, event) : CL_INVALID_VALUE;
}

GMT_HOOK cl_int clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count, const cl_mem *memories,
					   cl_mem_migration_flags flags, cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)flags;
	return on_list(queue, count, memories, waits, list, event);
}

void *fake_allocate(cl_context context, size_t size, cl_int *errcode)
{
	FAKE_LOCKED;
	void *pointer = NULL;
	cl_int error = !fake_alive(context, FAKE_CONTEXT) ? CL_INVALID_CONTEXT : size ? CL_SUCCESS : CL_INVALID_BUFFER_SIZE;
	if (error == CL_SUCCESS && size > fake.largest)
		error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	if (error == CL_SUCCESS && context->terminated)
		error = CL_CONTEXT_TERMINATED_KHR;
	if (error == CL_SUCCESS) {
		pointer = malloc(size);
		fake.livepointers++;
	}
	if (errcode)
		*errcode = error;
	return pointer;
}

cl_int fake_free(cl_context context, void *pointer)
{
	FAKE_LOCKED;
	if (!fake_alive(context, FAKE_CONTEXT))
		return CL_INVALID_CONTEXT;
	fake.livepointers -= pointer != NULL;
	free(pointer);
	return CL_SUCCESS;
}

GMT_HOOK void *clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
	(void)flags, (void)alignment;
	return fake_allocate(context, size, NULL);
}

GMT_HOOK void clSVMFree(cl_context context, void *pointer)
{
	fake_free(context, pointer);
}

GMT_HOOK cl_int clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void *pointers[],
				 void(CL_CALLBACK *notify)(cl_command_queue, cl_uint, void *[], void *), void *data, cl_uint waits,
				 const cl_event *list, cl_event *event)
{
	FAKE_LOCKED;
	if (count == 0 || !pointers)
		return CL_INVALID_VALUE;
	cl_int err = fake_submit(queue, CL_FALSE, 0, NULL, waits, list, event);
	if (err != CL_SUCCESS)
		return err;
	if (notify)
		notify(queue, count, pointers, data);
	for (cl_uint i = 0; !notify && i < count; i++)
		fake_free(queue->context, pointers[i]);
	return CL_SUCCESS;
}

/* Their contents change at once: nothing here looks at them later. */
static cl_int on_pointers(cl_command_queue queue, cl_bool blocking, bool valid, cl_uint waits, const cl_event *list, cl_event *event)
{
	return valid ? fake_submit(queue, blocking, 0, NULL, waits, list, event) : CL_INVALID_VALUE;
}

GMT_HOOK cl_int clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t size,
				   cl_uint waits, const cl_event *list, cl_event *event)
{
	cl_int err = on_pointers(queue, blocking, to && from, waits, list, event);
	if (err == CL_SUCCESS)
		memcpy(to, from, size);
	return err;
}

GMT_HOOK cl_int clEnqueueSVMMemFill(cl_command_queue queue, void *pointer, const void *pattern, size_t patternsize, size_t size,
				    cl_uint waits, const cl_event *list, cl_event *event)
{
	cl_int err = on_pointers(queue, CL_FALSE, pointer && pattern && patternsize, waits, list, event);
	for (size_t i = 0; err == CL_SUCCESS && i < size; i++)
		((char *)pointer)[i] = ((const char *)pattern)[i % patternsize];
	return err;
}

GMT_HOOK cl_int clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void *pointer, size_t size,
				cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)flags;
	return on_pointers(queue, blocking, pointer && size, waits, list, event);
}

GMT_HOOK cl_int clEnqueueSVMUnmap(cl_command_queue queue, void *pointer, cl_uint waits, const cl_event *list, cl_event *event)
{
	return on_pointers(queue, CL_FALSE, pointer != NULL, waits, list, event);
}

GMT_HOOK cl_int clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint count, const void **pointers, const size_t *sizes,
				       cl_mem_migration_flags flags, cl_uint waits, const cl_event *list, cl_event *event)
{
	(void)sizes, (void)flags;
	return on_pointers(queue, CL_FALSE, count && pointers, waits, list, event);
}

/* Every object of OpenGL has 4096 bytes; there is none with the name 0. */
static cl_mem from_gl(cl_context context, cl_mem_flags flags, cl_GLuint object, cl_int *errcode)
{
	if (object)
		return fake_new_memory(context, flags, 4096, NULL, errcode);
	if (errcode)
		*errcode = CL_INVALID_GL_OBJECT;
	return NULL;
}

GMT_HOOK cl_mem clCreateFromGLBuffer(cl_context context, cl_mem_flags flags, cl_GLuint object, cl_int *errcode)
{
	return from_gl(context, flags, object, errcode);
}

GMT_HOOK cl_mem clCreateFromGLRenderbuffer(cl_context context, cl_mem_flags flags, cl_GLuint object, cl_int *errcode)
{
	return from_gl(context, flags, object, errcode);
}

GMT_HOOK cl_mem clCreateFromGLTexture(cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint level, cl_GLuint texture,
				      cl_int *errcode)
{
	(void)target, (void)level;
	return from_gl(context, flags, texture, errcode);
}

GMT_HOOK cl_mem clCreateFromGLTexture2D(cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint level, cl_GLuint texture,
					cl_int *errcode)
{
	(void)target, (void)level;
	return from_gl(context, flags, texture, errcode);
}

GMT_HOOK cl_mem clCreateFromGLTexture3D(cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint level, cl_GLuint texture,
					cl_int *errcode)
{
	(void)target, (void)level;
	return from_gl(context, flags, texture, errcode);
}

GMT_HOOK cl_int clEnqueueAcquireGLObjects(cl_command_queue queue, cl_uint count, const cl_mem *memories, cl_uint waits,
					  const cl_event *list, cl_event *event)
{
	return on_list(queue, count, memories, waits, list, event);
}

GMT_HOOK cl_int clEnqueueReleaseGLObjects(cl_command_queue queue, cl_uint count, const cl_mem *memories, cl_uint waits,
					  const cl_event *list, cl_event *event)
{
	return on_list(queue, count, memories, waits, list, event);
}
