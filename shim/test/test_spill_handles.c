/* test_spill_handles.c: --spill: handles that are ours look like those of the driver. */
#define _GNU_SOURCE
#include "spilling.h"

static char order[8];
static void CL_CALLBACK note(cl_mem buffer, void *data)
{
	(void)buffer;
	strcat(order, data);
}

TEST(spill_counts_references_and_calls_back_once)
{
	begin_spill();
	static char first[] = "1", second[] = "2", third[] = "3";
	cl_mem used = make(CL_MEM_READ_WRITE, NULL), unused = make(CL_MEM_READ_WRITE, NULL);
	OK(clSetMemObjectDestructorCallback(used, note, first));
	OK(clSetMemObjectDestructorCallback(used, note, second));
	OK(clSetMemObjectDestructorCallback(unused, note, third));
	write_all(world.queue, used, 'u');
	OK(clRetainMemObject(used));
	cl_uint references = 0;
	OK(clGetMemObjectInfo(used, CL_MEM_REFERENCE_COUNT, sizeof references, &references, NULL));
	EQUAL(references, 2);
	OK(clReleaseMemObject(used));
	CHECK(strcmp(order, "") == 0);
	OK(clReleaseMemObject(unused));
	CHECK(strcmp(order, "3") == 0);
	OK(clReleaseMemObject(used));
	fake_complete_all();
	CHECK(strcmp(order, "321") == 0);
	EQUAL(clReleaseMemObject(used), CL_INVALID_MEM_OBJECT);
	end_clean();
}

TEST(spill_sets_arguments_again_when_objects_have_moved)
{
	begin_spill();
	cl_int err;
	cl_kernel kernel = clCreateKernel(fake_program(), "kernel", &err);
	OK(err);
	cl_mem list[4];
	for (int i = 0; i < 4; i++) {
		list[i] = make(CL_MEM_READ_WRITE, NULL);
		write_all(world.queue, list[i], (char)('a' + i));
	}
	size_t items = 1;
	for (int round = 0; round < 8; round++) {
		OK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &list[round % 4]));
		OK(clSetKernelArg(kernel, 1, sizeof(cl_mem), &list[(round + 1) % 4]));
		OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
		write_all(world.queue, list[(round + 2) % 4], (char)('a' + (round + 2) % 4));
		OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
	}
	uint64_t sets = fake.setargs;
	OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
	EQUAL(fake.setargs, sets);
	OK(clSetKernelArg(kernel, 2, sizeof(cl_mem), &list[0]));
	OK(clSetKernelArg(kernel, 2, sizeof(cl_mem), &list[3]));
	EQUAL(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL), CL_SUCCESS);
	for (int i = 0; i < 4; i++) {
		check_all(world.queue, list[i], (char)('a' + i));
		OK(clReleaseMemObject(list[i]));
	}
	EQUAL(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL), CL_INVALID_KERNEL_ARGS);
	EQUAL(clSetKernelArg(kernel, 0, sizeof(cl_mem), &list[0]), CL_INVALID_MEM_OBJECT);
	EQUAL(clSetKernelArg(kernel, 9, sizeof(cl_mem), &(cl_mem){NULL}), CL_INVALID_ARG_INDEX);
	OK(clReleaseKernel(kernel));
	end_clean();
}

/* On such a driver an argument that is used no more must not keep the memory of what has gone, or was released. */
TEST(spill_takes_memory_from_arguments_that_keep_it)
{
	begin_spill();
	fake.keepsarguments = 1;
	cl_int err;
	cl_mem list[5];
	cl_kernel kernel[2];
	size_t items = 1;
	for (int i = 0; i < 5; i++)
		list[i] = make(CL_MEM_READ_WRITE, NULL);
	for (int i = 0; i < 2; i++) {
		kernel[i] = clCreateKernel(fake_program(), "kernel", &err);
		OK(clSetKernelArg(kernel[i], 0, sizeof(cl_mem), &list[i]));
		OK(clEnqueueNDRangeKernel(world.queue, kernel[i], 1, NULL, &items, NULL, 0, NULL, NULL));
		write_all(world.queue, list[i], (char)('a' + i));
	}
	EQUAL(fake.livebytes, 2 * BYTES + 64); /* and what stands for one that is not there */
	for (int i = 2; i < 4; i++) {
		write_all(world.queue, list[i], (char)('a' + i));
		CHECK(fake.livebytes <= CARD);
	}
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 2; i++)
			OK(clEnqueueNDRangeKernel(world.queue, kernel[i], 1, NULL, &items, NULL, 0, NULL, NULL));
		write_all(world.queue, list[2 + round % 2], (char)('c' + round % 2));
		CHECK(fake.livebytes <= CARD);
	}
	OK(clSetKernelArg(kernel[0], 1, sizeof(cl_mem), &list[4]));
	OK(clEnqueueNDRangeKernel(world.queue, kernel[0], 1, NULL, &items, NULL, 0, NULL, NULL));
	OK(clReleaseMemObject(list[4]));
	OK(clFinish(world.queue));
	CHECK(fake.livebytes < CARD - BYTES);
	for (int i = 0; i < 4; i++) {
		check_all(world.queue, list[i], (char)('a' + i));
		OK(clReleaseMemObject(list[i]));
	}
	for (int i = 0; i < 2; i++)
		OK(clReleaseKernel(kernel[i]));
	fake.keepsarguments = 0;
	end_clean();
}

