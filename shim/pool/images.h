/* images.h: whether the program can create images. */
#ifndef GMT_IMAGES_H
#define GMT_IMAGES_H

#include "../base/opencl.h"

#include <stdatomic.h>

/* Looks again when more files have been loaded. */
bool gmt_images_can_be_made(void);
/* 1: the program has looked up, or called, a function that creates images. */
extern _Atomic int gmt_images_wanted;

#endif
