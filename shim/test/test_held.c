/* test_held.c: what the program holds besides memory, by type and call site. */
#define _GNU_SOURCE
#include "harness.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define HELD(type, made, gone)                                                                                           \
	do {                                                                                                             \
		struct held now = held_now(type);                                                                            \
		EQUAL(now.created, made);                                                                                \
		EQUAL(now.released, gone);                                                                               \
	} while (0)

/* Events are written a hundred times a second at most, and when the program waits. */
static void written(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 15000000}, NULL);
	OK(clFinish(world.queue));
}

TEST(contexts_and_queues_are_counted)
{
	begin((struct options){0});
	HELD(GMT_HELD_CONTEXT, 1, 0);
	HELD(GMT_HELD_QUEUE, 1, 0);
	OK(clRetainContext(world.context));
	OK(clRetainCommandQueue(world.queue));
	cl_command_queue second = new_queue(world.context, 0);
	OK(clReleaseContext(world.context));
	OK(clReleaseCommandQueue(world.queue));
	HELD(GMT_HELD_CONTEXT, 1, 0);
	HELD(GMT_HELD_QUEUE, 2, 0);
	OK(clReleaseCommandQueue(second));
	HELD(GMT_HELD_QUEUE, 2, 1);
	end_clean();
	HELD(GMT_HELD_CONTEXT, 1, 1);
	HELD(GMT_HELD_QUEUE, 2, 2);
}

static int links;
static void CL_CALLBACK linked(cl_program program, void *data)
{
	CHECK(program && data == &links);
	OK(clRetainProgram(program)); /* the program makes this call */
	links++;
}

TEST(programs_are_counted)
{
	begin((struct options){.observe = true, .tagmode = GMT_TAGS_CALLER});
	cl_device_id device = fake_device();
	const char *text = "";
	const unsigned char *code = (const unsigned char *)"";
	size_t length = 0;
	cl_program programs[] = {
		clCreateProgramWithSource(world.context, 1, &text, NULL, NULL),
		clCreateProgramWithBinary(world.context, 1, &device, &length, &code, NULL, NULL),
		clCreateProgramWithBuiltInKernels(world.context, 1, &device, "", NULL),
		clCreateProgramWithIL(world.context, code, 1, NULL),
		clLinkProgram(world.context, 1, &device, "", 0, NULL, NULL, NULL, NULL),
		clLinkProgram(world.context, 1, &device, "", 0, NULL, linked, &links, NULL),
	};
	enum { COUNT = sizeof programs / sizeof programs[0] };
	EQUAL(links, 1);
	HELD(GMT_HELD_PROGRAM, COUNT, 0);
	EQUAL(held_now(GMT_HELD_PROGRAM).sites, COUNT);
	CHECK(!clCreateProgramWithSource(NULL, 1, &text, NULL, NULL)); /* it made none */
	OK(clRetainProgram(programs[0]));
	for (int i = 0; i < COUNT; i++)
		OK(clReleaseProgram(programs[i]));
	HELD(GMT_HELD_PROGRAM, COUNT, COUNT - 1);
	OK(clReleaseProgram(programs[0]));
	HELD(GMT_HELD_PROGRAM, COUNT, COUNT);
	OK(clReleaseProgram(programs[COUNT - 1])); /* retained before we knew it: the driver alone counts that */
	end_clean();
}

TEST(samplers_are_counted)
{
	begin((struct options){0});
	cl_sampler first = clCreateSampler(world.context, CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, NULL);
	cl_sampler second = clCreateSamplerWithProperties(world.context, NULL, NULL);
	OK(clRetainSampler(first));
	OK(clReleaseSampler(first));
	HELD(GMT_HELD_SAMPLER, 2, 0);
	OK(clReleaseSampler(first));
	OK(clReleaseSampler(second));
	HELD(GMT_HELD_SAMPLER, 2, 2);
	end_clean();
}

TEST(kernels_are_counted)
{
	begin((struct options){.tagmode = GMT_TAGS_STACK});
	cl_kernel kernels[4] = {clCreateKernel(fake_program(), "k", NULL)};
	kernels[1] = clCloneKernel(kernels[0], NULL);
	OK(clCreateKernelsInProgram(fake_program(), 2, &kernels[2], NULL));
	CHECK(!clCreateKernel(fake_program(), NULL, NULL));
	HELD(GMT_HELD_KERNEL, 4, 0);
	EQUAL(held_now(GMT_HELD_KERNEL).sites, 3);
	OK(clRetainKernel(kernels[1]));
	for (int i = 0; i < 4; i++)
		OK(clReleaseKernel(kernels[i]));
	HELD(GMT_HELD_KERNEL, 4, 3);
	OK(clReleaseKernel(kernels[1]));
	HELD(GMT_HELD_KERNEL, 4, 4);
	EQUAL(held_now(GMT_HELD_KERNEL).most, 2); /* of one call site */
	end_clean();
}

