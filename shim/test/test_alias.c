/* test_alias.c: images of parts, on a driver that makes images of buffers only. */
#include "carved.h"

#include <pthread.h>

static const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
static const size_t zero[3] = {0, 0, 0}, all[3] = {25, 1, 1};

static cl_mem image_of(cl_mem buffer, size_t width, cl_int *err)
{
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = width, .mem_object = buffer};
	return clCreateImage(world.context, 0, &format, &desc, NULL, err);
}

static cl_mem new_image(cl_mem buffer)
{
	cl_int err = 1;
	cl_mem image = image_of(buffer, 25, &err);
	OK(err);
	CHECK(image);
	return image;
}

static cl_mem new_part(void)
{
	cl_mem buffer = new_buffer(100);
	CHECK(is_part(GMT_KIND_CREATE));
	return buffer;
}

static void begin_aliased(struct options options)
{
	fake.imagesofwholes = 1;
	fake.processor = 1;
	begin_carved(options);
}

static void image_shows(cl_mem image, unsigned char byte)
{
	unsigned char got[100] = {0};
	OK(clEnqueueReadImage(world.queue, image, CL_TRUE, zero, all, 0, 0, got, 0, NULL, NULL));
	for (size_t i = 0; i < sizeof got; i++)
		EQUAL(got[i], byte);
}

static cl_event paint(cl_mem image, const unsigned char *bytes, cl_uint waits, const cl_event *list)
{
	cl_event event = NULL;
	OK(clEnqueueWriteImage(world.queue, image, CL_FALSE, zero, all, 0, 0, bytes, waits, list, &event));
	return event;
}

TEST(a_part_has_nothing_of_the_shared_memory_whose_entry_it_gets)
{
	enum { MANY = 512 };
	void *pointers[MANY];
	setenv("FAKE_CORE_EVICT", "1", 1);
	begin_aliased((struct options){.nouses = true});
	for (int i = 0; i < MANY; i++)
		pointers[i] = clSVMAlloc(world.context, CL_MEM_READ_WRITE, 32768, 0);
	for (int i = 0; i < MANY; i++)
		clSVMFree(world.context, pointers[i]);
	cl_mem buffer = new_part(), image = new_image(buffer);
	OK(clReleaseMemObject(image));
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(an_image_shows_its_part_alone)
{
	unsigned char bytes[100], got[100];
	begin_aliased((struct options){0});
	cl_mem before = new_part(), buffer = new_part(), behind = new_part(), image = new_image(buffer);
	for (unsigned char round = 1; round < 4; round++) {
		memset(bytes, round, sizeof bytes);
		OK(clEnqueueWriteBuffer(world.queue, buffer, CL_TRUE, 0, 100, bytes, 0, NULL, NULL));
		image_shows(image, round);
		memset(bytes, 100 + round, sizeof bytes);
		OK(clReleaseEvent(paint(image, bytes, 0, NULL)));
		OK(clEnqueueReadBuffer(world.queue, buffer, CL_TRUE, 0, 100, got, 0, NULL, NULL));
		EQUAL(memcmp(got, bytes, sizeof got), 0);
	}
	cl_mem second = new_image(buffer);
	image_shows(second, 103);
	memset(bytes, 7, sizeof bytes);
	OK(clEnqueueWriteBuffer(world.queue, before, CL_TRUE, 0, 100, bytes, 0, NULL, NULL));
	OK(clEnqueueWriteBuffer(world.queue, behind, CL_TRUE, 0, 100, bytes, 0, NULL, NULL));
	image_shows(image, 103);
	cl_int err = 1;
	CHECK(!image_of(buffer, 26, &err)); /* beyond the part */
	EQUAL(err, CL_INVALID_IMAGE_DESCRIPTOR);
	cl_mem list[] = {before, behind, image, second, buffer};
	for (size_t i = 0; i < 5; i++)
		OK(clReleaseMemObject(list[i]));
	end_clean();
}

/* As with a driver that makes images of the buffer itself. */
TEST(images_of_parts_and_their_parts_look_as_bare)
{
	static const cl_mem_flags flags[] = {0, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY | CL_MEM_HOST_READ_ONLY, CL_MEM_ALLOC_HOST_PTR};
	fake.countcommands = fake.givesaccess = 1;
	begin_aliased((struct options){0});
	for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
		const cl_mem_flags shown = flags[i] ? flags[i] : CL_MEM_READ_WRITE;
		cl_mem buffer = clCreateBuffer(world.context, flags[i], 100, NULL, NULL);
		CHECK(is_part(GMT_KIND_CREATE));
		EQUAL(asked(buffer, CL_MEM_FLAGS), shown);
		cl_mem image = new_image(buffer), got = NULL;
		EQUAL(asked(buffer, CL_MEM_REFERENCE_COUNT), 2);
		EQUAL(asked(image, CL_MEM_REFERENCE_COUNT), 1);
		EQUAL(asked(image, CL_MEM_FLAGS), shown);
		CHECK(asked_pointer(image, CL_MEM_ASSOCIATED_MEMOBJECT) == buffer);
		CHECK(!asked_pointer(image, CL_MEM_HOST_PTR));
		CHECK(!asked_pointer(buffer, CL_MEM_HOST_PTR));
		EQUAL(asked(image, CL_MEM_OFFSET), 0);
		OK(clGetImageInfo(image, CL_IMAGE_BUFFER, sizeof(cl_mem), &got, NULL));
		CHECK(got == buffer);
		const cl_buffer_region region = {0, 100};
		cl_mem child = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
		EQUAL(asked(child, CL_MEM_FLAGS), shown & ~(cl_mem_flags)CL_MEM_HOST_READ_ONLY);
		CHECK(!asked_pointer(child, CL_MEM_HOST_PTR));
		CHECK(!image_of(child, 25, NULL)); /* refused as bare */
		OK(clReleaseMemObject(child));
		OK(clReleaseMemObject(image));
		EQUAL(asked(buffer, CL_MEM_REFERENCE_COUNT), 1);
		OK(clReleaseMemObject(buffer));
	}
	end_clean();
}

