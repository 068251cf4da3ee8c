/*
 * both.c: a program that is linked with a loader, while the shim stands in front of it and is its layer, too: both
 * ways in are open. All other tests run that way as well.
 */
#define _GNU_SOURCE
#include "harness.h"

#include "fake_loader.h"

#include <pthread.h>

TEST(a_call_counts_once_through_both_entries)
{
	begin((struct options){.observe = true});
	EQUAL(fake_loader.starts, 1);
	EQUAL(fake_loader.layers, 1);
	for (int i = 0; i < 5; i++)
		OK(clReleaseMemObject(new_buffer(100)));
	EQUAL(events(GMT_KIND_CREATE), 5);
	EQUAL(events(GMT_KIND_RELEASE), 5);
	EQUAL(events(GMT_KIND_CONTEXT), 1);
	EQUAL(fake.creates, 5);
	EQUAL(fake_loader.creates, 0); /* straight to the driver, not through the loader again */
	end_clean();
}

TEST(a_loader_started_by_another_function_counts_the_same)
{
	session_open((struct options){.observe = true});
	OK(clGetPlatformIDs(0, NULL, NULL)); /* not hooked: the layer comes before the session */
	EQUAL(fake_loader.layers, 1);
	world.context = new_context();
	OK(clReleaseMemObject(new_buffer(100)));
	EQUAL(events(GMT_KIND_CREATE), 1);
	EQUAL(events(GMT_KIND_CONTEXT), 1);
	OK(clReleaseContext(world.context));
}

#define THREADS 8
#define ROUNDS 200
static pthread_barrier_t together;

static void *create_and_release(void *started)
{
	(void)started;
	pthread_barrier_wait(&together);
	cl_context context = new_context();
	for (int i = 0; i < ROUNDS; i++) {
		cl_mem buffer = clCreateBuffer(context, 0, 100, NULL, NULL);
		CHECK(buffer);
		OK(clReleaseMemObject(buffer));
	}
	OK(clReleaseContext(context));
	return NULL;
}

/* What hooks call changes from the loader's entries to its table while they run. */
TEST(hammer_the_start_of_a_loader)
{
	session_open((struct options){.observe = true, .nouses = true});
	session_start();
	pthread_t threads[THREADS];
	CHECK(pthread_barrier_init(&together, NULL, THREADS) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, create_and_release, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	session_stop();
	EQUAL(fake_loader.starts, 1);
	EQUAL(events(GMT_KIND_CREATE), THREADS * ROUNDS);
	EQUAL(events(GMT_KIND_RELEASE), THREADS * ROUNDS);
	EQUAL(fake.creates, THREADS * ROUNDS);
	EQUAL(fake.livememory, 0);
}
