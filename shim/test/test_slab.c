/* test_slab.c: what becomes of slabs. */
#include "../../internal/wire/event_access.h"
#include "carved.h"

TEST(slabs_do_not_count_in_their_context)
{
	fake.countobjects = 1;
	begin_carved((struct options){0});
	cl_uint before = 0, with = 0;
	OK(clGetContextInfo(world.context, CL_CONTEXT_REFERENCE_COUNT, sizeof before, &before, NULL));
	cl_mem buffer[3];
	for (int i = 0; i < 3; i++)
		buffer[i] = new_buffer(100);
	OK(clGetContextInfo(world.context, CL_CONTEXT_REFERENCE_COUNT, sizeof with, &with, NULL));
	EQUAL(with, before + 3);
	for (int i = 0; i < 3; i++)
		OK(clReleaseMemObject(buffer[i]));
	OK(clGetContextInfo(world.context, CL_CONTEXT_REFERENCE_COUNT, sizeof with, &with, NULL));
	EQUAL(with, before);
	end_clean();
}

TEST(a_slab_goes_with_its_last_part)
{
	begin_carved((struct options){0});
	cl_mem first = new_buffer(100), second = new_buffer(100);
	OK(clReleaseMemObject(first));
	OK(clReleaseCommandQueue(world.queue));
	OK(clReleaseContext(world.context));
	EQUAL(fake.livebytes, SLAB_BYTES);
	OK(clEnqueueFillBuffer(world.queue = new_queue(world.context, 0), second, "x", 1, 0, 16, 0, NULL, NULL));
	OK(clFinish(world.queue));
	OK(clReleaseCommandQueue(world.queue));
	EQUAL(events(GMT_KIND_EVICT), 0);
	OK(clReleaseMemObject(second));
	EQUAL(events(GMT_KIND_EVICT), 1);
	EQUAL(last_event(GMT_KIND_EVICT).granted, SLAB_BYTES);
	EQUAL(fake.livememory, 0);
	EQUAL(fake.livecontexts, 0);
}

TEST(a_slab_whose_pool_has_ended_goes_with_its_last_part)
{
	setenv("FAKE_CORE_NO_ROOM", "1", 1);
	setenv("FAKE_CORE_FAIL_AT", "6", 1); /* plan, grown, commit, gauge, plan, and then */
	begin_carved((struct options){0});
	cl_mem first = new_buffer(100), second = new_buffer(100);
	cl_mem child = clCreateSubBuffer(second, 0, CL_BUFFER_CREATE_TYPE_REGION, &(cl_buffer_region){0, 50}, NULL);
	EQUAL(diags(GMT_DIAG_PANIC), 0);
	OK(clReleaseMemObject(first));
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	EQUAL(fake.livebytes, SLAB_BYTES);
	OK(clReleaseMemObject(second));
	OK(clReleaseMemObject(child));
	EQUAL(fake.livememory, 0);
	EQUAL(events(GMT_KIND_EVICT), 1);
	EQUAL(release(new_buffer(100)), GMT_OUTCOME_DRIVER);
	end_clean();
}

TEST(a_part_that_the_core_has_not_learned_of_keeps_no_slab)
{
	setenv("FAKE_CORE_FAIL_AT", "3", 1); /* plan, grown, and then */
	begin_carved((struct options){0});
	cl_mem buffer = new_buffer(100);
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	CHECK(!is_part(GMT_KIND_CREATE));
	cl_mem child = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &(cl_buffer_region){0, 50}, NULL);
	CHECK(child);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(child));
	EQUAL(fake.livememory, 0);
	CHECK(!is_part(GMT_KIND_RELEASE));
	end_clean();
}

TEST(a_slab_that_the_core_has_not_learned_of_goes)
{
	setenv("FAKE_CORE_FAIL_AT", "2", 1); /* plan, and then */
	begin_carved((struct options){0});
	cl_mem buffer = new_buffer(100);
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	EQUAL(fake.livebytes, 100);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(slabs_where_the_driver_aligns_sub_buffers_to_little)
{
	fake.alignbits = 256;
	setenv("FAKE_CORE_SLAB", "65536", 1);
	begin((struct options){0});
	OK(clReleaseMemObject(new_buffer(100)));
	CHECK(is_part(GMT_KIND_CREATE));
	end_clean();
}

TEST(a_range_that_cannot_be_scrubbed_is_not_handed_out)
{
	begin_carved((struct options){.scrub = GMT_SCRUB_ZERO});
	cl_mem buffer = new_buffer(100);
	OK(clEnqueueFillBuffer(world.queue, buffer, "x", 1, 0, 100, 0, NULL, NULL));
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(buffer));
	fake.failenqueues = 1;
	buffer = new_buffer(100);
	EQUAL(fake.failenqueues, 0);
	CHECK(!is_part(GMT_KIND_CREATE));
	OK(clReleaseMemObject(buffer));
	end_clean();
}

/* Its create was none of the driver's, so its release is none either. */
TEST(a_part_that_outlives_the_pool_is_released_as_one)
{
	setenv("FAKE_CORE_NO_ROOM", "1", 1);
	setenv("FAKE_CORE_FAIL_AT", "6", 1); /* as above */
	begin_carved((struct options){0});
	cl_mem first = new_buffer(100), second = new_buffer(100);
	OK(clReleaseMemObject(first));
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	EQUAL(release(second), GMT_OUTCOME_DRIVER);
	CHECK(is_part(GMT_KIND_RELEASE));
	EQUAL(fake.livememory, 0);
	end_clean();
}

