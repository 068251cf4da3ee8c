/*
 * trial.c: drivers get sub-buffers wrong in ways that the program would notice, so each is tried before the first
 * sub-allocation: in a context of our own, because a refusal may leave traces (PoCL 3.1 keeps a reference), and on a queue of
 * our own, which waits for no command of the program. What kernels do with sub-buffers is not tried: to compile one would
 * take as long as a program's start.
 */
#define _GNU_SOURCE
#include "trial.h"

#include "../base/dispatch.h"
#include "../base/ring.h"
#include "images.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 16 }; /* bytes: four elements of an image */

/* A buffer with two sub-buffers, at multiples of at, and what the buffer must contain. */
struct sample {
	cl_context context;
	cl_command_queue queue;
	cl_mem whole, part[2];
	size_t at, size;
	unsigned char *want, *got;
	bool old;
};

struct trial {
	bool (*passes)(struct sample *sample);
	const char *why; /* it failed */
	atomic_flag written;
	_Atomic int known; /* of the first device: enum gmt_trial */
	_Atomic(cl_device_id) first;
};

static cl_mem part_of(const struct sample *s, size_t origin, size_t size)
{
	cl_buffer_region region = {origin, size};
	cl_int err = CL_SUCCESS;
	return gmt_driver.clCreateSubBuffer(s->whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
}

/* No piece at a multiple of PIECE looks like another one. */
static bool sample_open(struct sample *s, cl_device_id device)
{
	cl_int err = CL_SUCCESS;
	s->want = malloc(2 * s->size);
	if (!s->want)
		return false;
	s->got = s->want + s->size;
	for (size_t i = 0; i < s->size; i++)
		s->want[i] = (unsigned char)(i * 37 + i / 64 * 11);
	s->queue = gmt_driver.clCreateCommandQueue(s->context, device, 0, &err);
	s->whole = gmt_driver.clCreateBuffer(s->context, CL_MEM_COPY_HOST_PTR, s->size, s->want, &err);
	for (size_t i = 0; s->whole && i < 2; i++)
		s->part[i] = part_of(s, (i + 1) * s->at, 3 * PIECE);
	return s->queue && s->part[0] && s->part[1];
}

static void sample_close(const struct sample *s)
{
	cl_mem all[] = {s->part[0], s->part[1], s->whole};
	if (s->queue) {
		gmt_driver.clFinish(s->queue);
		gmt_driver.clReleaseCommandQueue(s->queue);
	}
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (all[i])
			gmt_driver.clReleaseMemObject(all[i]);
	free(s->want);
}

static bool reads(const struct sample *s, cl_mem buffer, const unsigned char *want, size_t size)
{
	return gmt_driver.clEnqueueReadBuffer(s->queue, buffer, CL_TRUE, 0, size, s->got, 0, NULL, NULL) == CL_SUCCESS &&
	       memcmp(s->got, want, size) == 0;
}

static bool maps(const struct sample *s, cl_mem buffer, const unsigned char *want)
{
	cl_int err = CL_SUCCESS;
	void *mapped = gmt_driver.clEnqueueMapBuffer(s->queue, buffer, CL_TRUE, CL_MAP_READ, 0, PIECE, 0, NULL, NULL, &err);
	bool same = mapped && memcmp(mapped, want, PIECE) == 0;
	return mapped && gmt_driver.clEnqueueUnmapMemObject(s->queue, buffer, mapped, 0, NULL, NULL) == CL_SUCCESS && same;
}

/* Writes, fills and copies must be seen through the sub-buffers and through the whole. */
static bool parts_pass(struct sample *s)
{
	unsigned char *first = s->want + s->at, *second = s->want + 2 * s->at;
	memset(first + PIECE, 0x5a, PIECE);
	bool ok = gmt_driver.clEnqueueWriteBuffer(s->queue, s->part[0], CL_FALSE, PIECE, PIECE, first + PIECE, 0, NULL, NULL) == CL_SUCCESS;
	if (!s->old) {
		memset(first + 2 * PIECE, 0x33, PIECE);
		ok = ok && gmt_driver.clEnqueueFillBuffer(s->queue, s->part[0], first + 2 * PIECE, 1, 2 * PIECE, PIECE, 0, NULL, NULL) == CL_SUCCESS;
	}
	memcpy(second, first, PIECE);
	ok = ok && gmt_driver.clEnqueueCopyBuffer(s->queue, s->part[0], s->part[1], 0, 0, PIECE, 0, NULL, NULL) == CL_SUCCESS;
	return ok && reads(s, s->part[0], first, 3 * PIECE) && reads(s, s->whole, s->want, s->size) && maps(s, s->part[1], second);
}

static cl_mem image_of(cl_context context, cl_mem buffer)
{
	const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = PIECE / 4, .mem_object = buffer};
	cl_int err = CL_SUCCESS;
	return gmt_driver.clCreateImage ? gmt_driver.clCreateImage(context, 0, &format, &desc, NULL, &err) : NULL;
}

