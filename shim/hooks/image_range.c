/* image_range.c: see image_range.h. */
#define _GNU_SOURCE
#include "image_range.h"

#include "../base/dispatch.h"
#include "../base/leak_check.h"

enum { PIXEL = 4 }; /* bytes */

/*
 * Whether the driver copies a pixel whose last byte lies beyond a buffer. That byte exists, since no driver places buffers so
 * closely.
 */
static bool copies_pixel_beyond(cl_context context, cl_device_id device)
{
	const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 1, .image_height = 1};
	const size_t origin[3] = {0, 0, 0}, region[3] = {1, 1, 1};
	unsigned char pixel[PIXEL] = {0};
	cl_int err = CL_SUCCESS;
	cl_command_queue queue = gmt_driver.clCreateCommandQueue(context, device, 0, &err);
	cl_mem buffer = gmt_driver.clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, PIXEL, pixel, &err);
	cl_mem image = gmt_driver.clCreateImage ? gmt_driver.clCreateImage(context, 0, &format, &desc, NULL, &err) : NULL;
	bool copied = queue && buffer && image &&
		      gmt_driver.clEnqueueCopyBufferToImage(queue, buffer, image, 1, origin, region, 0, NULL, NULL) == CL_SUCCESS;
	if (copied)
		gmt_driver.clFinish(queue);
	if (image)
		gmt_driver.clReleaseMemObject(image);
	if (buffer)
		gmt_driver.clReleaseMemObject(buffer);
	if (queue)
		gmt_driver.clReleaseCommandQueue(queue);
	return copied;
}

/* Whether the driver does not check copies of images, tried once for a context, in another context of ours. */
static bool are_copies_unchecked(struct gmt_context *context)
{
	if (!context || !context->devices.first || context->devices.old) /* before OpenCL 1.2 images are created by other functions */
		return false;
	if (atomic_load(&context->tried.image_copies) == GMT_TRIAL_NONE) {
		cl_int err = CL_SUCCESS;
		gmt_leak_check_off();
		cl_context own = gmt_driver.clCreateContext(NULL, 1, &context->devices.first, NULL, NULL, &err);
		bool beyond = own && copies_pixel_beyond(own, context->devices.first);
		if (own)
			gmt_driver.clReleaseContext(own);
		gmt_leak_check_on();
		atomic_store(&context->tried.image_copies, beyond ? GMT_TRIAL_FAILED : GMT_TRIAL_PASSED);
	}
	return atomic_load(&context->tried.image_copies) == GMT_TRIAL_FAILED;
}

/* The bytes that a copy of an image's region takes in a buffer. */
static size_t region_bytes(cl_mem image, const size_t *region)
{
	size_t bytes = 0;
	if (!region || gmt_driver.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof bytes, &bytes, NULL) != CL_SUCCESS)
		return 0;
	for (int i = 0; i < 3; i++)
		if (__builtin_mul_overflow(bytes, region[i], &bytes))
			return SIZE_MAX;
	return bytes;
}

size_t gmt_image_range(struct gmt_command *command, cl_mem image, const struct gmt_memory *buffer, size_t offset, const size_t *region)
{
	if (!buffer || (buffer->granted <= buffer->size && !buffer->slab))
		return offset;
	size_t bytes = region_bytes(image, region);
	if (gmt_memory_beyond(buffer, offset, bytes) && !command->refused && are_copies_unchecked(buffer->context))
		command->refused = CL_INVALID_VALUE;
	return gmt_command_range(buffer, offset, bytes, &bytes);
}
