/*
 * eager.c: see eager.h. Most drivers give memory its room on the device at the first command that uses it. So a create succeeds and
 * a kernel fails later, far from the code that could ask for less. A migration is also such a command. It runs on a queue of our
 * own, as an upload does (upload.c), so it waits for no command of the program.
 */
#define _GNU_SOURCE
#include "eager.h"

#include "../base/call.h"
#include "../base/dispatch.h"
#include "../base/leak_check.h"
#include "../base/ring.h"
#include "../base/session.h"
#include "oom.h"
#include "upload.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What a migration does on a device. */
enum { UNTRIED, GIVES_ROOM, NOT_SEEN, AT_CREATE, NO_ROOM, MISSING };

static const char *const say[] = {
	[NOT_SEEN] = "each buffer is migrated when it is created; what that does on a device with memory of its own cannot be seen from here",
	[AT_CREATE] = "there is nothing to do: this driver gives memory its room when it is created",
	[NO_ROOM] = "refused: on this driver a migration does not give memory its room",
	[MISSING] = "refused: migrations came with OpenCL 1.2, which this driver does not have",
};

/* Bytes of the trial's buffer. malloc maps what has more than 32 MiB (mallopt(3), M_MMAP_THRESHOLD), so the kernel counts it at once. */
enum { SAMPLE = 64 << 20, HALF = SAMPLE / 2 };

static cl_int migrate_on(cl_command_queue queue, cl_mem handle)
{
	cl_event done = NULL;
	cl_int err = gmt_driver.clEnqueueMigrateMemObjects(queue, 1, &handle, 0, 0, NULL, &done);
	if (err != CL_SUCCESS)
		return err;
	err = gmt_driver.clWaitForEvents(1, &done);
	gmt_driver.clReleaseEvent(done);
	return err == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ? CL_MEM_OBJECT_ALLOCATION_FAILURE : err;
}

static cl_int migrate_to_first(struct gmt_context *context, cl_mem handle)
{
	cl_command_queue queue = gmt_upload_queue(context);
	if (!queue)
		return CL_SUCCESS;
	cl_int err = migrate_on(queue, handle);
	gmt_upload_leave(context);
	return err;
}

/* Migrates to the other devices, on a new queue for each: contexts of several devices are rare. */
static cl_int migrate_to_others(const struct gmt_context *context, cl_mem handle)
{
	cl_device_id devices[64];
	size_t bytes = 0;
	cl_context of = (cl_context)atomic_load(&context->object.handle);
	cl_int err = gmt_driver.clGetContextInfo(of, CL_CONTEXT_DEVICES, sizeof devices, devices, &bytes);
	for (size_t i = 1; err == CL_SUCCESS && i < bytes / sizeof devices[0]; i++) {
		cl_command_queue queue = gmt_driver.clCreateCommandQueue(of, devices[i], 0, &err);
		if (!queue)
			return CL_SUCCESS;
		err = migrate_on(queue, handle);
		gmt_driver.clReleaseCommandQueue(queue);
	}
	return err;
}

static uint64_t mapped_bytes(void)
{
	unsigned long long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	if (!file || fscanf(file, "%llu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint8_t try_sample(struct gmt_context *context)
{
	cl_int err = CL_SUCCESS;
	uint64_t before = mapped_bytes();
	if (!before)
		return NOT_SEEN;
	cl_mem sample = gmt_driver.clCreateBuffer((cl_context)atomic_load(&context->object.handle), 0, SAMPLE, NULL, &err);
	if (!sample)
		return NOT_SEEN;
	uint64_t created = mapped_bytes();
	bool moved = migrate_to_first(context, sample) == CL_SUCCESS;
	uint64_t migrated = mapped_bytes();
	gmt_driver.clReleaseMemObject(sample);
	if (created >= before + HALF)
		return AT_CREATE;
	return !moved ? NOT_SEEN : migrated >= created + HALF ? GIVES_ROOM : NO_ROOM;
}

/* Where devices use the host's memory, the process grows when a buffer gets its room. Another thread may shrink it meanwhile. */
static uint8_t find_out_if_lazy(struct gmt_context *context)
{
	if (context->devices.old || !gmt_driver.clEnqueueMigrateMemObjects)
		return MISSING;
	if (context->devices.discrete || context->devices.largest < SAMPLE)
		return NOT_SEEN;
	gmt_leak_check_off();
	uint8_t seen = try_sample(context);
	if (seen == NO_ROOM)
		seen = try_sample(context);
	gmt_leak_check_on();
	return seen;
}

static bool must_migrate(struct gmt_context *context)
{
	uint8_t tried = atomic_load_explicit(&context->tried.eager, memory_order_relaxed);
	if (gmt_unlikely(tried == UNTRIED)) {
		tried = find_out_if_lazy(context);
		static _Atomic uint32_t said;
		atomic_store(&context->tried.eager, tried);
		if (say[tried] && !(atomic_fetch_or(&said, 1u << tried) & 1u << tried))
			gmt_diag(GMT_DIAG_EAGER, say[tried]);
	}
	return tried == GIVES_ROOM || tried == NOT_SEEN;
}

bool gmt_eager_migrate(struct gmt_context *context, cl_mem handle, cl_int *error)
{
	if (gmt_likely(!gmt_session.config.eager) || !context || gmt_in_callback || !must_migrate(context))
		return true;
	cl_int err = migrate_to_first(context, handle);
	if (err == CL_SUCCESS)
		err = migrate_to_others(context, handle);
	if (!gmt_out_of_memory(err))
		return true; /* refused for another reason: the program will see what its own command does */
	gmt_driver.clReleaseMemObject(handle);
	*error = err;
	return false;
}
