/* test_transfer.c: what TRANSFER events add to the USE events of commands that move memory. */
#define _GNU_SOURCE
#include "harness.h"

#include <sys/mman.h>

enum { LARGE = 1 << 20, PAGE = 4096 };

/* The last two events of all are a TRANSFER and its USE. */
static struct gmtevent transfer(enum gmtcommand op)
{
	struct gmtevent more = event_before(1), use = event_before(0);
	EQUAL(more.kind, GMT_KIND_TRANSFER);
	EQUAL(use.kind, GMT_KIND_USE);
	EQUAL(use.op, op);
	EQUAL(more.time, use.time);
	CHECK(more.tag && more.tag != use.tag);
	return more;
}

static struct gmtevent write_all(cl_mem buffer, cl_bool blocking, const char *host)
{
	OK(clEnqueueWriteBuffer(world.queue, buffer, blocking, 0, LARGE, host, 0, NULL, NULL));
	return transfer(GMT_COMMAND_WRITE);
}

static char *new_pages(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	return pages;
}

#define CALLERS ((struct options){.tagmode = GMT_TAGS_CALLER, .transfers = GMT_TRANSFERS_SAMPLED})

TEST(transfers_have_the_site_of_their_call_whatever_the_command)
{
	begin(CALLERS);
	cl_mem buffer = new_buffer(4096);
	char host[64] = "";
	const size_t zero[3] = {0}, row[3] = {16, 1, 1};
	OK(clEnqueueWriteBuffer(world.queue, buffer, CL_FALSE, 0, 64, host, 0, NULL, NULL));
	struct gmtevent first = transfer(GMT_COMMAND_WRITE);
	EQUAL(first.flags, GMT_FLAG_PAGEABLE);
	EQUAL(first.size, 0);
	EQUAL(event_before(0).cost, 0);
	OK(clEnqueueReadBuffer(world.queue, buffer, CL_TRUE, 0, 64, host, 0, NULL, NULL));
	CHECK(transfer(GMT_COMMAND_READ).tag != first.tag);
	CHECK(event_before(0).cost > 0);
	OK(clEnqueueWriteBufferRect(world.queue, buffer, CL_TRUE, zero, zero, row, 0, 0, 0, 0, host, 0, NULL, NULL));
	EQUAL(transfer(GMT_COMMAND_WRITE).flags, GMT_FLAG_PAGEABLE);
	CHECK(event_before(0).cost > 0);
	OK(clEnqueueFillBuffer(world.queue, buffer, "z", 1, 0, 64, 0, NULL, NULL));
	EQUAL(transfer(GMT_COMMAND_FILL).flags, 0);
	OK(clEnqueueMigrateMemObjects(world.queue, 1, &buffer, 0, 0, NULL, NULL));
	EQUAL(transfer(GMT_COMMAND_MIGRATE).flags, 0);
	cl_int err;
	void *pointer = clEnqueueMapBuffer(world.queue, buffer, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &err);
	OK(err);
	transfer(GMT_COMMAND_MAP);
	CHECK(event_before(0).cost > 0);
	OK(clEnqueueUnmapMemObject(world.queue, buffer, pointer, 0, NULL, NULL));
	transfer(GMT_COMMAND_UNMAP);
	size_t before = events(GMT_KIND_TRANSFER);
	CHECK(clEnqueueWriteBuffer(world.queue, buffer, CL_TRUE, 4000, 1000, host, 0, NULL, NULL) != CL_SUCCESS);
	EQUAL(events(GMT_KIND_TRANSFER), before);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(equal_bytes_have_equal_hashes)
{
	begin(CALLERS);
	cl_mem buffer = new_buffer(LARGE);
	char *host = new_pages(LARGE);
	memset(host, 1, LARGE);
	struct gmtevent first = write_all(buffer, CL_TRUE, host);
	EQUAL(first.size, 16 * 64);
	EQUAL(write_all(buffer, CL_TRUE, host).link, first.link);
	memset(host + LARGE / 2, 2, LARGE / 4);
	CHECK(write_all(buffer, CL_TRUE, host).link != first.link);
	EQUAL(write_all(buffer, CL_FALSE, host).size, 0); /* what it writes may not be there yet */
	OK(clEnqueueWriteBuffer(world.queue, buffer, CL_TRUE, 0, PAGE, host, 0, NULL, NULL));
	EQUAL(transfer(GMT_COMMAND_WRITE).size, 0);
	OK(clReleaseMemObject(buffer));
	munmap(host, LARGE);
	end_clean();
}

TEST(all_bytes_are_hashed_if_asked)
{
	begin((struct options){.tagmode = GMT_TAGS_CALLER, .transfers = GMT_TRANSFERS_HASHED});
	cl_mem buffer = new_buffer(LARGE);
	char *host = new_pages(LARGE);
	struct gmtevent first = write_all(buffer, CL_TRUE, host);
	EQUAL(first.size, LARGE);
	host[LARGE - 1] = 1;
	CHECK(write_all(buffer, CL_TRUE, host).link != first.link);
	host[LARGE - 1] = 0;
	EQUAL(write_all(buffer, CL_TRUE, host).link, first.link);
	for (size_t bytes = 1; bytes < 70; bytes++) {
		OK(clEnqueueWriteBuffer(world.queue, buffer, CL_TRUE, 0, bytes, host, 0, NULL, NULL));
		struct gmtevent whole = transfer(GMT_COMMAND_WRITE);
		EQUAL(whole.size, bytes);
		host[bytes - 1] = 1;
		OK(clEnqueueWriteBuffer(world.queue, buffer, CL_TRUE, 0, bytes, host, 0, NULL, NULL));
		CHECK(transfer(GMT_COMMAND_WRITE).link != whole.link);
		host[bytes - 1] = 0;
	}
	OK(clReleaseMemObject(buffer));
	munmap(host, LARGE);
	end_clean();
}

/* Before the call: afterwards its pages are there. */
TEST(reads_say_whether_the_pages_were_there)
{
	begin(CALLERS);
	enum { SIZE = 4 << 20 };
	cl_mem buffer = new_buffer(SIZE);
	char *host = new_pages(SIZE);
	OK(clEnqueueReadBuffer(world.queue, buffer, CL_TRUE, 0, SIZE, host, 0, NULL, NULL));
	struct gmtevent cold = transfer(GMT_COMMAND_READ);
	EQUAL(cold.duration, 16);
	EQUAL(cold.cost, 16);
	memset(host, 1, SIZE);
	OK(clEnqueueReadBuffer(world.queue, buffer, CL_TRUE, 0, SIZE, host, 0, NULL, NULL));
	struct gmtevent warm = transfer(GMT_COMMAND_READ);
	EQUAL(warm.duration, 16);
	EQUAL(warm.cost, 0);
	OK(clEnqueueReadBuffer(world.queue, buffer, CL_TRUE, 0, LARGE, host, 0, NULL, NULL));
	EQUAL(transfer(GMT_COMMAND_READ).duration, 0); /* not so soon again */
	OK(clReleaseMemObject(buffer));
	munmap(host, SIZE);
	end_clean();
}

TEST(mapped_memory_counts_as_pinned)
{
	begin(CALLERS);
	cl_mem staging = new_buffer(LARGE), target = new_buffer(LARGE);
	cl_int err;
	char *pointer = clEnqueueMapBuffer(world.queue, staging, CL_TRUE, CL_MAP_WRITE, 0, LARGE, 0, NULL, NULL, &err);
	OK(err);
	EQUAL(write_all(target, CL_TRUE, pointer).flags, GMT_FLAG_PINNED);
	OK(clEnqueueWriteBuffer(world.queue, target, CL_TRUE, 0, 16, pointer + LARGE - 16, 0, NULL, NULL));
	EQUAL(transfer(GMT_COMMAND_WRITE).flags, GMT_FLAG_PINNED);
	CHECK(clEnqueueMapBuffer(world.queue, staging, CL_TRUE, CL_MAP_WRITE, 0, LARGE, 0, NULL, NULL, NULL) == pointer);
	for (int i = 0; i < 2; i++) {
		EQUAL(write_all(target, CL_TRUE, pointer).flags, GMT_FLAG_PINNED);
		OK(clEnqueueUnmapMemObject(world.queue, staging, pointer, 0, NULL, NULL));
	}
	EQUAL(write_all(target, CL_TRUE, pointer).flags, GMT_FLAG_PAGEABLE);
	char *pages = new_pages(LARGE);
	EQUAL(write_all(target, CL_TRUE, pages).flags, GMT_FLAG_PAGEABLE);
	cl_mem own = clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, LARGE, pages, &err);
	OK(err);
	EQUAL(write_all(target, CL_TRUE, pages).flags, GMT_FLAG_PINNED);
	OK(clReleaseMemObject(own));
	EQUAL(write_all(target, CL_TRUE, pages).flags, GMT_FLAG_PAGEABLE);
	fake.processor = 1; /* its buffers lie in the host's memory */
	own = clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, LARGE, pages, &err);
	cl_mem part = clCreateSubBuffer(own, 0, CL_BUFFER_CREATE_TYPE_REGION, &(cl_buffer_region){0, LARGE}, &err);
	OK(err);
	CHECK(clEnqueueMapBuffer(world.queue, part, CL_TRUE, CL_MAP_WRITE, 0, LARGE, 0, NULL, NULL, NULL) == pages);
	OK(clReleaseMemObject(part)); /* mapped */
	OK(clReleaseMemObject(own));
	EQUAL(write_all(target, CL_TRUE, pages).flags, GMT_FLAG_PAGEABLE);
	OK(clReleaseMemObject(staging));
	OK(clReleaseMemObject(target));
	munmap(pages, LARGE);
	end_clean();
}

