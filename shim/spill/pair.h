/*
 * pair.h: commands with one or two memory objects in their arguments. Where these do not fit the device, a wrong call still gets
 * the error that it gets without --spill.
 */
#ifndef GMT_SPILL_PAIR_H
#define GMT_SPILL_PAIR_H

#include "residency.h"

struct gmt_spill_pair {
	struct gmt_spill_command command;
	struct gmt_spill_use use[2];
	uint32_t handles;
	cl_mem handle[2], real[2]; /* the program's; the driver's, from ready to the end */
	bool outside;              /* a range ends behind its buffer */
	bool stand_ins;            /* the driver's handles are those of small buffers that only show what is wrong */
	cl_int refused; /* what the standard has for such arguments; CL_SUCCESS: nothing is known to be wrong */
	cl_int err;     /* what the program gets */
};

/* The standard's error for these arguments of a command, or CL_SUCCESS. */
cl_int gmt_spill_wait_list_error(cl_command_queue queue, cl_uint waits, const cl_event *list);
void gmt_spill_pair_begin(struct gmt_spill_pair *pair, cl_command_queue queue, const char *name, cl_uint waits, const cl_event *list);
/* handle may be anything that the program passed. */
void gmt_spill_pair_add(struct gmt_spill_pair *pair, cl_mem handle, bool writes);
/* The same where an image must be; buffers of ours are refused. */
void gmt_spill_pair_add_image(struct gmt_spill_pair *pair, cl_mem handle, bool writes);
/* The command reaches bytes of the first or second object. */
void gmt_spill_pair_check_range(struct gmt_spill_pair *pair, uint32_t which, size_t offset, size_t size);
void gmt_spill_pair_check_rect(struct gmt_spill_pair *pair, uint32_t which, const size_t *origin, const size_t *region, size_t row,
			 size_t slice);
/* The command reads or writes for the host, at an address; flags forbid it. */
void gmt_spill_pair_check_host(struct gmt_spill_pair *pair, const void *address, cl_mem_flags flags);
/* Whether the command can be enqueued now, with real. Else err says why not. */
bool gmt_spill_pair_make_resident(struct gmt_spill_pair *pair);
/* The driver returned err. Returns what the program gets. */
cl_int gmt_spill_pair_end(struct gmt_spill_pair *pair);

/* A buffer of the driver with the flags of object, of at most size bytes; NULL: there is none. */
cl_mem gmt_spill_create_stand_in(struct gmt_spill_object *object, size_t size);

#endif