TEST(an_alias_does_not_count_in_its_context)
{
	fake.countobjects = 1;
	begin_aliased((struct options){0});
	cl_mem buffer = new_part();
	cl_uint before = 0, with = 0;
	OK(clGetContextInfo(world.context, CL_CONTEXT_REFERENCE_COUNT, sizeof before, &before, NULL));
	cl_mem image = new_image(buffer);
	OK(clGetContextInfo(world.context, CL_CONTEXT_REFERENCE_COUNT, sizeof with, &with, NULL));
	EQUAL(with, before + 1);
	OK(clReleaseMemObject(image));
	OK(clGetContextInfo(world.context, CL_CONTEXT_REFERENCE_COUNT, sizeof with, &with, NULL));
	EQUAL(with, before);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

/* A command of the part may wait for the program when the image is made; an argument may have been set before. */
TEST(an_image_of_a_part_waits_for_nothing)
{
	unsigned char bytes[100];
	memset(bytes, 5, sizeof bytes);
	begin_aliased((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_part();
	cl_event gate = clCreateUserEvent(world.context, NULL);
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
	OK(clEnqueueWriteBuffer(second, buffer, CL_FALSE, 0, 100, bytes, 1, &gate, NULL));
	uint64_t commands = fake.commands;
	cl_mem image = new_image(buffer);
	EQUAL(fake.commands, commands);
	EQUAL(fake.pending, 1);
	OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, all, NULL, 0, NULL, NULL));
	OK(clFinish(world.queue));
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	OK(clFinish(second));
	image_shows(image, 5);
	OK(clReleaseEvent(gate));
	OK(clReleaseKernel(kernel));
	OK(clReleaseMemObject(image));
	OK(clReleaseMemObject(buffer));
	OK(clReleaseCommandQueue(second));
	end_clean();
}

/* The range, and the memory under it, stay as long as commands on the image; address sanitizers would see the rest. */
static void release_in_flight(bool ends)
{
	unsigned char bytes[100], got[100];
	memset(bytes, 9, sizeof bytes);
	begin_aliased((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_part(), image = new_image(buffer);
	cl_event gate = clCreateUserEvent(world.context, NULL), painted = paint(image, bytes, 1, &gate);
	EQUAL(release(buffer), GMT_OUTCOME_PINNED);
	EQUAL(release(image), GMT_OUTCOME_COOLING);
	cl_mem other = new_part();
	memset(got, 3, sizeof got);
	OK(clEnqueueWriteBuffer(second, other, CL_TRUE, 0, 100, got, 0, NULL, NULL));
	if (ends) { /* all of the pool goes, with its slabs */
		OK(clReleaseMemObject(other));
		OK(clReleaseCommandQueue(world.queue));
		OK(clReleaseCommandQueue(second));
		OK(clReleaseContext(world.context));
	}
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	OK(clReleaseEvent(gate));
	fake_complete_all();
	OK(clReleaseEvent(painted));
	if (ends) {
		EQUAL(fake.livememory, 0);
		EQUAL(fake.livecontexts, 0);
		return;
	}
	OK(clEnqueueReadBuffer(second, other, CL_TRUE, 0, 100, got, 0, NULL, NULL));
	EQUAL(got[0], 3);
	OK(clReleaseMemObject(other));
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(an_image_of_a_part_is_released_while_a_command_uses_it)
{
	release_in_flight(false);
}

TEST(a_slab_ends_while_a_command_uses_an_image_of_its_part)
{
	release_in_flight(true);
}

TEST(a_mapped_image_keeps_its_part)
{
	fake.countparts = 1;
	begin_aliased((struct options){0});
	cl_mem buffer = new_part(), image = new_image(buffer);
	unsigned char *mapped = clEnqueueMapImage(world.queue, image, CL_TRUE, CL_MAP_WRITE, zero, all, NULL, NULL, 0, NULL, NULL, NULL);
	CHECK(mapped);
	EQUAL(release(buffer), GMT_OUTCOME_PINNED);
	OK(clRetainMemObject(image));
	OK(clReleaseMemObject(image));
	memset(mapped, 1, 100);
	OK(clEnqueueUnmapMemObject(world.queue, image, mapped, 0, NULL, NULL));
	OK(clFinish(world.queue));
	image_shows(image, 1);
	EQUAL(release(image), GMT_OUTCOME_CACHED);
	end_clean();
}

TEST(no_memory_for_an_alias_is_no_memory_for_the_image)
{
	begin_aliased((struct options){0});
	cl_mem buffer = new_part();
	fake.createerror = CL_OUT_OF_HOST_MEMORY;
	fake.failcreates = 1;
	cl_int err = 1;
	CHECK(!image_of(buffer, 25, &err));
	EQUAL(err, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	OK(clReleaseMemObject(new_image(buffer)));
	OK(clReleaseMemObject(buffer));
	end_clean();
}

static void *make_images(void *buffer)
{
	for (int i = 0; i < 200; i++)
		OK(clReleaseMemObject(new_image(buffer)));
	return NULL;
}

TEST(threads_make_images_of_one_part)
{
	begin_aliased((struct options){.waitms = 3600000, .nouses = true});
	session_start();
	for (int round = 0; round < 10; round++) {
		pthread_t thread[3];
		cl_mem buffer = new_buffer(100);
		for (size_t i = 0; i < 3; i++)
			CHECK(pthread_create(&thread[i], NULL, make_images, buffer) == 0);
		for (size_t i = 0; i < 3; i++)
			pthread_join(thread[i], NULL);
		OK(clReleaseMemObject(buffer));
	}
	session_stop();
	end_clean();
}

/* Buffers of a driver that copies the host's memory are no aliases of each other. */
TEST(no_parts_where_a_second_buffer_shows_other_memory)
{
	fake.imagesofwholes = 1;
	fake.processor = 2;
	begin_carved((struct options){.nouses = true});
	OK(clReleaseMemObject(new_buffer(100)));
	CHECK(!is_part(GMT_KIND_CREATE));
	EQUAL(events(GMT_KIND_SLAB), 0);
	EQUAL(last_event(GMT_KIND_DIAG).op, GMT_DIAG_WHOLE_BLOCKS);
	end_clean();
}

/* Where images of parts of buffers show other memory, those of the program's own would differ from bare. */
TEST(no_aliases_where_images_of_sub_buffers_show_other_memory)
{
	fake.imagesofwholes = 2;
	fake.processor = 1;
	begin_carved((struct options){.nouses = true});
	OK(clReleaseMemObject(new_buffer(100)));
	CHECK(!is_part(GMT_KIND_CREATE));
	end_clean();
}
