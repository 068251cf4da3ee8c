/* test_queues.c: many queues, queues that come and go, threads that share a queue. */
#include "harness.h"

#include <malloc.h>
#include <pthread.h>

/* More queues than a buffer's uses are kept apart for: it cools until all are done, whatever the order. */
static void many_queues(int last)
{
	enum { MANY = GMT_USES + 3 };
	begin((struct options){0});
	cl_command_queue queues[MANY];
	cl_mem buffer = new_buffer(100);
	for (int i = 0; i < MANY; i++) {
		queues[i] = new_queue(world.context, i % 2 ? UNORDERED : 0);
		use(queues[i], buffer);
	}
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	for (int i = 0; i < MANY; i++) {
		EQUAL(events(GMT_KIND_COOLED), 0);
		if (i != last)
			OK(clFinish(queues[i]));
	}
	EQUAL(events(GMT_KIND_COOLED), 0);
	OK(clFinish(queues[last]));
	EQUAL(events(GMT_KIND_COOLED), 1);
	CHECK(new_buffer(100) == buffer);
	EQUAL(release(buffer), GMT_OUTCOME_CACHED); /* the next owner waits for none of them */
	for (int i = 0; i < MANY; i++)
		OK(clReleaseCommandQueue(queues[i]));
	end_clean();
}

TEST(many_queues_that_end_with_the_first)
{
	many_queues(0);
}

TEST(many_queues_that_end_with_the_last)
{
	many_queues(GMT_USES + 2);
}

static cl_mem on_many_queues(cl_command_queue *queues, int many)
{
	cl_mem buffer = new_buffer(100);
	for (int i = 0; i < many; i++) {
		queues[i] = new_queue(world.context, 0);
		use(queues[i], buffer);
	}
	return buffer;
}

TEST(many_queues_that_are_released_with_commands_pending)
{
	enum { MANY = GMT_USES + 3 };
	begin((struct options){0});
	cl_command_queue queues[MANY];
	cl_mem buffer = on_many_queues(queues, MANY);
	for (int i = 0; i < MANY; i++)
		OK(clReleaseCommandQueue(queues[i]));
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	cl_mem fresh = new_buffer(100);
	CHECK(fresh != buffer);
	EQUAL(fake.livequeues, MANY + 1);
	fake_complete_all();
	EQUAL(fake.livequeues, 1);
	cl_mem again = new_buffer(100);
	CHECK(again == buffer);
	use(world.queue, again);
	EQUAL(fake.hazards, 0);
	OK(clReleaseMemObject(again));
	OK(clReleaseMemObject(fresh));
	end_clean();
}

/* A released queue that no marker could be put into is never known to be done, and must not be forgotten. */
TEST(many_queues_and_one_that_is_released_without_a_marker)
{
	enum { MANY = GMT_USES + 3 };
	begin((struct options){0});
	cl_command_queue queues[MANY];
	cl_mem buffer = on_many_queues(queues, MANY);
	fake.failmarkers = 1;
	OK(clReleaseCommandQueue(queues[MANY - 1]));
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	for (int i = 0; i < MANY - 1; i++)
		OK(clFinish(queues[i]));
	EQUAL(events(GMT_KIND_COOLED), 0);
	cl_mem fresh = new_buffer(100);
	use(world.queue, fresh);
	EQUAL(fake.hazards, 0);
	OK(clReleaseMemObject(fresh));
	for (int i = 0; i < MANY - 1; i++)
		OK(clReleaseCommandQueue(queues[i]));
	end_clean();
}

/* A queue's entry is used again while blocks wait for its commands: they are over, those of the new queue are not. */
TEST(a_queue_that_is_used_again_while_blocks_wait_for_it)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem old = new_used(second);
	EQUAL(release(old), GMT_OUTCOME_COOLING);
	OK(clReleaseCommandQueue(second));
	fake_complete_all();
	for (int i = 0; i < 40; i++) { /* through all entries that are free */
		second = new_queue(world.context, 0);
		cl_mem buffer = new_buffer(200);
		use(second, buffer);
		EQUAL(release(buffer), GMT_OUTCOME_COOLING);
		OK(clReleaseCommandQueue(second));
		fake_complete_all();
	}
	CHECK(new_buffer(100) == old);
	OK(clReleaseMemObject(old));
	EQUAL(fake.livequeues, 1);
	end_clean();
}

static pthread_barrier_t meet;

static void *replaces(void *queue)
{
	cl_command_queue fresh = new_queue(world.context, 0);
	pthread_barrier_wait(&meet);
	OK(clReleaseCommandQueue(queue));
	cl_mem buffer = new_buffer(100);
	use(fresh, buffer);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseCommandQueue(fresh));
	return NULL;
}

