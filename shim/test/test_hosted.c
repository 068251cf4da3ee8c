/* test_hosted.c: where the pool's waste leaves no room, the memory of the host serves a create that would not fail alone. */
#include "harness.h"

static cl_mem_flags flags_of(cl_mem memory)
{
	cl_mem_flags flags = 77;
	OK(clGetMemObjectInfo(memory, CL_MEM_FLAGS, sizeof flags, &flags, NULL));
	return flags;
}

static cl_int error_of(cl_mem_flags flags, size_t size, void *host)
{
	cl_int err = 1;
	cl_mem buffer = clCreateBuffer(world.context, flags, size, host, &err);
	CHECK(!buffer);
	return err;
}

/* Both of its buffers are in use: 600 bytes in a block of 1024, which is all there is, and 400 of the host's. */
static cl_mem begin_full(cl_mem *hosted, struct options options)
{
	options.devicememory = 1024;
	begin(options);
	cl_mem wasteful = new_buffer(600);
	EQUAL(fake_size(wasteful), 1024);
	*hosted = new_buffer(400);
	EQUAL(fake_size(*hosted), 400);
	EQUAL(last_event(GMT_KIND_DIAG).op, GMT_DIAG_HOSTED);
	EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_DRIVER);
	EQUAL(last_event(GMT_KIND_CREATE).granted, 400);
	return wasteful;
}

