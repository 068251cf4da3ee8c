/* shapes.c: see shapes.h. */
#define _GNU_SOURCE
#include "shapes.h"

#include "../base/lock.h"

#include <stdlib.h>
#include <string.h>

#define CLASSES_MAX 4096 /* of images in a context: bounds the memory of the policy */
#define POINTERS_MAX 512 /* of shared memory */
#define PLACES 1024      /* a power of two */
#define WAYS 4

struct known {
	struct known *next;
	struct gmt_shape shape;
	struct gmt_shape_class class;
};

/* The shapes of one context. */
struct gmt_shapes {
	struct known *known[PLACES];
	struct made {
		uint64_t hash, size;
	} made[PLACES]; /* shapes without a class, each in one of the WAYS places that begin at its hash */
	uint32_t turn;
	int16_t images, pointers;
};

uint32_t gmt_class_new_number(void)
{
	static _Atomic uint32_t classes;
	return atomic_fetch_add(&classes, 1) + 1;
}

struct gmt_shape gmt_shape_of(cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc)
{
	return (struct gmt_shape){{
		flags,
		(uint64_t)format->image_channel_order << 32 | format->image_channel_data_type,
		desc->image_type,
		desc->image_width,
		desc->image_height,
		desc->image_depth,
		desc->image_array_size,
		desc->image_row_pitch,
		desc->image_slice_pitch,
		(uint64_t)desc->num_mip_levels << 32 | desc->num_samples,
	}};
}

/* Never 0. */
static uint64_t hash_of_shape(const struct gmt_shape *shape)
{
	uint64_t hash = 0;
	for (size_t i = 0; i < sizeof shape->word / sizeof shape->word[0]; i++) {
		hash = (hash + shape->word[i] + 1) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 32;
	}
	return hash | 1ull << 63;
}

/* The entry of a shape without a class with hash, near its place; with hash 0, an empty entry. NULL: there is none. */
static struct made *find_made(struct gmt_shapes *s, uint64_t near, uint64_t hash)
{
	for (uint64_t i = 0; i < WAYS; i++)
		if (s->made[(near + i) % PLACES].hash == hash)
			return &s->made[(near + i) % PLACES];
	return NULL;
}

static struct known *add_known(struct gmt_shapes *s, uint64_t hash, const struct gmt_shape *shape, uint64_t size)
{
	struct known **place = &s->known[hash % PLACES], *known = malloc(sizeof *known);
	if (!known)
		return NULL;
	*known = (struct known){*place, *shape, {.size = size, .class = gmt_class_new_number()}};
	*place = known;
	return known;
}

static struct known *add_class(struct gmt_shapes *s, uint64_t hash, const struct gmt_shape *shape)
{
	struct made *made = find_made(s, hash, hash);
	if (!made || s->images == CLASSES_MAX)
		return NULL;
	struct known *known = add_known(s, hash, shape, made->size);
	if (!known)
		return NULL;
	known->class.number = ++s->images;
	*made = (struct made){0, 0};
	return known;
}

/* The class of a shape, NULL: it has none. Under the context's lock. */
static struct known *find_class(struct gmt_shapes *s, uint64_t hash, const struct gmt_shape *shape)
{
	struct known *known = s ? s->known[hash % PLACES] : NULL;
	while (known && memcmp(&known->shape, shape, sizeof *shape) != 0)
		known = known->next;
	return known;
}

static struct gmt_shapes *shapes_of_context(struct gmt_context *context)
{
	if (!context->pool.shapes && atomic_load(&context->life.holds))
		context->pool.shapes = calloc(1, sizeof *context->pool.shapes);
	return context->pool.shapes;
}

bool gmt_shape_find_class(struct gmt_context *context, const struct gmt_shape *shape, struct gmt_shape_class *out)
{
	uint64_t hash = hash_of_shape(shape);
	gmt_lock(&context->lock);
	struct gmt_shapes *s = context->pool.shapes;
	struct known *known = find_class(s, hash, shape);
	if (!known && s)
		known = add_class(s, hash, shape);
	if (known)
		*out = known->class;
	gmt_unlock(&context->lock);
	return known != NULL;
}

bool gmt_shape_find_pointer_class(struct gmt_context *context, const struct gmt_shape *shape, struct gmt_shape_class *out)
{
	uint64_t hash = hash_of_shape(shape);
	gmt_lock(&context->lock);
	struct gmt_shapes *s = shapes_of_context(context);
	struct known *known = find_class(s, hash, shape);
	if (!known && s && s->pointers > -POINTERS_MAX && (known = add_known(s, hash, shape, 0)))
		known->class.number = --s->pointers;
	if (known)
		*out = known->class;
	gmt_unlock(&context->lock);
	return known != NULL;
}

void gmt_shape_note_succeeded(struct gmt_context *context, const struct gmt_shape *shape)
{
	uint64_t hash = hash_of_shape(shape);
	gmt_lock(&context->lock);
	struct known *known = find_class(context->pool.shapes, hash, shape);
	if (known)
		known->class.size = 1;
	gmt_unlock(&context->lock);
}

void gmt_shape_note_made(struct gmt_context *context, const struct gmt_shape *shape, uint64_t size)
{
	uint64_t hash = hash_of_shape(shape);
	if (!size)
		return;
	gmt_lock(&context->lock);
	struct gmt_shapes *s = shapes_of_context(context);
	struct made *made = s ? find_made(s, hash, hash) : NULL;
	if (s && !made)
		made = find_made(s, hash, 0);
	if (s && !made)
		made = &s->made[(hash + s->turn++ % WAYS) % PLACES];
	if (made)
		*made = (struct made){hash, size};
	gmt_unlock(&context->lock);
}

void gmt_shapes_drop(struct gmt_context *context,
		     void (*visit)(struct gmt_context *context, cl_mem_flags flags, const struct gmt_shape_class *class))
{
	gmt_lock(&context->lock);
	struct gmt_shapes *s = context->pool.shapes;
	context->pool.shapes = NULL;
	gmt_unlock(&context->lock);
	for (size_t i = 0; s && i < PLACES; i++) {
		for (struct known *known; (known = s->known[i]);) {
			s->known[i] = known->next;
			visit(context, known->shape.word[0], &known->class);
			free(known);
		}
	}
	free(s);
}
