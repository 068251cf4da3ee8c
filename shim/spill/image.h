/* image.h: images. */
#ifndef GMT_SPILL_IMAGE_H
#define GMT_SPILL_IMAGE_H

#include "context.h"

void gmt_spill_override_images(struct gmt_functions *over);

#endif
