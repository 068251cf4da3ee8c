/* test_failure.c: the driver runs out of memory; the core fails. */
#include "harness.h"

#include <sys/mman.h>
#include <sys/resource.h>

/* Fills the pool with blocks of 1 KiB that are not in use. */
static void fill_pool(int blocks)
{
	cl_mem buffers[64];
	for (int i = 0; i < blocks; i++)
		buffers[i] = new_buffer(1024);
	for (int i = 0; i < blocks; i++)
		OK(clReleaseMemObject(buffers[i]));
	EQUAL(fake.livememory, blocks);
}

TEST(a_create_that_fails_gets_blocks_back_one_by_one)
{
	begin((struct options){0});
	fake.cap = 8192;
	fill_pool(8);
	cl_mem buffer = new_buffer(2048);
	EQUAL(fake.livememory, 7); /* two were enough */
	EQUAL(events(GMT_KIND_EVICT), 2);
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_DRAIN);
	EQUAL(last_event(GMT_KIND_CREATE).status, CL_SUCCESS);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(every_kind_of_create_gets_blocks_back)
{
	static char storage[4096];
	begin((struct options){0});
	fake.cap = 8192;
	for (int i = 0; i < 4; i++) {
		fill_pool(8);
		cl_int err = 1;
		cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
		cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 32, .image_height = 32};
		cl_mem got = i == 0   ? clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, 4096, storage, &err)
			     : i == 1 ? clCreateImage(world.context, 0, &format, &desc, NULL, &err)
			     : i == 2 ? clCreatePipe(world.context, 0, 4, 1024, NULL, &err)
				      : clCreateBufferWithProperties(world.context, (cl_mem_properties[]){0}, 0, 4096, NULL, &err);
		OK(err);
		EQUAL(fake.livememory, 5);
		OK(clReleaseMemObject(got));
	}
	end_clean();
}

TEST(the_error_is_passed_on_when_nothing_is_left)
{
	static const cl_int errors[] = {CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY};
	begin((struct options){0});
	for (int i = 0; i < 3; i++) {
		fill_pool(3);
		fake.failcreates = 1000;
		fake.createerror = errors[i];
		cl_int err = 1;
		CHECK(!clCreateBuffer(world.context, 0, 5000, NULL, &err));
		EQUAL(err, errors[i]);
		EQUAL(fake.livememory, 0);
		EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_FAILED);
		EQUAL(last_event(GMT_KIND_CREATE).status, errors[i]);
		EQUAL(last_event(GMT_KIND_CREATE).object, 0);
		fake.failcreates = 0;
	}
	end_clean();
}

TEST(other_errors_do_not_drain)
{
	begin((struct options){0});
	fill_pool(3);
	fake.failcreates = 1000;
	fake.createerror = CL_INVALID_VALUE;
	cl_int err = 1;
	CHECK(!clCreateBuffer(world.context, 0, 5000, NULL, &err));
	EQUAL(err, CL_INVALID_VALUE);
	EQUAL(fake.livememory, 3);
	fake.failcreates = 0;
	end_clean();
}

TEST(rounding_up_never_costs_a_success)
{
	begin((struct options){0});
	fake.cap = 5000;
	cl_int err = 1;
	cl_mem buffer = clCreateBuffer(world.context, 0, 4100, NULL, &err);
	OK(err);
	EQUAL(fake_size(buffer), 4100);
	EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_DRIVER);
	EQUAL(last_event(GMT_KIND_CREATE).granted, 4100);
	OK(clReleaseMemObject(buffer));
	EQUAL(fake.livememory, 0);
	end_clean();
}

static cl_mem lazy;

static cl_int do_fill(void)
{
	return clEnqueueFillBuffer(world.queue, lazy, "x", 1, 0, 16, 0, NULL, NULL);
}

static cl_int do_kernel(void)
{
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	OK(clSetKernelArg(kernel, 0, sizeof lazy, &lazy));
	cl_int err = clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &(size_t){1}, NULL, 0, NULL, NULL);
	OK(clReleaseKernel(kernel));
	return err;
}

static cl_int do_migrate(void)
{
	return clEnqueueMigrateMemObjects(world.queue, 1, &lazy, 0, 0, NULL, NULL);
}

static cl_int do_map(void)
{
	cl_int err = 1;
	clEnqueueMapBuffer(world.queue, lazy, CL_TRUE, CL_MAP_READ, 0, 16, 0, NULL, NULL, &err);
	return err;
}

