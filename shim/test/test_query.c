/* test_query.c: answers that a pool would change, and errors that it must not. */
#include "harness.h"

static cl_uint references(cl_mem memory)
{
	cl_uint count = 99;
	OK(clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL));
	return count;
}

static cl_uint maps(cl_mem memory)
{
	cl_uint count = 99;
	OK(clGetMemObjectInfo(memory, CL_MEM_MAP_COUNT, sizeof count, &count, NULL));
	return count;
}

static cl_uint context_references(void)
{
	cl_uint count = 99;
	OK(clGetContextInfo(world.context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL));
	return count;
}

/* Drivers that hold a reference for each queued command, and those that do not: a fresh buffer shows one. */
static void reference_counts(bool count_commands)
{
	fake.countcommands = count_commands;
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	EQUAL(references(buffer), 1);
	use(world.queue, buffer);
	OK(clReleaseMemObject(buffer));
	CHECK(new_buffer(100) == buffer); /* the old owner's command is still queued */
	EQUAL(references(buffer), 1);
	OK(clRetainMemObject(buffer));
	EQUAL(references(buffer), 2);
	OK(clReleaseMemObject(buffer));
	EQUAL(references(buffer), 1);
	OK(clFinish(world.queue));
	EQUAL(references(buffer), 1);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(reference_counts_where_commands_do_not_count)
{
	reference_counts(false);
}

TEST(reference_counts_where_commands_count)
{
	reference_counts(true);
}

TEST(map_counts)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	void *first = clEnqueueMapBuffer(world.queue, buffer, CL_TRUE, CL_MAP_READ, 0, 10, 0, NULL, NULL, NULL);
	void *second = clEnqueueMapBuffer(world.queue, buffer, CL_TRUE, CL_MAP_READ, 10, 10, 0, NULL, NULL, NULL);
	CHECK(first && second == (char *)first + 10);
	EQUAL(maps(buffer), 2);
	OK(clEnqueueUnmapMemObject(world.queue, buffer, first, 0, NULL, NULL));
	EQUAL(maps(buffer), 1);
	OK(clEnqueueUnmapMemObject(world.queue, buffer, second, 0, NULL, NULL));
	EQUAL(maps(buffer), 0);
	OK(clReleaseMemObject(buffer));
	CHECK(new_buffer(100) == buffer);
	EQUAL(maps(buffer), 0);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

static void context_counts(bool objects, cl_uint want)
{
	static char host[100];
	fake.countobjects = objects;
	begin((struct options){0});
	cl_uint empty = context_references();
	EQUAL(empty, want);
	cl_mem kept = new_buffer(100), idle[5];
	cl_uint with_one = context_references();
	EQUAL(with_one, empty + objects);
	for (int i = 0; i < 5; i++)
		idle[i] = new_buffer(200);
	EQUAL(context_references(), with_one + 5 * objects);
	for (int i = 0; i < 5; i++)
		OK(clReleaseMemObject(idle[i]));
	EQUAL(context_references(), with_one); /* what the pool has, the program has not */
	for (int i = 0; i < 2; i++) /* with a queue of ours */
		OK(clReleaseMemObject(clCreateBuffer(world.context, CL_MEM_COPY_HOST_PTR, 100, host, NULL)));
	EQUAL(fake.livequeues, 2);
	EQUAL(context_references(), with_one);
	OK(clRetainContext(world.context));
	EQUAL(context_references(), with_one + 1);
	OK(clReleaseContext(world.context));
	OK(clReleaseMemObject(kept));
	EQUAL(context_references(), empty);
	uint64_t live = fake.livememory;
	context_references();
	EQUAL(fake.livememory, live); /* trying it out leaves nothing */
	end_clean();
}

TEST(context_references_where_objects_do_not_count)
{
	context_counts(false, 1);
}

TEST(context_references_where_objects_count)
{
	context_counts(true, 2);
}

TEST(queue_references_after_a_marker_of_ours)
{
	fake.countcommands = 1;
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_buffer(100);
	use(second, buffer);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(new_buffer(100)));
	EQUAL(fake.markers, 1);
	fake_complete_all();
	cl_uint count = 99;
	OK(clGetCommandQueueInfo(second, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, NULL));
	EQUAL(count, 1);
	EQUAL(fake.liveevents, 0);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

static cl_uint queue_references(void)
{
	cl_uint count = 99;
	OK(clGetCommandQueueInfo(world.queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, NULL));
	return count;
}

TEST(queue_references_where_memory_keeps_its_queue)
{
	fake.countcommands = fake.keepsqueues = 1;
	begin((struct options){0});
	cl_mem buffer = new_buffer(100), other = new_buffer(100);
	for (int i = 0; i < 2; i++) {
		use(world.queue, buffer);
		OK(clFinish(world.queue));
		EQUAL(queue_references(), 2);
		OK(clReleaseMemObject(buffer));
		EQUAL(queue_references(), 1); /* what the pool keeps, the program does not */
		CHECK(new_buffer(100) == buffer);
		EQUAL(queue_references(), 1);
	}
	use(world.queue, other);
	OK(clFinish(world.queue));
	EQUAL(queue_references(), 2);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(other));
	end_clean();
}

