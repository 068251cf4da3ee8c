/*
 * shares.c: a layer for the loader (OPENCL_LAYERS) that gives any driver buffers of OpenGL, so far as commands can tell: memory of its
 * own, which commands acquire and release by doing nothing.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_layer.h>
#include <string.h>

static cl_icd_dispatch next, table;

static cl_mem CL_API_CALL create(cl_context context, cl_mem_flags flags, cl_GLuint object, cl_int *errcode)
{
	return next.clCreateBuffer(context, flags, object, NULL, errcode);
}

static cl_int CL_API_CALL share(cl_command_queue queue, cl_uint count, const cl_mem *memories, cl_uint waits, const cl_event *list,
				cl_event *event)
{
	return count && memories ? next.clEnqueueMarkerWithWaitList(queue, waits, list, event) : CL_INVALID_VALUE;
}

cl_int clInitLayer(cl_uint count, const cl_icd_dispatch *target, cl_uint *got, const cl_icd_dispatch **ours)
{
	memcpy(&next, target, count * sizeof(void *) < sizeof next ? count * sizeof(void *) : sizeof next);
	table.clCreateFromGLBuffer = create;
	table.clEnqueueAcquireGLObjects = table.clEnqueueReleaseGLObjects = share;
	*got = sizeof table / sizeof(void *) < count ? sizeof table / sizeof(void *) : count;
	*ours = &table;
	return CL_SUCCESS;
}

cl_int clGetLayerInfo(cl_layer_info what, size_t room, void *value, size_t *needed)
{
	cl_layer_api_version version = CL_LAYER_API_VERSION_100;
	if (what != CL_LAYER_API_VERSION || room < sizeof version || !value)
		return CL_INVALID_VALUE;
	memcpy(value, &version, sizeof version);
	if (needed)
		*needed = sizeof version;
	return CL_SUCCESS;
}
