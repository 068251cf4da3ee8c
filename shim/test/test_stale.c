/* test_stale.c: memory of another context, memory still mapped, contents that were never written. */
#include "misuse.h"

static void wrong_context(bool accepted)
{
	fake.anycontext = accepted;
	prepare((struct options){.tagmode = GMT_TAGS_SIZE});
	cl_context other = new_context();
	cl_mem foreign = clCreateBuffer(other, CL_MEM_READ_WRITE, SIZE, NULL, NULL);
	struct gmtevent create = last_event(GMT_KIND_CREATE);
	cl_int want = accepted ? CL_SUCCESS : CL_INVALID_CONTEXT;
	EQUAL(clEnqueueFillBuffer(world.queue, foreign, "x", 1, 0, 16, 0, NULL, NULL), want);
	EQUAL(findings(), 1);
	finding(GMT_DIAG_WRONG_CONTEXT, "clEnqueueFillBuffer", create.object, SIZE, want);
	EQUAL(last_event(GMT_KIND_DIAG).tag, create.tag);
	EQUAL(clEnqueueCopyBuffer(world.queue, foreign, foreign, 0, 32, 16, 0, NULL, NULL), want); /* one mistake */
	EQUAL(findings(), 2);
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	OK(clSetKernelArg(kernel, 0, sizeof foreign, &foreign));
	EQUAL(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, one, NULL, 0, NULL, NULL), want);
	EQUAL(findings(), 3);
	finding(GMT_DIAG_WRONG_CONTEXT, "clEnqueueNDRangeKernel", create.object, SIZE, want);
	OK(clReleaseKernel(kernel));
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(foreign));
	OK(clReleaseContext(other));
	finish();
}

TEST(memory_of_another_context_that_the_driver_refuses)
{
	wrong_context(false);
}

TEST(memory_of_another_context_that_the_driver_accepts)
{
	wrong_context(true);
}

TEST(memory_that_is_still_mapped_when_it_is_released)
{
	prepare((struct options){0});
	for (int pooled = 0; pooled < 2; pooled++) {
		cl_mem buffer = pooled ? new_buffer(SIZE) : clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, SIZE, host, NULL);
		uint64_t object = last_event(GMT_KIND_CREATE).object;
		CHECK(clEnqueueMapBuffer(world.queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, SIZE, 0, NULL, NULL, NULL));
		OK(clReleaseMemObject(buffer));
		EQUAL(findings(), (size_t)pooled + 1);
		finding(GMT_DIAG_STILL_MAPPED, "clReleaseMemObject", object, SIZE, CL_SUCCESS);
		EQUAL(fake.livememory, 2);
	}
	finish();
}

/* A recycled buffer that nothing has been written to. */
static cl_mem recycled(cl_mem_flags flags)
{
	cl_mem buffer = clCreateBuffer(world.context, flags, SIZE, NULL, NULL);
	use(world.queue, buffer);
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(buffer));
	CHECK(clCreateBuffer(world.context, flags, SIZE, NULL, NULL) == buffer);
	EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_HIT);
	fake_hand_out(buffer);
	return buffer;
}

static cl_int do_map_write(void)
{
	void *pointer = clEnqueueMapBuffer(world.queue, idle, CL_TRUE, CL_MAP_WRITE, 0, 16, 0, NULL, NULL, NULL);
	return pointer ? clEnqueueUnmapMemObject(world.queue, idle, pointer, 0, NULL, NULL) : CL_INVALID_VALUE;
}

static cl_int do_map_read(void)
{
	void *pointer = clEnqueueMapBuffer(world.queue, idle, CL_TRUE, CL_MAP_READ, 0, 16, 0, NULL, NULL, NULL);
	return pointer ? clEnqueueUnmapMemObject(world.queue, idle, pointer, 0, NULL, NULL) : CL_INVALID_VALUE;
}