/* A command that ends while an argument is set gives back a reference: nothing follows from how many there were before. */
TEST(spill_does_not_take_an_end_of_a_command_for_an_argument_that_is_not_kept)
{
	begin_spill();
	fake.keepsarguments = 1;
	fake.eager = 0;
	cl_int err;
	static const char bytes[BYTES];
	cl_mem kept = make(CL_MEM_READ_WRITE, NULL), other[2] = {make(CL_MEM_READ_WRITE, NULL), make(CL_MEM_READ_WRITE, NULL)};
	cl_kernel kernel = clCreateKernel(fake_program(), "kernel", &err);
	OK(err);
	OK(clEnqueueWriteBuffer(world.queue, kept, CL_FALSE, 0, sizeof bytes, bytes, 0, NULL, NULL));
	fake.beforesetarg = fake_complete_all;
	OK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &kept));
	fake.beforesetarg = NULL;
	fake.eager = 1;
	for (int i = 0; i < 2; i++)
		write_all(world.queue, other[i], 'o');
	CHECK(fake.livebytes <= CARD);
	OK(clReleaseKernel(kernel));
	OK(clReleaseMemObject(kept));
	for (int i = 0; i < 2; i++)
		OK(clReleaseMemObject(other[i]));
	fake.keepsarguments = 0;
	end_clean();
}

/* An argument that was replaced ends with its last command, as on the driver itself, while memory is not short. */
TEST(spill_lets_go_of_replaced_arguments_at_once)
{
	begin_spill();
	fake.keepsarguments = 1;
	cl_int err;
	static char ends[] = "e";
	size_t items = 1;
	cl_mem old = make(CL_MEM_READ_WRITE, NULL), next = make(CL_MEM_READ_WRITE, NULL);
	cl_kernel kernel = clCreateKernel(fake_program(), "kernel", &err);
	OK(err);
	OK(clSetMemObjectDestructorCallback(old, note, ends));
	OK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &old));
	OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
	OK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &next));
	OK(clReleaseMemObject(old));
	OK(clFinish(world.queue));
	CHECK(strcmp(order, "e") == 0);
	OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
	OK(clReleaseKernel(kernel));
	OK(clReleaseMemObject(next));
	fake.keepsarguments = 0;
	end_clean();
}

static cl_int create_error(cl_mem_flags flags, size_t size, void *host)
{
	cl_int err = 1;
	cl_mem buffer = clCreateBuffer(world.context, flags, size, host, &err);
	EQUAL(buffer != NULL, err == CL_SUCCESS);
	if (buffer)
		OK(clReleaseMemObject(buffer));
	return err;
}

TEST(spill_refuses_what_the_driver_refuses)
{
	static char host[64];
	begin_spill();
	EQUAL(create_error(0, 0, NULL), CL_INVALID_BUFFER_SIZE);
	EQUAL(create_error(0, CARD + 1, NULL), CL_INVALID_BUFFER_SIZE);
	EQUAL(create_error(CL_MEM_COPY_HOST_PTR, 64, NULL), CL_INVALID_HOST_PTR);
	EQUAL(create_error(CL_MEM_READ_WRITE, 64, host), CL_INVALID_HOST_PTR);
	OK(create_error(CL_MEM_READ_WRITE, 64, NULL));
	EQUAL(create_error(CL_MEM_READ_WRITE, 64, host), CL_INVALID_HOST_PTR);
	cl_int err = 1;
	CHECK(!clCreateBuffer(NULL, 0, 64, NULL, &err));
	EQUAL(err, CL_INVALID_CONTEXT);
	cl_mem buffer = make(0, NULL);
	EQUAL(clGetPipeInfo(buffer, CL_PIPE_MAX_PACKETS, sizeof err, &err, NULL), CL_INVALID_MEM_OBJECT);
	EQUAL(clGetGLObjectInfo(buffer, NULL, NULL), CL_INVALID_GL_OBJECT);
	EQUAL(clGetGLTextureInfo(buffer, CL_GL_MIPMAP_LEVEL, sizeof err, &err, NULL), CL_INVALID_GL_OBJECT);
	OK(clReleaseMemObject(buffer));
	CHECK(!clGetExtensionFunctionAddress("clCommandCopyBufferKHR"));
	CHECK(!clGetExtensionFunctionAddress("clCreateCommandBufferKHR"));
	end_clean();
}

