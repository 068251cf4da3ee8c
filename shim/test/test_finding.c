/* test_finding.c: mistakes of the program: what the call returns, what is reported, and that the pool is not disturbed. */
#include "misuse.h"

static const struct misuse misuses[] = {
	{"clRetainMemObject", do_retain},
	{"clGetMemObjectInfo", do_info},
	{"clSetMemObjectDestructorCallback", do_callback},
	{"clCreateSubBuffer", do_part},
	{"clCreateImage", do_image},
	{"clCreateImageWithProperties", do_image_with_properties},
	{"clEnqueueReadBuffer", do_read},
	{"clEnqueueWriteBuffer", do_write},
	{"clEnqueueReadBufferRect", do_read_rect},
	{"clEnqueueWriteBufferRect", do_write_rect},
	{"clEnqueueCopyBuffer", do_copy_from},
	{"clEnqueueCopyBuffer", do_copy_to},
	{"clEnqueueCopyBufferRect", do_copy_rect},
	{"clEnqueueFillBuffer", do_fill},
	{"clEnqueueCopyImageToBuffer", do_from_image},
	{"clEnqueueCopyBufferToImage", do_to_image},
	{"clEnqueueMapBuffer", do_map},
	{"clEnqueueUnmapMemObject", do_unmap},
	{"clEnqueueMigrateMemObjects", do_migrate},
	{"clEnqueueAcquireGLObjects", do_acquire},
	{"clEnqueueReleaseGLObjects", do_return},
	{"clSetKernelArg", do_argument},
	{"clEnqueueNativeKernel", do_native}, /* last: it ends ordered reuse */
};
#define MISUSES (sizeof misuses / sizeof misuses[0])

TEST(released_memory_in_the_pool_is_no_memory)
{
	prepare((struct options){.tagmode = GMT_TAGS_SIZE});
	idle = new_buffer(SIZE);
	struct gmtevent create = last_event(GMT_KIND_CREATE);
	OK(clReleaseMemObject(idle));
	uint64_t commands = fake.commands, releases = fake.releases, creates = fake.creates, queries = fake.queries, args = fake.setargs;
	for (size_t i = 0; i < MISUSES; i++) {
		EQUAL(misuses[i].run(), CL_INVALID_MEM_OBJECT);
		EQUAL(findings(), i + 1);
		finding(GMT_DIAG_USE_AFTER_RELEASE, misuses[i].function, create.object, SIZE, CL_INVALID_MEM_OBJECT);
		CHECK(create.tag != 0);
		EQUAL(last_event(GMT_KIND_DIAG).tag, create.tag);
	}
	EQUAL(clReleaseMemObject(idle), CL_INVALID_MEM_OBJECT);
	finding(GMT_DIAG_DOUBLE_RELEASE, "clReleaseMemObject", create.object, SIZE, CL_INVALID_MEM_OBJECT);
	/* The driver has not heard of any of it, and the pool has one block, once. */
	EQUAL(fake.commands, commands);
	EQUAL(fake.releases, releases);
	EQUAL(fake.creates, creates);
	EQUAL(fake.queries, queries);
	EQUAL(fake.setargs, args);
	cl_mem again = new_buffer(SIZE);
	CHECK(again == idle);
	cl_mem other = new_buffer(SIZE);
	CHECK(other != idle);
	OK(clReleaseMemObject(again));
	OK(clReleaseMemObject(other));
	EQUAL(findings(), MISUSES + 1);
	finish();
}

TEST(released_memory_that_the_driver_has_is_remembered)
{
	fake.forgiving = 1;
	prepare((struct options){.tagmode = GMT_TAGS_SIZE});
	idle = clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, SIZE, host, NULL);
	struct gmtevent create = last_event(GMT_KIND_CREATE);
	OK(clReleaseMemObject(idle));
	for (size_t i = 0; i < MISUSES; i++) {
		if (misuses[i].run == do_argument || misuses[i].run == do_image || misuses[i].run == do_image_with_properties)
			continue; /* eight bytes may be anything; the fake's driver has other errors for images */
		size_t before = findings();
		EQUAL(misuses[i].run(), CL_INVALID_MEM_OBJECT);
		EQUAL(findings(), before + 1);
		finding(GMT_DIAG_USE_AFTER_RELEASE, misuses[i].function, create.object, SIZE, 0);
		EQUAL(last_event(GMT_KIND_DIAG).tag, create.tag);
	}
	size_t before = findings();
	EQUAL(clReleaseMemObject(idle), CL_INVALID_MEM_OBJECT);
	EQUAL(findings(), before + 1);
	finding(GMT_DIAG_DOUBLE_RELEASE, "clReleaseMemObject", create.object, SIZE, 0);
	finish();
}