static void gets_blocks_back(cl_int (*run)(void))
{
	begin((struct options){0});
	lazy = new_buffer(4096);
	cl_mem buffers[5];
	for (int i = 0; i < 5; i++)
		buffers[i] = new_buffer(1024);
	for (int i = 0; i < 5; i++)
		OK(clReleaseMemObject(buffers[i]));
	fake.lazycap = 5 * 1024;
	OK(run());
	EQUAL(fake.livebytes, 5 * 1024);
	EQUAL(events(GMT_KIND_EVICT), 4);
	EQUAL(events(GMT_KIND_USE), 1);
	OK(clReleaseMemObject(lazy));
	end_clean();
}

TEST(a_fill_that_fails_gets_blocks_back)
{
	gets_blocks_back(do_fill);
}

TEST(a_kernel_that_fails_gets_blocks_back)
{
	gets_blocks_back(do_kernel);
}

TEST(a_migration_that_fails_gets_blocks_back)
{
	gets_blocks_back(do_migrate);
}

TEST(a_map_that_fails_gets_blocks_back)
{
	gets_blocks_back(do_map);
}

TEST(an_enqueue_error_is_passed_on_when_nothing_is_left)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(4096);
	uint64_t object = last_event(GMT_KIND_CREATE).object;
	fake.failenqueues = 1000;
	EQUAL(clEnqueueFillBuffer(world.queue, buffer, "x", 1, 0, 16, 0, NULL, NULL), CL_OUT_OF_RESOURCES);
	EQUAL(events(GMT_KIND_USE), 0);
	EQUAL(diags(GMT_DIAG_OUT_OF_MEMORY), 1);
	EQUAL(last_event(GMT_KIND_DIAG).object, object);
	EQUAL(last_event(GMT_KIND_DIAG).status, CL_OUT_OF_RESOURCES);
	CHECK(strcmp(last_text(GMT_KIND_DIAG), "clEnqueueFillBuffer") == 0);
	fake.failenqueues = 0;
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_CACHED);
	end_clean();
}

TEST(a_command_that_lacks_memory_has_its_call_site_and_the_memory)
{
	begin((struct options){0});
	cl_mem used = new_buffer(4096), late = new_buffer(8192);
	uint64_t object = last_event(GMT_KIND_CREATE).object;
	OK(clEnqueueFillBuffer(world.queue, used, "x", 1, 0, 16, 0, NULL, NULL));
	EQUAL(last_event(GMT_KIND_USE).object, object - 1);
	fake.failenqueues = 1000;
	EQUAL(clEnqueueFillBuffer(world.queue, late, "x", 1, 0, 16, 0, NULL, NULL), CL_OUT_OF_RESOURCES);
	EQUAL(events(GMT_KIND_USE), 1);
	EQUAL(diags(GMT_DIAG_CALL_FAILED), 1);
	EQUAL(diags(GMT_DIAG_OUT_OF_MEMORY), 1);
	EQUAL(last_event(GMT_KIND_DIAG).object, object); /* the last: after the call site */
	fake.failenqueues = 0;
	OK(clReleaseMemObject(used));
	OK(clReleaseMemObject(late));
	end_clean();
}

static int ended;

static void CL_CALLBACK releases_more(cl_event event, cl_int status, void *data)
{
	(void)event, (void)data;
	EQUAL(status, CL_COMPLETE);
	OK(clReleaseMemObject(new_buffer(900)));
	ended++;
}

/* Copies, an unordered queue, events, callbacks, and a user event. */
static void more_work(void)
{
	static char host[3000] = "contents";
	cl_mem copy[2], busy[3];
	cl_event event[3], user = clCreateUserEvent(world.context, NULL);
	cl_command_queue unordered = new_queue(world.context, UNORDERED);
	int before = ended;
	for (int i = 0; i < 2; i++) {
		copy[i] = clCreateBuffer(world.context, CL_MEM_COPY_HOST_PTR, 3000, host, NULL);
		CHECK(copy[i] && memcmp(fake_contents(copy[i]), host, 3000) == 0);
		fake_hand_out(copy[i]);
	}
	for (int i = 0; i < 3; i++) {
		busy[i] = new_buffer(200);
		OK(clEnqueueFillBuffer(unordered, busy[i], "x", 1, 0, 16, i == 2, i == 2 ? &user : NULL, &event[i]));
		OK(clSetEventCallback(event[i], CL_COMPLETE, releases_more, NULL));
	}
	OK(clReleaseMemObject(busy[1]));
	OK(clWaitForEvents(1, &event[0]));
	OK(clReleaseMemObject(busy[0]));
	OK(clSetUserEventStatus(user, CL_COMPLETE));
	OK(clReleaseEvent(user));
	OK(clFinish(unordered));
	EQUAL(ended, before + 3);
	for (int i = 0; i < 3; i++)
		OK(clReleaseEvent(event[i]));
	OK(clReleaseMemObject(busy[2]));
	OK(clReleaseMemObject(copy[0]));
	OK(clReleaseMemObject(copy[1]));
	OK(clReleaseCommandQueue(unordered));
}