/* Fails if the driver creates images of buffers, but none of sub-buffers, or such that show other memory (as rusticl of Mesa 22.3). */
static bool images_pass(struct sample *s)
{
	const size_t origin[3] = {0, 0, 0}, region[3] = {PIECE / 4, 1, 1};
	cl_mem image[] = {image_of(s->context, s->whole), image_of(s->context, s->part[0])};
	bool ok = image[0] == NULL;
	if (!ok && image[1])
		ok = gmt_driver.clEnqueueReadImage(s->queue, image[1], CL_TRUE, origin, region, 0, 0, s->got, 0, NULL, NULL) == CL_SUCCESS &&
		     memcmp(s->got, s->want + s->at, PIECE) == 0;
	for (size_t i = 0; i < 2; i++)
		if (image[i])
			gmt_driver.clReleaseMemObject(image[i]);
	return ok;
}

static enum gmt_trial try(const struct trial *trial, const struct gmt_context *like)
{
	cl_int err = CL_SUCCESS;
	struct sample s = {.at = like->align < 4 * PIECE ? 4 * PIECE : like->align, .old = like->old};
	s.size = 2 * s.at + 3 * PIECE;
	s.context = gmt_driver.clCreateContext(NULL, 1, &like->device, NULL, NULL, &err);
	if (!s.context)
		return GMT_TRIAL_FAILED;
	bool passes = sample_open(&s, like->device) && trial->passes(&s);
	sample_close(&s);
	gmt_driver.clReleaseContext(s.context);
	return passes ? GMT_TRIAL_PASSED : GMT_TRIAL_FAILED;
}

/* As of the first device, or tried. */
static uint8_t outcome_of(struct trial *trial, const struct gmt_context *context)
{
	int known = atomic_load(&trial->known);
	if (known && atomic_load(&trial->first) == context->device)
		return (uint8_t)known;
	enum gmt_trial outcome = try(trial, context);
	if (outcome == GMT_TRIAL_FAILED && !atomic_flag_test_and_set(&trial->written))
		gmt_diag(GMT_DIAG_WHOLE_BLOCKS, trial->why);
	if (!known) {
		atomic_store(&trial->first, context->device);
		atomic_store(&trial->known, outcome);
	}
	return (uint8_t)outcome;
}

static bool passes(struct trial *trial, struct gmt_context *context, _Atomic uint8_t *outcome)
{
	uint8_t now = atomic_load_explicit(outcome, memory_order_relaxed);
	if (gmt_unlikely(now == GMT_TRIAL_NONE)) {
		now = outcome_of(trial, context);
		atomic_store(outcome, now);
	}
	return now == GMT_TRIAL_PASSED;
}

bool gmt_trial_parts(struct gmt_context *context)
{
	static struct trial trial = {parts_pass, "this driver's sub-buffers do not hold their own bytes", ATOMIC_FLAG_INIT, 0, NULL};
	return passes(&trial, context, &context->parts);
}

bool gmt_trial_images(struct gmt_context *context)
{
	static struct trial trial = {
		images_pass, "images of sub-buffers fail on this driver, and the program can create images", ATOMIC_FLAG_INIT, 0, NULL,
	};
	if (atomic_load_explicit(&context->images, memory_order_relaxed) == GMT_TRIAL_NONE && !gmt_images_can_be_made())
		return true; /* so far */
	return passes(&trial, context, &context->images);
}
