/* test_pool.c: what is served from the pool, and what the program sees of it. */
#include "harness.h"

TEST(hit_returns_the_same_handle)
{
	begin((struct options){0});
	cl_mem first = new_buffer(4096);
	OK(clReleaseMemObject(first));
	cl_mem second = new_buffer(4096);
	CHECK(first == second);
	EQUAL(fake.creates, 1);
	EQUAL(fake.releases, 0);
	OK(clReleaseMemObject(second));
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_MISS), 1);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 1);
	EQUAL(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_CACHED), 2);
	EQUAL(last_event(GMT_KIND_CREATE).object, 2);
	EQUAL(last_event(GMT_KIND_RELEASE).object, 2);
	end_clean();
	EQUAL(events(GMT_KIND_EVICT), 1);
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_CONTEXT);
	EQUAL(last_event(GMT_KIND_EVICT).link, last_event(GMT_KIND_CREATE).link);
}

TEST(without_a_pool_everything_is_the_drivers)
{
	begin((struct options){.observe = true});
	for (int i = 0; i < 3; i++) {
		cl_mem buffer = new_buffer(1000);
		EQUAL(fake_size(buffer), 1000);
		use(world.queue, buffer);
		OK(clReleaseMemObject(buffer));
	}
	EQUAL(fake.creates, 3);
	EQUAL(fake.releases, 3);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_MISS), 3);
	EQUAL(last_event(GMT_KIND_CREATE).reason, GMT_MISS_POLICY);
	EQUAL(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_DRIVER), 3);
	end_clean();
	EQUAL(fake.markers, 0);
}

TEST(padded_block_shows_the_requested_size)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(1000);
	EQUAL(fake_size(buffer), 1024);
	size_t size = 0, needed = 0;
	OK(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, &needed));
	EQUAL(size, 1000);
	EQUAL(needed, sizeof size);
	EQUAL(clGetMemObjectInfo(buffer, CL_MEM_SIZE, 2, &size, NULL), CL_INVALID_VALUE);
	OK(clGetMemObjectInfo(buffer, CL_MEM_SIZE, 0, NULL, &needed));
	OK(clReleaseMemObject(buffer));
	CHECK(new_buffer(600) == buffer);
	OK(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, NULL));
	EQUAL(size, 600);
	EQUAL(last_event(GMT_KIND_CREATE).size, 600);
	EQUAL(last_event(GMT_KIND_CREATE).granted, 1024);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(flags_and_contexts_do_not_mix)
{
	begin((struct options){0});
	cl_context other = new_context();
	cl_mem first = new_buffer(512), second;
	OK(clReleaseMemObject(first));
	second = clCreateBuffer(world.context, CL_MEM_READ_ONLY, 512, NULL, NULL);
	CHECK(second && second != first);
	cl_mem_flags flags = 0;
	OK(clGetMemObjectInfo(second, CL_MEM_FLAGS, sizeof flags, &flags, NULL));
	EQUAL(flags, CL_MEM_READ_ONLY);
	cl_mem third = clCreateBuffer(other, CL_MEM_READ_WRITE, 512, NULL, NULL);
	CHECK(third && third != first);
	OK(clReleaseMemObject(second));
	OK(clReleaseMemObject(third));
	EQUAL(fake.creates, 3);
	OK(clReleaseContext(other));
	EQUAL(fake.livecontexts, 1);
	end_clean();
}

TEST(every_kind_of_flags_is_pooled)
{
	static const cl_mem_flags device[] = {0, CL_MEM_READ_WRITE, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
	static const cl_mem_flags host[] = {0, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_NO_ACCESS};
	static const cl_mem_flags alloc[] = {0, CL_MEM_ALLOC_HOST_PTR};
	begin((struct options){0});
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 32; i++)
			OK(clReleaseMemObject(clCreateBuffer(world.context, device[i % 4] | host[i / 4 % 4] | alloc[i / 16], 64, NULL, NULL)));
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_MISS), 32);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 32);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_DRIVER), 0);
	end_clean();
}

