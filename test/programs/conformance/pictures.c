/* pictures.c: images that come and go, as those of a pool that hands them out again must. */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 128, TEXELS = SIDE * SIDE };

static const cl_image_format format = {CL_R, CL_UNSIGNED_INT32};
static const cl_image_desc square = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = SIDE, .image_height = SIDE};
static const size_t zero[3] = {0, 0, 0}, all[3] = {SIDE, SIDE, 1};

static cl_mem new_image(const struct gpu *gpu)
{
	return HAS_IMAGES ? clCreateImage(gpu->context, CL_MEM_READ_WRITE, &format, &square, NULL, NULL) : NULL;
}

static cl_int paint(cl_command_queue queue, cl_mem image, cl_uint value, cl_uint waits, const cl_event *list)
{
	const cl_uint colour[4] = {value, 0, 0, 0};
	return clEnqueueFillImage(queue, image, colour, zero, all, waits, list, NULL);
}

/* Creates images of the same shape and paints them: over what is released and not yet free, if that is wrong. */
static const char *crowd(const struct gpu *gpu)
{
	for (cl_uint i = 0; i < 4; i++) {
		cl_mem image = new_image(gpu);
		HOLDS(image != NULL);
		OK(paint(gpu->queue, image, 0xbad + i, 0, NULL));
		OK(clReleaseMemObject(image));
	}
	return NULL;
}

/* Paints an image, copies it into a buffer, and releases it before either has happened. */
static const char *paint_and_release(const struct gpu *gpu, cl_uint value, cl_mem *result)
{
	cl_mem image = new_image(gpu);
	*result = new_buffer(gpu, CL_MEM_READ_WRITE, 4 * TEXELS, NULL);
	HOLDS(image != NULL && *result != NULL);
	OK(paint(gpu->queue, image, value, 0, NULL));
	OK(clEnqueueCopyImageToBuffer(gpu->queue, image, *result, zero, all, 0, 0, NULL, NULL));
	OK(clReleaseMemObject(image));
	return NULL;
}

const char *images_released_during_execute(struct bench *bench)
{
	cl_mem results[4];
	if (!HAS_IMAGES)
		return NULL;
	for (cl_uint i = 0; i < 4; i++) {
		PASS(paint_and_release(&bench->gpu, i, &results[i]));
		PASS(crowd(&bench->gpu));
	}
	for (cl_uint i = 0; i < 4; i++) {
		PASS(all_are(&bench->gpu, results[i], TEXELS, i));
		OK(clReleaseMemObject(results[i]));
	}
	return NULL;
}

static const char *is_new(cl_mem image)
{
	cl_uint maps = 1;
	void *host = &maps;
	size_t size = 0, row = 0;
	HOLDS(references(image) == 1);
	OK(clGetMemObjectInfo(image, CL_MEM_MAP_COUNT, sizeof maps, &maps, NULL));
	OK(clGetMemObjectInfo(image, CL_MEM_HOST_PTR, sizeof host, &host, NULL));
	OK(clGetMemObjectInfo(image, CL_MEM_SIZE, sizeof size, &size, NULL));
	OK(clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof row, &row, NULL));
	HOLDS(maps == 0 && host == NULL && size >= 4 * TEXELS && row >= 4 * SIDE);
	return NULL;
}

const char *new_images_are_new(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	for (cl_uint i = 0; HAS_IMAGES && i < 4; i++) {
		cl_int code;
		size_t row = 0;
		cl_mem image = new_image(gpu);
		HOLDS(image != NULL);
		PASS(is_new(image));
		OK(paint(gpu->queue, image, i, 0, NULL));
		cl_uint *texel = clEnqueueMapImage(gpu->queue, image, CL_TRUE, CL_MAP_READ, zero, all, &row, NULL, 0, NULL, NULL, &code);
		OK(code);
		HOLDS(texel[0] == i && texel[row / 4 * (SIDE - 1) + SIDE - 1] == i);
		OK(clRetainMemObject(image));
		OK(clEnqueueUnmapMemObject(gpu->queue, image, texel, 0, NULL, NULL));
		OK(clReleaseMemObject(image));
		OK(clReleaseMemObject(image));
	}
	return NULL;
}

/* Large enough for a pool to think it worth while, and with rows that are longer than the image's. */
const char *image_copy_host_flags(struct bench *bench)
{
	enum { WIDE = 1100, HIGH = 1000, PITCH = WIDE + 13 };
	const cl_image_desc wide = {
		.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = WIDE, .image_height = HIGH, .image_row_pitch = 4 * PITCH,
	};
	const size_t whole[3] = {WIDE, HIGH, 1};
	if (!HAS_IMAGES)
		return NULL;
	cl_uint *host = allocate((size_t)4 * PITCH * HIGH), *back = allocate((size_t)4 * WIDE * HIGH);
	cl_int code = CL_SUCCESS;
	bool same = true;
	for (cl_uint round = 0; round < 4 && same && code == CL_SUCCESS; round++) {
		for (size_t i = 0; i < (size_t)PITCH * HIGH; i++)
			host[i] = (cl_uint)i * 3 + round;
		cl_mem image = clCreateImage(bench->gpu.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &format, &wide, host, &code);
		memset(host, 0, (size_t)4 * PITCH * HIGH);
		if (code == CL_SUCCESS)
			code = clEnqueueReadImage(bench->gpu.queue, image, CL_TRUE, zero, whole, 0, 0, back, 0, NULL, NULL);
		for (size_t i = 0; i < (size_t)WIDE * HIGH && same; i++)
			same = back[i] == (cl_uint)(i / WIDE * PITCH + i % WIDE) * 3 + round;
		if (image)
			clReleaseMemObject(image);
	}
	free(host);
	free(back);
	OK(code);
	HOLDS(same);
	return NULL;
}

/* The first queue's command waits for the program, which has released its image by then. */
const char *images_of_two_queues(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	cl_int code;
	if (!HAS_IMAGES)
		return NULL;
	cl_command_queue other = clCreateCommandQueueWithProperties(gpu->context, gpu->device, NULL, &code);
	OK(code);
	PASS(crowd(gpu));
	for (cl_uint i = 0; i < 4; i++) {
		cl_event gate = clCreateUserEvent(gpu->context, &code);
		OK(code);
		cl_mem late = new_image(gpu), buffer = new_buffer(gpu, CL_MEM_READ_WRITE, 4 * TEXELS, NULL);
		OK(paint(other, late, 0xbad, 1, &gate));
		OK(clFlush(other));
		OK(clReleaseMemObject(late));
		cl_mem early = new_image(gpu);
		OK(paint(gpu->queue, early, i, 0, NULL));
		OK(clFinish(gpu->queue));
		OK(clSetUserEventStatus(gate, CL_COMPLETE));
		OK(clFinish(other));
		OK(clEnqueueCopyImageToBuffer(gpu->queue, early, buffer, zero, all, 0, 0, NULL, NULL));
		PASS(all_are(gpu, buffer, TEXELS, i));
		OK(clReleaseMemObject(early));
		OK(clReleaseMemObject(buffer));
		OK(clReleaseEvent(gate));
	}
	OK(clReleaseCommandQueue(other));
	return NULL;
}