/* A program's work, with everything checked that it can see. */
static void work(void)
{
	cl_mem kept[6];
	size_t size;
	for (int i = 0; i < 6; i++) {
		kept[i] = new_buffer((size_t)100 * (size_t)(i + 1));
		use(world.queue, kept[i]);
		OK(clGetMemObjectInfo(kept[i], CL_MEM_SIZE, sizeof size, &size, NULL));
		EQUAL(size, 100 * (i + 1));
		OK(clReleaseMemObject(new_buffer(1000)));
	}
	cl_command_queue second = new_queue(world.context, 0);
	use(second, kept[0]);
	OK(clReleaseMemObject(kept[0]));
	OK(clFinish(second));
	for (int i = 1; i < 6; i++) {
		OK(clGetMemObjectInfo(kept[i], CL_MEM_SIZE, sizeof size, &size, NULL));
		EQUAL(size, 100 * (i + 1));
		EQUAL(clEnqueueFillBuffer(second, kept[i], "x", 1, size - 8, 16, 0, NULL, NULL), CL_INVALID_VALUE);
		OK(clReleaseMemObject(kept[i]));
	}
	OK(clFinish(world.queue));
	OK(clReleaseCommandQueue(second));
	more_work();
}

static void core_fails_at(int call)
{
	char text[16];
	snprintf(text, sizeof text, "%d", call);
	setenv("FAKE_CORE_FAIL_AT", text, 1);
	begin((struct options){0});
	work();
	work(); /* after the failure, or with it: each makes some 50 calls */
	work();
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	EQUAL(fake.livememory, 0);
	EQUAL(fake.pending, 0);
	EQUAL(fake.hazards, 0);
	OK(clReleaseCommandQueue(world.queue));
	OK(clReleaseContext(world.context));
	EQUAL(fake.livequeues, 0);
	EQUAL(fake.liveevents, 0);
}

/* The same work on parts of slabs. */
static void core_fails_with_parts_at(int call)
{
	setenv("FAKE_CORE_SLAB", "16384", 1);
	fake.countparts = fake.fragile = 1;
	core_fails_at(call);
}