TEST(command_buffers_are_counted)
{
	begin((struct options){.observe = true});
	EXTENSION(clCreateCommandBufferKHR);
	EXTENSION(clRetainCommandBufferKHR);
	EXTENSION(clReleaseCommandBufferKHR);
	cl_command_buffer_khr buffer = clCreateCommandBufferKHR(1, &world.queue, NULL, NULL);
	OK(clRetainCommandBufferKHR(buffer));
	OK(clReleaseCommandBufferKHR(buffer));
	HELD(GMT_HELD_COMMAND_BUFFER, 1, 0);
	OK(clReleaseCommandBufferKHR(buffer));
	HELD(GMT_HELD_COMMAND_BUFFER, 1, 1);
	end_clean();
}

/* Of commands, markers and the program's own; not those that the pool makes for itself, and not where none is asked for. */
static void count_events(struct options options)
{
	begin(options);
	cl_mem buffer = new_buffer(4096);
	cl_event list[6];
	for (int i = 0; i < 3; i++)
		list[i] = fill(world.queue, buffer, 0, NULL);
	char byte;
	OK(clEnqueueReadBuffer(world.queue, buffer, CL_TRUE, 0, 1, &byte, 0, NULL, &list[3]));
	OK(clEnqueueMarkerWithWaitList(world.queue, 0, NULL, &list[4]));
	list[5] = clCreateUserEvent(world.context, NULL);
	use(world.queue, buffer);
	OK(clReleaseMemObject(buffer)); /* the pool may put a marker now */
	written();
	HELD(GMT_HELD_EVENT, 6, 0);
	EQUAL(held_now(GMT_HELD_EVENT).sites, 4);
	OK(clRetainEvent(list[0]));
	OK(clSetUserEventStatus(list[5], CL_COMPLETE));
	for (int i = 0; i < 6; i++)
		OK(clReleaseEvent(list[i]));
	written();
	HELD(GMT_HELD_EVENT, 6, 5);
	OK(clReleaseEvent(list[0]));
	written();
	HELD(GMT_HELD_EVENT, 6, 6);
	EQUAL(held_now(GMT_HELD_EVENT).most, 3); /* of fill */
	end_clean();
}

TEST(events_are_counted)
{
	count_events((struct options){.tagmode = GMT_TAGS_STACK});
}

TEST(events_are_counted_without_a_pool)
{
	count_events((struct options){.observe = true, .tagmode = GMT_TAGS_CALLER});
}

TEST(events_are_counted_where_nothing_else_is_known_of_them)
{
	count_events((struct options){.observe = true, .nouses = true, .tagmode = GMT_TAGS_STACK});
}

TEST(events_of_queues_that_were_not_seen_are_counted)
{
	begin((struct options){.observe = true});
	cl_command_queue queue = fake_unseen_queue(world.context);
	cl_mem buffer = new_buffer(64);
	cl_event command = fill(queue, buffer, 0, NULL), marker;
	OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, &marker));
	written();
	HELD(GMT_HELD_EVENT, 2, 0);
	OK(clReleaseEvent(command));
	OK(clReleaseEvent(marker));
	OK(clReleaseCommandQueue(queue));
	OK(clReleaseMemObject(buffer));
	written();
	HELD(GMT_HELD_EVENT, 2, 2);
	end_clean();
}

/* One call of fill, reached two ways. */
static __attribute__((noinline)) cl_event one_way(cl_mem buffer)
{
	cl_event event = fill(world.queue, buffer, 0, NULL);
	CHECK(event);
	return event;
}

static __attribute__((noinline)) cl_event other_way(cl_mem buffer)
{
	cl_event event = fill(world.queue, buffer, 0, NULL);
	CHECK(event);
	return event;
}

