/* create.h: the functions that create memory and hold references to it. */
#ifndef GMT_SPILL_CREATE_H
#define GMT_SPILL_CREATE_H

#include "context.h"
#include "object.h"

/* Whether the driver takes such a sub-buffer, or its error; and which flags it reports for it. No memory is needed for that. */
cl_int gmt_spill_judge_sub(struct gmt_spill_object *parent, cl_mem_flags flags, cl_buffer_create_type type,
			   const cl_buffer_region *region, cl_mem_flags *reported);
/* A new object that is a part of parent, or an image; real: what the driver has made already, or NULL. NULL: no room for it. */
struct gmt_spill_object *gmt_spill_new_child(struct gmt_spill_object *parent, cl_mem_flags flags, const cl_buffer_region *region,
					     struct gmt_spill_image *image, cl_mem real);
void gmt_spill_override_creates(struct gmt_functions *over);

#endif