static cl_int do_write_part(void)
{
	cl_buffer_region region = {64, 32};
	cl_mem part = clCreateSubBuffer(idle, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
	cl_int err = clEnqueueFillBuffer(world.queue, part, "x", 1, 0, 16, 0, NULL, NULL);
	OK(clReleaseMemObject(part));
	return err;
}

static cl_int do_read_part(void)
{
	cl_buffer_region region = {64, 32};
	cl_mem part = clCreateSubBuffer(idle, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
	cl_int err = clEnqueueReadBuffer(world.queue, part, CL_TRUE, 0, 16, host, 0, NULL, NULL);
	OK(clReleaseMemObject(part));
	return err;
}

TEST(stale_contents_are_read)
{
	static const struct misuse reads[] = {
		{"clEnqueueReadBuffer", do_read},   {"clEnqueueReadBufferRect", do_read_rect},
		{"clEnqueueCopyBuffer", do_copy_from}, {"clEnqueueCopyBufferToImage", do_to_image},
		{"clEnqueueMapBuffer", do_map_read},   {"clEnqueueReadBuffer", do_read_part},
	};
	prepare((struct options){.tagmode = GMT_TAGS_SIZE});
	for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
		idle = recycled(CL_MEM_READ_WRITE);
		struct gmtevent create = last_event(GMT_KIND_CREATE);
		OK(reads[i].run());
		EQUAL(findings(), i + 1);
		finding(GMT_DIAG_STALE_READ, reads[i].function, create.object, SIZE, CL_SUCCESS);
		EQUAL(last_event(GMT_KIND_DIAG).tag, create.tag);
		OK(reads[i].run()); /* recorded once */
		EQUAL(findings(), i + 1);
		OK(clReleaseMemObject(idle));
	}
	finish();
}

TEST(contents_that_were_written_are_not_stale)
{
	static cl_int (*const writes[])(void) = {
		do_write, do_write_rect, do_fill, do_copy_to, do_copy_rect, do_from_image, do_map_write, do_write_part,
	};
	prepare((struct options){0});
	for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
		idle = recycled(CL_MEM_READ_WRITE);
		OK(writes[i]());
		OK(do_read());
		OK(clReleaseMemObject(idle));
	}
	idle = recycled(CL_MEM_READ_WRITE);
	OK(do_migrate()); /* neither reads nor writes */
	EQUAL(findings(), 0);
	OK(do_read());
	EQUAL(findings(), 1);
	OK(clReleaseMemObject(idle));
	finish();
}

TEST(a_read_that_fails_is_none)
{
	prepare((struct options){0});
	idle = recycled(CL_MEM_READ_WRITE);
	EQUAL(clEnqueueReadBuffer(world.queue, idle, CL_TRUE, SIZE, 16, host, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(findings(), 0);
	OK(clReleaseMemObject(idle));
	finish();
}

TEST(a_fresh_buffer_is_not_stale)
{
	prepare((struct options){0});
	idle = new_buffer(SIZE);
	OK(do_read());
	EQUAL(findings(), 0);
	OK(clReleaseMemObject(idle));
	finish();
}

static void stale_argument(cl_mem_flags flags, size_t want)
{
	size_t before = findings();
	cl_mem buffer = recycled(flags);
	uint64_t object = last_event(GMT_KIND_CREATE).object;
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	uint64_t number = last_event(GMT_KIND_KERNEL).object;
	OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
	for (int i = 0; i < 2; i++) {
		OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, one, NULL, 0, NULL, NULL));
		EQUAL(findings(), before + want);
	}
	if (want) {
		finding(GMT_DIAG_STALE_ARGUMENT, "clEnqueueNDRangeKernel", object, SIZE, CL_SUCCESS);
		EQUAL(last_event(GMT_KIND_DIAG).link, number);
	}
	OK(clReleaseKernel(kernel));
	OK(clReleaseMemObject(buffer));
}

TEST(stale_contents_are_given_to_a_kernel)
{
	prepare((struct options){0});
	stale_argument(CL_MEM_READ_WRITE, 0); /* it may write them */
	stale_argument(CL_MEM_READ_ONLY, 0);  /* some programs do */
	fake.argtype[0] = CL_KERNEL_ARG_TYPE_CONST;
	stale_argument(CL_MEM_READ_WRITE, 1);
	fake.argtype[0] = 0;
	fake.argaddress[0] = CL_KERNEL_ARG_ADDRESS_CONSTANT;
	stale_argument(CL_MEM_READ_WRITE, 1);
	fake.arginfo = 0;
	stale_argument(CL_MEM_READ_WRITE, 0); /* unknown */
	finish();
}

/* What the release of a recycled buffer says of its first use, by a kernel with an argument of these flags. */
static enum gmtexposed exposure(cl_mem_flags flags, cl_int (*before)(void))
{
	idle = recycled(flags);
	if (before)
		OK(before());
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	OK(clSetKernelArg(kernel, 0, sizeof idle, &idle));
	for (int i = 0; i < 2; i++)
		OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, one, NULL, 0, NULL, NULL));
	OK(clReleaseKernel(kernel));
	OK(clReleaseMemObject(idle));
	return last_event(GMT_KIND_RELEASE).flags & GMT_FLAG_EXPOSED;
}

TEST(kernels_may_read_what_an_earlier_owner_left)
{
	prepare((struct options){0});
	fake.clean = 1;
	EQUAL(exposure(CL_MEM_READ_WRITE, NULL), GMT_EXPOSED_ZERO);
	uint64_t creates = fake.creates;
	EQUAL(exposure(CL_MEM_READ_WRITE, NULL), GMT_EXPOSED_ZERO); /* which is tried once */
	EQUAL(fake.creates, creates);
	EQUAL(exposure(CL_MEM_READ_WRITE, do_migrate), GMT_EXPOSED_ZERO);
	EQUAL(exposure(CL_MEM_READ_ONLY, NULL), GMT_EXPOSED_ZERO);
	EQUAL(exposure(CL_MEM_WRITE_ONLY, NULL), GMT_EXPOSED_NO);
	EQUAL(exposure(CL_MEM_READ_WRITE, do_fill), GMT_EXPOSED_NO);
	EQUAL(exposure(CL_MEM_READ_WRITE, do_write_part), GMT_EXPOSED_NO); /* of a part, too */
	EQUAL(exposure(CL_MEM_READ_WRITE, do_read), GMT_EXPOSED_NO); /* a stale read, which is a mistake */
	EQUAL(fake.livequeues, 1);
	finish();
}