TEST(the_way_to_a_call_tells_sites_apart)
{
	begin((struct options){.observe = true, .tagmode = GMT_TAGS_STACK});
	cl_mem buffer = new_buffer(64);
	for (int i = 0; i < 100; i++) {
		OK(clReleaseEvent(one_way(buffer)));
		OK(clReleaseEvent(other_way(buffer)));
	}
	written();
	HELD(GMT_HELD_EVENT, 200, 200);
	EQUAL(held_now(GMT_HELD_EVENT).sites, 2);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(records_are_few)
{
	begin((struct options){.observe = true, .nouses = true});
	cl_mem buffer = new_buffer(64);
	size_t before = events(GMT_KIND_OBJECT);
	struct timespec start, end;
	clock_gettime(CLOCK_MONOTONIC, &start);
	const char *heap = sbrk(0);
	for (int i = 0; i < 50000; i++) {
		OK(clReleaseEvent(fill(world.queue, buffer, 0, NULL)));
		if (i % 64 == 0)
			fake_complete_all();
	}
	CHECK((const char *)sbrk(0) - heap < 1 << 20); /* entries are used again */
	clock_gettime(CLOCK_MONOTONIC, &end);
	double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
	CHECK((double)(events(GMT_KIND_OBJECT) - before) <= 2 + seconds * 100);
	written();
	HELD(GMT_HELD_EVENT, 50000, 50000);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

/* The driver gives a handle out again though no release was seen: the first one is gone. */
TEST(a_handle_that_comes_again_ends_the_object_before)
{
	begin((struct options){0});
	cl_sampler (*make)(cl_context, cl_bool, cl_addressing_mode, cl_filter_mode, cl_int *) = clCreateSampler;
	cl_sampler first = make(world.context, CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, NULL);
	fake_forget(first);
	CHECK(make(world.context, CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, NULL) == first);
	HELD(GMT_HELD_SAMPLER, 2, 1);
	OK(clReleaseSampler(first));
	HELD(GMT_HELD_SAMPLER, 2, 2);
	end_clean();
}

#ifndef __SANITIZE_THREAD__ /* which would take long over many steps of one thread, and find nothing */
/* A program that leaks events leaks no more of our memory than that of the first; the others are counted apart. */
TEST(leaked_events_are_bounded)
{
	enum { MOST = 1 << 18, MORE = 20000 };
	begin((struct options){.observe = true, .tagmode = GMT_TAGS_CALLER});
	cl_event *all = malloc((MOST + MORE) * sizeof *all);
	for (int i = 0; i < MOST + MORE; i++)
		all[i] = clCreateUserEvent(world.context, NULL);
	written();
	struct held full = held_now(GMT_HELD_EVENT);
	EQUAL(full.created + full.untracked, MOST + MORE);
	CHECK(full.created <= MOST && full.created > MOST - MOST / 64);
	for (int i = 0; i < MOST + MORE; i++)
		OK(clReleaseEvent(all[i]));
	written();
	HELD(GMT_HELD_EVENT, full.created, full.created);
	OK(clReleaseEvent(clCreateUserEvent(world.context, NULL)));
	written();
	HELD(GMT_HELD_EVENT, full.created + 1, full.created + 1);
	free(all);
	end_clean();
}

static __attribute__((noinline)) cl_sampler leak(void)
{
	cl_sampler sampler = clCreateSampler(world.context, CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, NULL);
	CHECK(sampler); /* after the call, so that this function is its caller */
	return sampler;
}

TEST(leaked_objects_are_bounded)
{
	enum { MOST = 1 << 16, MORE = 5000 };
	begin((struct options){.observe = true, .tagmode = GMT_TAGS_CALLER});
	cl_sampler *all = malloc((MOST + MORE) * sizeof(cl_sampler));
	for (int i = 0; i < MOST + MORE; i++) {
		if (i == MOST + MORE - 1)
			events(GMT_KIND_OBJECT); /* now there is room for the last one, which says all */
		all[i] = leak();
	}
	struct gmtevent full = last_event(GMT_KIND_OBJECT);
	EQUAL(full.op, GMT_HELD_SAMPLER);
	EQUAL(full.object + full.link, MOST + MORE);
	CHECK(full.object <= MOST && full.object > MOST - MOST / 64);
	for (int i = 0; i < MOST + MORE; i++)
		OK(clReleaseSampler(all[i]));
	free(all);
	end_clean();
}
#endif

enum { THREADS = 8, ROUNDS = 150 };
static cl_mem shared;

/* Holds a few, so that threads release each other's call site. */
static void *create_and_release(void *unused)
{
	(void)unused;
	cl_event held_back[4] = {0};
	for (int i = 0; i < ROUNDS; i++) {
		cl_event *at = &held_back[i % 4];
		if (*at)
			OK(clReleaseEvent(*at));
		*at = fill(world.queue, shared, 0, NULL);
		cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
		OK(clReleaseKernel(kernel));
	}
	for (int i = 0; i < 4; i++)
		OK(clReleaseEvent(held_back[i]));
	return NULL;
}

TEST(threads_count_together)
{
	begin((struct options){.tagmode = GMT_TAGS_STACK, .waitms = 1000});
	session_start();
	shared = new_buffer(64);
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, create_and_release, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	fake_complete_all();
	written();
	session_stop();
	EQUAL(session_totals().lost, 0);
	HELD(GMT_HELD_EVENT, THREADS * ROUNDS, THREADS * ROUNDS);
	HELD(GMT_HELD_KERNEL, THREADS * ROUNDS, THREADS * ROUNDS);
	OK(clReleaseMemObject(shared));
	end_clean();
}
