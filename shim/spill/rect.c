/* rect.c: commands on rectangles of buffers. */
#define _GNU_SOURCE
#include "rect.h"

#include "context.h"
#include "pair.h"

static cl_int read_rect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin, const size_t *host_origin,
			const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice, void *to, cl_uint waits,
			const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueReadBufferRect", waits, list);
	gmt_spill_pair_add(&p, buffer, false);
	gmt_spill_pair_check_rect(&p, 0, origin, region, row, slice);
	gmt_spill_pair_check_host(&p, to, CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS);
	if (!gmt_spill_pair_make_resident(&p))
		return p.err;
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueReadBufferRect(queue, p.real[0], blocking, origin, host_origin, region, row, slice, host_row,
							      host_slice, to, waits, list, event));
	return gmt_spill_pair_end(&p);
}

static cl_int write_rect(cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *origin, const size_t *host_origin,
			 const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice, const void *from,
			 cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueWriteBufferRect", waits, list);
	gmt_spill_pair_add(&p, buffer, true);
	gmt_spill_pair_check_rect(&p, 0, origin, region, row, slice);
	gmt_spill_pair_check_host(&p, from, CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS);
	if (!gmt_spill_pair_make_resident(&p))
		return p.err;
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueWriteBufferRect(queue, p.real[0], blocking, origin, host_origin, region, row, slice, host_row,
							       host_slice, from, waits, list, event));
	return gmt_spill_pair_end(&p);
}

static cl_int copy_rect(cl_command_queue queue, cl_mem source, cl_mem target, const size_t *from, const size_t *to,
			const size_t *region, size_t row, size_t slice, size_t target_row, size_t target_slice, cl_uint waits,
			const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueCopyBufferRect", waits, list);
	gmt_spill_pair_add(&p, source, false);
	gmt_spill_pair_add(&p, target, true);
	gmt_spill_pair_check_rect(&p, 0, from, region, row, slice);
	gmt_spill_pair_check_rect(&p, 1, to, region, target_row, target_slice);
	if (!gmt_spill_pair_make_resident(&p))
		return p.err;
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueCopyBufferRect(queue, p.real[0], p.real[1], from, to, region, row, slice, target_row, target_slice,
							      waits, list, event));
	return gmt_spill_pair_end(&p);
}

void gmt_spill_override_rect_commands(struct gmt_functions *over)
{
	GMT_SPILL_OVER(over, clEnqueueReadBufferRect, read_rect);
	GMT_SPILL_OVER(over, clEnqueueWriteBufferRect, write_rect);
	GMT_SPILL_OVER(over, clEnqueueCopyBufferRect, copy_rect);
}