TEST(more_mappings_than_are_noted_count_as_pageable)
{
	enum { NOTED = 32 };
	begin(CALLERS);
	cl_mem target = new_buffer(64), mapped[NOTED + 1];
	void *pointer[NOTED + 1];
	for (int i = 0; i <= NOTED; i++) {
		mapped[i] = new_buffer(64);
		pointer[i] = clEnqueueMapBuffer(world.queue, mapped[i], CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, NULL);
	}
	for (int i = 0; i <= NOTED; i++) {
		OK(clEnqueueWriteBuffer(world.queue, target, CL_TRUE, 0, 16, pointer[i], 0, NULL, NULL));
		EQUAL(transfer(GMT_COMMAND_WRITE).flags, i < NOTED ? GMT_FLAG_PINNED : GMT_FLAG_PAGEABLE);
	}
	for (int i = 0; i <= NOTED; i++) {
		OK(clEnqueueUnmapMemObject(world.queue, mapped[i], pointer[i], 0, NULL, NULL));
		OK(clReleaseMemObject(mapped[i]));
	}
	OK(clReleaseMemObject(target));
	end_clean();
}

TEST(transfers_and_waits_are_reported_where_uses_are_not)
{
	begin((struct options){.tagmode = GMT_TAGS_CALLER, .nouses = true, .transfers = GMT_TRANSFERS_SAMPLED});
	cl_mem a = new_buffer(4096), b = new_buffer(4096);
	char host[64] = "";
	OK(clEnqueueWriteBuffer(world.queue, a, CL_TRUE, 0, 64, host, 0, NULL, NULL));
	transfer(GMT_COMMAND_WRITE);
	OK(clEnqueueCopyBuffer(world.queue, a, b, 0, 0, 64, 0, NULL, NULL));
	EQUAL(event_before(1).op, GMT_COMMAND_COPY);
	CHECK(event_before(0).tag && event_before(0).tag == event_before(1).tag);
	OK(clFinish(world.queue));
	OK(clFlush(world.queue));
	OK(clEnqueueReadBuffer(world.queue, b, CL_TRUE, 0, 64, host, 0, NULL, NULL));
	EQUAL(events(GMT_KIND_USE), 4);
	EQUAL(events(GMT_KIND_SYNC), 2); /* waits show how far the device is behind: the finish, and the read */
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	end_clean();
}

