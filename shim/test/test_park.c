/* test_park.c: sub-buffers that wait for the next request that gets their range. */
#include "carved.h"

#include <pthread.h>

/* A slab with one part, and nothing parked. The driver's creates and releases count from here on. */
static cl_mem keep_slab(void)
{
	begin_carved((struct options){0});
	cl_mem kept = new_buffer(1000);
	fake.creates = fake.releases = 0;
	return kept;
}

TEST(a_range_that_is_asked_for_again_needs_no_call_of_the_driver)
{
	cl_mem kept = keep_slab(), first = new_buffer(500);
	EQUAL(fake.creates, 1);
	for (int i = 0; i < 3; i++) {
		uint64_t object = last_event(GMT_KIND_CREATE).object;
		use(world.queue, first);
		EQUAL(release(first), GMT_OUTCOME_CACHED); /* the command is not over, but what comes next runs behind it */
		CHECK(is_part(GMT_KIND_RELEASE));
		EQUAL(last_event(GMT_KIND_RELEASE).cost, 0);
		CHECK(new_buffer(500) == first);
		CHECK(is_part(GMT_KIND_CREATE));
		EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_HIT);
		CHECK(last_event(GMT_KIND_CREATE).object > object);
		EQUAL(asked(first, CL_MEM_SIZE), 500);
		EQUAL(asked(first, CL_MEM_REFERENCE_COUNT), 1);
		EQUAL(asked(kept, CL_MEM_REFERENCE_COUNT), 1);
	}
	EQUAL(fake.creates, 1);
	EQUAL(fake.releases, 0);
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(first));
	OK(clReleaseMemObject(kept));
	end_clean();
	EQUAL(fake.livememory, 0);
}

TEST(another_size_in_the_range_gets_a_sub_buffer_of_its_own)
{
	cl_mem kept = keep_slab(), first = new_buffer(500);
	OK(clReleaseMemObject(first));
	cl_mem second = new_buffer(400); /* the same range, as it is rounded up */
	CHECK(second != first);
	EQUAL(asked(second, CL_MEM_SIZE), 400);
	OK(clReleaseMemObject(second));
	CHECK(new_buffer(500) == first);
	EQUAL(fake.creates, 2);
	EQUAL(fake.releases, 0);
	OK(clReleaseMemObject(first));
	OK(clReleaseMemObject(kept));
	end_clean();
}

static void CL_CALLBACK ended(cl_mem memory, void *count)
{
	(void)memory;
	++*(int *)count;
}

TEST(a_buffer_with_a_destructor_is_released_at_once)
{
	int count = 0;
	cl_mem kept = keep_slab(), first = new_buffer(500);
	OK(clSetMemObjectDestructorCallback(first, ended, &count));
	OK(clReleaseMemObject(first));
	EQUAL(count, 1);
	EQUAL(fake.releases, 1);
	OK(clReleaseMemObject(kept));
	end_clean();
}

TEST(what_commands_use_out_of_order_is_not_parked)
{
	cl_mem kept = keep_slab(), first = new_buffer(500);
	cl_command_queue unordered = new_queue(world.context, UNORDERED);
	use(unordered, first);
	EQUAL(release(first), GMT_OUTCOME_COOLING);
	EQUAL(fake.releases, 1);
	OK(clFinish(unordered));
	OK(clReleaseCommandQueue(unordered));
	OK(clReleaseMemObject(kept));
	end_clean();
}

TEST(scrubbed_memory_is_not_parked)
{
	begin_carved((struct options){.scrub = GMT_SCRUB_ZERO});
	cl_mem kept = new_buffer(1000), first = new_buffer(500);
	fake.releases = 0;
	OK(clReleaseMemObject(first));
	EQUAL(fake.releases, 1);
	OK(clReleaseMemObject(kept));
	end_clean();
}

