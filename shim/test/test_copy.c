/* test_copy.c: contents: COPY_HOST_PTR from the pool, --scrub, and the queue of ours that both need. */
#include "harness.h"

static unsigned char host[4096];

static void new_host(unsigned seed)
{
	for (size_t i = 0; i < sizeof host; i++)
		host[i] = (unsigned char)(i * 7 + seed);
}

static cl_mem copied(cl_mem_flags flags, size_t size, enum gmtoutcome want)
{
	cl_int err = 1;
	cl_mem buffer = clCreateBuffer(world.context, flags | CL_MEM_COPY_HOST_PTR, size, host, &err);
	OK(err);
	CHECK(buffer);
	EQUAL(last_event(GMT_KIND_CREATE).outcome, want);
	fake_hand_out(buffer);
	CHECK(memcmp(fake_contents(buffer), host, size) == 0);
	return buffer;
}

static cl_mem_flags flags_of(cl_mem memory)
{
	cl_mem_flags flags = 0;
	OK(clGetMemObjectInfo(memory, CL_MEM_FLAGS, sizeof flags, &flags, NULL));
	return flags;
}

static cl_mem_flags flags_of_part(cl_mem buffer)
{
	cl_buffer_region region = {0, 32};
	cl_mem part = clCreateSubBuffer(buffer, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
	CHECK(part);
	cl_mem_flags flags = flags_of(part);
	OK(clReleaseMemObject(part));
	return flags;
}

TEST(contents_are_copied_on_a_miss_and_on_a_hit)
{
	static const size_t sizes[] = {1024, 2000};
	begin((struct options){0});
	for (int i = 0; i < 2; i++) {
		new_host(1 + (unsigned)i);
		cl_mem first = copied(CL_MEM_READ_WRITE, sizes[i], GMT_OUTCOME_MISS);
		new_host(77);
		cl_mem second = copied(CL_MEM_READ_WRITE, sizes[i], GMT_OUTCOME_MISS);
		EQUAL(fake_size(second), sizes[i]); /* the driver copies as much as it creates */
		new_host(99);
		OK(clReleaseMemObject(second));
		OK(clReleaseMemObject(copied(CL_MEM_READ_WRITE, sizes[i], GMT_OUTCOME_HIT)));
		OK(clReleaseMemObject(first));
	}
	EQUAL(fake.pending, 0);
	EQUAL(fake.creates, 4);
	end_clean();
}

TEST(a_copy_is_no_stale_read)
{
	begin((struct options){0});
	OK(clReleaseMemObject(copied(CL_MEM_READ_WRITE, 100, GMT_OUTCOME_MISS)));
	cl_mem buffer = copied(CL_MEM_READ_WRITE, 100, GMT_OUTCOME_HIT);
	char byte;
	OK(clEnqueueReadBuffer(world.queue, buffer, CL_TRUE, 0, 1, &byte, 0, NULL, NULL));
	EQUAL(events(GMT_KIND_DIAG), 0);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

/* Drivers answer with what a buffer was created with, so copies have a class of their own. */
TEST(flags_are_those_that_were_asked_for)
{
	const cl_mem_flags copy = CL_MEM_COPY_HOST_PTR;
	begin((struct options){0});
	for (int round = 0; round < 2; round++) {
		cl_mem a = copied(CL_MEM_READ_WRITE, 512, round ? GMT_OUTCOME_HIT : GMT_OUTCOME_MISS), b = new_buffer(512);
		EQUAL(last_event(GMT_KIND_CREATE).outcome, round ? GMT_OUTCOME_HIT : GMT_OUTCOME_MISS);
		EQUAL(flags_of(a), CL_MEM_READ_WRITE | copy);
		EQUAL(flags_of_part(a), CL_MEM_READ_ONLY | copy);
		EQUAL(flags_of(b), CL_MEM_READ_WRITE);
		EQUAL(flags_of_part(b), CL_MEM_READ_ONLY);
		OK(clReleaseMemObject(a));
		OK(clReleaseMemObject(b));
	}
	end_clean();
}

TEST(a_block_with_commands_pending_is_not_copied_into)
{
	begin((struct options){0});
	cl_mem buffer = copied(CL_MEM_READ_WRITE, 128, GMT_OUTCOME_MISS);
	use(world.queue, buffer);
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RELEASE).flags, GMT_FLAG_ORDERED);
	new_host(3);
	cl_mem copy = copied(CL_MEM_READ_WRITE, 128, GMT_OUTCOME_DRIVER);
	CHECK(copy != buffer);
	EQUAL(fake.pending, 1); /* nothing was waited for */
	OK(clFinish(world.queue));
	CHECK(copied(CL_MEM_READ_WRITE, 128, GMT_OUTCOME_HIT) == buffer); /* it was not lost */
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(copy));
	EQUAL(fake.hazards, 0);
	end_clean();
}

TEST(an_upload_that_fails_leaves_it_to_the_driver)
{
	begin((struct options){0});
	OK(clReleaseMemObject(copied(CL_MEM_READ_WRITE, 128, GMT_OUTCOME_MISS)));
	fake.failenqueues = 1;
	OK(clReleaseMemObject(copied(CL_MEM_READ_WRITE, 128, GMT_OUTCOME_DRIVER)));
	EQUAL(fake.failenqueues, 0);
	OK(clReleaseMemObject(copied(CL_MEM_READ_WRITE, 128, GMT_OUTCOME_HIT)));
	end_clean();
}

