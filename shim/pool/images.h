/* images.h: whether sub-allocations may serve a context, as far as images are concerned. */
#ifndef GMT_IMAGES_H
#define GMT_IMAGES_H

#include "../registry/objects.h"

/* False if the program can create images and the driver refuses to create them of sub-buffers. */
bool gmt_images_allow_suballoc(struct gmt_context *context);
/* 1: the program has looked up, or called, a function that creates images. */
extern _Atomic int gmt_images_wanted;

#endif