TEST(no_part_is_made_of_what_is_another_slab_by_now)
{
	setenv("FAKE_CORE_STALE", "1", 1);
	begin_carved((struct options){0});
	cl_mem first = new_buffer(100), second = new_buffer(100);
	CHECK(!is_part(GMT_KIND_CREATE));
	CHECK(fake.livebytes > SLAB_BYTES);
	struct gmtevent back = last_event(GMT_KIND_ORDER); /* the range was in use by the decision after the plan */
	EQUAL(back.op, GMT_ORDER_RETURN);
	EQUAL(back.granted, back.size + 1);
	EQUAL(back.object, back.size + 2);
	OK(clReleaseMemObject(first));
	OK(clReleaseMemObject(second));
	end_clean();
}

TEST(a_slab_that_cannot_be_created)
{
	begin_carved((struct options){0});
	fake.cap = SLAB_BYTES - 1;
	cl_mem buffer = new_buffer(100); /* a block of its own, from the pool all the same */
	EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_MISS);
	CHECK(!is_part(GMT_KIND_CREATE));
	EQUAL(last_event(GMT_KIND_SLAB).status, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	struct gmtevent aborted = last_event(GMT_KIND_ORDER);
	EQUAL(aborted.op, GMT_ORDER_ABORT);
	EQUAL(gmtorder_slab(&aborted), 0); /* none has grown */
	EQUAL(fake_size(buffer), 128);
	OK(clReleaseMemObject(buffer));
	fake.cap = 0;
	fake.failparts = 1;
	buffer = new_buffer(100); /* the slab is there, its part is not */
	EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_HIT);
	CHECK(!is_part(GMT_KIND_CREATE));
	EQUAL(fake.livebytes, SLAB_BYTES + 128);
	OK(clReleaseMemObject(buffer));
	buffer = new_buffer(100);
	CHECK(is_part(GMT_KIND_CREATE));
	OK(clReleaseMemObject(buffer));
	end_clean();
}

/* For another slab nothing is handed back, for the buffer alone it is. */
TEST(an_unused_slab_is_given_back_for_a_buffer)
{
	begin_carved((struct options){0});
	OK(clReleaseMemObject(new_buffer(100)));
	fake.cap = SLAB_BYTES;
	cl_mem other = clCreateBuffer(world.context, CL_MEM_READ_ONLY, 100, NULL, NULL);
	CHECK(other && !is_part(GMT_KIND_CREATE));
	EQUAL(events(GMT_KIND_EVICT), 1);
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_DRAIN);
	OK(clReleaseMemObject(other));
	end_clean();
}

TEST(a_budget_counts_slabs)
{
	begin_carved((struct options){.devicememory = 2 * SLAB_BYTES});
	cl_mem buffer[600];
	int count = 0;
	cl_int err = CL_SUCCESS;
	while (count < 600 && (buffer[count] = clCreateBuffer(world.context, 0, 1000, NULL, &err)))
		count++;
	EQUAL(count, 2 * SLAB_BYTES / 1000); /* whole slabs of 1 KiB parts, and the host's memory for what they waste */
	EQUAL(diags(GMT_DIAG_HOSTED), count - 2 * 64);
	EQUAL(err, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	while (count > 0)
		OK(clReleaseMemObject(buffer[--count]));
	cl_mem large = new_buffer(SLAB_BYTES + SLAB_BYTES / 2); /* after one slab went */
	OK(clReleaseMemObject(large));
	end_clean();
}

static enum gmtroute last_route(void)
{
	struct gmtevent event = last_event(GMT_KIND_CREATE);
	return gmtcreate_route(&event);
}

TEST(creates_say_whether_a_plan_served_them)
{
	begin_carved((struct options){0});
	cl_mem part = new_buffer(1000);
	EQUAL(last_route(), GMT_ROUTE_PLANNED);
	CHECK(is_part(GMT_KIND_CREATE));
	for (int i = 0; i < 2; i++) { /* a miss, and a hit */
		cl_mem whole = new_buffer(SLAB_BYTES + SLAB_BYTES / 2);
		EQUAL(last_event(GMT_KIND_CREATE).outcome, i ? GMT_OUTCOME_HIT : GMT_OUTCOME_MISS);
		EQUAL(last_route(), GMT_ROUTE_NO_ARENA);
		OK(clReleaseMemObject(whole));
	}
	char host[4] = {0};
	cl_mem theirs = clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, sizeof host, host, NULL);
	EQUAL(last_route(), GMT_ROUTE_NONE);
	OK(clReleaseMemObject(theirs));
	OK(clReleaseMemObject(part));
	end_clean();
}

TEST(free_memory_in_slabs_is_told)
{
	begin_carved((struct options){0});
	cl_mem buffer = new_buffer(1000);
	EQUAL(events(GMT_KIND_GAUGE), 1);
	EQUAL(last_event(GMT_KIND_GAUGE).granted, SLAB_BYTES - 1024);
	EQUAL(last_event(GMT_KIND_GAUGE).size, SLAB_BYTES - 1024);
	EQUAL(last_event(GMT_KIND_GAUGE).object, 1);
	double squares;
	uint64_t bits = last_event(GMT_KIND_GAUGE).link;
	memcpy(&squares, &bits, sizeof squares);
	CHECK(squares > 0 && squares <= (double)SLAB_BYTES * SLAB_BYTES);
	OK(clReleaseMemObject(buffer));
	end_clean();
	CHECK(events(GMT_KIND_GAUGE) >= 2);
	EQUAL(last_event(GMT_KIND_GAUGE).granted, 0);
}

TEST(without_slabs_nothing_is_told_of_them)
{
	begin((struct options){0});
	OK(clReleaseMemObject(new_buffer(1000)));
	end_clean();
	EQUAL(events(GMT_KIND_GAUGE), 0);
	EQUAL(events(GMT_KIND_SLAB), 0);
}
