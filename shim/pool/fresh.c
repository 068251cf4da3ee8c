/*
 * fresh.c: a program may depend on new memory being zero, and fail only with recycled memory. Whether new memory is zero can depend on
 * its size: PoCL's small buffers come from malloc with their former contents, its large ones are new pages of the kernel. So each power
 * of two is tried by itself: we create a buffer and read its first and last bytes on a queue of our own.
 */
#define _GNU_SOURCE
#include "fresh.h"

#include "../base/call.h"
#include "../base/dispatch.h"

#include <stdlib.h>
#include <string.h>

enum {
	LARGEST = 26, /* log2: 64 MiB, for which malloc always asks the kernel, stands for all that is larger */
	PIECE = 1 << 16, /* bytes that are read at either end */
};

static bool is_zero(cl_command_queue queue, cl_mem buffer, size_t at, size_t size, unsigned char *host, bool *zero)
{
	memset(host, GMT_POISON, size);
	if (gmt_driver.clEnqueueReadBuffer(queue, buffer, CL_TRUE, at, size, host, 0, NULL, NULL) != CL_SUCCESS)
		return false;
	*zero = *zero && host[0] == 0 && memcmp(host, host + 1, size - 1) == 0;
	return true;
}

static enum gmtexposed try_fresh(const struct gmt_context *context, size_t size)
{
	cl_int err = CL_SUCCESS;
	size_t piece = size < PIECE ? size : PIECE;
	unsigned char *host = malloc(piece);
	cl_context handle = (cl_context)atomic_load(&context->object.handle);
	cl_command_queue queue = host && handle ? gmt_driver.clCreateCommandQueue(handle, context->devices.first, 0, &err) : NULL;
	cl_mem buffer = queue ? gmt_driver.clCreateBuffer(handle, CL_MEM_READ_WRITE, size, NULL, &err) : NULL;
	bool zero = true;
	bool ok = buffer && is_zero(queue, buffer, 0, piece, host, &zero) && is_zero(queue, buffer, size - piece, piece, host, &zero);
	if (buffer)
		gmt_driver.clReleaseMemObject(buffer);
	if (queue)
		gmt_driver.clReleaseCommandQueue(queue);
	free(host);
	return !ok ? GMT_EXPOSED_UNTRIED : zero ? GMT_EXPOSED_ZERO : GMT_EXPOSED_OTHER;
}

/* log2 of the size that is tried for size: the same power of two, less on a small device. */
static unsigned log2_size_to_try(const struct gmt_context *context, uint64_t size)
{
	uint64_t most = context->devices.heap ? context->devices.heap / 64 : UINT64_MAX;
	if (size > most && most)
		size = most;
	unsigned at = 63u - (unsigned)__builtin_clzll(size);
	return at < LARGEST ? at : LARGEST;
}

enum gmtexposed gmt_fresh_contents(const struct gmt_context *context, uint64_t size)
{
	static _Atomic(cl_device_id) first;
	static _Atomic uint8_t known[LARGEST + 1]; /* enum gmtexposed; 0: not tried yet */
	cl_device_id device = context->devices.first, none = NULL;
	/* A callback may run under a lock that the driver's create needs. Other devices than the first are not tried. */
	if (gmt_in_callback || !size || !device || (!atomic_compare_exchange_strong(&first, &none, device) && none != device))
		return GMT_EXPOSED_UNTRIED;
	unsigned at = log2_size_to_try(context, size);
	enum gmtexposed outcome = (enum gmtexposed)atomic_load_explicit(&known[at], memory_order_relaxed);
	if (gmt_unlikely(outcome == GMT_EXPOSED_NO)) {
		outcome = try_fresh(context, (size_t)1 << at);
		atomic_store_explicit(&known[at], (uint8_t)outcome, memory_order_relaxed);
	}
	return outcome;
}
