/*
 * shapes.h: what must be equal for one image to serve in place of another: its flags, format and descriptor, word for word.
 * Images of one shape in one context are a class of the pool, all of the same size. A shape gets its class with its second
 * image: then its size is known from the driver, and one that comes only once leaves nothing behind.
 */
#ifndef GMT_SHAPES_H
#define GMT_SHAPES_H

#include "../registry/objects.h"

struct gmt_shape {
	uint64_t word[10];
};

struct gmt_shape_class {
	uint64_t size; /* of each image, in bytes, as the driver says */
	uint32_t class;
	int16_t number; /* in its context, from 1 */
};

/* The number of a new class, of images or buffers. */
uint32_t gmt_class_new(void);

struct gmt_shape gmt_shape_of(cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc);
/* False: there was no image of that shape, or there are too many shapes. */
bool gmt_shape_find(struct gmt_context *context, const struct gmt_shape *shape, struct gmt_shape_class *out);
/* The driver has made an image of that shape. */
void gmt_shape_made(struct gmt_context *context, const struct gmt_shape *shape, uint64_t size);
/* Forgets all shapes of a context; visit gets each class, with its flags. */
void gmt_shapes_drop(struct gmt_context *context,
		     void (*visit)(struct gmt_context *context, cl_mem_flags flags, const struct gmt_shape_class *class));

#endif
