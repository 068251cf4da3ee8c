/*
 * hook_destructor.c: callbacks at the end of memory. The driver calls them when its object ends, in its own order, so
 * memory with callbacks is not recycled.
 */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../entry/start.h"
#include "../registry/finding.h"
#include "../registry/memory.h"

#include <stdlib.h>

struct destructor {
	void(CL_CALLBACK *notify)(cl_mem, void *);
	void *data;
};

static void CL_CALLBACK call_destructor(cl_mem handle, void *data)
{
	struct destructor callback = *(struct destructor *)data;
	free(data);
	struct gmt_callback before = gmt_callback_begin();
	callback.notify(handle, callback.data);
	gmt_callback_end(before);
}

static cl_int set_destructor_callback(cl_mem handle, void(CL_CALLBACK *notify)(cl_mem, void *), void *data)
{
	struct destructor *ours = notify ? malloc(sizeof *ours) : NULL;
	if (!ours)
		return gmt_driver.clSetMemObjectDestructorCallback(handle, notify, data);
	*ours = (struct destructor){notify, data};
	cl_int err = gmt_driver.clSetMemObjectDestructorCallback(handle, call_destructor, ours);
	if (err != CL_SUCCESS)
		free(ours);
	return err;
}

GMT_HOOK cl_int clSetMemObjectDestructorCallback(cl_mem handle, void(CL_CALLBACK *notify)(cl_mem, void *), void *data)
{
	if (!gmt_enter_untimed())
		return gmt_driver.clSetMemObjectDestructorCallback(handle, notify, data);
	struct gmt_memory *memory = gmt_memory_find(handle);
	if (!memory && handle)
		gmt_finding_freed_handle(GMT_DIAG_USE_AFTER_RELEASE, __func__, handle);
	cl_int err = CL_INVALID_MEM_OBJECT;
	if (!memory || !gmt_finding_released(memory, __func__))
		err = set_destructor_callback(handle, notify, data);
	if (memory && err == CL_SUCCESS)
		atomic_store(memory->slab ? &memory->has_destructor : &memory->no_reuse, 1);
	gmt_leave();
	return err;
}
