/* test_bounds.c: a padded block refuses what lies beyond the request, and only that; NULL is the driver's business. */
#include "harness.h"

#define SIZE 1000 /* served by a block of 1024 */

static char host[4096];

/* Each returns the error of one command on bytes [offset, offset + size) of a buffer. */
typedef cl_int command(cl_mem buffer, size_t offset, size_t size);

static cl_int do_read(cl_mem buffer, size_t offset, size_t size)
{
	return clEnqueueReadBuffer(world.queue, buffer, CL_FALSE, offset, size, host, 0, NULL, NULL);
}

static cl_int do_write(cl_mem buffer, size_t offset, size_t size)
{
	return clEnqueueWriteBuffer(world.queue, buffer, CL_FALSE, offset, size, host, 0, NULL, NULL);
}

static cl_int do_fill(cl_mem buffer, size_t offset, size_t size)
{
	return clEnqueueFillBuffer(world.queue, buffer, "x", 1, offset, size, 0, NULL, NULL);
}

static cl_int do_map(cl_mem buffer, size_t offset, size_t size)
{
	cl_int err = 1;
	void *pointer = clEnqueueMapBuffer(world.queue, buffer, CL_TRUE, CL_MAP_READ, offset, size, 0, NULL, NULL, &err);
	EQUAL(pointer != NULL, err == CL_SUCCESS);
	if (pointer)
		OK(clEnqueueUnmapMemObject(world.queue, buffer, pointer, 0, NULL, NULL));
	return err;
}

static cl_int do_sub(cl_mem buffer, size_t offset, size_t size)
{
	cl_int err = 1;
	cl_buffer_region region = {offset, size};
	cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	if (part)
		OK(clReleaseMemObject(part));
	return err;
}

static cl_mem other; /* large enough for the other side of copies */

static cl_int do_copy_from(cl_mem buffer, size_t offset, size_t size)
{
	return clEnqueueCopyBuffer(world.queue, buffer, other, offset, 0, size, 0, NULL, NULL);
}

static cl_int do_copy_to(cl_mem buffer, size_t offset, size_t size)
{
	return clEnqueueCopyBuffer(world.queue, other, buffer, 0, offset, size, 0, NULL, NULL);
}

/* The same bytes as two lines of a rectangle; the last line ends at offset + size. */
static bool as_rectangle(size_t offset, size_t size, size_t *origin, size_t *region, size_t *row)
{
	*row = 100;
	origin[0] = offset % *row;
	origin[1] = offset / *row;
	origin[2] = 0;
	region[0] = size > *row ? size - *row : 0;
	region[1] = 2;
	region[2] = 1;
	return region[0] > 0;
}

static cl_int do_read_rect(cl_mem buffer, size_t offset, size_t size)
{
	size_t origin[3], region[3], row;
	if (!as_rectangle(offset, size, origin, region, &row))
		return do_read(buffer, offset, size);
	return clEnqueueReadBufferRect(world.queue, buffer, CL_FALSE, origin, (size_t[3]){0}, region, row, 0, 0, 0, host, 0, NULL, NULL);
}

static cl_int do_write_rect(cl_mem buffer, size_t offset, size_t size)
{
	size_t origin[3], region[3], row;
	if (!as_rectangle(offset, size, origin, region, &row))
		return do_write(buffer, offset, size);
	return clEnqueueWriteBufferRect(world.queue, buffer, CL_FALSE, origin, (size_t[3]){0}, region, row, 0, 0, 0, host, 0, NULL, NULL);
}

static cl_int do_copy_rect_from(cl_mem buffer, size_t offset, size_t size)
{
	size_t origin[3], region[3], row;
	if (!as_rectangle(offset, size, origin, region, &row))
		return do_copy_from(buffer, offset, size);
	return clEnqueueCopyBufferRect(world.queue, buffer, other, origin, (size_t[3]){0}, region, row, 0, 0, 0, 0, NULL, NULL);
}

static cl_int do_copy_rect_to(cl_mem buffer, size_t offset, size_t size)
{
	size_t origin[3], region[3], row;
	if (!as_rectangle(offset, size, origin, region, &row))
		return do_copy_to(buffer, offset, size);
	return clEnqueueCopyBufferRect(world.queue, other, buffer, (size_t[3]){0}, origin, region, 0, 0, row, 0, 0, NULL, NULL);
}

static cl_mem image; /* four bytes for each element */

static cl_int do_image_to_buffer(cl_mem buffer, size_t offset, size_t size)
{
	size_t region[] = {(size + 3) / 4, 1, 1};
	return clEnqueueCopyImageToBuffer(world.queue, image, buffer, (size_t[3]){0}, region, offset, 0, NULL, NULL);
}

static cl_int do_buffer_to_image(cl_mem buffer, size_t offset, size_t size)
{
	size_t region[] = {(size + 3) / 4, 1, 1};
	return clEnqueueCopyBufferToImage(world.queue, buffer, image, offset, (size_t[3]){0}, region, 0, NULL, NULL);
}

