/* hook_gl.c: memory whose storage belongs to OpenGL: tracked, never pooled. The driver reports its size. */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/tags.h"
#include "../registry/created.h"
#include "command.h"

static cl_mem note_gl_memory_created(struct gmt_call *call, const struct gmt_caller *caller, cl_context context, cl_mem_flags flags, cl_mem handle,
		      cl_int error, cl_int *errcode)
{
	size_t size = 0;
	gmt_driver_returned(call);
	if (handle && gmt_driver.clGetMemObjectInfo(handle, CL_MEM_SIZE, sizeof size, &size, NULL) != CL_SUCCESS)
		size = 0;
	struct gmt_created c = {
		.handle = handle,
		.kind = GMT_MEMORY_EXTERNAL,
		.context = gmt_context_find(context),
		.size = size,
		.flags = flags,
		.tag = gmt_tag(call, caller, size),
		.served = {.outcome = handle ? GMT_OUTCOME_DRIVER : GMT_OUTCOME_FAILED},
	};
	gmt_created_register_and_write(call, &c, error);
	if (errcode)
		*errcode = error;
	gmt_leave();
	return handle;
}

#define CREATE(expression)                                                                                             \
	cl_int error = CL_SUCCESS;                                                                                     \
	cl_mem handle = (expression);                                                                                  \
	return note_gl_memory_created(&call, &GMT_CALLER, context, flags, handle, error, errcode)

GMT_HOOK cl_mem clCreateFromGLBuffer(cl_context context, cl_mem_flags flags, cl_GLuint object, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clCreateFromGLBuffer(context, flags, object, errcode);
	CREATE(gmt_driver.clCreateFromGLBuffer(context, flags, object, &error));
}

GMT_HOOK cl_mem clCreateFromGLRenderbuffer(cl_context context, cl_mem_flags flags, cl_GLuint object, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clCreateFromGLRenderbuffer(context, flags, object, errcode);
	CREATE(gmt_driver.clCreateFromGLRenderbuffer(context, flags, object, &error));
}

GMT_HOOK cl_mem clCreateFromGLTexture(cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint level, cl_GLuint texture,
				      cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clCreateFromGLTexture(context, flags, target, level, texture, errcode);
	CREATE(gmt_driver.clCreateFromGLTexture(context, flags, target, level, texture, &error));
}

GMT_HOOK cl_mem clCreateFromGLTexture2D(cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint level, cl_GLuint texture,
					cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clCreateFromGLTexture2D(context, flags, target, level, texture, errcode);
	CREATE(gmt_driver.clCreateFromGLTexture2D(context, flags, target, level, texture, &error));
}

GMT_HOOK cl_mem clCreateFromGLTexture3D(cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint level, cl_GLuint texture,
					cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter_until(&call))
		return gmt_driver.clCreateFromGLTexture3D(context, flags, target, level, texture, errcode);
	CREATE(gmt_driver.clCreateFromGLTexture3D(context, flags, target, level, texture, &error));
}

GMT_HOOK cl_int clEnqueueAcquireGLObjects(cl_command_queue queue, cl_uint count, const cl_mem *memories, cl_uint waits,
					  const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_ACQUIRE, __func__))
		return gmt_driver.clEnqueueAcquireGLObjects(queue, count, memories, waits, list, event);
	gmt_command_uses_all(&command, count, memories);
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueAcquireGLObjects(queue, count, memories, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}

GMT_HOOK cl_int clEnqueueReleaseGLObjects(cl_command_queue queue, cl_uint count, const cl_mem *memories, cl_uint waits,
					  const cl_event *list, cl_event *event)
{
	struct gmt_command command;
	if (!gmt_command_begin(&command, queue, GMT_COMMAND_RELEASE, __func__))
		return gmt_driver.clEnqueueReleaseGLObjects(queue, count, memories, waits, list, event);
	gmt_command_uses_all(&command, count, memories);
	cl_int err;
	GMT_TRY(err, command, gmt_driver.clEnqueueReleaseGLObjects(queue, count, memories, waits, list, event));
	return gmt_command_end(&command, err, false, GMT_WAIT_LIST);
}
