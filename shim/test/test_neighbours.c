/* test_neighbours.c: a create finds no memory, and the session asks other programs for theirs. */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { BLOCK = 1024 };

/* A session that answers: others give what is needed while they have some. */
static struct {
	struct gmtregion *region;
	pthread_t thread;
	_Atomic int others; /* blocks that they have */
	_Atomic int asked, over, silent;
	_Atomic uint64_t need;
} neighbours;

static void *answer(void *unused)
{
	struct gmtregion *region = neighbours.region;
	for (uint32_t seen = 0; !neighbours.over; usleep(50)) {
		uint32_t ask = __atomic_load_n(&region->asks, __ATOMIC_ACQUIRE);
		if (ask == seen || neighbours.silent)
			continue;
		seen = ask;
		neighbours.asked++;
		neighbours.need = region->lacks;
		region->relieved = neighbours.others > 0;
		if (neighbours.others > 0) {
			neighbours.others--;
			fake.cap += BLOCK;
		}
		__atomic_store_n(&region->answered, ask, __ATOMIC_RELEASE);
	}
	return unused;
}

/* A card of two blocks, which the program has; others have some more. */
static void begin_beside(int others, struct options options, cl_mem *held)
{
	options.neighbours = true;
	begin(options);
	neighbours.others = others;
	neighbours.region = session_region();
	CHECK(pthread_create(&neighbours.thread, NULL, answer, NULL) == 0);
	fake.cap = 2ull * BLOCK;
	for (int i = 0; i < 2; i++)
		held[i] = new_buffer(BLOCK);
}

static void end_beside(cl_mem *held, size_t count)
{
	neighbours.over = 1;
	pthread_join(neighbours.thread, NULL);
	for (size_t i = 0; i < count; i++)
		OK(clReleaseMemObject(held[i]));
	end_clean();
}

static cl_mem create(size_t size, cl_int *status)
{
	return clCreateBuffer(world.context, CL_MEM_READ_ONLY, size, NULL, status);
}

TEST(neighbours_give_what_a_create_lacks)
{
	cl_mem held[4];
	cl_int status;
	begin_beside(2, (struct options){0}, held);
	held[2] = create(2 * BLOCK, &status); /* one block at a time: two asks */
	OK(status);
	EQUAL(neighbours.asked, 2);
	EQUAL(neighbours.need, 2 * BLOCK);
	CHECK(!create(BLOCK, &status));
	EQUAL(status, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	EQUAL(neighbours.asked, 3);
	CHECK(!create(BLOCK, &status)); /* at once: they had nothing */
	EQUAL(neighbours.asked, 3);
	end_beside(held, 3);
}

TEST(the_own_pool_goes_first)
{
	cl_mem held[2];
	cl_int status;
	begin_beside(1, (struct options){0}, held);
	OK(clReleaseMemObject(held[1]));
	held[1] = create(BLOCK, &status); /* of other flags: the free block goes */
	OK(status);
	EQUAL(neighbours.asked, 0);
	end_beside(held, 2);
}

TEST(no_neighbour_is_asked_for_what_a_budget_lacks)
{
	cl_mem held[2];
	cl_int status;
	begin_beside(1, (struct options){.devicememory = 2 * BLOCK}, held);
	CHECK(!create(BLOCK, &status));
	EQUAL(neighbours.asked, 0);
	end_beside(held, 2);
}

/* It stopped, or has much to do: the program waits for half a second. */
TEST(a_session_that_is_silent_does_no_harm)
{
	cl_mem held[2];
	cl_int status;
	neighbours.silent = 1;
	begin_beside(1, (struct options){0}, held);
	CHECK(!create(BLOCK, &status));
	EQUAL(status, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	end_beside(held, 2);
}

static void *want(void *made)
{
	cl_int status;
	cl_mem buffer = create(BLOCK, &status);
	if (buffer)
		atomic_fetch_add((_Atomic int *)made, 1);
	return buffer;
}

TEST(several_threads_ask_one_after_the_other)
{
	_Atomic int made = 0;
	pthread_t thread[4];
	void *buffer[4];
	cl_mem held[2];
	begin_beside(4, (struct options){.nouses = true, .waitms = 5000}, held);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&thread[i], NULL, want, &made) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], &buffer[i]);
	EQUAL(made, 4);
	for (int i = 0; i < 4; i++)
		OK(clReleaseMemObject(buffer[i]));
	end_beside(held, 2);
}
