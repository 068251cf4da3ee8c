/* test_budget.c: --device-memory: creates fail where a smaller card would make them fail. */
#define _GNU_SOURCE
#include "harness.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static cl_int create_error(cl_mem_flags flags, size_t size, void *host)
{
	cl_int err = 1;
	cl_mem buffer = clCreateBuffer(world.context, flags, size, host, &err);
	EQUAL(buffer != NULL, err == CL_SUCCESS);
	if (buffer)
		OK(clReleaseMemObject(buffer));
	return err;
}

TEST(creates_fail_exactly_at_the_limit)
{
	begin((struct options){.devicememory = 1024});
	cl_mem half = new_buffer(512), quarter = new_buffer(256), rest = new_buffer(256);
	EQUAL(create_error(0, 1, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_FAILED);
	OK(clReleaseMemObject(rest));
	CHECK(new_buffer(256) == rest); /* from the pool: it counts already */
	OK(clReleaseMemObject(rest));
	OK(create_error(0, 128, NULL)); /* instead of the idle one */
	OK(clReleaseMemObject(half));
	OK(clReleaseMemObject(quarter));
	OK(create_error(0, 1024, NULL));
	EQUAL(fake.livebytes, 1024);
	end_clean();
}

static void too_large(cl_mem_flags flags, void *host)
{
	uint64_t creates = fake.creates, live = fake.livememory;
	EQUAL(create_error(flags, 1025, host), CL_INVALID_BUFFER_SIZE);
	EQUAL(create_error(flags, 4000, host), CL_INVALID_BUFFER_SIZE);
	EQUAL(fake.creates, creates);
	EQUAL(fake.livememory, live); /* the pool was not emptied for what can never fit */
}

TEST(what_is_larger_than_the_card_has_an_invalid_size)
{
	static char host[4096];
	begin((struct options){.devicememory = 1024});
	OK(clReleaseMemObject(new_buffer(256)));
	too_large(CL_MEM_READ_WRITE, NULL);
	too_large(CL_MEM_COPY_HOST_PTR, host);
	too_large(CL_MEM_USE_HOST_PTR, host);
	too_large(CL_MEM_READ_WRITE | CL_MEM_READ_ONLY, NULL);
	end_clean();
}

TEST(without_a_pool_the_limit_holds_all_the_same)
{
	static char host[4096];
	begin((struct options){.devicememory = 1024, .observe = true});
	cl_mem buffer = new_buffer(1000);
	EQUAL(fake_size(buffer), 1000);
	EQUAL(create_error(0, 25, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	OK(create_error(0, 24, NULL));
	EQUAL(create_error(CL_MEM_USE_HOST_PTR, 25, host), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	too_large(CL_MEM_READ_WRITE, NULL);
	OK(clReleaseMemObject(buffer));
	OK(create_error(0, 1024, NULL));
	end_clean();
}

TEST(the_device_says_so)
{
	begin((struct options){.devicememory = 1000000});
	cl_ulong global = 0, largest = 0;
	OK(clGetDeviceInfo(fake_device(), CL_DEVICE_GLOBAL_MEM_SIZE, sizeof global, &global, NULL));
	OK(clGetDeviceInfo(fake_device(), CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL));
	EQUAL(global, 1000000);
	EQUAL(largest, 1000000);
	char name[8] = "";
	OK(clGetDeviceInfo(fake_device(), CL_DEVICE_NAME, sizeof name, name, NULL));
	CHECK(strcmp(name, "fake") == 0);
	EQUAL(last_event(GMT_KIND_DEVICE).granted, 1000000);
	EQUAL(last_event(GMT_KIND_DEVICE).link, 1000000);
	EQUAL(clGetDeviceInfo(fake_device(), CL_DEVICE_GLOBAL_MEM_SIZE, 2, &global, NULL), CL_INVALID_VALUE);
	size_t needed = 0;
	OK(clGetDeviceInfo(fake_device(), CL_DEVICE_GLOBAL_MEM_SIZE, 0, NULL, &needed));
	EQUAL(needed, sizeof global);
	end_clean();
}

TEST(the_device_says_what_is_free)
{
	begin((struct options){.devicememory = 1024 * 1000});
	size_t kib[2] = {0, 0}, needed = 0;
	cl_mem buffer = new_buffer(1024 * 128);
	OK(clGetDeviceInfo(fake_device(), 0x4039, sizeof kib, kib, &needed));
	EQUAL(needed, sizeof kib);
	EQUAL(kib[0], 872);
	EQUAL(kib[1], 872);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(without_a_limit_the_driver_says_what_is_free)
{
	size_t kib[2] = {0, 0};
	begin((struct options){0});
	OK(clGetDeviceInfo(fake_device(), 0x4039, sizeof kib, kib, NULL));
	EQUAL(kib[1], fake.largest / 1024);
	end_clean();
}

/* What the query for free memory answers, in KiB, to a driver's that does not know it. */
static void free_is(size_t total, size_t block)
{
	size_t kib[3] = {0, 0, 77}, needed = 0;
	OK(clGetDeviceInfo(fake_device(), 0x4039, 2 * sizeof *kib, kib, &needed));
	EQUAL(needed, 2 * sizeof *kib);
	EQUAL(kib[0], total);
	EQUAL(kib[1], block);
	EQUAL(kib[2], 77);
}

TEST(an_unknown_query_for_free_memory_stays_unknown)
{
	begin((struct options){.devicememory = 1 << 20});
	fake.nofreequery = 1;
	size_t kib[2] = {7, 8}, needed = 9;
	EQUAL(clGetDeviceInfo(fake_device(), 0x4039, sizeof kib, kib, &needed), CL_INVALID_VALUE);
	EQUAL(kib[0], 7);
	EQUAL(needed, 9);
	end_clean();
}

TEST(free_memory_is_answered_on_request)
{
	begin((struct options){.answerfree = 1, .observe = true});
	fake.nofreequery = 1;
	size_t largest = (size_t)(fake.largest / 1024);
	free_is(4 * largest, largest);
	cl_mem buffer = new_buffer(1024 * 128);
	free_is(4 * largest - 128, largest);
	OK(clReleaseMemObject(buffer));
	free_is(4 * largest, largest);
	end_clean();
}

TEST(free_memory_is_answered_of_a_limit)
{
	begin((struct options){.answerfree = 1, .devicememory = 1024 * 1000});
	fake.nofreequery = 1;
	cl_mem buffer = new_buffer(1024 * 128);
	free_is(872, 872);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(the_answer_for_free_memory_refuses_what_a_driver_would)
{
	begin((struct options){.answerfree = 1});
	fake.nofreequery = 1;
	size_t kib[2] = {7, 8}, needed = 9;
	EQUAL(clGetDeviceInfo(fake_device(), 0x4039, sizeof *kib, kib, &needed), CL_INVALID_VALUE);
	EQUAL(kib[0], 7);
	EQUAL(needed, 9);
	OK(clGetDeviceInfo(fake_device(), 0x4039, 0, NULL, &needed));
	EQUAL(needed, sizeof kib);
	OK(clGetDeviceInfo(fake_device(), 0x4039, 0, NULL, NULL));
	EQUAL(clGetDeviceInfo(NULL, 0x4039, sizeof kib, kib, NULL), CL_INVALID_DEVICE);
	fake.nofreequery = 0; /* a driver that knows it keeps its answer */
	OK(clGetDeviceInfo(fake_device(), 0x4039, sizeof kib, kib, NULL));
	EQUAL(kib[1], fake.largest / 1024);
	EQUAL(clGetDeviceInfo(fake_device(), 0x4039, sizeof *kib, kib, NULL), CL_INVALID_VALUE);
	end_clean();
}

TEST(a_limit_above_the_device_changes_nothing)
{
	begin((struct options){.devicememory = 1ull << 60});
	cl_ulong largest = 0;
	OK(clGetDeviceInfo(fake_device(), CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL));
	EQUAL(largest, fake.largest);
	EQUAL(create_error(0, (size_t)fake.largest + 1, NULL), CL_INVALID_BUFFER_SIZE);
	end_clean();
}

TEST(the_pool_gives_back_no_more_than_is_needed)
{
	begin((struct options){.devicememory = 1024});
	cl_mem idle[3];
	for (int i = 0; i < 3; i++)
		idle[i] = new_buffer(256);
	for (int i = 0; i < 3; i++)
		OK(clReleaseMemObject(idle[i]));
	cl_mem half = new_buffer(512);
	EQUAL(events(GMT_KIND_EVICT), 1);
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_DRAIN);
	EQUAL(fake.livebytes, 1024);
	cl_mem one = new_buffer(256), two = new_buffer(256);
	EQUAL(events(GMT_KIND_EVICT), 1);
	OK(clReleaseMemObject(one));
	OK(clReleaseMemObject(two));
	OK(clReleaseMemObject(half));
	end_clean();
}

TEST(rounding_up_does_not_cost_the_last_bytes)
{
	begin((struct options){.devicememory = 1000});
	cl_mem first = new_buffer(400); /* a block of 512 */
	EQUAL(fake_size(first), 512);
	cl_mem second = new_buffer(488); /* no room for another */
	EQUAL(fake_size(second), 488);
	OK(create_error(0, 112, NULL)); /* of the host: the program alone would have as much */
	EQUAL(create_error(0, 113, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	OK(clReleaseMemObject(second));
	OK(create_error(0, 488, NULL));
	OK(clReleaseMemObject(first));
	end_clean();
}

static cl_mem image(size_t width, size_t height, cl_mem base, cl_int *err)
{
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {
		.image_type = base ? CL_MEM_OBJECT_IMAGE1D_BUFFER : CL_MEM_OBJECT_IMAGE2D, .image_width = width, .image_height = height,
		.mem_object = base,
	};
	*err = 1;
	return clCreateImage(world.context, 0, &format, &desc, NULL, err);
}

TEST(images_and_pipes_count)
{
	begin((struct options){.devicememory = 1024});
	cl_int err;
	cl_mem half = image(16, 8, NULL, &err);
	OK(err);
	CHECK(!image(16, 9, NULL, &err));
	EQUAL(err, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	EQUAL(fake.livememory, 1); /* the driver's was released again */
	cl_mem pipe = clCreatePipe(world.context, 0, 4, 128, NULL, &err);
	OK(err);
	EQUAL(create_error(0, 1, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	OK(clReleaseMemObject(half));
	OK(create_error(0, 512, NULL)); /* stays in the pool */
	half = image(16, 8, NULL, &err);
	OK(err);
	EQUAL(events(GMT_KIND_EVICT), 1);
	OK(clReleaseMemObject(half));
	OK(clReleaseMemObject(pipe));
	OK(create_error(0, 1024, NULL));
	end_clean();
}

TEST(parts_and_images_of_buffers_do_not_count)
{
	begin((struct options){.devicememory = 1024});
	cl_mem buffer = new_buffer(1024);
	cl_buffer_region region = {0, 512};
	cl_int err = 1;
	cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	OK(err);
	cl_mem view = image(64, 0, buffer, &err);
	OK(err);
	OK(clReleaseMemObject(view));
	OK(clReleaseMemObject(part));
	EQUAL(create_error(0, 1, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE); /* nothing was given back for them */
	OK(clReleaseMemObject(buffer));
	OK(create_error(0, 1024, NULL));
	end_clean();
}

TEST(shared_memory_counts)
{
	begin((struct options){.devicememory = 1024});
	EXTENSION(clDeviceMemAllocINTEL);
	EXTENSION(clMemFreeINTEL);
	cl_int err = 1;
	void *svm = clSVMAlloc(world.context, 0, 512, 0), *usm = clDeviceMemAllocINTEL(world.context, fake_device(), NULL, 512, 0, &err);
	CHECK(svm && usm);
	CHECK(!clSVMAlloc(world.context, 0, 1, 0));
	CHECK(!clDeviceMemAllocINTEL(world.context, fake_device(), NULL, 1, 0, &err));
	EQUAL(err, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	EQUAL(create_error(0, 1, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	clSVMFree(world.context, svm);
	OK(create_error(0, 512, NULL));
	OK(clMemFreeINTEL(world.context, usm));
	void *all = clSVMAlloc(world.context, 0, 1024, 0);
	CHECK(all);
	EQUAL(events(GMT_KIND_EVICT), 3);
	OK(clEnqueueSVMFree(world.queue, 1, &all, NULL, NULL, 0, NULL, NULL));
	OK(clFinish(world.queue));
	OK(create_error(0, 1024, NULL));
	end_clean();
}

TEST(what_the_driver_refuses_does_not_count)
{
	begin((struct options){.devicememory = 1024});
	fake.createerror = CL_INVALID_VALUE;
	for (int i = 0; i < 5; i++) {
		fake.failcreates = 2; /* the block, and the request itself */
		EQUAL(create_error(0, 1000, NULL), CL_INVALID_VALUE);
	}
	fake.failcreates = 0;
	OK(create_error(0, 1024, NULL));
	end_clean();
}

static int ended;

static void CL_CALLBACK count_end(cl_mem memory, void *data)
{
	(void)memory, (void)data;
	ended++;
}

TEST(memory_with_callbacks_and_memory_that_is_mapped_is_given_back)
{
	begin((struct options){.devicememory = 1024});
	for (int i = 0; i < 5; i++) {
		cl_mem buffer = new_buffer(1024);
		if (i % 2)
			OK(clSetMemObjectDestructorCallback(buffer, count_end, NULL));
		else
			CHECK(clEnqueueMapBuffer(world.queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, 16, 0, NULL, NULL, NULL));
		OK(clReleaseMemObject(buffer));
	}
	EQUAL(events(GMT_KIND_EVICT), 5);
	EQUAL(ended, 2);
	end_clean();
}

#ifndef __SANITIZE_THREAD__ /* which has an open of its own */
static char meminfo[] = "/tmp/gmt-meminfo.XXXXXX"; /* open() below gives it for /proc/meminfo, so that a test says how much memory is free */
static _Atomic int looks;

GMT_HOOK int open(const char *path, int flags, ...);
int open(const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
	va_end(arguments);
	bool instead = meminfo[sizeof meminfo - 2] != 'X' && strcmp(path, "/proc/meminfo") == 0; /* a path may be none */
	looks += instead;
	return (int)syscall(SYS_openat, AT_FDCWD, instead ? meminfo : path, flags, mode);
}

static void leave_mebibytes(unsigned count)
{
	FILE *file = fopen(meminfo, "w");
	CHECK(file && fprintf(file, "MemTotal: 1 kB\nMemAvailable: %u kB\n", count * 1024) > 0);
	CHECK(fclose(file) == 0);
}

/* An eighth of what the host has left is the program's. */
TEST(blocks_go_back_before_the_host_lacks_memory)
{
	enum { MIB = 1 << 20 };
	static char host[4096];
	cl_mem buffer[6];
	int file = mkstemp(meminfo);
	CHECK(file >= 0 && close(file) == 0);
	leave_mebibytes(8);
	fake.processor = 1; /* whose memory is the host's */
	begin((struct options){0});
	for (int i = 0; i < 5000 && !looks; i++) { /* until the thread that looks has started */
		EQUAL(create_error(CL_MEM_USE_HOST_PTR, sizeof host, host), CL_SUCCESS); /* which is not pooled */
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	CHECK(looks > 0);
	for (int i = 0; i < 6; i++)
		buffer[i] = new_buffer(MIB);
	for (int i = 0; i < 6; i++)
		OK(clReleaseMemObject(buffer[i]));
	EQUAL(events(GMT_KIND_EVICT), 0);
	cl_mem other = new_buffer(2 * MIB);
	EQUAL(events(GMT_KIND_EVICT), 1);
	EQUAL(last_event(GMT_KIND_EVICT).granted, MIB);
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_DRAIN);
	OK(clReleaseMemObject(other));
	EQUAL(unlink(meminfo), 0);
	end_clean();
}
#endif
