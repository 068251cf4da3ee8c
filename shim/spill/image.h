/* image.h: images, which are the driver's own. */
#ifndef GMT_SPILL_IMAGE_H
#define GMT_SPILL_IMAGE_H

#include "context.h"

/* The program has taken or given up a reference to an object that is not ours. */
void gmt_spill_image_references(cl_mem handle, int by);
/* The driver's answer for an image becomes that without --spill. */
void gmt_spill_image_flags(cl_mem handle, cl_mem_flags *flags);
void gmt_spill_put_images(struct gmt_functions *over);

#endif
