/* fake_more.c: native kernels, migration, memory of OpenGL, programs and samplers. */
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

GMT_HOOK cl_int clGetPipeInfo(cl_mem pipe, cl_pipe_info what, size_t room, void *out, size_t *needed)
{
	FAKE_LOCKED;
	const cl_uint packets = 1024;
	if (!fake_alive(pipe, FAKE_MEMORY))
		return CL_INVALID_MEM_OBJECT;
	return what == CL_PIPE_MAX_PACKETS ? fake_answer(&packets, sizeof packets, room, out, needed) : CL_INVALID_VALUE;
}

static cl_int from_no_gl(cl_mem memory)
{
	FAKE_LOCKED;
	return fake_alive(memory, FAKE_MEMORY) ? CL_INVALID_GL_OBJECT : CL_INVALID_MEM_OBJECT;
}

GMT_HOOK cl_int clGetGLObjectInfo(cl_mem memory, cl_gl_object_type *type, cl_GLuint *name)
{
	(void)type, (void)name;
	return from_no_gl(memory);
}

GMT_HOOK cl_int clGetGLTextureInfo(cl_mem memory, cl_gl_texture_info what, size_t room, void *out, size_t *needed)
{
	(void)what, (void)room, (void)out, (void)needed;
	return from_no_gl(memory);
}

static void *on_context(cl_context context, enum fake_type type, cl_int *errcode)
{
	FAKE_LOCKED;
	bool valid = fake_alive(context, FAKE_CONTEXT);
	if (errcode)
		*errcode = valid ? CL_SUCCESS : CL_INVALID_CONTEXT;
	return valid ? fake_new(type, sizeof(struct fake_object)) : NULL;
}

GMT_HOOK cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **texts, const size_t *lengths,
					      cl_int *errcode)
{
	(void)count, (void)texts, (void)lengths;
	return on_context(context, FAKE_PROGRAM, errcode);
}

GMT_HOOK cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id *devices, const size_t *lengths,
					      const unsigned char **binaries, cl_int *status, cl_int *errcode)
{
	(void)count, (void)devices, (void)lengths, (void)binaries, (void)status;
	return on_context(context, FAKE_PROGRAM, errcode);
}

GMT_HOOK cl_program clCreateProgramWithBuiltInKernels(cl_context context, cl_uint count, const cl_device_id *devices,
						      const char *names, cl_int *errcode)
{
	(void)count, (void)devices, (void)names;
	return on_context(context, FAKE_PROGRAM, errcode);
}

GMT_HOOK cl_program clCreateProgramWithIL(cl_context context, const void *code, size_t length, cl_int *errcode)
{
	(void)code, (void)length;
	return on_context(context, FAKE_PROGRAM, errcode);
}

static bool failed_later; /* the last build did, as its callback may learn; "later, too": as the call returns, too */

/* It calls back before it returns, and has no compiler. */
GMT_HOOK cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
			       void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
	(void)count, (void)devices;
	FAKE_LOCKED;
	if (!fake_alive(program, FAKE_PROGRAM))
		return CL_INVALID_PROGRAM;
	if (options && strcmp(options, "broken") == 0)
		return CL_BUILD_PROGRAM_FAILURE;
	failed_later = options && strncmp(options, "later", 5) == 0;
	if (notify)
		notify(program, data);
	return options && strcmp(options, "later, too") == 0 ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
}

GMT_HOOK cl_int clGetProgramInfo(cl_program program, cl_program_info what, size_t room, void *out, size_t *needed)
{
	cl_device_id device = fake_device();
	FAKE_LOCKED;
	if (!fake_alive(program, FAKE_PROGRAM) || what != CL_PROGRAM_DEVICES || room < sizeof device)
		return CL_INVALID_VALUE;
	memcpy(out, &device, sizeof device);
	*needed = sizeof device;
	return CL_SUCCESS;
}

GMT_HOOK cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_program_build_info what, size_t room, void *out,
				      size_t *needed)
{
	(void)needed;
	FAKE_LOCKED;
	if (!fake_alive(program, FAKE_PROGRAM) || device != fake_device() || what != CL_PROGRAM_BUILD_STATUS || room < sizeof(cl_build_status))
		return CL_INVALID_VALUE;
	*(cl_build_status *)out = failed_later ? CL_BUILD_ERROR : CL_BUILD_SUCCESS;
	return CL_SUCCESS;
}

GMT_HOOK cl_int clCompileProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options, cl_uint headers,
				 const cl_program *list, const char **names, void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
	(void)headers, (void)list, (void)names;
	return clBuildProgram(program, count, devices, options, notify, data);
}

/* It calls back before it returns. */
GMT_HOOK cl_program clLinkProgram(cl_context context, cl_uint count, const cl_device_id *devices, const char *options,
				  cl_uint programs, const cl_program *list, void(CL_CALLBACK *notify)(cl_program, void *), void *data,
				  cl_int *errcode)
{
	(void)count, (void)devices, (void)options, (void)programs, (void)list;
	cl_program program = on_context(context, FAKE_PROGRAM, errcode);
	if (program && notify)
		notify(program, data);
	return program;
}

GMT_HOOK cl_int clRetainProgram(cl_program program)
{
	return fake_retain(program, FAKE_PROGRAM, CL_INVALID_PROGRAM);
}

GMT_HOOK cl_int clReleaseProgram(cl_program program)
{
	return fake_release(program, FAKE_PROGRAM, CL_INVALID_PROGRAM);
}

GMT_HOOK cl_sampler clCreateSampler(cl_context context, cl_bool normalized, cl_addressing_mode addressing, cl_filter_mode filter,
				    cl_int *errcode)
{
	(void)normalized, (void)addressing, (void)filter;
	return on_context(context, FAKE_SAMPLER, errcode);
}

GMT_HOOK cl_sampler clCreateSamplerWithProperties(cl_context context, const cl_sampler_properties *properties, cl_int *errcode)
{
	(void)properties;
	return on_context(context, FAKE_SAMPLER, errcode);
}

GMT_HOOK cl_int clRetainSampler(cl_sampler sampler)
{
	return fake_retain(sampler, FAKE_SAMPLER, CL_INVALID_SAMPLER);
}

GMT_HOOK cl_int clReleaseSampler(cl_sampler sampler)
{
	return fake_release(sampler, FAKE_SAMPLER, CL_INVALID_SAMPLER);
}
