/* command.c: commands that read, write, fill and copy buffers. */
#define _GNU_SOURCE
#include "command.h"

#include "context.h"
#include "pair.h"
#include "user_event.h"

#include <stdlib.h>

static cl_int read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, void *to,
			  cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueReadBuffer", waits, list);
	gmt_spill_pair_add(&p, buffer, false);
	gmt_spill_pair_check_range(&p, 0, offset, size);
	gmt_spill_pair_check_host(&p, to, CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS);
	if (!gmt_spill_pair_make_resident(&p))
		return p.err;
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueReadBuffer(queue, p.real[0], blocking, offset, size, to, waits, list, event));
	return gmt_spill_pair_end(&p);
}

static cl_int write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, const void *from,
			   cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueWriteBuffer", waits, list);
	gmt_spill_pair_add(&p, buffer, true);
	gmt_spill_pair_check_range(&p, 0, offset, size);
	gmt_spill_pair_check_host(&p, from, CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS);
	if (!gmt_spill_pair_make_resident(&p))
		return p.err;
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueWriteBuffer(queue, p.real[0], blocking, offset, size, from, waits, list, event));
	return gmt_spill_pair_end(&p);
}

static bool is_pattern(size_t length)
{
	return length && length <= 128 && !(length & (length - 1));
}

static cl_int fill_buffer(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t length, size_t offset, size_t size,
			  cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueFillBuffer", waits, list);
	gmt_spill_pair_add(&p, buffer, true);
	gmt_spill_pair_check_range(&p, 0, offset, size);
	if (!pattern || !is_pattern(length) || offset % length || size % length)
		p.refused = CL_INVALID_VALUE;
	if (!gmt_spill_pair_make_resident(&p))
		return p.err;
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueFillBuffer(queue, p.real[0], pattern, length, offset, size, waits, list, event));
	return gmt_spill_pair_end(&p);
}

static void CL_CALLBACK free_after_write(cl_event event, cl_int status, void *bytes)
{
	(void)status;
	free(bytes);
	gmt_bare.clReleaseEvent(event);
}

/*
 * Source and target do not fit at once: the target gets the source's bytes from the host. Not where the program could see that
 * this is a write: by an event, or because the flags forbid it. Nor while a user event is open: what it holds back may have to see
 * what commands that come later write into the source.
 */
static cl_int copy_from_host(cl_command_queue queue, struct gmt_spill_pair *both, size_t from, size_t to, size_t size, cl_uint waits,
			     const cl_event *list)
{
	const cl_mem_flags forbidden = CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;
	struct gmt_spill_object *source = both->use[0].object, *target = both->use[1].object;
	cl_event end = NULL;
	struct gmt_spill_pair p;
	if (both->command.count < 2 || source->root == target->root || source->image || target->image || !size || (target->flags | target->root->flags) & forbidden ||
	    gmt_spill_gated() || !gmt_bare.clSetEventCallback)
		return both->err;
	void *bytes = malloc(size);
	gmt_spill_pair_begin(&p, queue, "clEnqueueCopyBuffer", waits, list);
	gmt_spill_pair_add(&p, gmt_spill_handle(target), true);
	bool ready = bytes && gmt_spill_pair_make_resident(&p);
	if (!ready || !gmt_spill_host_bytes(source, from, size, bytes)) {
		if (ready)
			gmt_spill_end_command(&p.command, both->err);
		free(bytes);
		return both->err;
	}
	p.err = gmt_bare.clEnqueueWriteBuffer(queue, target->real, CL_FALSE, to, size, bytes, waits, list, &end);
	gmt_spill_end_command(&p.command, p.err);
	if (p.err != CL_SUCCESS) {
		free(bytes);
		return p.err;
	}
	if (gmt_bare.clSetEventCallback(end, CL_COMPLETE, free_after_write, bytes) != CL_SUCCESS) /* then the bytes stay */
		gmt_bare.clReleaseEvent(end);
	return CL_SUCCESS;
}

static cl_int copy_buffer(cl_command_queue queue, cl_mem source, cl_mem target, size_t from, size_t to, size_t size, cl_uint waits,
			  const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueCopyBuffer", waits, list);
	p.command.may_split = true;
	gmt_spill_pair_add(&p, source, false);
	gmt_spill_pair_add(&p, target, true);
	gmt_spill_pair_check_range(&p, 0, from, size);
	gmt_spill_pair_check_range(&p, 1, to, size);
	if (!gmt_spill_pair_make_resident(&p)) {
		cl_int err = p.err;
		if (err == CL_MEM_OBJECT_ALLOCATION_FAILURE && !event)
			err = copy_from_host(queue, &p, from, to, size, waits, list);
		if (err == CL_MEM_OBJECT_ALLOCATION_FAILURE && !p.outside)
			gmt_spill_explain_shortage(&p.command);
		return err;
	}
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueCopyBuffer(queue, p.real[0], p.real[1], from, to, size, waits, list, event));
	return gmt_spill_pair_end(&p);
}

static cl_int image_to_buffer(cl_command_queue queue, cl_mem image, cl_mem buffer, const size_t *origin, const size_t *region,
			      size_t offset, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueCopyImageToBuffer", waits, list);
	gmt_spill_pair_add(&p, image, false);
	gmt_spill_pair_add(&p, buffer, true);
	if (!gmt_spill_pair_make_resident(&p))
		return p.err;
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueCopyImageToBuffer(queue, p.real[0], p.real[1], origin, region, offset, waits, list, event));
	return gmt_spill_pair_end(&p);
}

static cl_int buffer_to_image(cl_command_queue queue, cl_mem buffer, cl_mem image, size_t offset, const size_t *origin,
			      const size_t *region, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueCopyBufferToImage", waits, list);
	gmt_spill_pair_add(&p, buffer, false);
	gmt_spill_pair_add(&p, image, true);
	if (!gmt_spill_pair_make_resident(&p))
		return p.err;
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueCopyBufferToImage(queue, p.real[0], p.real[1], offset, origin, region, waits, list, event));
	return gmt_spill_pair_end(&p);
}

void gmt_spill_override_buffer_commands(struct gmt_functions *over)
{
	GMT_SPILL_OVER(over, clEnqueueReadBuffer, read_buffer);
	GMT_SPILL_OVER(over, clEnqueueWriteBuffer, write_buffer);
	GMT_SPILL_OVER(over, clEnqueueFillBuffer, fill_buffer);
	GMT_SPILL_OVER(over, clEnqueueCopyBuffer, copy_buffer);
	GMT_SPILL_OVER(over, clEnqueueCopyImageToBuffer, image_to_buffer);
	GMT_SPILL_OVER(over, clEnqueueCopyBufferToImage, buffer_to_image);
}