TEST(images_that_kernels_cannot_read_expose_nothing)
{
	prepare((struct options){0});
	fake.argaccess[0] = CL_KERNEL_ARG_ACCESS_WRITE_ONLY;
	EQUAL(exposure(CL_MEM_READ_WRITE, NULL), GMT_EXPOSED_NO);
	finish();
}

TEST(new_memory_that_is_not_zero)
{
	prepare((struct options){0});
	EQUAL(exposure(CL_MEM_READ_WRITE, NULL), GMT_EXPOSED_OTHER);
	finish();
}

TEST(what_new_memory_holds_is_tried_with_little_of_a_small_device)
{
	fake.arginfo = 1;
	fake.argaddress[0] = CL_KERNEL_ARG_ADDRESS_GLOBAL;
	fake.largest = 1024; /* a quarter of its memory */
	begin((struct options){0});
	fake.cap = 128 + 64; /* the block, and a 64th for the trial */
	EQUAL(exposure(CL_MEM_READ_WRITE, NULL), GMT_EXPOSED_OTHER);
	end_clean();
}

TEST(scrubbed_memory_exposes_nothing)
{
	prepare((struct options){.scrub = GMT_SCRUB_ZERO});
	EQUAL(exposure(CL_MEM_READ_WRITE, NULL), GMT_EXPOSED_NO);
	finish();
}

/* A kernel on a queue gets a recycled buffer; returns the first byte that is in it then. */
static unsigned char given(cl_command_queue queue, cl_mem_flags flags, enum gmtexposed want)
{
	idle = recycled(flags);
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	OK(clSetKernelArg(kernel, 0, sizeof idle, &idle));
	OK(clSetKernelArg(kernel, 1, sizeof idle, &idle));
	for (int i = 0; i < 2; i++)
		OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, one, NULL, 0, NULL, NULL));
	OK(clFinish(queue));
	OK(clReleaseKernel(kernel));
	OK(clEnqueueReadBuffer(world.queue, idle, CL_TRUE, 0, SIZE, host, 0, NULL, NULL));
	OK(clReleaseMemObject(idle));
	EQUAL(last_event(GMT_KIND_RELEASE).flags & GMT_FLAG_EXPOSED, want);
	return (unsigned char)(host[0] | host[SIZE - 1]);
}

TEST(auto_clears_what_a_kernel_may_read)
{
	prepare((struct options){.scrub = GMT_SCRUB_AUTO});
	EQUAL(given(world.queue, CL_MEM_READ_WRITE, GMT_EXPOSED_CLEARED), 0);
	CHECK(given(world.queue, CL_MEM_WRITE_ONLY, GMT_EXPOSED_NO) != 0);
	EQUAL(findings(), 0);
	fake.argtype[0] = CL_KERNEL_ARG_TYPE_CONST;
	EQUAL(given(world.queue, CL_MEM_READ_WRITE, GMT_EXPOSED_CLEARED), 0);
	EQUAL(diags(GMT_DIAG_STALE_ARGUMENT), 1); /* a mistake all the same */
	fake.argtype[0] = 0;
	EQUAL(exposure(CL_MEM_READ_WRITE, do_write), GMT_EXPOSED_NO);
	finish();
}

TEST(auto_clears_on_queues_without_order)
{
	prepare((struct options){.scrub = GMT_SCRUB_AUTO});
	cl_command_queue queue = new_queue(world.context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	EQUAL(given(queue, CL_MEM_READ_WRITE, GMT_EXPOSED_CLEARED), 0);
	OK(clReleaseCommandQueue(queue));
	finish();
}

static void fail_next(void)
{
	fake.enqueueerror = CL_INVALID_WORK_GROUP_SIZE;
	fake.failenqueues = 1;
}

static void let_one_pass(void)
{
	fake.aftersubmit = fail_next;
}

TEST(what_was_cleared_for_a_kernel_that_fails_is_not_reused)
{
	prepare((struct options){.scrub = GMT_SCRUB_AUTO});
	idle = recycled(CL_MEM_READ_WRITE);
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	OK(clSetKernelArg(kernel, 0, sizeof idle, &idle));
	fake.aftersubmit = let_one_pass; /* it takes two fills, of at most 64 bytes, to clear it */
	EQUAL(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, one, NULL, 0, NULL, NULL), CL_INVALID_WORK_GROUP_SIZE);
	OK(clReleaseKernel(kernel));
	OK(clReleaseMemObject(idle));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_REFUSED);
	finish();
}
