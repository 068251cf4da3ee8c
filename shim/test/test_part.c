/* test_part.c: buffers that are parts of slabs, and what the program sees of it. */
#include "carved.h"

#include <pthread.h>
#include <time.h>

static void looks_whole(cl_mem buffer, size_t size, cl_mem_flags flags)
{
	EQUAL(asked(buffer, CL_MEM_SIZE), size);
	EQUAL(asked(buffer, CL_MEM_FLAGS), flags);
	EQUAL(asked(buffer, CL_MEM_OFFSET), 0);
	EQUAL(asked(buffer, CL_MEM_REFERENCE_COUNT), 1);
	EQUAL(asked(buffer, CL_MEM_MAP_COUNT), 0);
	CHECK(!asked_pointer(buffer, CL_MEM_ASSOCIATED_MEMOBJECT));
	CHECK(!asked_pointer(buffer, CL_MEM_HOST_PTR));
}

TEST(parts_look_like_buffers)
{
	static const cl_mem_flags flags[] = {0, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY | CL_MEM_HOST_READ_ONLY, CL_MEM_ALLOC_HOST_PTR};
	begin_carved((struct options){0});
	EQUAL(last_event(GMT_KIND_DEVICE).tag, ALIGNMENT);
	for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
		cl_mem buffer[3];
		for (size_t b = 0; b < 3; b++) {
			buffer[b] = clCreateBuffer(world.context, flags[i], 1000 + b, NULL, NULL);
			CHECK(buffer[b]);
			CHECK(is_part(GMT_KIND_CREATE));
			EQUAL(last_event(GMT_KIND_CREATE).outcome, b ? GMT_OUTCOME_HIT : GMT_OUTCOME_MISS);
			EQUAL(last_event(GMT_KIND_CREATE).granted, 1024);
			EQUAL(last_event(GMT_KIND_CREATE).access, flags[i]);
			looks_whole(buffer[b], 1000 + b, flags[i]);
		}
		EQUAL(events(GMT_KIND_SLAB), i + 1);
		EQUAL(last_event(GMT_KIND_SLAB).granted, SLAB_BYTES);
		EQUAL(fake.livebytes, (i + 1) * SLAB_BYTES);
		for (size_t b = 0; b < 3; b++)
			EQUAL(release(buffer[b]), GMT_OUTCOME_CACHED);
		CHECK(is_part(GMT_KIND_RELEASE));
		EQUAL(fake.livememory, (i + 1) * 4); /* a slab and what is parked of it */
	}
	end_clean();
	EQUAL(events(GMT_KIND_EVICT), 4);
}

/* Two threads want what one slab serves; the second asks while the first creates the slab. */
static struct {
	cl_mem_flags flags;
	int pauses; /* of 1 ms, that the driver takes unless the second is served before */
	pthread_t thread;
	cl_mem buffer;
	_Atomic bool served;
} second;

static cl_mem create_like_second(void)
{
	cl_mem buffer = clCreateBuffer(world.context, second.flags, 1000, NULL, NULL);
	CHECK(buffer);
	return buffer;
}

static void *second_creates(void *arg)
{
	(void)arg;
	second.buffer = create_like_second();
	second.served = true;
	return NULL;
}

static void slab_takes_long(size_t failed)
{
	EQUAL(failed, 0);
	fake.aftercreate = NULL;
	EQUAL(pthread_create(&second.thread, NULL, second_creates, NULL), 0);
	for (int i = 0; i < second.pauses && !second.served; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void two_threads_create(cl_mem_flags flags, int pauses)
{
	second.flags = flags;
	second.pauses = pauses;
	second.served = false;
	fake.aftercreate = slab_takes_long;
	cl_mem first = create_like_second();
	EQUAL(pthread_join(second.thread, NULL), 0);
	OK(clReleaseMemObject(first));
	OK(clReleaseMemObject(second.buffer));
}

TEST(a_create_waits_for_the_slab_of_another_thread)
{
	static const cl_mem_flags flags[] = {CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_NO_ACCESS};
	begin_carved((struct options){0});
	OK(clReleaseMemObject(new_buffer(1000))); /* what is tried first has been */
	for (int i = 0; i < 4 && !outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT); i++)
		two_threads_create(flags[i], 3); /* more than one where the machine stands still for 100 ms */
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 1);
	end_clean();
}

TEST(a_create_does_not_wait_long_for_the_slab_of_another_thread)
{
	begin_carved((struct options){0});
	OK(clReleaseMemObject(new_buffer(1000)));
	two_threads_create(CL_MEM_READ_ONLY, 60000);
	CHECK(second.served);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 0);
	EQUAL(events(GMT_KIND_SLAB), 2);
	end_clean();
}

