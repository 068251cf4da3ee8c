/*
 * shapes.h: classes of the pool that need more than context and flags.
 *
 * Images: an image may serve in place of another if flags, format and descriptor are equal, word for word. All images of one shape
 * have the same size. A shape gets its class with its second image: then the driver has reported its size, and a shape that
 * occurs only once takes no class.
 *
 * Shared memory: kind, flags, alignment and device must be equal. Sizes differ, as those of buffers.
 */
#ifndef GMT_SHAPES_H
#define GMT_SHAPES_H

#include "../registry/objects.h"

struct gmt_shape {
	uint64_t word[10];
};

struct gmt_shape_class {
	uint64_t size; /* of each image, in bytes, as the driver says; of shared memory 1 once the driver has made any */
	uint32_t class;
	int16_t number; /* in its context: of images from 1 up, of shared memory from -1 down */
};

/* The number of a new class, of images or buffers. */
uint32_t gmt_class_new_number(void);

struct gmt_shape gmt_shape_of(cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc);
/* False: there was no image of that shape, or there are too many shapes. */
bool gmt_shape_find_class(struct gmt_context *context, const struct gmt_shape *shape, struct gmt_shape_class *out);
/* The same for shared memory, whose class is made if there is none. False: there are too many. */
bool gmt_shape_find_pointer_class(struct gmt_context *context, const struct gmt_shape *shape, struct gmt_shape_class *out);
/* The driver has made memory of that class. */
void gmt_shape_note_succeeded(struct gmt_context *context, const struct gmt_shape *shape);
/* The driver has made an image of that shape. */
void gmt_shape_note_made(struct gmt_context *context, const struct gmt_shape *shape, uint64_t size);
/* Forgets all shapes of a context; visit gets each class, with its flags. */
void gmt_shapes_drop(struct gmt_context *context,
		     void (*visit)(struct gmt_context *context, cl_mem_flags flags, const struct gmt_shape_class *class));

#endif