static void bounded(command *run)
{
	cl_mem buffer = new_buffer(SIZE);
	EQUAL(fake_size(buffer), 1024);
	OK(run(buffer, 0, SIZE));
	OK(run(buffer, 800, 200));
	OK(run(buffer, SIZE - 16, 16));
	uint64_t commands = fake.commands;
	EQUAL(run(buffer, 0, SIZE + 4), CL_INVALID_VALUE);
	EQUAL(run(buffer, 0, 1024), CL_INVALID_VALUE);
	EQUAL(run(buffer, 804, 200), CL_INVALID_VALUE);
	EQUAL(run(buffer, SIZE, 16), CL_INVALID_VALUE);
	EQUAL(run(buffer, SIZE + 8, 8), CL_INVALID_VALUE);
	EQUAL(run(buffer, 16, SIZE_MAX - 8), CL_INVALID_VALUE);
	EQUAL(fake.commands, commands);
	OK(clReleaseMemObject(buffer));
}

TEST(padded_blocks_refuse_what_lies_beyond)
{
	static command *const all[] = {
		do_read, do_write, do_fill, do_map, do_sub, do_copy_from, do_copy_to, do_read_rect, do_write_rect, do_copy_rect_from,
		do_copy_rect_to,
	};
	begin((struct options){0});
	other = new_buffer(4096);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		bounded(all[i]);
	OK(clReleaseMemObject(other));
	end_clean();
}

static void images_bounded(bool checked)
{
	begin((struct options){0});
	fake.copiesbeyond = !checked;
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 64, .image_height = 64};
	cl_int err = 1;
	image = clCreateImage(world.context, 0, &format, &desc, NULL, &err);
	OK(err);
	command *const both[] = {do_image_to_buffer, do_buffer_to_image};
	for (int i = 0; i < 2; i++) {
		cl_mem buffer = new_buffer(SIZE);
		OK(both[i](buffer, 0, SIZE));
		OK(both[i](buffer, 800, 200));
		EQUAL(both[i](buffer, 0, 1024), CL_INVALID_VALUE);
		EQUAL(both[i](buffer, 804, 200), CL_INVALID_VALUE);
		EQUAL(both[i](buffer, 1001, 4), CL_INVALID_VALUE);
		OK(clReleaseMemObject(buffer));
	}
	EQUAL(fake.commands, checked ? 4 : 5); /* none of those, but one of our own that tried the driver */
	OK(clReleaseMemObject(image));
	end_clean();
}

TEST(padded_blocks_refuse_copies_of_images_beyond)
{
	images_bounded(true);
}

TEST(padded_blocks_refuse_copies_of_images_that_the_driver_would_not)
{
	images_bounded(false);
}