static void never_pooled(cl_mem_flags flags, size_t size, void *host, cl_int want)
{
	uint64_t creates = fake.creates + fake.failed;
	for (int i = 0; i < 2; i++) {
		cl_int err = 1;
		cl_mem buffer = clCreateBuffer(world.context, flags, size, host, &err);
		EQUAL(err, want);
		EQUAL(buffer != NULL, want == CL_SUCCESS);
		if (buffer) {
			EQUAL(fake_size(buffer), size);
			OK(clReleaseMemObject(buffer));
		}
		EQUAL(last_event(GMT_KIND_CREATE).outcome, want == CL_SUCCESS ? GMT_OUTCOME_DRIVER : GMT_OUTCOME_FAILED);
		EQUAL(last_event(GMT_KIND_CREATE).status, want);
	}
	if (want != CL_INVALID_HOST_PTR)
		EQUAL(fake.creates + fake.failed, creates + 2);
}

TEST(what_is_never_pooled)
{
	static char storage[100];
	begin((struct options){0});
	never_pooled(CL_MEM_USE_HOST_PTR, sizeof storage, storage, CL_SUCCESS);
	never_pooled(CL_MEM_COPY_HOST_PTR | CL_MEM_HOST_READ_ONLY, sizeof storage, storage, CL_SUCCESS);
	never_pooled(CL_MEM_COPY_HOST_PTR | CL_MEM_HOST_NO_ACCESS, sizeof storage, storage, CL_SUCCESS);
	never_pooled(1ull << 40, 100, NULL, CL_SUCCESS);
	never_pooled(CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 100, NULL, CL_SUCCESS);
	never_pooled(CL_MEM_READ_WRITE, 0, NULL, CL_INVALID_BUFFER_SIZE);
	never_pooled(CL_MEM_READ_WRITE, (size_t)fake.largest + 1, NULL, CL_INVALID_BUFFER_SIZE);
	never_pooled(CL_MEM_USE_HOST_PTR, 100, NULL, CL_INVALID_HOST_PTR);
	never_pooled(CL_MEM_READ_WRITE, 100, storage, CL_INVALID_HOST_PTR);
	EQUAL(fake.livememory, 0);
	end_clean();
}

TEST(errcode_may_be_null)
{
	begin((struct options){0});
	for (int i = 0; i < 2; i++) {
		cl_mem buffer = clCreateBuffer(world.context, 0, 100, NULL, NULL);
		CHECK(buffer);
		OK(clReleaseMemObject(buffer));
	}
	CHECK(!clCreateBuffer(world.context, 0, 0, NULL, NULL));
	EQUAL(last_event(GMT_KIND_CREATE).link, 0); /* neither a block nor a parent */
	CHECK(!clCreateBuffer(NULL, 0, 10, NULL, NULL));
	CHECK(!clCreateSubBuffer(NULL, 0, CL_BUFFER_CREATE_TYPE_REGION, NULL, NULL));
	CHECK(!clCreateContext(NULL, 0, NULL, NULL, NULL, NULL));
	CHECK(!clCreateImage(world.context, 0, NULL, NULL, NULL, NULL));
	CHECK(!clEnqueueMapBuffer(world.queue, NULL, CL_TRUE, CL_MAP_READ, 0, 1, 0, NULL, NULL, NULL));
	end_clean();
}

TEST(properties_are_pooled_only_when_there_are_none)
{
	static const cl_mem_properties none[] = {0};
	begin((struct options){0});
	for (int i = 0; i < 2; i++)
		OK(clReleaseMemObject(clCreateBufferWithProperties(world.context, NULL, 0, 100, NULL, NULL)));
	EQUAL(fake.creates, 1);
	for (int i = 0; i < 2; i++)
		OK(clReleaseMemObject(clCreateBufferWithProperties(world.context, none, 0, 100, NULL, NULL)));
	EQUAL(fake.creates, 3);
	end_clean();
}

TEST(a_core_that_keeps_nothing)
{
	setenv("FAKE_CORE_EVICT", "1", 1);
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	use(world.queue, buffer);
	OK(clReleaseMemObject(buffer));
	EQUAL(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_REFUSED), 1);
	EQUAL(events(GMT_KIND_EVICT), 1);
	EQUAL(fake.livememory, 1); /* the queued command holds it */
	OK(clFinish(world.queue));
	EQUAL(fake.livememory, 0);
	end_clean();
}

TEST(more_evictions_than_one_answer_holds)
{
	enum { MANY = 3 * GMT_EVICTIONS_MAX + 5 };
	begin((struct options){0});
	cl_mem buffers[MANY];
	for (int i = 0; i < MANY; i++)
		buffers[i] = new_buffer(64);
	for (int i = 0; i < MANY; i++)
		OK(clReleaseMemObject(buffers[i]));
	EQUAL(fake.livememory, MANY);
	end_clean();
	EQUAL(events(GMT_KIND_EVICT), MANY);
}
