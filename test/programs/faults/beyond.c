/*
 * beyond: copies between an image and a buffer, whose last ones touch a byte after the buffer, and commands on ranges of
 * nearly all addresses. Prints the errors, and how many bytes of the image they changed.
 *
 *	beyond [SIZE]
 */
#include "work.h"

#include <stdio.h>
#include <string.h>

enum { PIXELS = 4, IMAGE = PIXELS * 4 }; /* bytes of the image: one row */

static const size_t origin[3] = {0, 0, 0}, region[3] = {PIXELS, 1, 1};

static cl_mem create_image(const struct gpu *gpu)
{
	const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = PIXELS, .image_height = 1};
	cl_int status;
	unsigned char pixels[IMAGE];
	memset(pixels, 1, sizeof pixels);
	cl_mem image = clCreateImage(gpu->context, CL_MEM_COPY_HOST_PTR, &format, &desc, pixels, &status);
	CHECK(status);
	return image;
}

/* The second time from a pool. */
static cl_mem create_buffer(const struct gpu *gpu, size_t size)
{
	cl_mem buffer = NULL;
	for (int i = 0; i < 2; i++) {
		cl_int status;
		if (buffer)
			CHECK(clReleaseMemObject(buffer));
		buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, &status);
		CHECK(status);
	}
	return buffer;
}

static void copy_at(const struct gpu *gpu, cl_mem image, cl_mem buffer, size_t offset)
{
	printf("into %d\n", clEnqueueCopyImageToBuffer(gpu->queue, image, buffer, origin, region, offset, 0, NULL, NULL));
	printf("from %d\n", clEnqueueCopyBufferToImage(gpu->queue, buffer, image, offset, origin, region, 0, NULL, NULL));
	CHECK(clFinish(gpu->queue));
}

/* Ranges so long that their ends overflow where the buffer begins behind others in a block. */
static void reach_around(const struct gpu *gpu, cl_mem buffer)
{
	const size_t most = SIZE_MAX - 3;
	static char host[IMAGE];
	const cl_uint word = 7;
	printf("read %d\n", clEnqueueReadBuffer(gpu->queue, buffer, CL_TRUE, 0, most, host, 0, NULL, NULL));
	printf("write %d\n", clEnqueueWriteBuffer(gpu->queue, buffer, CL_TRUE, 0, most, host, 0, NULL, NULL));
	printf("fill %d\n", clEnqueueFillBuffer(gpu->queue, buffer, &word, sizeof word, 0, most, 0, NULL, NULL));
	printf("copy %d\n", clEnqueueCopyBuffer(gpu->queue, buffer, buffer, 0, 0, most, 0, NULL, NULL));
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[SIZE]", 1);
	size_t size = arguments_size(&arguments, 0, 1000);
	struct gpu gpu = gpu_open(0);
	cl_mem image = create_image(&gpu), buffer = create_buffer(&gpu, size);
	copy_at(&gpu, image, buffer, size - IMAGE);
	copy_at(&gpu, image, buffer, size - IMAGE + 1);
	reach_around(&gpu, buffer);
	unsigned char pixels[IMAGE];
	int changed = 0;
	CHECK(clEnqueueReadImage(gpu.queue, image, CL_TRUE, origin, region, 0, 0, pixels, 0, NULL, NULL));
	for (int i = 0; i < IMAGE; i++)
		changed += pixels[i] != 1;
	printf("changed %d\n", changed);
	CHECK(clReleaseMemObject(buffer));
	CHECK(clReleaseMemObject(image));
	gpu_close(&gpu);
	return 0;
}