/* Only what the program's queue measures anyway, when the command has completed, and once. */
static void CL_CALLBACK ended(cl_event event, cl_int status, void *data)
{
	(void)event, (void)status, (void)data;
}

static cl_int status_of(cl_event event)
{
	cl_int status = 99;
	OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
	return status;
}

/* A program may learn of commands by callbacks and questions alone. While others are queued, the device is behind it. */
TEST(where_uses_are_not_only_the_end_of_the_last_command_is_a_wait)
{
	begin((struct options){.nouses = true, .transfers = GMT_TRANSFERS_SAMPLED});
	cl_mem buffer = new_buffer(4096);
	cl_event event[4];
	for (int i = 0; i < 4; i++) {
		OK(clEnqueueFillBuffer(world.queue, buffer, "z", 1, 0, 16, 0, NULL, &event[i]));
		if (i < 2)
			OK(clSetEventCallback(event[i], CL_COMPLETE, ended, NULL));
		if (i % 2 == 0)
			continue;
		CHECK(fake_complete_event(event[i - 1]));
		EQUAL(status_of(event[i - 1]), CL_COMPLETE);
		EQUAL(events(GMT_KIND_SYNC), i / 2); /* not of this one */
		CHECK(status_of(event[i]) != CL_COMPLETE);
		CHECK(fake_complete_event(event[i]));
		EQUAL(status_of(event[i]), CL_COMPLETE);
		EQUAL(status_of(event[i]), CL_COMPLETE);
		EQUAL(events(GMT_KIND_SYNC), i / 2 + 1);
		EQUAL(last_event(GMT_KIND_SYNC).op, GMT_SYNC_WAIT);
		EQUAL(last_event(GMT_KIND_SYNC).duration, 0);
	}
	EQUAL(events(GMT_KIND_AWAIT), 0);
	for (int i = 0; i < 4; i++)
		OK(clReleaseEvent(event[i]));
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(the_device_times_transfers_that_do_not_block)
{
	begin(CALLERS);
	cl_mem buffer = new_buffer(4096);
	char host[64] = "";
	cl_event event;
	OK(clEnqueueWriteBuffer(world.queue, buffer, CL_FALSE, 0, 64, host, 0, NULL, &event));
	OK(clFinish(world.queue));
	OK(clReleaseEvent(event)); /* a queue without profiling */
	EQUAL(events(GMT_KIND_TRANSFER), 1);
	cl_command_queue queue = new_queue(world.context, CL_QUEUE_PROFILING_ENABLE);
	OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 8, 56, host, 0, NULL, &event));
	uint32_t site = transfer(GMT_COMMAND_WRITE).tag;
	OK(clFinish(queue));
	OK(clRetainEvent(event));
	OK(clReleaseEvent(event));
	EQUAL(events(GMT_KIND_TRANSFER), 2); /* the program still has it */
	OK(clReleaseEvent(event));
	struct gmtevent timed = event_before(0);
	EQUAL(timed.kind, GMT_KIND_TRANSFER);
	EQUAL(timed.op, GMT_COMMAND_WRITE);
	EQUAL(timed.tag, site);
	EQUAL(timed.object, 56);
	EQUAL(timed.granted, 1);
	OK(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, 64, host, 0, NULL, &event));
	OK(clReleaseEvent(event)); /* it may be pending: nothing is known */
	OK(clFinish(queue));
	OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 64, host, 0, NULL, &event));
	OK(clReleaseEvent(event)); /* its call was timed */
	EQUAL(events(GMT_KIND_TRANSFER), 5);
	cl_ulong end = 0;
	OK(clEnqueueFillBuffer(queue, buffer, "z", 1, 0, 32, 0, NULL, &event));
	OK(clFinish(queue));
	for (int i = 0; i < 2; i++)
		OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL));
	OK(clReleaseEvent(event));
	EQUAL(events(GMT_KIND_TRANSFER), 7);
	EQUAL(event_before(0).op, GMT_COMMAND_FILL);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseCommandQueue(queue));
	end_clean();
}