static cl_mem_flags flags_of(cl_mem memory)
{
	cl_mem_flags flags = 0;
	OK(clGetMemObjectInfo(memory, CL_MEM_FLAGS, sizeof flags, &flags, NULL));
	return flags;
}

/* Like PoCL 3.1, the driver makes 0 CL_MEM_READ_WRITE, but not CL_MEM_COPY_HOST_PTR alone, with which contents come back. */
TEST(spill_keeps_the_access_that_a_driver_gives)
{
	begin_spill();
	fake.givesaccess = 1;
	cl_int err;
	cl_buffer_region region = {64, 16};
	cl_mem a = make(0, NULL), b = make(0, NULL), c = make(0, NULL);
	write_all(world.queue, a, 'a');
	write_all(world.queue, b, 'b');
	write_all(world.queue, c, 'c');
	check_all(world.queue, a, 'a');
	cl_mem part = clCreateSubBuffer(a, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	OK(err);
	EQUAL(flags_of(a), CL_MEM_READ_WRITE);
	EQUAL(flags_of(part), CL_MEM_READ_WRITE);
	OK(clReleaseMemObject(part));
	cl_mem copy = make(CL_MEM_COPY_HOST_PTR, (char[BYTES]){0});
	part = clCreateSubBuffer(copy, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	OK(err);
	EQUAL(flags_of(part), CL_MEM_COPY_HOST_PTR);
	OK(clReleaseMemObject(part));
	OK(clReleaseMemObject(copy));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	end_clean();
}

static cl_int wrong_rect(cl_mem buffer, char *host)
{
	const size_t origin[3] = {BYTES - 2, 0, 0}, zero[3] = {0}, region[3] = {4, 1, 1};
	return clEnqueueReadBufferRect(world.queue, buffer, CL_TRUE, origin, zero, region, 0, 0, 0, 0, host, 0, NULL, NULL);
}

/* Even where there is no room for the buffer, and none can be had. */
TEST(spill_leaves_wrong_calls_their_errors)
{
	static char host[BYTES];
	begin_spill();
	cl_int err;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	cl_mem shut = make(CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS, NULL);
	cl_event gate = clCreateUserEvent(world.context, &err);
	OK(err);
	cl_event one = fill(world.queue, a, 1, &gate), two = fill(world.queue, b, 1, &gate);
	EQUAL(clEnqueueReadBuffer(world.queue, c, CL_TRUE, BYTES - 1, 2, host, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueWriteBuffer(world.queue, c, CL_TRUE, BYTES + 1, 1, host, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueWriteBuffer(world.queue, c, CL_TRUE, 0, 1, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueFillBuffer(world.queue, c, "xyz", 3, 0, 3, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueFillBuffer(world.queue, c, "x", 1, SIZE_MAX, 2, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueCopyBuffer(world.queue, c, c, BYTES, 0, 1, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueReadBuffer(world.queue, shut, CL_TRUE, 0, 1, host, 0, NULL, NULL), CL_INVALID_OPERATION);
	EQUAL(clEnqueueReadBuffer(NULL, c, CL_TRUE, 0, 1, host, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
	EQUAL(clEnqueueReadBuffer(world.queue, c, CL_TRUE, 0, 1, host, 1, NULL, NULL), CL_INVALID_EVENT_WAIT_LIST);
	EQUAL(clEnqueueUnmapMemObject(world.queue, c, host, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(wrong_rect(c, host), CL_INVALID_VALUE);
	clEnqueueMapBuffer(world.queue, c, CL_TRUE, CL_MAP_READ, BYTES, 1, 0, NULL, NULL, &err);
	EQUAL(err, CL_INVALID_VALUE);
	EQUAL(events(GMT_KIND_DIAG), diags(GMT_DIAG_CALL_FAILED));
	EQUAL(clEnqueueReadBuffer(world.queue, c, CL_TRUE, 0, 1, host, 0, NULL, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	EQUAL(fake.livebytes, (uint64_t)2 * BYTES);
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	OK(clReleaseEvent(one));
	OK(clReleaseEvent(two));
	OK(clReleaseEvent(gate));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	OK(clReleaseMemObject(shut));
	end_clean();
}

static cl_int sub_error(cl_mem parent, cl_mem_flags flags, size_t origin, size_t size)
{
	cl_int err = 1;
	cl_buffer_region region = {origin, size};
	cl_mem part = clCreateSubBuffer(parent, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	if (part)
		OK(clReleaseMemObject(part));
	return err;
}

TEST(spill_judges_sub_buffers_of_what_is_not_there)
{
	begin_spill();
	cl_mem a = make(CL_MEM_READ_WRITE, NULL);
	OK(sub_error(a, CL_MEM_HOST_NO_ACCESS, 64, 16));
	EQUAL(sub_error(a, 0, 1, 16), CL_MISALIGNED_SUB_BUFFER_OFFSET);
	EQUAL(sub_error(a, CL_MEM_COPY_HOST_PTR, 64, 16), CL_INVALID_VALUE);
	EQUAL(sub_error(a, 0, 64, 0), CL_INVALID_BUFFER_SIZE);
	EQUAL(fake.livebytes, 0);
	EQUAL(sub_error(a, 0, 64, BYTES), CL_INVALID_VALUE);
	OK(clReleaseMemObject(a));
	end_clean();
}

TEST(spill_images_show_the_flags_that_the_program_gave)
{
	begin_spill();
	fake.givesaccess = 1;
	cl_int err;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	write_all(world.queue, a, 'a');
	write_all(world.queue, b, 'b');
	write_all(world.queue, c, 'c');
	check_all(world.queue, a, 'a'); /* the driver made it again, with its contents */
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = BYTES / 4, .buffer = a};
	cl_mem image = clCreateImage(world.context, 0, &format, &desc, NULL, &err);
	OK(err);
	EQUAL(flags_of(image), CL_MEM_READ_WRITE);
	OK(clReleaseMemObject(image));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	end_clean();
}

static cl_mem image_of(cl_mem buffer)
{
	cl_int err = 1;
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = BYTES / 4, .buffer = buffer};
	cl_mem image = clCreateImage(world.context, 0, &format, &desc, NULL, &err);
	OK(err);
	return image;
}

static cl_mem parent_in(cl_mem image)
{
	cl_mem parent = NULL, same = NULL;
	OK(clGetMemObjectInfo(image, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL));
	OK(clGetImageInfo(image, CL_IMAGE_BUFFER, sizeof same, &same, NULL));
	CHECK(parent == same);
	return parent;
}

/* Both are made again, for commands on either, and for kernels that have the image. */
TEST(spill_moves_a_buffer_with_its_images)
{
	begin_spill();
	cl_int err;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	cl_kernel kernel = clCreateKernel(fake_program(), "kernel", &err);
	write_all(world.queue, a, 'a');
	cl_buffer_region region = {0, BYTES};
	cl_mem part = clCreateSubBuffer(a, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	OK(err);
	cl_mem image = image_of(a), second = image_of(part);
	OK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &image));
	OK(clSetKernelArg(kernel, 1, sizeof(cl_mem), &second));
	const size_t origin[3] = {0}, all[3] = {BYTES / 4, 1, 1}, items = 1;
	char bytes[BYTES];
	for (int round = 0; round < 3; round++) {
		write_all(world.queue, b, 'b');
		write_all(world.queue, c, 'c'); /* a has gone */
		OK(clEnqueueReadImage(world.queue, image, CL_TRUE, origin, all, 0, 0, bytes, 0, NULL, NULL));
		EQUAL(bytes[BYTES - 1], 'a' + round);
		memset(bytes, 'b' + round, sizeof bytes);
		OK(clEnqueueWriteBuffer(world.queue, a, CL_TRUE, 0, BYTES, bytes, 0, NULL, NULL));
		check_all(world.queue, b, 'b');
		check_all(world.queue, c, 'c');
		uint64_t sets = fake.setargs;
		OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
		EQUAL(fake.setargs, sets + 2);
		CHECK(parent_in(image) == a);
		CHECK(parent_in(second) == part);
	}
	void *mapped = clEnqueueMapImage(world.queue, image, CL_TRUE, CL_MAP_READ, origin, all, &(size_t){0}, NULL, 0, NULL, NULL, &err);
	OK(err);
	OK(clReleaseMemObject(a));
	write_all(world.queue, b, 'b');
	write_all(world.queue, c, 'c'); /* instead of b */
	CHECK(parent_in(image) == a);
	OK(clEnqueueUnmapMemObject(world.queue, image, mapped, 0, NULL, NULL));
	EQUAL(clEnqueueReadImage(world.queue, b, CL_TRUE, origin, all, 0, 0, bytes, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
	OK(clReleaseMemObject(image));
	OK(clReleaseMemObject(second));
	OK(clReleaseMemObject(part));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	OK(clReleaseKernel(kernel));
	end_clean();
}