TEST(who_gets_no_part)
{
	static char host[4096];
	begin_carved((struct options){0});
	cl_mem copied = clCreateBuffer(world.context, CL_MEM_COPY_HOST_PTR, sizeof host, host, NULL);
	cl_mem large = new_buffer(SLAB_BYTES + 1);
	EQUAL(events(GMT_KIND_SLAB), 0);
	OK(clReleaseMemObject(copied));
	OK(clReleaseMemObject(large));
	fake.devices = 2;
	cl_context two = new_context();
	EQUAL(last_event(GMT_KIND_DEVICE).tag, 0);
	EQUAL(last_event(GMT_KIND_DEVICE).scope, 2);
	OK(clReleaseMemObject(clCreateBuffer(two, 0, 100, NULL, NULL)));
	OK(clReleaseContext(two));
	fake.devices = 1;
	fake.version = "OpenCL 1.0 fake";
	cl_context old = new_context();
	OK(clReleaseMemObject(clCreateBuffer(old, 0, 100, NULL, NULL)));
	OK(clReleaseContext(old));
	EQUAL(events(GMT_KIND_SLAB), 0);
	end_clean();
}

/* This program imports clCreateImage. */
static void check_no_parts(uint32_t imagesofwholes)
{
	fake.imagesofwholes = imagesofwholes;
	begin_carved((struct options){0});
	for (int i = 0; i < 2; i++) {
		cl_mem buffer = new_buffer(100);
		EQUAL(events(GMT_KIND_SLAB), 0);
		cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
		cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 25, .mem_object = buffer};
		cl_mem image = clCreateImage(world.context, 0, &format, &desc, NULL, NULL);
		CHECK(image);
		OK(clReleaseMemObject(image));
		OK(clReleaseMemObject(buffer));
	}
	EQUAL(last_event(GMT_KIND_DEVICE).tag, 0); /* as a recording says it */
	EQUAL(events(GMT_KIND_DIAG), 1);
	EQUAL(last_event(GMT_KIND_DIAG).op, GMT_DIAG_WHOLE_BLOCKS);
	end_clean();
}

TEST(no_parts_where_images_of_them_are_refused)
{
	check_no_parts(1);
}

TEST(no_parts_where_images_of_them_show_other_memory)
{
	check_no_parts(2);
}

/* As in PoCL 1.4. */
TEST(no_parts_where_reading_images_of_buffers_crashes)
{
	fake.version = "OpenCL 1.2 pocl HSTR: fake"; /* its driver's version is 1.0 */
	check_no_parts(0);
}

TEST(no_parts_in_the_last_release_that_crashes)
{
	fake.version = "OpenCL 1.2 pocl HSTR: fake";
	fake.driver = "1.5";
	check_no_parts(0);
}

TEST(parts_where_reading_images_of_buffers_no_longer_crashes)
{
	fake.version = "OpenCL 1.2 pocl HSTR: fake";
	fake.driver = "1.6";
	begin_carved((struct options){0});
	OK(clReleaseMemObject(new_buffer(100)));
	CHECK(is_part(GMT_KIND_CREATE));
	end_clean();
}

/* Seen by no create, release or query; where a kernel finds its argument cannot be seen either without running one. */
static void check_wrong(enum fake_wrong kind)
{
	fake.wrongparts = kind;
	begin_carved((struct options){.nouses = true});
	for (int i = 0; i < 3; i++) {
		OK(clReleaseMemObject(new_buffer(100)));
		CHECK(!is_part(GMT_KIND_CREATE));
		EQUAL(last_event(GMT_KIND_CREATE).outcome, i ? GMT_OUTCOME_HIT : GMT_OUTCOME_MISS);
	}
	EQUAL(fake.creates, 1 + 1 + 2); /* and what it was tried with */
	EQUAL(events(GMT_KIND_SLAB), 0);
	EQUAL(events(GMT_KIND_DIAG), 1);
	EQUAL(last_event(GMT_KIND_DIAG).op, GMT_DIAG_WHOLE_BLOCKS);
	EQUAL(strcmp(last_text(GMT_KIND_DIAG), "this driver's sub-buffers do not hold their own bytes"), 0);
	end_clean();
}

TEST(no_parts_where_reads_of_them_show_other_memory)
{
	check_wrong(FAKE_READS);
}

TEST(no_parts_where_writes_to_them_reach_other_memory)
{
	check_wrong(FAKE_WRITES);
}

TEST(no_parts_where_fills_of_them_reach_other_memory)
{
	check_wrong(FAKE_FILLS);
}

TEST(no_parts_where_copies_from_them_show_other_memory)
{
	check_wrong(FAKE_COPIES_FROM);
}

TEST(no_parts_where_copies_to_them_reach_other_memory)
{
	check_wrong(FAKE_COPIES_TO);
}