#define CORE_FAILS_AT(n)                                                                                               \
	TEST(core_fails_at_call_##n)                                                                                   \
	{                                                                                                              \
		core_fails_at(n);                                                                                      \
	}                                                                                                              \
	TEST(core_fails_with_parts_at_call_##n)                                                                        \
	{                                                                                                              \
		core_fails_with_parts_at(n);                                                                           \
	}
#define CORE_FAILS_AT_TEN(n)                                                                                           \
	CORE_FAILS_AT(n##0) CORE_FAILS_AT(n##1) CORE_FAILS_AT(n##2) CORE_FAILS_AT(n##3) CORE_FAILS_AT(n##4)            \
	CORE_FAILS_AT(n##5) CORE_FAILS_AT(n##6) CORE_FAILS_AT(n##7) CORE_FAILS_AT(n##8) CORE_FAILS_AT(n##9)
CORE_FAILS_AT(1)
CORE_FAILS_AT(2)
CORE_FAILS_AT(3)
CORE_FAILS_AT(4)
CORE_FAILS_AT(5)
CORE_FAILS_AT(6)
CORE_FAILS_AT(7)
CORE_FAILS_AT(8)
CORE_FAILS_AT(9)
CORE_FAILS_AT_TEN(1)
CORE_FAILS_AT_TEN(2)
CORE_FAILS_AT_TEN(3)
CORE_FAILS_AT_TEN(4)
CORE_FAILS_AT_TEN(5)
CORE_FAILS_AT_TEN(6)
CORE_FAILS_AT_TEN(7)
CORE_FAILS_AT_TEN(8)

TEST(core_does_not_start)
{
	setenv("FAKE_CORE_START_FAILS", "1", 1);
	begin((struct options){0});
	EQUAL(diags(GMT_DIAG_TRANSPARENT), 1);
	work();
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 0);
	end_clean();
}

/* With --eager the create fails that the driver has no room for; without, the first command that uses it. */
static void lacks_room(bool eager)
{
	begin((struct options){.eager = eager});
	cl_mem first = new_buffer(4096);
	fake.lazycap = 8192;
	cl_int err = 1;
	lazy = clCreateBuffer(world.context, 0, 8192, NULL, &err);
	EQUAL(err, eager ? CL_OUT_OF_RESOURCES : CL_SUCCESS);
	EQUAL(last_event(GMT_KIND_CREATE).outcome, eager ? GMT_OUTCOME_FAILED : GMT_OUTCOME_MISS);
	EQUAL(fake.livebytes, eager ? 4096 : 4096 + 8192);
	if (!eager) {
		EQUAL(do_fill(), CL_OUT_OF_RESOURCES);
		OK(clReleaseMemObject(lazy));
	}
	OK(clReleaseMemObject(first));
	EQUAL(diags(GMT_DIAG_EAGER), eager);
	end_clean();
}

TEST(a_create_that_is_eager_fails_in_the_command_s_place)
{
	lacks_room(true);
}

TEST(a_create_that_is_not_eager_succeeds_without_room)
{
	lacks_room(false);
}

TEST(a_create_that_is_eager_gets_blocks_back)
{
	begin((struct options){.eager = true});
	cl_mem old = new_buffer(4096);
	OK(clReleaseMemObject(old));
	fake.lazycap = 8192;
	cl_mem large = new_buffer(8192);
	EQUAL(events(GMT_KIND_EVICT), 1);
	EQUAL(fake.livebytes, 8192);
	OK(clReleaseMemObject(large));
	end_clean();
}

/* The process grows by what a driver gives to a buffer of the trial. */
static void takes_room(void)
{
	CHECK(mmap(NULL, 64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED);
}

static void takes_room_at_once(size_t failed)
{
	EQUAL(failed, 0);
	takes_room();
}

/* A create in a new context takes that many buffers and commands, the trial's included; the last text says what was found. */
static void eager_create(uint64_t creates, uint64_t commands, const char *found)
{
	cl_int err = 1;
	cl_context context = new_context();
	fake.creates = fake.commands = fake.releases = 0;
	cl_mem buffer = clCreateBuffer(context, 0, 100, NULL, &err);
	OK(err);
	EQUAL(fake.creates, creates);
	EQUAL(fake.commands, commands);
	EQUAL(fake.releases, creates - 1);
	OK(clReleaseMemObject(clCreateBuffer(context, 0, 100, NULL, NULL)));
	EQUAL(fake.creates, creates + 1); /* it is tried once */
	CHECK(strncmp(last_text(GMT_KIND_DIAG), found, strlen(found)) == 0);
	fake.aftercreate = NULL;
	OK(clReleaseMemObject(buffer));
	OK(clReleaseContext(context));
}

TEST(what_a_migration_does_is_found_out)
{
	struct rlimit files;
	fake.processor = 1; /* whose memory is the process's */
	begin((struct options){.eager = true, .observe = true});
	fake.aftersubmit = takes_room;
	eager_create(1 + 1, 1 + 1, "");
	EQUAL(diags(GMT_DIAG_EAGER), 0);
	fake.aftercreate = takes_room_at_once;
	eager_create(1 + 1, 1, "there is nothing to do");
	eager_create(1 + 2, 2, "refused: on this driver a migration");
	fake.cap = 200;
	eager_create(1, 1, "each buffer is migrated");
	fake.cap = 0;
	fake.largest = (64 << 20) - 1;
	eager_create(1, 1, "each buffer is migrated");
	fake.largest = 64 << 20;
	EQUAL(getrlimit(RLIMIT_NOFILE, &files), 0);
	EQUAL(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, files.rlim_max}), 0);
	eager_create(1, 1, "each buffer is migrated"); /* how large the process is cannot be seen */
	EQUAL(setrlimit(RLIMIT_NOFILE, &files), 0);
	fake.version = "OpenCL 1.1 fake";
	eager_create(1, 0, "refused: migrations came with OpenCL 1.2");
	EQUAL(diags(GMT_DIAG_EAGER), 4);
	end_clean();
}

TEST(an_eager_create_without_a_pool)
{
	begin((struct options){.eager = true, .observe = true});
	fake.lazycap = 4096;
	cl_int err = 1;
	CHECK(!clCreateBuffer(world.context, CL_MEM_COPY_HOST_PTR, 8192, (unsigned char[8192]){1}, &err));
	EQUAL(err, CL_OUT_OF_RESOURCES);
	cl_mem small = clCreateBuffer(world.context, CL_MEM_COPY_HOST_PTR, 4096, (unsigned char[4096]){7}, &err);
	OK(err);
	EQUAL(*fake_contents(small), 7);
	OK(clReleaseMemObject(small));
	EQUAL(fake.livebytes, 0);
	end_clean();
}

/* With or without a place for the status. */
TEST(calls_that_fail_are_reported)
{
	cl_program program;
	cl_event gone = NULL;
	cl_int err;
	begin((struct options){.observe = true, .tagmode = GMT_TAGS_CALLER});
	CHECK(!clCreateKernel(NULL, "k", NULL));
	last_call_failed("clCreateKernel", CL_INVALID_PROGRAM);
	CHECK(!clCreateCommandQueue(NULL, fake_device(), 0, &err));
	last_call_failed("clCreateCommandQueue", err);
	CHECK(!clCreateProgramWithSource(NULL, 0, NULL, NULL, &err));
	last_call_failed("clCreateProgramWithSource", CL_INVALID_CONTEXT);
	program = fake_program();
	EQUAL(clBuildProgram(program, 0, NULL, "broken", NULL, NULL), CL_BUILD_PROGRAM_FAILURE);
	last_call_failed("clBuildProgram", CL_BUILD_PROGRAM_FAILURE);
	EQUAL(clCompileProgram(NULL, 0, NULL, "", 0, NULL, NULL, NULL, NULL), CL_INVALID_PROGRAM);
	last_call_failed("clCompileProgram", CL_INVALID_PROGRAM);
	EQUAL(clEnqueueFillBuffer(world.queue, NULL, "x", 1, 0, 16, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
	last_call_failed("clEnqueueFillBuffer", CL_INVALID_MEM_OBJECT);
	EQUAL(clWaitForEvents(1, &gone), CL_INVALID_EVENT);
	last_call_failed("clWaitForEvents", CL_INVALID_EVENT);
	EQUAL(clFinish(NULL), CL_INVALID_COMMAND_QUEUE);
	last_call_failed("clFinish", CL_INVALID_COMMAND_QUEUE);
	EQUAL(clReleaseKernel(NULL), CL_INVALID_KERNEL);
	last_call_failed("clReleaseKernel", CL_INVALID_KERNEL);
	EQUAL(clReleaseProgram(NULL), CL_INVALID_PROGRAM);
	last_call_failed("clReleaseProgram", CL_INVALID_PROGRAM);
	EQUAL(clReleaseSampler(NULL), CL_INVALID_SAMPLER);
	last_call_failed("clReleaseSampler", CL_INVALID_SAMPLER);
	EQUAL(clReleaseCommandQueue(NULL), CL_INVALID_COMMAND_QUEUE);
	last_call_failed("clReleaseCommandQueue", CL_INVALID_COMMAND_QUEUE);
	EQUAL(clReleaseContext(NULL), CL_INVALID_CONTEXT);
	last_call_failed("clReleaseContext", CL_INVALID_CONTEXT);
	EQUAL(diags(GMT_DIAG_CALL_FAILED), 13);
	EQUAL(clReleaseMemObject(new_buffer(64)), CL_SUCCESS);
	EQUAL(diags(GMT_DIAG_CALL_FAILED), 13);
	end_clean();
}

static void CL_CALLBACK calls(cl_program program, void *data)
{
	OK(clRetainProgram(program)); /* the program makes this call */
	++*(int *)data;
}

TEST(builds_call_back)
{
	int called = 0;
	begin((struct options){.tagmode = GMT_TAGS_CALLER});
	cl_program program = fake_program();
	OK(clBuildProgram(program, 0, NULL, "", calls, &called));
	OK(clCompileProgram(program, 0, NULL, "", 0, NULL, NULL, calls, &called));
	EQUAL(called, 2);
	EQUAL(diags(GMT_DIAG_CALL_FAILED), 0);
	OK(clBuildProgram(program, 0, NULL, "later", calls, &called));
	last_call_failed("clBuildProgram", CL_BUILD_PROGRAM_FAILURE);
	OK(clCompileProgram(program, 0, NULL, "later", 0, NULL, NULL, calls, &called));
	last_call_failed("clCompileProgram", CL_COMPILE_PROGRAM_FAILURE);
	EQUAL(clBuildProgram(program, 0, NULL, "later, too", calls, &called), CL_BUILD_PROGRAM_FAILURE);
	EQUAL(called, 5);
	EQUAL(diags(GMT_DIAG_CALL_FAILED), 3);
	end_clean();
}