TEST(what_the_host_may_not_touch_is_not_copied_into)
{
	static const cl_mem_flags access[] = {CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_NO_ACCESS};
	begin((struct options){0});
	for (int i = 0; i < 2; i++)
		for (int round = 0; round < 2; round++)
			OK(clReleaseMemObject(copied(access[i], 128, GMT_OUTCOME_DRIVER)));
	OK(clReleaseMemObject(copied(CL_MEM_HOST_WRITE_ONLY, 128, GMT_OUTCOME_MISS)));
	OK(clReleaseMemObject(copied(CL_MEM_HOST_WRITE_ONLY, 128, GMT_OUTCOME_HIT)));
	end_clean();
}

static int ended;

static void CL_CALLBACK context_ends(cl_context context, void *data)
{
	CHECK(context);
	ended += *(int *)data;
}

TEST(our_queue_goes_with_its_context)
{
	static int one = 1, ten = 10;
	begin((struct options){0});
	OK(clSetContextDestructorCallback(world.context, context_ends, &one));
	OK(clSetContextDestructorCallback(world.context, context_ends, &ten));
	for (int i = 0; i < 3; i++)
		OK(clReleaseMemObject(copied(CL_MEM_READ_WRITE, 100, i ? GMT_OUTCOME_HIT : GMT_OUTCOME_MISS)));
	EQUAL(fake.livequeues, 2); /* one of ours, once */
	EQUAL(events(GMT_KIND_QUEUE), 1);
	OK(clReleaseCommandQueue(world.queue));
	EQUAL(ended, 0);
	OK(clReleaseContext(world.context));
	EQUAL(ended, 11);
	EQUAL(fake.livequeues, 0);
	EQUAL(fake.livememory, 0);
	EQUAL(fake.livecontexts, 0);
}

static void scrubbed(enum gmtscrub how, unsigned char byte)
{
	begin((struct options){.scrub = how});
	cl_mem buffer = new_buffer(1000);
	EQUAL(fake_size(buffer), 1024);
	OK(clEnqueueFillBuffer(world.queue, buffer, "abc", 1, 0, 1000, 0, NULL, NULL));
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(buffer));
	CHECK(new_buffer(600) == buffer);
	EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_HIT);
	for (int i = 0; i < 1024; i++) /* what lies beyond the request, too */
		EQUAL(fake_contents(buffer)[i], byte);
	char read;
	OK(clEnqueueReadBuffer(world.queue, buffer, CL_TRUE, 0, 1, &read, 0, NULL, NULL));
	EQUAL(diags(GMT_DIAG_STALE_READ), 1); /* a mistake all the same */
	OK(clReleaseMemObject(buffer));
	EQUAL(fake.liveevents, 0);
	end_clean();
}

TEST(recycled_blocks_are_zeroed)
{
	scrubbed(GMT_SCRUB_ZERO, 0);
}

TEST(recycled_blocks_are_poisoned)
{
	scrubbed(GMT_SCRUB_POISON, GMT_POISON);
}

TEST(recycled_blocks_are_left_alone)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(16);
	use(world.queue, buffer);
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(buffer));
	CHECK(new_buffer(16) == buffer);
	EQUAL(fake_contents(buffer)[15], 'x');
	OK(clReleaseMemObject(buffer));
	EQUAL(fake.livequeues, 1);
	end_clean();
}

TEST(a_block_that_cannot_be_scrubbed_is_not_handed_out)
{
	begin((struct options){.scrub = GMT_SCRUB_ZERO});
	cl_mem buffer = new_buffer(128);
	OK(clReleaseMemObject(buffer));
	fake.failenqueues = 1;
	cl_mem other = new_buffer(128);
	CHECK(other != buffer);
	EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_DRIVER);
	CHECK(new_buffer(128) == buffer);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(other));
	end_clean();
}

TEST(a_block_with_commands_pending_is_not_scrubbed)
{
	begin((struct options){.scrub = GMT_SCRUB_POISON});
	cl_mem buffer = new_buffer(128);
	use(world.queue, buffer);
	OK(clReleaseMemObject(buffer));
	cl_mem other = new_buffer(128);
	CHECK(other != buffer);
	EQUAL(fake.pending, 1);
	OK(clReleaseMemObject(other));
	end_clean();
}

TEST(a_constant_argument_does_not_grow_by_rounding)
{
	fake.constant = 1000;
	begin((struct options){0});
	cl_mem buffer = new_buffer(1010);
	EQUAL(fake_size(buffer), 1024);
	OK(clReleaseMemObject(buffer));
	cl_mem small = new_buffer(990); /* fits into a constant argument, the block does not */
	CHECK(small != buffer);
	EQUAL(fake_size(small), 990);
	OK(clReleaseMemObject(small));
	CHECK(new_buffer(1001) == buffer);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(before_opencl_1_2_no_block_can_be_scrubbed)
{
	fake.version = "OpenCL 1.1 fake";
	begin((struct options){.scrub = GMT_SCRUB_ZERO});
	cl_mem buffer = new_buffer(128);
	OK(clReleaseMemObject(buffer));
	CHECK(new_buffer(128) != buffer);
	EQUAL(fake.commands, 0); /* a driver like that has no function for it */
}
