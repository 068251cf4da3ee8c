/* test_spill.c: --spill: more memory than the device has, and handles that are ours. */
#define _GNU_SOURCE
#include "harness.h"

#include <pthread.h>
#include <string.h>

enum { BYTES = 400, CARD = 1000 };

static void begin_spill(void)
{
	begin((struct options){.devicememory = CARD, .spill = true});
	fake.eager = 1;
	fake.creates = fake.releases = fake.commands = 0;
}

static cl_mem make(cl_mem_flags flags, void *host)
{
	cl_int err = 1;
	cl_mem buffer = clCreateBuffer(world.context, flags, BYTES, host, &err);
	OK(err);
	return buffer;
}

static void write_all(cl_command_queue queue, cl_mem buffer, char value)
{
	char bytes[BYTES];
	memset(bytes, value, sizeof bytes);
	OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof bytes, bytes, 0, NULL, NULL));
}

static void check_all(cl_command_queue queue, cl_mem buffer, char value)
{
	char bytes[BYTES], want[BYTES];
	memset(bytes, 0, sizeof bytes);
	memset(want, value, sizeof want);
	OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof bytes, bytes, 0, NULL, NULL));
	CHECK(memcmp(bytes, want, sizeof bytes) == 0);
}

TEST(spill_creates_cost_nothing_until_the_first_use)
{
	begin_spill();
	cl_mem list[10];
	list[0] = make(CL_MEM_READ_WRITE, NULL);
	for (int i = 1; i < 10; i++)
		list[i] = make(CL_MEM_READ_WRITE, NULL);
	EQUAL(fake.livebytes, 0);
	EQUAL(fake.creates, 1); /* which asked the driver about the flags */
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_FAILED), 0);
	EQUAL(events(GMT_KIND_CREATE), 10);
	use(world.queue, list[3]);
	EQUAL(fake.livebytes, BYTES);
	for (int i = 0; i < 10; i++)
		OK(clReleaseMemObject(list[i]));
	EQUAL(events(GMT_KIND_RELEASE), 10);
	end_clean();
}

TEST(spill_contents_go_and_come_back)
{
	begin_spill();
	cl_mem list[6];
	for (int i = 0; i < 6; i++) {
		list[i] = make(CL_MEM_READ_WRITE, NULL);
		write_all(world.queue, list[i], (char)('a' + i));
		CHECK(fake.livebytes <= CARD);
	}
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 6; i++) {
			check_all(world.queue, list[i], (char)('a' + i + round));
			write_all(world.queue, list[i], (char)('a' + i + round + 1));
			CHECK(fake.livebytes <= CARD);
		}
	for (int i = 0; i < 6; i++)
		OK(clReleaseMemObject(list[i]));
	end_clean();
}

TEST(spill_does_not_save_what_the_host_still_has)
{
	static char from[BYTES] = "x";
	begin_spill();
	cl_mem list[4];
	for (int i = 0; i < 4; i++)
		list[i] = make(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, from);
	char bytes[BYTES];
	uint64_t rounds = 0;
	for (int round = 0; round < 4; round++) {
		rounds += round > 1;
		uint64_t before = fake.commands;
		for (int i = 0; i < 4; i++) {
			OK(clEnqueueReadBuffer(world.queue, list[i], CL_TRUE, 0, BYTES, bytes, 0, NULL, NULL));
			EQUAL(memcmp(bytes, from, BYTES), 0);
		}
		if (round > 1) /* every one has been saved once */
			CHECK(fake.commands - before <= 4 + fake.markers);
	}
	EQUAL(rounds, 2);
	for (int i = 0; i < 4; i++)
		OK(clReleaseMemObject(list[i]));
	end_clean();
}

