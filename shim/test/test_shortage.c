/* test_shortage.c: several threads run out of memory at once. Each create of the fake driver meets a gate. */
#include "harness.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 1024 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int failing, awaited; /* creates that have failed; they go on when that many have */
static int releasing, held;  /* a release is held until that many creates have failed */

static void wait_until(const int *counter, int least)
{
	while (*counter < least)
		pthread_cond_wait(&changed, &mutex);
}

static void checked_create(size_t failed)
{
	if (!failed)
		return;
	pthread_mutex_lock(&mutex);
	failing++;
	pthread_cond_broadcast(&changed);
	if (failing <= awaited)
		wait_until(&failing, awaited);
	pthread_mutex_unlock(&mutex);
}

static void checked_release(cl_mem memory)
{
	(void)memory;
	pthread_mutex_lock(&mutex);
	releasing++;
	pthread_cond_broadcast(&changed);
	if (held)
		wait_until(&failing, held);
	pthread_mutex_unlock(&mutex);
}

/* A pool of that many free blocks, in a driver that has no room for more. */
static void begin_full(int blocks, struct options options)
{
	cl_mem buffer[64];
	begin(options);
	fake.cap = (uint64_t)blocks * BLOCK;
	for (int i = 0; i < blocks; i++)
		buffer[i] = new_buffer(BLOCK);
	for (int i = 0; i < blocks; i++)
		OK(clReleaseMemObject(buffer[i]));
	fake.aftercreate = checked_create;
	fake.beforerelease = checked_release;
}

/* One of other flags, which the free blocks do not fit. */
static void *create_other(void *size)
{
	cl_int err = 1;
	cl_mem buffer = clCreateBuffer(world.context, CL_MEM_READ_ONLY, (size_t)(uintptr_t)size, NULL, &err);
	EQUAL(err, buffer ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE);
	return buffer;
}

static unsigned at_once(int threads, size_t size, cl_mem *got)
{
	pthread_t thread[8];
	unsigned some = 0;
	for (int i = 0; i < threads; i++)
		CHECK(pthread_create(&thread[i], NULL, create_other, (void *)(uintptr_t)size) == 0);
	for (int i = 0; i < threads; i++) {
		void *result = NULL;
		pthread_join(thread[i], &result);
		got[i] = result;
		some += result != NULL;
	}
	return some;
}

static void end_with(cl_mem *got, int count)
{
	fake.aftercreate = NULL;
	fake.beforerelease = NULL;
	fake.cap = 0;
	for (int i = 0; i < count; i++)
		if (got[i])
			OK(clReleaseMemObject(got[i]));
	end_clean();
}

TEST(two_that_fail_together_get_a_block_each)
{
	cl_mem got[2];
	begin_full(8, (struct options){.nouses = true});
	awaited = 2;
	EQUAL(at_once(2, BLOCK, got), 2);
	EQUAL(events(GMT_KIND_EVICT), 2); /* and no more than that */
	end_with(got, 2);
}

TEST(one_block_for_two)
{
	cl_mem got[2];
	begin_full(1, (struct options){.nouses = true});
	awaited = 2;
	EQUAL(at_once(2, BLOCK, got), 1);
	EQUAL(events(GMT_KIND_EVICT), 1);
	end_with(got, 2);
}

/* While one thread releases a block, another fails, and must wait for that. */
TEST(memory_on_its_way_is_waited_for)
{
	cl_mem got[2] = {NULL, NULL};
	pthread_t first;
	begin_full(2, (struct options){.nouses = true});
	held = 2; /* the first create has failed, and another one */
	CHECK(pthread_create(&first, NULL, create_other, (void *)(uintptr_t)(3 * BLOCK)) == 0);
	pthread_mutex_lock(&mutex);
	wait_until(&releasing, 1);
	pthread_mutex_unlock(&mutex);
	got[0] = create_other((void *)(uintptr_t)BLOCK); /* the first has a block on its way */
	CHECK(got[0]);
	void *result = NULL;
	pthread_join(first, &result);
	CHECK(!result); /* it wants more than there is */
	end_with(got, 1);
}

/* A release that waits for the thread that fails: it must not wait for long, and gives up. */
static _Atomic bool stuck, failed;

