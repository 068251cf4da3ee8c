/* images.h: whether the program can create images of buffers. */
#ifndef GMT_IMAGES_H
#define GMT_IMAGES_H

#include "../base/opencl.h"

#include <stdatomic.h>

/* Looks again when more files have been loaded. */
bool gmt_images_can_be_made(void);
/* A function that creates images of buffers, too: those of OpenCL 1.0 do not. */
bool gmt_images_is_create_name(const char *function);
/* 1: the program has looked up, or called, such a function. */
extern _Atomic int gmt_images_wanted;

#endif