TEST(spill_leaves_what_waits_for_a_user_event)
{
	begin_spill();
	cl_int err;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	write_all(world.queue, a, 'a');
	write_all(world.queue, b, 'b');
	cl_command_queue other = new_queue(world.context, 0);
	cl_event gate = clCreateUserEvent(world.context, &err);
	OK(err);
	cl_event one = fill(world.queue, a, 1, &gate), two = fill(world.queue, b, 1, &gate);
	EQUAL(clEnqueueFillBuffer(other, c, "x", 1, 0, 16, 0, NULL, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	CHECK(strstr(first_text(GMT_KIND_DIAG), "at once"));
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	write_all(other, c, 'c');
	check_all(other, c, 'c');
	char bytes[BYTES];
	OK(clEnqueueReadBuffer(other, a, CL_TRUE, 0, BYTES, bytes, 0, NULL, NULL));
	EQUAL(bytes[0], 'x');
	EQUAL(bytes[16], 'a');
	OK(clReleaseEvent(one));
	OK(clReleaseEvent(two));
	OK(clReleaseEvent(gate));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	OK(clReleaseCommandQueue(other));
	end_clean();
}

TEST(spill_leaves_what_is_mapped)
{
	begin_spill();
	cl_int err;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	write_all(world.queue, a, 'a');
	char *mapped = clEnqueueMapBuffer(world.queue, a, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, BYTES, 0, NULL, NULL, &err);
	OK(err);
	write_all(world.queue, b, 'b');
	write_all(world.queue, c, 'c');
	check_all(world.queue, b, 'b');
	EQUAL(mapped[7], 'a');
	cl_uint maps = 0;
	OK(clGetMemObjectInfo(a, CL_MEM_MAP_COUNT, sizeof maps, &maps, NULL));
	EQUAL(maps, 1);
	mapped[7] = 'm';
	OK(clReleaseMemObject(a)); /* while it is mapped */
	OK(clEnqueueUnmapMemObject(world.queue, a, mapped, 0, NULL, NULL));
	OK(clFinish(world.queue));
	EQUAL(clRetainMemObject(a), CL_INVALID_MEM_OBJECT);
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	end_clean();
}

TEST(spill_moves_a_buffer_with_its_parts)
{
	begin_spill();
	fake.alignbits = 64;
	cl_int err;
	cl_mem whole = make(CL_MEM_READ_WRITE, NULL), other = make(CL_MEM_READ_WRITE, NULL), third = make(CL_MEM_READ_WRITE, NULL);
	cl_buffer_region region = {80, 40}, beyond = {BYTES - 8, 16};
	cl_mem part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	OK(err);
	CHECK(!clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &beyond, &err));
	EQUAL(err, CL_INVALID_VALUE);
	write_all(world.queue, whole, 'w');
	OK(clEnqueueFillBuffer(world.queue, part, "p", 1, 0, 40, 0, NULL, NULL));
	write_all(world.queue, other, 'o');
	write_all(world.queue, third, 't'); /* whole has gone */
	char bytes[BYTES];
	OK(clEnqueueReadBuffer(world.queue, part, CL_TRUE, 8, 8, bytes, 0, NULL, NULL));
	EQUAL(bytes[0], 'p');
	OK(clEnqueueReadBuffer(world.queue, whole, CL_TRUE, 0, BYTES, bytes, 0, NULL, NULL));
	EQUAL(bytes[79], 'w');
	EQUAL(bytes[80], 'p');
	EQUAL(bytes[120], 'w');
	cl_mem parent = NULL;
	size_t offset = 0;
	OK(clReleaseMemObject(whole));
	OK(clGetMemObjectInfo(part, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL));
	OK(clGetMemObjectInfo(part, CL_MEM_OFFSET, sizeof offset, &offset, NULL));
	CHECK(parent == whole);
	EQUAL(offset, 80);
	OK(clReleaseMemObject(part));
	OK(clReleaseMemObject(other));
	OK(clReleaseMemObject(third));
	end_clean();
}

static char order[8];
static void CL_CALLBACK note(cl_mem buffer, void *data)
{
	(void)buffer;
	strcat(order, data);
}

TEST(spill_counts_references_and_calls_back_once)
{
	begin_spill();
	static char first[] = "1", second[] = "2", third[] = "3";
	cl_mem used = make(CL_MEM_READ_WRITE, NULL), unused = make(CL_MEM_READ_WRITE, NULL);
	OK(clSetMemObjectDestructorCallback(used, note, first));
	OK(clSetMemObjectDestructorCallback(used, note, second));
	OK(clSetMemObjectDestructorCallback(unused, note, third));
	write_all(world.queue, used, 'u');
	OK(clRetainMemObject(used));
	cl_uint references = 0;
	OK(clGetMemObjectInfo(used, CL_MEM_REFERENCE_COUNT, sizeof references, &references, NULL));
	EQUAL(references, 2);
	OK(clReleaseMemObject(used));
	CHECK(strcmp(order, "") == 0);
	OK(clReleaseMemObject(unused));
	CHECK(strcmp(order, "3") == 0);
	OK(clReleaseMemObject(used));
	fake_complete_all();
	CHECK(strcmp(order, "321") == 0);
	EQUAL(clReleaseMemObject(used), CL_INVALID_MEM_OBJECT);
	end_clean();
}

TEST(spill_sets_arguments_again_when_objects_have_moved)
{
	begin_spill();
	cl_int err;
	cl_kernel kernel = clCreateKernel(fake_program(), "kernel", &err);
	OK(err);
	cl_mem list[4];
	for (int i = 0; i < 4; i++) {
		list[i] = make(CL_MEM_READ_WRITE, NULL);
		write_all(world.queue, list[i], (char)('a' + i));
	}
	size_t items = 1;
	for (int round = 0; round < 8; round++) {
		OK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &list[round % 4]));
		OK(clSetKernelArg(kernel, 1, sizeof(cl_mem), &list[(round + 1) % 4]));
		OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
		write_all(world.queue, list[(round + 2) % 4], (char)('a' + (round + 2) % 4));
		OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
	}
	uint64_t sets = fake.setargs;
	OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
	EQUAL(fake.setargs, sets);
	OK(clSetKernelArg(kernel, 2, sizeof(cl_mem), &list[0]));
	OK(clSetKernelArg(kernel, 2, sizeof(cl_mem), &list[3]));
	EQUAL(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL), CL_SUCCESS);
	for (int i = 0; i < 4; i++) {
		check_all(world.queue, list[i], (char)('a' + i));
		OK(clReleaseMemObject(list[i]));
	}
	EQUAL(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL), CL_INVALID_KERNEL_ARGS);
	EQUAL(clSetKernelArg(kernel, 0, sizeof(cl_mem), &list[0]), CL_INVALID_MEM_OBJECT);
	EQUAL(clSetKernelArg(kernel, 9, sizeof(cl_mem), &(cl_mem){NULL}), CL_INVALID_ARG_INDEX);
	OK(clReleaseKernel(kernel));
	end_clean();
}

