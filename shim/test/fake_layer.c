/* fake_layer.c: another vendor's layer. It counts buffers; its own functions call one another by their public names. */
#include "../base/opencl.h"

#include "fake_loader.h"

#include <string.h>

struct fake_layer fake_layer;
static cl_icd_dispatch next, table;

FAKE_EXPORT init_with_properties_fn clInitLayerWithProperties;

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *errcode)
{
	atomic_fetch_add(&fake_layer.creates, 1);
	return next.clCreateBuffer(context, flags, size, host, errcode);
}

cl_int clInitLayerWithProperties(cl_uint count, const cl_icd_dispatch *target, cl_uint *got, const cl_icd_dispatch **ours,
				 const cl_properties *properties)
{
	(void)properties;
	fake_layer.properties++;
	memcpy(&next, target, count * sizeof(void *));
	table.clCreateBuffer = create_buffer;
	*got = count;
	*ours = &table;
	return CL_SUCCESS;
}

FAKE_EXPORT cl_int clInitLayer(cl_uint count, const cl_icd_dispatch *target, cl_uint *got, const cl_icd_dispatch **ours)
{
	fake_layer.inits++;
	return clInitLayerWithProperties(count, target, got, ours, NULL);
}

FAKE_EXPORT cl_int clGetLayerInfo(cl_layer_info what, size_t room, void *value, size_t *needed)
{
	cl_layer_api_version version = CL_LAYER_API_VERSION_100;
	if (what != CL_LAYER_API_VERSION || room < sizeof version || !value)
		return CL_INVALID_VALUE;
	memcpy(value, &version, sizeof version);
	if (needed)
		*needed = sizeof version;
	return CL_SUCCESS;
}