TEST(waste_makes_no_create_fail)
{
	cl_mem hosted, wasteful = begin_full(&hosted, (struct options){0});
	EQUAL(fake_flags(hosted), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
	EQUAL(error_of(0, 25, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE); /* alone the program would have 1000 bytes */
	cl_mem last = new_buffer(24);
	EQUAL(diags(GMT_DIAG_HOSTED), 2);
	OK(clReleaseMemObject(hosted));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_DRIVER); /* it is not recycled */
	OK(clReleaseMemObject(new_buffer(400)));
	OK(clReleaseMemObject(wasteful));
	wasteful = new_buffer(1000); /* of the device */
	EQUAL(diags(GMT_DIAG_HOSTED), 3);
	OK(clReleaseMemObject(wasteful));
	OK(clReleaseMemObject(last));
	end_clean();
}

TEST(what_is_hosted_looks_as_asked_for)
{
	cl_mem hosted, wasteful = begin_full(&hosted, (struct options){0});
	void *pointer = hosted;
	EQUAL(flags_of(hosted), CL_MEM_READ_WRITE);
	OK(clGetMemObjectInfo(hosted, CL_MEM_HOST_PTR, sizeof pointer, &pointer, NULL));
	CHECK(!pointer);
	const cl_buffer_region region = {0, 128};
	cl_int err;
	cl_mem part = clCreateSubBuffer(hosted, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	OK(err);
	EQUAL(flags_of(part) & CL_MEM_ALLOC_HOST_PTR, 0);
	OK(clReleaseMemObject(hosted));
	OK(clReleaseMemObject(part));
	OK(clReleaseMemObject(wasteful));
	OK(clReleaseMemObject(new_buffer(1024)));
	end_clean();
}

TEST(contents_are_copied)
{
	static char host[100] = "contents", got[100];
	cl_mem hosted, wasteful = begin_full(&hosted, (struct options){0});
	OK(clReleaseMemObject(hosted));
	cl_int err = 1;
	hosted = clCreateBuffer(world.context, CL_MEM_COPY_HOST_PTR, sizeof host, host, &err);
	OK(err);
	EQUAL(diags(GMT_DIAG_HOSTED), 2);
	OK(clEnqueueReadBuffer(world.queue, hosted, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL));
	CHECK(memcmp(host, got, sizeof got) == 0);
	OK(clReleaseMemObject(hosted));
	OK(clReleaseMemObject(wasteful));
	end_clean();
}

TEST(other_memory_is_never_hosted)
{
	static char host[100];
	const cl_mem_properties some[] = {0x10000, 1, 0};
	cl_mem hosted, wasteful = begin_full(&hosted, (struct options){0});
	OK(clReleaseMemObject(hosted));
	EQUAL(error_of(CL_MEM_USE_HOST_PTR, sizeof host, host), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	EQUAL(error_of(CL_MEM_ALLOC_HOST_PTR, 100, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	EQUAL(error_of((cl_mem_flags)1 << 40, 100, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	cl_int err = 1;
	CHECK(!clCreateBufferWithProperties(world.context, some, 0, 100, NULL, &err));
	EQUAL(err, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	EQUAL(error_of(0, 1025, NULL), CL_INVALID_BUFFER_SIZE);
	EQUAL(diags(GMT_DIAG_HOSTED), 1);
	OK(clReleaseMemObject(wasteful));
	end_clean();
}

TEST(a_driver_that_refuses_that_as_well)
{
	cl_mem hosted, wasteful = begin_full(&hosted, (struct options){0});
	OK(clReleaseMemObject(hosted));
	fake.createerror = CL_OUT_OF_HOST_MEMORY;
	fake.failcreates = 1;
	EQUAL(error_of(0, 400, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE); /* the first error */
	EQUAL(fake.failcreates, 0);
	EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_FAILED);
	OK(clReleaseMemObject(wasteful));
	OK(clReleaseMemObject(new_buffer(1024)));
	end_clean();
}

TEST(images_are_hosted)
{
	static const cl_image_format rgba = {CL_RGBA, CL_UNSIGNED_INT8};
	static const cl_image_desc small = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 10, .image_height = 10},
				   large = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 11, .image_height = 10};
	cl_mem hosted, wasteful = begin_full(&hosted, (struct options){0});
	OK(clReleaseMemObject(hosted));
	for (int i = 0; i < 3; i++) { /* of a shape that the pool does not know, and of one that it does */
		cl_int err = 1;
		hosted = clCreateImage(world.context, CL_MEM_READ_WRITE, &rgba, &small, NULL, &err);
		OK(err);
		EQUAL(fake_flags(hosted), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
		EQUAL(flags_of(hosted), CL_MEM_READ_WRITE);
		CHECK(!clCreateImage(world.context, CL_MEM_READ_WRITE, &rgba, &large, NULL, &err)); /* beside the other */
		EQUAL(err, CL_MEM_OBJECT_ALLOCATION_FAILURE);
		EQUAL(release(hosted), GMT_OUTCOME_DRIVER);
	}
	OK(clReleaseMemObject(wasteful));
	EQUAL(diags(GMT_DIAG_HOSTED), 4);
	end_clean();
}

/* Of several devices, only the memory of the least is known: a program that has more than that in use is believed. */
TEST(waste_makes_no_create_fail_on_a_larger_device)
{
	fake.largest = 1024; /* a quarter of a device */
	begin((struct options){0});
	cl_mem held[5];
	for (int i = 0; i < 5; i++)
		held[i] = new_buffer(1000);
	fake.createerror = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	fake.failcreates = 1;
	cl_mem hosted = new_buffer(64);
	EQUAL(diags(GMT_DIAG_HOSTED), 1);
	OK(clReleaseMemObject(hosted));
	for (int i = 0; i < 5; i++)
		OK(clReleaseMemObject(held[i]));
	end_clean();
}

/* A create that would fail without the pool fails with it. */
TEST(a_full_device_stays_full)
{
	begin((struct options){.devicememory = 2048});
	cl_mem exact = new_buffer(1024), wasteful = new_buffer(1000);
	EQUAL(error_of(0, 25, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	EQUAL(diags(GMT_DIAG_HOSTED), 0);
	OK(clReleaseMemObject(exact));
	OK(clReleaseMemObject(wasteful));
	end_clean();
}

TEST(slabs_with_little_in_use_make_no_create_fail)
{
	setenv("FAKE_CORE_SLAB", "1024", 1);
	begin((struct options){.devicememory = 1024});
	cl_mem part = new_buffer(128), hosted = new_buffer(896);
	CHECK(part && hosted);
	EQUAL(diags(GMT_DIAG_HOSTED), 0);
	OK(clReleaseMemObject(hosted));
	hosted = clCreateBuffer(world.context, CL_MEM_READ_ONLY, 896, NULL, NULL);
	CHECK(hosted);
	EQUAL(diags(GMT_DIAG_HOSTED), 1);
	EQUAL(error_of(CL_MEM_READ_ONLY, 1, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	OK(clReleaseMemObject(hosted));
	OK(clReleaseMemObject(part));
	end_clean();
}
