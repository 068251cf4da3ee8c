/* map.c: mappings. What is mapped keeps its real object, because the program has its address. */
#define _GNU_SOURCE
#include "map.h"

#include "../base/lock.h"
#include "context.h"
#include "pair.h"

static cl_mem_flags forbidden_flags(cl_map_flags flags, bool writes)
{
	cl_mem_flags forbidden = flags ? CL_MEM_HOST_NO_ACCESS : 0;
	if (flags & CL_MAP_READ)
		forbidden |= CL_MEM_HOST_WRITE_ONLY;
	return writes ? forbidden | CL_MEM_HOST_READ_ONLY : forbidden;
}

static bool is_mapped(struct gmt_spill_object *object)
{
	gmt_lock(&object->root->lock);
	bool mapped = object->root->maps > 0;
	gmt_unlock(&object->root->lock);
	return mapped;
}

static void count_mapping(struct gmt_spill_object *object)
{
	gmt_lock(&object->root->lock);
	object->root->maps++;
	gmt_unlock(&object->root->lock);
	atomic_fetch_add(&object->holds, 1);
}

static void *map_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset, size_t size,
			cl_uint waits, const cl_event *list, cl_event *event, cl_int *errcode)
{
	struct gmt_spill_pair p;
	void *address = NULL;
	bool writes = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
	gmt_spill_pair_begin(&p, queue, "clEnqueueMapBuffer", waits, list);
	gmt_spill_pair_add(&p, buffer, writes);
	gmt_spill_pair_check_range(&p, 0, offset, size);
	gmt_spill_pair_check_host(&p, &p, forbidden_flags(flags, writes));
	if (gmt_spill_pair_make_resident(&p)) {
		do
			address = gmt_bare.clEnqueueMapBuffer(queue, p.real[0], blocking, flags, offset, size, waits, list, event, &p.err);
		while (!address && gmt_spill_relieve(p.err));
		if (address && p.command.count)
			count_mapping(p.use[0].object);
		p.err = gmt_spill_pair_end(&p);
	}
	if (errcode)
		*errcode = p.err;
	return address;
}

static void *map_image(cl_command_queue queue, cl_mem image, cl_bool blocking, cl_map_flags flags, const size_t *origin,
		       const size_t *region, size_t *row, size_t *slice, cl_uint waits, const cl_event *list, cl_event *event,
		       cl_int *errcode)
{
	struct gmt_spill_pair p;
	void *address = NULL;
	bool writes = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
	gmt_spill_pair_begin(&p, queue, "clEnqueueMapImage", waits, list);
	gmt_spill_pair_add_image(&p, image, writes);
	gmt_spill_pair_check_host(&p, &p, forbidden_flags(flags, writes));
	if (gmt_spill_pair_make_resident(&p)) {
		do
			address = gmt_bare.clEnqueueMapImage(queue, p.real[0], blocking, flags, origin, region, row, slice, waits, list, event, &p.err);
		while (!address && gmt_spill_relieve(p.err));
		if (address && p.command.count)
			count_mapping(p.use[0].object);
		p.err = gmt_spill_pair_end(&p);
	}
	if (errcode)
		*errcode = p.err;
	return address;
}

static cl_int unmap_memory(cl_command_queue queue, cl_mem memory, void *address, cl_uint waits, const cl_event *list, cl_event *event)
{
	struct gmt_spill_pair p;
	gmt_spill_pair_begin(&p, queue, "clEnqueueUnmapMemObject", waits, list);
	gmt_spill_pair_add(&p, memory, false);
	if (p.command.count && p.refused == CL_SUCCESS && !is_mapped(p.use[0].object))
		p.refused = CL_INVALID_VALUE;
	if (!gmt_spill_pair_make_resident(&p))
		return p.err;
	GMT_SPILL_TRY(p.err, gmt_bare.clEnqueueUnmapMemObject(queue, p.real[0], address, waits, list, event));
	gmt_spill_end_command(&p.command, p.err);
	if (p.err != CL_SUCCESS || !p.command.count)
		return p.err;
	struct gmt_spill_object *object = p.use[0].object;
	gmt_lock(&object->root->lock);
	bool mapped = object->root->maps > 0; /* else the driver takes whatever it gets */
	object->root->maps -= mapped;
	gmt_unlock(&object->root->lock);
	if (mapped)
		gmt_spill_drop_hold(object);
	return p.err;
}

void gmt_spill_override_map_commands(struct gmt_functions *over)
{
	GMT_SPILL_OVER(over, clEnqueueMapBuffer, map_buffer);
	GMT_SPILL_OVER(over, clEnqueueMapImage, map_image);
	GMT_SPILL_OVER(over, clEnqueueUnmapMemObject, unmap_memory);
}