TEST(no_parts_where_maps_of_them_show_other_memory)
{
	check_wrong(FAKE_MAPS);
}

TEST(no_parts_where_kernels_are_slow_with_them)
{
	fake.version = "OpenCL 3.0 CUDA"; /* NVIDIA's; PoCL's ends with CUDA-sm_90 */
	begin_carved((struct options){.nouses = true});
	OK(clReleaseMemObject(new_buffer(100)));
	OK(clReleaseMemObject(new_buffer(100)));
	CHECK(!is_part(GMT_KIND_CREATE));
	EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_HIT);
	EQUAL(fake.creates, 1); /* nothing was tried */
	EQUAL(strcmp(last_text(GMT_KIND_DIAG), "kernels take milliseconds for each sub-buffer on NVIDIA's driver"), 0);
	end_clean();
}

/* A program in the middle of its commands waits for none of them. */
TEST(trials_wait_for_no_command_of_the_program)
{
	begin_carved((struct options){0});
	cl_mem whole = new_buffer(SLAB_BYTES + 1);
	cl_event gate = clCreateUserEvent(world.context, NULL);
	cl_event held = fill(world.queue, whole, 1, &gate);
	OK(clReleaseMemObject(new_buffer(100)));
	CHECK(is_part(GMT_KIND_CREATE));
	EQUAL(fake.pending, 1);
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	OK(clReleaseEvent(gate));
	OK(clReleaseEvent(held));
	OK(clReleaseMemObject(whole));
	end_clean();
}

TEST(images_of_parts)
{
	begin_carved((struct options){0});
	cl_mem buffer = new_buffer(100);
	CHECK(is_part(GMT_KIND_CREATE));
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 25, .mem_object = buffer};
	cl_int err = 1;
	cl_mem image = clCreateImage(world.context, 0, &format, &desc, NULL, &err);
	OK(err);
	CHECK(asked_pointer(image, CL_MEM_ASSOCIATED_MEMOBJECT) == buffer);
	EQUAL(last_event(GMT_KIND_CREATE).flags, 0);
	desc.image_width = 26;
	CHECK(!clCreateImage(world.context, 0, &format, &desc, NULL, &err));
	EQUAL(err, CL_INVALID_IMAGE_DESCRIPTOR);
	EQUAL(release(buffer), GMT_OUTCOME_PINNED);
	EQUAL(release(image), GMT_OUTCOME_CACHED); /* of the buffer, which ends with it */
	end_clean();
}

static cl_int child_error(cl_mem buffer, size_t origin, size_t size, cl_mem_flags flags)
{
	cl_int err = 1;
	cl_buffer_region region = {origin, size};
	cl_mem child = clCreateSubBuffer(buffer, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	EQUAL(child != NULL, err == CL_SUCCESS);
	if (child)
		OK(clReleaseMemObject(child));
	return err;
}

/* What a buffer of its own answers, a part must. */
TEST(sub_buffers_of_parts_are_refused_as_of_buffers)
{
	static const size_t origins[] = {0, 64, 128, 896, 999, 1000, 1024, 1152, 4096, 60000, SLAB_BYTES, SIZE_MAX - 127, SIZE_MAX};
	static const size_t sizes[] = {0, 1, 104, 105, 1000, 1001, SLAB_BYTES, SIZE_MAX};
	static char host[1000];
	begin_carved((struct options){0});
	cl_mem before = new_buffer(1000), part = new_buffer(1000), behind = new_buffer(1000);
	CHECK(is_part(GMT_KIND_CREATE));
	cl_mem whole = clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, 1000, host, NULL);
	for (size_t o = 0; o < sizeof origins / sizeof origins[0]; o++)
		for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
			EQUAL(child_error(part, origins[o], sizes[s], 0), child_error(whole, origins[o], sizes[s], 0));
	EQUAL(child_error(part, 0, 100, CL_MEM_ALLOC_HOST_PTR), CL_INVALID_VALUE);
	cl_int err = 1;
	CHECK(!clCreateSubBuffer(part, 0, CL_BUFFER_CREATE_TYPE_REGION, NULL, &err));
	EQUAL(err, CL_INVALID_VALUE);
	CHECK(!clCreateSubBuffer(part, 0, 0x7777, &(cl_buffer_region){0, 100}, &err));
	EQUAL(err, CL_INVALID_VALUE);
	cl_mem child = clCreateSubBuffer(part, 0, CL_BUFFER_CREATE_TYPE_REGION, &(cl_buffer_region){128, 200}, &err);
	OK(err);
	EQUAL(child_error(child, 0, 100, 0), CL_INVALID_MEM_OBJECT);
	CHECK(asked_pointer(child, CL_MEM_ASSOCIATED_MEMOBJECT) == part);
	EQUAL(asked(child, CL_MEM_OFFSET), 128);
	EQUAL(asked(child, CL_MEM_SIZE), 200);
	cl_mem all[] = {child, whole, behind, part, before};
	for (int i = 0; i < 5; i++)
		OK(clReleaseMemObject(all[i]));
	end_clean();
}