static void wait_for_flag(const _Atomic bool *flag)
{
	for (int i = 0; !*flag; i++) {
		CHECK(i < 100000);
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
}

static void waits_for_the_failing(cl_mem memory)
{
	(void)memory;
	stuck = true;
	wait_for_flag(&failed);
}

static void *lets_go(void *buffer)
{
	OK(clReleaseMemObject(buffer));
	return NULL;
}

TEST(a_release_that_waits_for_the_program_holds_nobody_up)
{
	begin((struct options){.nouses = true});
	static char host[BLOCK];
	cl_mem own = clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, BLOCK, host, NULL);
	cl_mem pooled = new_buffer(BLOCK);
	OK(clReleaseMemObject(pooled));
	fake.cap = 2 * BLOCK;
	fake.beforerelease = waits_for_the_failing;
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, create_other, (void *)(uintptr_t)(2 * BLOCK)) == 0); /* drains the block */
	wait_for_flag(&stuck);
	cl_int err = 1;
	CHECK(!clCreateBuffer(world.context, CL_MEM_READ_ONLY, 2 * BLOCK, NULL, &err));
	EQUAL(err, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	failed = true;
	void *result = NULL;
	pthread_join(thread, &result);
	fake.beforerelease = NULL;
	CHECK(!result);
	lets_go(own);
	end_clean();
}

TEST(no_more_goes_back_than_twice_what_is_needed)
{
	for (size_t need = 1; need <= 32; need *= 2) {
		static bool begun;
		cl_mem buffer[64];
		if (!begun)
			begin((struct options){.nouses = true});
		begun = true;
		fake.cap = 0;
		for (int i = 0; i < 64; i++)
			buffer[i] = new_buffer(BLOCK);
		for (int i = 0; i < 64; i++)
			OK(clReleaseMemObject(buffer[i]));
		fake.cap = fake.livebytes;
		size_t before = events(GMT_KIND_EVICT);
		cl_mem other = create_other((void *)(uintptr_t)(need * BLOCK));
		CHECK(other);
		size_t given = events(GMT_KIND_EVICT) - before;
		CHECK(given >= need && given <= 2 * need);
		OK(clReleaseMemObject(other));
	}
	fake.cap = 0;
	end_clean();
}

static void *enqueue(void *buffer)
{
	OK(clEnqueueFillBuffer(world.queue, buffer, "x", 1, 0, 16, 0, NULL, NULL));
	return NULL;
}

TEST(commands_that_fail_together_find_what_the_others_gave_back)
{
	pthread_t thread[4];
	cl_mem used[4], buffer[8];
	begin((struct options){.nouses = true});
	for (int i = 0; i < 4; i++)
		used[i] = new_buffer(BLOCK);
	for (int i = 0; i < 8; i++)
		buffer[i] = new_buffer(BLOCK);
	for (int i = 0; i < 8; i++)
		OK(clReleaseMemObject(buffer[i]));
	fake.lazycap = 10 * BLOCK; /* of 12 that are there */
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&thread[i], NULL, enqueue, used[i]) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	CHECK(fake.livebytes <= 10 * BLOCK);
	CHECK(fake.livebytes >= 8 * BLOCK);
	for (int i = 0; i < 4; i++)
		OK(clReleaseMemObject(used[i]));
	end_clean();
}

static void *many(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200; i++) {
		cl_mem buffer = create_other((void *)(uintptr_t)(BLOCK * (size_t)(1 + i % 3)));
		if (buffer)
			OK(clReleaseMemObject(buffer));
		if (i % 2)
			OK(clReleaseMemObject(new_buffer(BLOCK)));
	}
	return NULL;
}

/* There is always room for what is held at a time, so no create may fail: memory is free, in the pool, or on its way. */
TEST(nobody_fails_while_there_is_memory)
{
	pthread_t thread[4];
	begin((struct options){.nouses = true, .waitms = 5000});
	session_start();
	fake.cap = 4 * 4 * BLOCK;
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&thread[i], NULL, many, NULL) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	session_stop();
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_FAILED), 0);
	end_clean();
}

/* What it has goes back to the driver, and the create comes again. */
TEST(a_core_that_fails_for_a_create_leaves_it_memory)
{
	char host[BLOCK];
	cl_int err = 1;
	setenv("FAKE_CORE_FAIL_AT", "3", 1); /* after a plan and its commit */
	begin((struct options){0});
	fake.cap = BLOCK;
	OK(clReleaseMemObject(new_buffer(BLOCK)));
	EQUAL(fake.livememory, 1);
	cl_mem buffer = clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, BLOCK, host, &err);
	OK(err);
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	OK(clReleaseMemObject(buffer));
	end_clean();
}