TEST(spill_says_when_one_command_needs_too_much)
{
	begin_spill();
	cl_int err;
	cl_kernel kernel = clCreateKernel(fake_program(), "kernel", &err);
	cl_mem list[3];
	for (cl_uint i = 0; i < 3; i++) {
		list[i] = make(CL_MEM_READ_WRITE, NULL);
		OK(clSetKernelArg(kernel, i, sizeof(cl_mem), &list[i]));
	}
	size_t items = 1;
	EQUAL(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	CHECK(strstr(first_text(GMT_KIND_DIAG), "clEnqueueNDRangeKernel of kernel needs"));
	OK(clReleaseKernel(kernel));
	for (int i = 0; i < 3; i++) {
		write_all(world.queue, list[i], 'z'); /* the others go on */
		OK(clReleaseMemObject(list[i]));
	}
	end_clean();
}

TEST(spill_copies_from_the_host_what_does_not_fit_beside_its_target)
{
	begin_spill();
	cl_int err;
	cl_mem small = make(CL_MEM_READ_WRITE, NULL);
	cl_mem large = clCreateBuffer(world.context, CL_MEM_READ_WRITE, CARD - 100, NULL, &err);
	OK(err);
	write_all(world.queue, small, 's');
	OK(clEnqueueFillBuffer(world.queue, large, "l", 1, 0, CARD - 100, 0, NULL, NULL));
	cl_event event = NULL;
	EQUAL(clEnqueueCopyBuffer(world.queue, small, large, 0, 8, BYTES, 0, NULL, &event), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	OK(clEnqueueCopyBuffer(world.queue, small, large, 0, 8, BYTES, 0, NULL, NULL));
	char bytes[CARD - 100];
	OK(clEnqueueReadBuffer(world.queue, large, CL_TRUE, 0, sizeof bytes, bytes, 0, NULL, NULL));
	EQUAL(bytes[7], 'l');
	EQUAL(bytes[8], 's');
	EQUAL(bytes[7 + BYTES], 's');
	EQUAL(bytes[8 + BYTES], 'l');
	OK(clReleaseMemObject(small));
	OK(clReleaseMemObject(large));
	end_clean();
}

static cl_int create_error(cl_mem_flags flags, size_t size, void *host)
{
	cl_int err = 1;
	cl_mem buffer = clCreateBuffer(world.context, flags, size, host, &err);
	EQUAL(buffer != NULL, err == CL_SUCCESS);
	if (buffer)
		OK(clReleaseMemObject(buffer));
	return err;
}

TEST(spill_refuses_what_the_driver_refuses)
{
	static char host[64];
	begin_spill();
	EQUAL(create_error(0, 0, NULL), CL_INVALID_BUFFER_SIZE);
	EQUAL(create_error(0, CARD + 1, NULL), CL_INVALID_BUFFER_SIZE);
	EQUAL(create_error(CL_MEM_COPY_HOST_PTR, 64, NULL), CL_INVALID_HOST_PTR);
	EQUAL(create_error(CL_MEM_READ_WRITE, 64, host), CL_INVALID_HOST_PTR);
	OK(create_error(CL_MEM_READ_WRITE, 64, NULL));
	EQUAL(create_error(CL_MEM_READ_WRITE, 64, host), CL_INVALID_HOST_PTR);
	cl_int err = 1;
	CHECK(!clCreateBuffer(NULL, 0, 64, NULL, &err));
	EQUAL(err, CL_INVALID_CONTEXT);
	cl_mem buffer = make(0, NULL);
	EQUAL(clGetPipeInfo(buffer, CL_PIPE_MAX_PACKETS, sizeof err, &err, NULL), CL_INVALID_MEM_OBJECT);
	EQUAL(clGetGLObjectInfo(buffer, NULL, NULL), CL_INVALID_GL_OBJECT);
	EQUAL(clGetGLTextureInfo(buffer, CL_GL_MIPMAP_LEVEL, sizeof err, &err, NULL), CL_INVALID_GL_OBJECT);
	OK(clReleaseMemObject(buffer));
	CHECK(!clGetExtensionFunctionAddress("clCommandCopyBufferKHR"));
	CHECK(!clGetExtensionFunctionAddress("clCreateCommandBufferKHR"));
	end_clean();
}

TEST(spill_tries_a_command_again_that_found_no_memory)
{
	begin((struct options){.spill = true});
	fake.eager = 1;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL);
	write_all(world.queue, a, 'a');
	fake.failenqueues = 1;
	fake.enqueueerror = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	write_all(world.queue, b, 'b'); /* instead of the idle one */
	EQUAL(fake.livebytes, BYTES);
	fake.cap = 600;
	check_all(world.queue, a, 'a');
	check_all(world.queue, b, 'b');
	check_all(world.queue, a, 'a');
	CHECK(fake.livebytes <= 600);
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	end_clean();
}

enum { THREADS = 4, EACH = 4, ROUNDS = 200 };

static void *work(void *arg)
{
	cl_command_queue queue = new_queue(world.context, 0);
	cl_mem list[EACH];
	char id = (char)(16 * (intptr_t)arg);
	for (int i = 0; i < EACH; i++) {
		list[i] = make(CL_MEM_READ_WRITE, NULL);
		write_all(queue, list[i], (char)(id + i));
	}
	for (int round = 0; round < ROUNDS; round++) {
		int i = round * 7 % EACH;
		check_all(queue, list[i], (char)(id + i));
		if (round % 5 == 0) {
			OK(clReleaseMemObject(list[i]));
			list[i] = make(CL_MEM_READ_WRITE, NULL);
		}
		write_all(queue, list[i], (char)(id + i));
	}
	for (int i = 0; i < EACH; i++)
		OK(clReleaseMemObject(list[i]));
	OK(clReleaseCommandQueue(queue));
	return NULL;
}

TEST(spill_serves_threads_that_need_more_together)
{
	begin((struct options){.devicememory = 5 * BYTES, .spill = true, .waitms = 5000});
	fake.eager = 1;
	session_start();
	pthread_t threads[THREADS];
	for (intptr_t i = 0; i < THREADS; i++)
		EQUAL(pthread_create(&threads[i], NULL, work, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	session_stop();
	end_clean();
}

static cl_mem_flags flags_of(cl_mem memory)
{
	cl_mem_flags flags = 0;
	OK(clGetMemObjectInfo(memory, CL_MEM_FLAGS, sizeof flags, &flags, NULL));
	return flags;
}

/* Like PoCL 3.1, the driver makes 0 CL_MEM_READ_WRITE, but not CL_MEM_COPY_HOST_PTR alone, with which contents come back. */
TEST(spill_keeps_the_access_that_a_driver_gives)
{
	begin_spill();
	fake.givesaccess = 1;
	cl_int err;
	cl_buffer_region region = {64, 16};
	cl_mem a = make(0, NULL), b = make(0, NULL), c = make(0, NULL);
	write_all(world.queue, a, 'a');
	write_all(world.queue, b, 'b');
	write_all(world.queue, c, 'c');
	check_all(world.queue, a, 'a');
	cl_mem part = clCreateSubBuffer(a, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	OK(err);
	EQUAL(flags_of(a), CL_MEM_READ_WRITE);
	EQUAL(flags_of(part), CL_MEM_READ_WRITE);
	OK(clReleaseMemObject(part));
	cl_mem copy = make(CL_MEM_COPY_HOST_PTR, (char[BYTES]){0});
	part = clCreateSubBuffer(copy, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	OK(err);
	EQUAL(flags_of(part), CL_MEM_COPY_HOST_PTR);
	OK(clReleaseMemObject(part));
	OK(clReleaseMemObject(copy));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	end_clean();
}

static cl_int wrong_rect(cl_mem buffer, char *host)
{
	const size_t origin[3] = {BYTES - 2, 0, 0}, zero[3] = {0}, region[3] = {4, 1, 1};
	return clEnqueueReadBufferRect(world.queue, buffer, CL_TRUE, origin, zero, region, 0, 0, 0, 0, host, 0, NULL, NULL);
}

/* Even where there is no room for the buffer, and none can be had. */
TEST(spill_leaves_wrong_calls_their_errors)
{
	static char host[BYTES];
	begin_spill();
	cl_int err;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	cl_mem shut = make(CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS, NULL);
	cl_event gate = clCreateUserEvent(world.context, &err);
	OK(err);
	cl_event one = fill(world.queue, a, 1, &gate), two = fill(world.queue, b, 1, &gate);
	EQUAL(clEnqueueReadBuffer(world.queue, c, CL_TRUE, BYTES - 1, 2, host, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueWriteBuffer(world.queue, c, CL_TRUE, BYTES + 1, 1, host, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueWriteBuffer(world.queue, c, CL_TRUE, 0, 1, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueFillBuffer(world.queue, c, "xyz", 3, 0, 3, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueFillBuffer(world.queue, c, "x", 1, SIZE_MAX, 2, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueCopyBuffer(world.queue, c, c, BYTES, 0, 1, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clEnqueueReadBuffer(world.queue, shut, CL_TRUE, 0, 1, host, 0, NULL, NULL), CL_INVALID_OPERATION);
	EQUAL(clEnqueueReadBuffer(NULL, c, CL_TRUE, 0, 1, host, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
	EQUAL(clEnqueueReadBuffer(world.queue, c, CL_TRUE, 0, 1, host, 1, NULL, NULL), CL_INVALID_EVENT_WAIT_LIST);
	EQUAL(clEnqueueUnmapMemObject(world.queue, c, host, 0, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(wrong_rect(c, host), CL_INVALID_VALUE);
	clEnqueueMapBuffer(world.queue, c, CL_TRUE, CL_MAP_READ, BYTES, 1, 0, NULL, NULL, &err);
	EQUAL(err, CL_INVALID_VALUE);
	EQUAL(events(GMT_KIND_DIAG), 0);
	EQUAL(clEnqueueReadBuffer(world.queue, c, CL_TRUE, 0, 1, host, 0, NULL, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	EQUAL(fake.livebytes, (uint64_t)2 * BYTES);
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	OK(clReleaseEvent(one));
	OK(clReleaseEvent(two));
	OK(clReleaseEvent(gate));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	OK(clReleaseMemObject(shut));
	end_clean();
}

static cl_int sub_error(cl_mem parent, cl_mem_flags flags, size_t origin, size_t size)
{
	cl_int err = 1;
	cl_buffer_region region = {origin, size};
	cl_mem part = clCreateSubBuffer(parent, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	if (part)
		OK(clReleaseMemObject(part));
	return err;
}

TEST(spill_judges_sub_buffers_of_what_is_not_there)
{
	begin_spill();
	cl_mem a = make(CL_MEM_READ_WRITE, NULL);
	OK(sub_error(a, CL_MEM_HOST_NO_ACCESS, 64, 16));
	EQUAL(sub_error(a, 0, 1, 16), CL_MISALIGNED_SUB_BUFFER_OFFSET);
	EQUAL(sub_error(a, CL_MEM_COPY_HOST_PTR, 64, 16), CL_INVALID_VALUE);
	EQUAL(sub_error(a, 0, 64, 0), CL_INVALID_BUFFER_SIZE);
	EQUAL(fake.livebytes, 0);
	EQUAL(sub_error(a, 0, 64, BYTES), CL_INVALID_VALUE);
	OK(clReleaseMemObject(a));
	end_clean();
}

/* The marker that would show that the fills have completed stands behind a command that is not one on a buffer. */
TEST(spill_does_not_wait_behind_what_the_program_holds_back)
{
	begin_spill();
	cl_int err;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	write_all(world.queue, a, 'a');
	write_all(world.queue, b, 'b');
	cl_command_queue other = new_queue(world.context, 0);
	cl_event gate = clCreateUserEvent(world.context, &err), held = NULL;
	OK(err);
	OK(clEnqueueMarkerWithWaitList(world.queue, 1, &gate, &held));
	EQUAL(clEnqueueFillBuffer(other, c, "x", 1, 0, 16, 0, NULL, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	write_all(other, c, 'c');
	check_all(other, a, 'a');
	OK(clReleaseEvent(held));
	OK(clReleaseEvent(gate));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	OK(clReleaseCommandQueue(other));
	end_clean();
}

TEST(spill_images_show_the_flags_that_the_program_gave)
{
	begin_spill();
	fake.givesaccess = 1;
	cl_int err;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	write_all(world.queue, a, 'a');
	write_all(world.queue, b, 'b');
	write_all(world.queue, c, 'c');
	check_all(world.queue, a, 'a'); /* the driver made it again, with its contents */
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = BYTES / 4, .buffer = a};
	cl_mem image = clCreateImage(world.context, 0, &format, &desc, NULL, &err);
	OK(err);
	EQUAL(flags_of(image), CL_MEM_READ_WRITE);
	OK(clReleaseMemObject(image));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	end_clean();
}

/* What comes later in such a queue may overtake what still runs, so only the end of the queue counts. */
TEST(spill_trusts_no_marker_behind_a_failure)
{
	begin_spill();
	fake.eager = 0;
	cl_int err;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	char bytes[BYTES];
	memset(bytes, 'a', sizeof bytes);
	OK(clEnqueueWriteBuffer(world.queue, a, CL_FALSE, 0, BYTES, bytes, 0, NULL, NULL));
	cl_command_queue other = new_queue(world.context, 0), loose = new_queue(world.context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_event gate = clCreateUserEvent(world.context, &err);
	OK(err);
	cl_event one = fill(world.queue, b, 1, &gate), two = fill(loose, b, 1, &gate);
	uint64_t markers = fake.markers;
	OK(clSetUserEventStatus(gate, -1));
	EQUAL(fake.markers, markers + 1); /* in the queue that keeps the order */
	for (int i = 0; i < 3; i++)
		EQUAL(clEnqueueFillBuffer(other, c, "x", 1, 0, 16, 0, NULL, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	OK(clFinish(world.queue));
	OK(clFinish(loose));
	write_all(other, c, 'c');
	check_all(other, a, 'a');
	OK(clReleaseEvent(one));
	OK(clReleaseEvent(two));
	OK(clReleaseEvent(gate));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	OK(clReleaseCommandQueue(other));
	OK(clReleaseCommandQueue(loose));
	end_clean();
}