TEST(a_part_stays_taken_while_sub_buffers_of_it_live)
{
	begin_carved((struct options){0});
	cl_mem buffer = new_buffer(1000);
	cl_mem child = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &(cl_buffer_region){128, 200}, NULL);
	OK(clEnqueueFillBuffer(world.queue, child, "c", 1, 0, 200, 0, NULL, NULL));
	OK(clFinish(world.queue));
	EQUAL(release(buffer), GMT_OUTCOME_PINNED);
	CHECK(asked_pointer(child, CL_MEM_ASSOCIATED_MEMOBJECT) == buffer);
	cl_mem other = new_buffer(1000);
	OK(clEnqueueFillBuffer(world.queue, other, "o", 1, 0, 1000, 0, NULL, NULL));
	OK(clFinish(world.queue));
	for (int i = 0; i < 200; i++)
		EQUAL(fake_contents(child)[i], 'c');
	OK(clReleaseMemObject(child));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_CACHED);
	CHECK(is_part(GMT_KIND_RELEASE));
	cl_mem again = new_buffer(1000);
	CHECK(memchr(fake_contents(again), 'c', 1000)); /* the same range */
	OK(clReleaseMemObject(again));
	OK(clReleaseMemObject(other));
	end_clean();
}

/* A driver that counts sub-buffers and mappings in a buffer counts those of a part in its slab. */
static void counts_like_a_buffer(bool counted, bool part)
{
	static char host[1000];
	cl_mem buffer = part ? new_buffer(1000) : clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, 1000, host, NULL);
	cl_mem child = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &(cl_buffer_region){128, 200}, NULL);
	EQUAL(asked(buffer, CL_MEM_REFERENCE_COUNT), counted ? 2 : 1);
	EQUAL(asked(child, CL_MEM_REFERENCE_COUNT), 1);
	void *mapped = clEnqueueMapBuffer(world.queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, 100, 0, NULL, NULL, NULL);
	EQUAL(asked(buffer, CL_MEM_MAP_COUNT), 1);
	EQUAL(asked(buffer, CL_MEM_REFERENCE_COUNT), counted ? 3 : 1);
	OK(clRetainMemObject(buffer));
	EQUAL(asked(buffer, CL_MEM_REFERENCE_COUNT), counted ? 4 : 2);
	OK(clReleaseMemObject(buffer));
	OK(clEnqueueUnmapMemObject(world.queue, buffer, mapped, 0, NULL, NULL));
	EQUAL(clEnqueueUnmapMemObject(world.queue, buffer, mapped, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(asked(buffer, CL_MEM_MAP_COUNT), 0);
	OK(clReleaseMemObject(buffer));
	EQUAL(asked(buffer, CL_MEM_REFERENCE_COUNT), counted ? 1 : 0);
	OK(clReleaseMemObject(child));
	OK(clFinish(world.queue));
}

TEST(references_and_mappings_that_are_counted_in_the_slab)
{
	fake.countparts = 1;
	begin_carved((struct options){0});
	cl_mem other = new_buffer(100); /* its mapping is none of the others' */
	void *mapped = clEnqueueMapBuffer(world.queue, other, CL_TRUE, CL_MAP_READ, 0, 100, 0, NULL, NULL, NULL);
	counts_like_a_buffer(true, false);
	counts_like_a_buffer(true, true);
	OK(clEnqueueUnmapMemObject(world.queue, other, mapped, 0, NULL, NULL));
	OK(clReleaseMemObject(other));
	end_clean();
}

TEST(sub_buffers_that_are_counted_in_the_slab_and_mappings_that_are_not)
{
	fake.countcommands = 1; /* and what else holds memory in the driver */
	begin_carved((struct options){0});
	cl_mem buffer = new_buffer(1000);
	cl_mem child = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &(cl_buffer_region){128, 200}, NULL);
	void *mapped = clEnqueueMapBuffer(world.queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, 100, 0, NULL, NULL, NULL);
	EQUAL(asked(buffer, CL_MEM_REFERENCE_COUNT), 2);
	OK(clEnqueueUnmapMemObject(world.queue, buffer, mapped, 0, NULL, NULL));
	OK(clFinish(world.queue));
	EQUAL(asked(buffer, CL_MEM_REFERENCE_COUNT), 2);
	OK(clReleaseMemObject(child));
	EQUAL(asked(buffer, CL_MEM_REFERENCE_COUNT), 1);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(references_and_mappings_that_are_not)
{
	begin_carved((struct options){0});
	counts_like_a_buffer(false, true);
	end_clean();
}