static char host[4096];

/* A range beyond the request, in a block that is larger, with another mistake that the driver looks for first. */
TEST(other_mistakes_come_before_ranges)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(1000), big = new_buffer(4096);
	cl_event none[1] = {NULL};
	cl_context other = new_context();
	cl_command_queue foreign = new_queue(other, 0);
	for (int i = 0; i < 3; i++) {
		cl_command_queue queue = i == 0 ? NULL : i == 1 ? foreign : world.queue;
		cl_int want = i == 0 ? CL_INVALID_COMMAND_QUEUE : i == 1 ? CL_INVALID_CONTEXT : CL_INVALID_EVENT_WAIT_LIST;
		cl_uint waits = i == 2;
		const cl_event *list = waits ? none : NULL;
		EQUAL(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 990, 20, host, waits, list, NULL), want);
		EQUAL(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 990, 20, host, waits, list, NULL), want);
		EQUAL(clEnqueueFillBuffer(queue, buffer, "x", 1, 990, 20, waits, list, NULL), want);
		EQUAL(clEnqueueCopyBuffer(queue, buffer, big, 990, 0, 20, waits, list, NULL), want);
		EQUAL(clEnqueueCopyBuffer(queue, big, buffer, 0, 990, 20, waits, list, NULL), want);
		cl_int err = 1;
		CHECK(!clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 990, 20, waits, list, NULL, &err));
		EQUAL(err, want);
		size_t zero[3] = {0}, region[3] = {1010, 1, 1};
		EQUAL(clEnqueueReadBufferRect(queue, buffer, CL_TRUE, zero, zero, region, 0, 0, 0, 0, host, waits, list, NULL), want);
	}
	EQUAL(clEnqueueCopyBuffer(world.queue, buffer, NULL, 990, 0, 20, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
	EQUAL(clEnqueueReadBuffer(world.queue, buffer, CL_TRUE, 990, 20, host, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(fake.commands, 0);
	OK(clReleaseCommandQueue(foreign));
	OK(clReleaseContext(other));
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(big));
	end_clean();
}

static cl_int image_of(cl_mem buffer, cl_mem_object_type type, size_t width, size_t height, size_t pitch)
{
	cl_int err = 1;
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {
		.image_type = type, .image_width = width, .image_height = height, .image_row_pitch = pitch, .mem_object = buffer,
	};
	cl_mem image = clCreateImage(world.context, 0, &format, &desc, NULL, &err);
	EQUAL(image != NULL, err == CL_SUCCESS);
	if (image)
		OK(clReleaseMemObject(image));
	return err;
}

TEST(images_must_fit_into_what_was_asked_for)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(1000);
	EQUAL(fake_size(buffer), 1024);
	OK(image_of(buffer, CL_MEM_OBJECT_IMAGE1D_BUFFER, 250, 0, 0));
	EQUAL(image_of(buffer, CL_MEM_OBJECT_IMAGE1D_BUFFER, 251, 0, 0), CL_INVALID_IMAGE_DESCRIPTOR);
	EQUAL(image_of(buffer, CL_MEM_OBJECT_IMAGE1D_BUFFER, 256, 0, 0), CL_INVALID_IMAGE_DESCRIPTOR);
	OK(image_of(buffer, CL_MEM_OBJECT_IMAGE2D, 25, 10, 0));
	OK(image_of(buffer, CL_MEM_OBJECT_IMAGE2D, 10, 10, 100));
	EQUAL(image_of(buffer, CL_MEM_OBJECT_IMAGE2D, 32, 8, 0), CL_INVALID_IMAGE_DESCRIPTOR);
	EQUAL(image_of(buffer, CL_MEM_OBJECT_IMAGE2D, 10, 10, 102), CL_INVALID_IMAGE_DESCRIPTOR);
	EQUAL(fake.livememory, 1);
	OK(clReleaseMemObject(buffer));
	end_clean();
}
