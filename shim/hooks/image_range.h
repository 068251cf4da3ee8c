/* image_range.h: the range of a buffer that a copy from or to an image touches. */
#ifndef GMT_IMAGE_RANGE_H
#define GMT_IMAGE_RANGE_H

#include "command.h"

/*
 * gmt_command_range for a copy from or to an image: the offset to give to the driver for what it touches in a padded block
 * or a sub-allocation. A driver that does not check the range (rusticl of Mesa 22.3) gets no such command: it would
 * change a neighbour.
 */
size_t gmt_image_range(struct gmt_command *command, cl_mem image, const struct gmt_memory *buffer, size_t offset, const size_t *region);

#endif