TEST(a_queue_is_released_with_commands_pending_while_another_appears)
{
	begin((struct options){.nouses = true});
	pthread_barrier_init(&meet, NULL, 2);
	for (int i = 0; i < 300; i++) {
		cl_command_queue second = new_queue(world.context, 0);
		cl_mem buffer = new_used(second);
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, replaces, second) == 0);
		pthread_barrier_wait(&meet);
		OK(clReleaseMemObject(buffer));
		cl_command_queue fresh = new_queue(world.context, 0);
		cl_mem other = new_used(fresh);
		pthread_join(thread, NULL);
		OK(clReleaseMemObject(other));
		OK(clReleaseCommandQueue(fresh));
		if (i % 3 == 0)
			fake_complete_all();
		session_read();
	}
	end_clean();
}

/* Two threads share an ordered queue. The first one's command is in the driver, its enqueue has not returned. */
static cl_mem theirs;
static cl_event their_event;

static void *enqueues(void *unused)
{
	(void)unused;
	theirs = new_buffer(300);
	their_event = fill(world.queue, theirs, 0, NULL);
	return NULL;
}

static void *finishes(void *unused)
{
	(void)unused;
	OK(clFinish(world.queue));
	return NULL;
}

static void in_another_thread(void *(*run)(void *))
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

static void enqueue_elsewhere(void)
{
	in_another_thread(enqueues);
}

static void finish_elsewhere(void)
{
	in_another_thread(finishes);
}

TEST(a_command_counted_late_is_not_taken_for_done)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0); /* nothing is merely ordered */
	cl_mem ours = new_buffer(100);
	fake.aftersubmit = enqueue_elsewhere;
	cl_event event = fill(world.queue, ours, 0, NULL);
	/* The driver has ours first, the shim theirs. Ours completes: theirs must not be taken for done. */
	OK(clWaitForEvents(1, &event));
	EQUAL(fake.pending, 1);
	EQUAL(release(theirs), GMT_OUTCOME_COOLING);
	EQUAL(release(ours), GMT_OUTCOME_CACHED);
	OK(clWaitForEvents(1, &their_event));
	OK(clReleaseEvent(event));
	OK(clReleaseEvent(their_event));
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(a_finish_that_overtakes_an_enqueue_says_less_not_more)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem ours = new_buffer(100);
	fake.aftersubmit = finish_elsewhere; /* completes it before it is counted */
	use(world.queue, ours);
	EQUAL(fake.pending, 0);
	EQUAL(release(ours), GMT_OUTCOME_COOLING);
	OK(clFinish(world.queue));
	EQUAL(events(GMT_KIND_COOLED), 1);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

/* Queues that come and go leave nothing behind, whichever entries their handles have had. */
static void come_and_go(struct options options, bool pending)
{
	begin(options);
	cl_mem buffer = new_buffer(100);
	size_t before = 0;
	for (int i = 0; i < 3000; i++) {
		cl_command_queue queue = new_queue(world.context, 0);
		if (pending)
			use(queue, buffer);
		OK(clReleaseCommandQueue(queue));
		fake_complete_all();
		if (i % 1000 == 0) {
			(void)events(GMT_KIND_USE);    /* read, so that the ring does not fill */
			before = mallinfo2().uordblks; /* 0 under sanitizers */
		}
	}
	CHECK(mallinfo2().uordblks - before < 100000);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(queues_use_entries_again)
{
	come_and_go((struct options){.observe = true}, false);
}

TEST(queues_released_with_commands_pending_use_entries_again)
{
	come_and_go((struct options){.nouses = true}, true);
}

/* The life of an unordered queue, on which commands end in another order. */
static void live(void)
{
	cl_command_queue queue = new_queue(world.context, UNORDERED);
	cl_mem early = new_buffer(100), late = new_buffer(200);
	cl_event event = fill(queue, early, 0, NULL);
	OK(clWaitForEvents(1, &event));
	OK(clReleaseEvent(event));
	OK(clFinish(queue)); /* of what is known to be over */
	use(queue, early);
	event = fill(queue, late, 0, NULL);
	OK(clWaitForEvents(1, &event));
	OK(clReleaseEvent(event));
	EQUAL(release(late), GMT_OUTCOME_CACHED);
	OK(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
	OK(clFlush(queue));
	EQUAL(release(early), GMT_OUTCOME_COOLING);
	OK(clReleaseMemObject(new_buffer(300))); /* puts a marker after it */
	OK(clFinish(queue));
	OK(clReleaseCommandQueue(queue));
}

TEST(a_queue_begins_as_new_whatever_its_entry_was_for)
{
	begin((struct options){0});
	fake.hasty = 1; /* the driver's waits are doubted where they must be */
	use(world.queue, new_buffer(300));
	OK(clFlush(world.queue));
	OK(clFinish(world.queue));
	uint64_t first = 0;
	for (int i = 0; i < 40; i++) { /* through all entries that are free */
		uint64_t before = fake.markers + fake.flushes + fake.waits;
		live();
		uint64_t asked = fake.markers + fake.flushes + fake.waits - before;
		first = i ? first : asked;
		EQUAL(asked, first);
	}
	EQUAL(fake.hazards, 0);
}