TEST(several_that_the_driver_has_are_remembered)
{
	enum { SEVERAL = 8 };
	fake.forgiving = 1;
	prepare((struct options){.observe = true});
	cl_mem released[SEVERAL];
	for (int i = 0; i < SEVERAL; i++)
		released[i] = new_buffer(SIZE);
	for (int i = 0; i < SEVERAL; i++)
		OK(clReleaseMemObject(released[i]));
	for (int i = 0; i < SEVERAL; i++)
		EQUAL(clReleaseMemObject(released[i]), CL_INVALID_MEM_OBJECT);
	CHECK(diags(GMT_DIAG_DOUBLE_RELEASE) > SEVERAL / 2); /* a later one may have taken the place of another */
	finish();
}

TEST(images_of_memory_that_the_driver_has_released)
{
	fake.forgiving = 1;
	prepare((struct options){0});
	idle = clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, SIZE, host, NULL);
	uint64_t object = last_event(GMT_KIND_CREATE).object;
	OK(clReleaseMemObject(idle));
	EQUAL(do_image(), CL_INVALID_IMAGE_DESCRIPTOR);
	finding(GMT_DIAG_USE_AFTER_RELEASE, "clCreateImage", object, SIZE, 0);
	EQUAL(do_image_with_properties(), CL_INVALID_IMAGE_DESCRIPTOR);
	finding(GMT_DIAG_USE_AFTER_RELEASE, "clCreateImageWithProperties", object, SIZE, 0);
	EQUAL(findings(), 2);
	finish();
}

TEST(what_nobody_has_created)
{
	fake.forgiving = 1;
	prepare((struct options){0});
	static uint64_t wild[64]; /* no object */
	idle = (cl_mem)(void *)wild;
	EQUAL(do_fill(), CL_INVALID_MEM_OBJECT);
	finding(GMT_DIAG_UNKNOWN_MEMORY, "clEnqueueFillBuffer", 0, 0, CL_INVALID_MEM_OBJECT);
	EQUAL(clReleaseMemObject(idle), CL_INVALID_MEM_OBJECT);
	finding(GMT_DIAG_UNKNOWN_MEMORY, "clReleaseMemObject", 0, 0, CL_INVALID_MEM_OBJECT);
	EQUAL(findings(), 2);
	idle = NULL;
	for (size_t i = 0; i < MISUSES; i++)
		if (misuses[i].run != do_argument && misuses[i].run != do_image && misuses[i].run != do_image_with_properties)
			CHECK(misuses[i].run() != CL_SUCCESS);
	CHECK(clReleaseMemObject(NULL) != CL_SUCCESS);
	EQUAL(findings(), 2);
	finish();
}

TEST(a_buffer_that_parts_keep_alive_is_released_twice)
{
	prepare((struct options){0});
	cl_buffer_region region = {0, 32};
	cl_mem buffer = new_buffer(SIZE), part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
	OK(clReleaseMemObject(buffer));
	EQUAL(clReleaseMemObject(buffer), CL_INVALID_MEM_OBJECT);
	EQUAL(last_event(GMT_KIND_DIAG).op, GMT_DIAG_DOUBLE_RELEASE);
	EQUAL(findings(), 1);
	use(world.queue, part);
	OK(clReleaseMemObject(part));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_CACHED);
	CHECK(new_buffer(SIZE) == buffer);
	OK(clReleaseMemObject(buffer));
	finish();
}

/* Eight bytes that look like released memory, where a kernel wants a value, or its type is unknown. */
TEST(arguments_that_may_be_values_are_passed_on)
{
	prepare((struct options){0});
	idle = new_buffer(SIZE);
	OK(clReleaseMemObject(idle));
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	OK(clSetKernelArg(kernel, 3, sizeof idle, &idle));
	EQUAL(fake.setargs, 1);
	EQUAL(clSetKernelArg(kernel, 1, sizeof idle, &idle), CL_INVALID_MEM_OBJECT);
	EQUAL(fake.setargs, 1);
	EQUAL(findings(), 1);
	fake.arginfo = 0;
	OK(clSetKernelArg(kernel, 0, sizeof idle, &idle));
	EQUAL(fake.setargs, 2);
	EQUAL(findings(), 1);
	OK(clReleaseKernel(kernel));
	finish();
}

TEST(a_kernel_runs_with_memory_that_was_released)
{
	prepare((struct options){0});
	idle = new_buffer(SIZE);
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	OK(clSetKernelArg(kernel, 0, sizeof idle, &idle));
	uint64_t object = last_event(GMT_KIND_CREATE).object;
	OK(clReleaseMemObject(idle));
	OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, one, NULL, 0, NULL, NULL)); /* the driver's answer */
	EQUAL(findings(), 1);
	finding(GMT_DIAG_USE_AFTER_RELEASE, "clEnqueueNDRangeKernel", object, SIZE, CL_INVALID_MEM_OBJECT);
	OK(clReleaseKernel(kernel));
	finish();
}
