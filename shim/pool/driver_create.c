/* driver_create.c: see driver_create.h. */
#define _GNU_SOURCE
#include "driver_create.h"

#include "../base/dispatch.h"

static cl_mem within_budget(const struct gmt_request_for *r, cl_int *error)
{
	if (gmt_budget_cap(r->size) < r->size) {
		*error = CL_INVALID_BUFFER_SIZE;
		return NULL;
	}
	gmt_oom_forestall(r->size);
	if (!gmt_budget_take(r->size)) {
		*error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
		return NULL;
	}
	cl_context context = (cl_context)atomic_load(&r->context->object.handle);
	cl_mem handle = gmt_driver.clCreateBuffer(context, r->flags, r->size, r->host, error);
	if (!handle)
		gmt_budget_give(r->size);
	return handle;
}

cl_mem gmt_driver_create_once(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error)
{
	cl_mem handle = within_budget(r, error);
	gmt_driver_returned(call);
	return handle;
}

cl_mem gmt_driver_create(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error)
{
	cl_mem handle;
	struct gmt_shortage shortage = gmt_shortage();
	do {
		handle = gmt_driver_create_once(call, r, error);
	} while (!handle && gmt_oom_drain(&shortage, *error, r->size));
	return handle;
}