TEST(rectangles_with_pitches)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(1000);
	size_t zero[3] = {0}, region[3] = {10, 5, 2};
	/* The last byte is 1*490 + 4*100 + 10 - 1 = 899. */
	OK(clEnqueueReadBufferRect(world.queue, buffer, CL_FALSE, zero, zero, region, 100, 490, 0, 0, host, 0, NULL, NULL));
	/* 1*591 + 4*100 + 10 - 1 = 1000 is one too far. */
	EQUAL(clEnqueueReadBufferRect(world.queue, buffer, CL_FALSE, zero, zero, region, 100, 591, 0, 0, host, 0, NULL, NULL),
	      CL_INVALID_VALUE);
	OK(clEnqueueReadBufferRect(world.queue, buffer, CL_FALSE, zero, zero, region, 100, 590, 0, 0, host, 0, NULL, NULL));
	size_t origin[3] = {0, 0, 1};
	EQUAL(clEnqueueReadBufferRect(world.queue, buffer, CL_FALSE, origin, zero, region, 100, 500, 0, 0, host, 0, NULL, NULL),
	      CL_INVALID_VALUE);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(null_buffers_are_the_drivers_business)
{
	size_t zero[3] = {0}, one[3] = {1, 1, 1};
	begin((struct options){0});
	cl_command_queue q = world.queue;
	cl_mem padded = new_buffer(SIZE);
	for (int i = 0; i < 2; i++, q = NULL) { /* and without a queue */
		cl_mem n = NULL;
		CHECK(clEnqueueReadBuffer(q, n, CL_TRUE, 0, 1, host, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueWriteBuffer(q, n, CL_TRUE, 0, 1, host, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueReadBufferRect(q, padded, CL_TRUE, NULL, NULL, NULL, 0, 0, 0, 0, host, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueWriteBufferRect(q, padded, CL_TRUE, zero, NULL, NULL, 0, 0, 0, 0, host, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueCopyBuffer(q, n, n, 0, 0, 1, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueCopyBufferRect(q, padded, padded, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueFillBuffer(q, n, NULL, 0, 0, 1, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueCopyImageToBuffer(q, n, padded, NULL, NULL, 0, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueCopyImageToBuffer(q, n, padded, zero, one, 0, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueCopyBufferToImage(q, padded, n, 0, NULL, NULL, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueReadImage(q, n, CL_TRUE, NULL, NULL, 0, 0, NULL, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueWriteImage(q, n, CL_TRUE, NULL, NULL, 0, 0, NULL, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueCopyImage(q, n, n, NULL, NULL, NULL, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueFillImage(q, n, NULL, NULL, NULL, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(!clEnqueueMapBuffer(q, n, CL_TRUE, 0, 0, 1, 0, NULL, NULL, NULL));
		CHECK(!clEnqueueMapImage(q, n, CL_TRUE, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL));
		CHECK(clEnqueueUnmapMemObject(q, n, NULL, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueMigrateMemObjects(q, 1, NULL, 0, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueMigrateMemObjects(q, 0, NULL, 0, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueNativeKernel(q, NULL, NULL, 0, 1, NULL, NULL, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueNDRangeKernel(q, NULL, 1, NULL, one, NULL, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueTask(q, NULL, 0, NULL, NULL) != CL_SUCCESS);
		CHECK(clEnqueueSVMFree(q, 1, NULL, NULL, NULL, 0, NULL, NULL) != CL_SUCCESS);
	}
	OK(clReleaseMemObject(padded));
	end_clean();
}

TEST(other_nulls_are_the_drivers_business)
{
	begin((struct options){0});
	CHECK(clFinish(NULL) != CL_SUCCESS);
	CHECK(clFlush(NULL) != CL_SUCCESS);
	CHECK(clWaitForEvents(0, NULL) != CL_SUCCESS);
	CHECK(!clCreateUserEvent(NULL, NULL));
	CHECK(clRetainContext(NULL) != CL_SUCCESS);
	CHECK(clReleaseContext(NULL) != CL_SUCCESS);
	CHECK(clRetainCommandQueue(NULL) != CL_SUCCESS);
	CHECK(clReleaseCommandQueue(NULL) != CL_SUCCESS);
	CHECK(clRetainMemObject(NULL) != CL_SUCCESS);
	CHECK(clReleaseMemObject(NULL) != CL_SUCCESS);
	CHECK(clGetMemObjectInfo(NULL, CL_MEM_SIZE, 0, NULL, NULL) != CL_SUCCESS);
	CHECK(clSetMemObjectDestructorCallback(NULL, NULL, NULL) != CL_SUCCESS);
	CHECK(!clCreateCommandQueue(NULL, NULL, 0, NULL));
	CHECK(!clCreateCommandQueueWithProperties(NULL, NULL, NULL, NULL));
	CHECK(!clCreateBufferWithProperties(NULL, NULL, 0, 1, NULL, NULL));
	CHECK(!clCreateImageWithProperties(NULL, NULL, 0, NULL, NULL, NULL, NULL));
	CHECK(!clCreateImage2D(NULL, 0, NULL, 1, 1, 0, NULL, NULL));
	CHECK(!clCreateImage3D(NULL, 0, NULL, 1, 1, 1, 0, 0, NULL, NULL));
	CHECK(!clCreatePipe(NULL, 0, 1, 1, NULL, NULL));
	CHECK(!clSVMAlloc(NULL, 0, 1, 0));
	clSVMFree(NULL, NULL);
	clSVMFree(world.context, NULL);
	CHECK(!clCreateKernel(NULL, NULL, NULL));
	CHECK(clCreateKernelsInProgram(NULL, 0, NULL, NULL) != CL_SUCCESS);
	CHECK(!clCloneKernel(NULL, NULL));
	CHECK(clRetainKernel(NULL) != CL_SUCCESS);
	CHECK(clReleaseKernel(NULL) != CL_SUCCESS);
	CHECK(clSetKernelArg(NULL, 0, 0, NULL) != CL_SUCCESS);
	CHECK(clSetKernelArgSVMPointer(NULL, 0, NULL) != CL_SUCCESS);
	CHECK(!clGetExtensionFunctionAddress(NULL));
	CHECK(!clGetExtensionFunctionAddressForPlatform(NULL, NULL));
	end_clean();
}

TEST(a_released_kernel_is_not_found_by_null)
{
	begin((struct options){0});
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	OK(clSetKernelArg(kernel, 3, 8, &(uint64_t){0}));
	OK(clReleaseKernel(kernel));
	CHECK(clReleaseKernel(NULL) != CL_SUCCESS);
	CHECK(clCreateKernelsInProgram(fake_program(), 0, NULL, NULL) == CL_SUCCESS);
	cl_kernel two[2];
	cl_uint count = 0;
	OK(clCreateKernelsInProgram(fake_program(), 2, two, &count));
	EQUAL(count, 2);
	OK(clReleaseKernel(two[0]));
	OK(clReleaseKernel(two[1]));
	EQUAL(fake.livekernels, 0);
	EQUAL(events(GMT_KIND_KERNEL), 3);
	CHECK(strcmp(last_text(GMT_KIND_KERNEL), "kernel") == 0);
	end_clean();
}