TEST(a_parked_handle_is_refused)
{
	cl_mem kept = keep_slab(), first = new_buffer(500);
	OK(clReleaseMemObject(first));
	size_t size;
	EQUAL(clGetMemObjectInfo(first, CL_MEM_SIZE, sizeof size, &size, NULL), CL_INVALID_MEM_OBJECT);
	EQUAL(clRetainMemObject(first), CL_INVALID_MEM_OBJECT);
	EQUAL(clReleaseMemObject(first), CL_INVALID_MEM_OBJECT);
	EQUAL(clEnqueueFillBuffer(world.queue, first, "x", 1, 0, 16, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
	CHECK(diags(GMT_DIAG_USE_AFTER_RELEASE) > 0);
	CHECK(new_buffer(500) == first);
	OK(clReleaseMemObject(first));
	OK(clReleaseMemObject(kept));
	end_clean();
}

TEST(parked_sub_buffers_go_with_their_slab)
{
	cl_mem kept = keep_slab(), other[3];
	for (int i = 0; i < 3; i++)
		other[i] = new_buffer(500 + (size_t)i);
	for (int i = 0; i < 3; i++)
		OK(clReleaseMemObject(other[i]));
	OK(clReleaseMemObject(kept));
	EQUAL(fake.livememory, 5);
	fake.failcreates = 1;
	fake.createerror = CL_OUT_OF_RESOURCES;
	cl_mem large = new_buffer(2 * SLAB_BYTES); /* the pool gives the slab back */
	CHECK(large);
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_DRAIN);
	EQUAL(fake.livememory, 1);
	OK(clReleaseMemObject(large));
	end_clean();
}

TEST(more_are_parked_than_there_are_places)
{
	enum { MANY = 400 };
	cl_mem kept = keep_slab(), buffer[MANY];
	for (int i = 0; i < MANY; i++)
		buffer[i] = new_buffer(100);
	for (int i = 0; i < MANY; i++)
		EQUAL(release(buffer[i]), GMT_OUTCOME_CACHED);
	CHECK(fake.livememory <= 257 + 1); /* with the slab and what is kept */
	CHECK(fake.livememory > 100);
	for (int i = 0; i < MANY; i++)
		buffer[i] = new_buffer(100);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 2 * MANY);
	for (int i = 0; i < MANY; i++)
		OK(clReleaseMemObject(buffer[i]));
	OK(clReleaseMemObject(kept));
	end_clean();
}

TEST(parked_sub_buffers_go_when_the_pool_ends)
{
	cl_mem kept, first;
	setenv("FAKE_CORE_FAIL_AT", "6", 1); /* plan, grown, commit, gauge, plan, and then */
	begin_carved((struct options){0});
	kept = new_buffer(1000);
	first = new_buffer(500);
	OK(clReleaseMemObject(first));
	EQUAL(fake.livememory, 3);
	cl_mem last = new_buffer(500);
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	EQUAL(fake.livememory, 3); /* the slab, kept and last, which is the driver's */
	OK(clReleaseMemObject(last));
	OK(clReleaseMemObject(kept));
	EQUAL(fake.livememory, 0);
	end_clean();
}

static void *creates_and_releases(void *arg)
{
	(void)arg;
	for (int i = 0; i < 300; i++) {
		cl_mem buffer[3];
		for (size_t b = 0; b < 3; b++) {
			buffer[b] = clCreateBuffer(world.context, 0, 100 + 30 * b, NULL, NULL);
			CHECK(buffer[b]);
			fake_hand_out(buffer[b]);
		}
		for (size_t b = 0; b < 3; b++)
			OK(clReleaseMemObject(buffer[b]));
	}
	return NULL;
}

TEST(hammer_parked_ranges)
{
	pthread_t thread[4];
	begin_carved((struct options){0});
	session_start();
	for (int i = 0; i < 4; i++)
		EQUAL(pthread_create(&thread[i], NULL, creates_and_releases, NULL), 0);
	for (int i = 0; i < 4; i++)
		EQUAL(pthread_join(thread[i], NULL), 0);
	session_stop();
	EQUAL(fake.hazards, 0);
	end_clean();
	EQUAL(fake.livememory, 0);
}
