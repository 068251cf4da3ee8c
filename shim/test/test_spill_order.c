/* test_spill_order.c: --spill: what waits for what. */
#define _GNU_SOURCE
#include "spilling.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

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

static cl_event barrier; /* what another thread opens while the first one waits */
static _Atomic bool answered;

static void *open_barrier(void *unused)
{
	(void)unused;
	const struct timespec pause = {.tv_nsec = 100000};
	while (!atomic_load(&answered) && !sleeps(getpid()))
		nanosleep(&pause, NULL);
	OK(clSetUserEventStatus(barrier, CL_COMPLETE));
	return NULL;
}

/* What a write of c answers while commands that use a and b wait for an event, which another thread sets once the write waits. */
static cl_int write_before(cl_command_queue other, cl_mem a, cl_mem b, cl_mem c)
{
	cl_int err;
	barrier = clCreateUserEvent(world.context, &err);
	OK(err);
	cl_event one = fill(world.queue, a, 1, &barrier), two = fill(world.queue, b, 1, &barrier);
	pthread_t thread;
	atomic_store(&answered, false);
	EQUAL(pthread_create(&thread, NULL, open_barrier, NULL), 0);
	cl_int answer = clEnqueueWriteBuffer(other, c, CL_TRUE, 0, 1, "c", 0, NULL, NULL);
	atomic_store(&answered, true);
	EQUAL(pthread_join(thread, NULL), 0);
	OK(clReleaseEvent(one));
	OK(clReleaseEvent(two));
	OK(clReleaseEvent(barrier));
	return answer;
}

/* Commands while a user event is open need not wait for it; and another thread may set it, which on a busy machine is late at times. */
TEST(spill_waits_a_moment_for_what_may_complete)
{
	enum { TRIES = 200 };
	begin_spill();
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	cl_command_queue other = new_queue(world.context, 0);
	int tries = 1;
	for (cl_int answer; (answer = write_before(other, a, b, c)) != CL_SUCCESS; tries++) {
		EQUAL(answer, CL_MEM_OBJECT_ALLOCATION_FAILURE);
		CHECK(tries < TRIES);
	}
	write_all(other, c, 'c');
	check_all(other, c, 'c');
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	OK(clReleaseCommandQueue(other));
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

/* What stands before a marker that the program holds back completes, and is seen to. */
TEST(spill_takes_what_stands_before_what_is_held_back)
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
	write_all(other, c, 'c');
	cl_event behind = fill(world.queue, c, 1, &held); /* its queue is held back, by a marker that is not on a buffer */
	check_all(other, a, 'a');
	EQUAL(clEnqueueFillBuffer(world.queue, b, "x", 1, 0, 16, 0, NULL, NULL), CL_SUCCESS); /* instead of a */
	EQUAL(clEnqueueFillBuffer(other, a, "x", 1, 0, 16, 0, NULL, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
	CHECK(strstr(first_text(GMT_KIND_DIAG), "commands that use it may wait for the program); this thread has not set its user events"));
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	check_all(other, a, 'a');
	OK(clReleaseEvent(behind));
	OK(clReleaseEvent(held));
	OK(clReleaseEvent(gate));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	OK(clReleaseCommandQueue(other));
	end_clean();
}

static void *write_third(void *buffer)
{
	cl_command_queue queue = new_queue(world.context, 0);
	write_all(queue, buffer, 'c');
	OK(clReleaseCommandQueue(queue));
	return NULL;
}

static void pause_ms(unsigned ms)
{
	struct timespec pause = {.tv_nsec = (long)ms * 1000000};
	nanosleep(&pause, NULL);
}

static uint64_t now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* A thread that waits for room, because of what another one holds back, does not keep others from going on. */
TEST(spill_lets_others_go_on_while_a_call_waits)
{
	begin_spill();
	cl_int err;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	cl_mem little = clCreateBuffer(world.context, CL_MEM_READ_WRITE, 100, NULL, &err);
	OK(err);
	cl_event gate = clCreateUserEvent(world.context, &err);
	OK(err);
	cl_event one = fill(world.queue, a, 1, &gate), two = fill(world.queue, b, 1, &gate);
	pthread_t thread;
	EQUAL(pthread_create(&thread, NULL, write_third, c), 0);
	pause_ms(100); /* as long as a call waited before */
	uint64_t start = now_ns();
	OK(clEnqueueFillBuffer(world.queue, little, "x", 1, 0, 100, 0, NULL, NULL));
	CHECK(now_ns() - start < 500000000);
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	EQUAL(pthread_join(thread, NULL), 0);
	check_all(world.queue, c, 'c');
	OK(clReleaseEvent(one));
	OK(clReleaseEvent(two));
	OK(clReleaseEvent(gate));
	OK(clReleaseMemObject(little));
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

/* What a clFinish that returns too early leaves running stays, before memory was short for the first time and after. */
TEST(spill_waits_for_what_a_finish_leaves_running)
{
	begin_spill();
	fake.eager = 0;
	fake.hasty = 1;
	cl_mem list[4];
	for (int i = 0; i < 4; i++)
		list[i] = make(CL_MEM_READ_WRITE, NULL);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 4; i++) {
			fake.eager = 1; /* asking a marker ends what stands before it */
			write_all(world.queue, list[i], 'a');
			fake.eager = 0;
			OK(clEnqueueFillBuffer(world.queue, list[i], "x", 1, 0, BYTES, 0, NULL, NULL));
			OK(clFlush(world.queue));
			OK(clFinish(world.queue));
			cl_command_queue other = new_queue(world.context, 0);
			fake.eager = 1;
			write_all(other, list[(i + 1) % 4], 'b');
			write_all(other, list[(i + 2) % 4], 'c');
			check_all(other, list[i], 'x');
			OK(clReleaseCommandQueue(other));
		}
	fake.hasty = 0;
	for (int i = 0; i < 4; i++)
		OK(clReleaseMemObject(list[i]));
	end_clean();
}

/* A queue that the program has waited for gets no command of ours at its end. Where clFinish is not believed, it does. */
TEST(spill_leaves_nothing_in_a_queue_that_was_finished)
{
	begin_spill();
	cl_mem buffer = make(CL_MEM_READ_WRITE, NULL);
	for (int late = 0; late < 2; late++) {
		cl_command_queue queue = new_queue(world.context, 0);
		OK(clFinish(queue)); /* nothing to wait for */
		OK(clEnqueueFillBuffer(queue, buffer, "x", 1, 0, BYTES, 0, NULL, NULL));
		OK(clFinish(queue));
		if (late)
			OK(clEnqueueFillBuffer(queue, buffer, "y", 1, 0, BYTES, 0, NULL, NULL));
		uint64_t markers = fake.markers;
		OK(clReleaseCommandQueue(queue));
		EQUAL(fake.markers - markers, late);
	}
	OK(clReleaseMemObject(buffer));
	end_clean();
}

static void *make_event(void *context)
{
	cl_int err;
	cl_event event = clCreateUserEvent(context, &err);
	OK(err);
	return event;
}

static void *complete_late(void *gate)
{
	pause_ms(150); /* a call waits less long where its own thread may be the one that must set it */
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	return NULL;
}

/* A user event that was released without a status holds nothing back. */
TEST(spill_forgets_user_events_that_were_given_up)
{
	begin_spill();
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	cl_event given_up = make_event(world.context);
	OK(clRetainEvent(given_up));
	OK(clReleaseEvent(given_up));
	OK(clReleaseEvent(given_up));
	cl_command_queue other = new_queue(world.context, 0);
	pthread_t thread;
	void *gate = NULL;
	EQUAL(pthread_create(&thread, NULL, make_event, world.context), 0);
	EQUAL(pthread_join(thread, &gate), 0);
	cl_event held = gate, one = fill(world.queue, a, 1, &held), two = fill(world.queue, b, 1, &held);
	EQUAL(pthread_create(&thread, NULL, complete_late, gate), 0);
	write_all(other, c, 'c');
	EQUAL(pthread_join(thread, NULL), 0);
	OK(clReleaseEvent(one));
	OK(clReleaseEvent(two));
	OK(clReleaseEvent(held));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	OK(clReleaseCommandQueue(other));
	end_clean();
}

/* Queues that were released while their commands ran leave nothing behind once these have ended. */
TEST(spill_uses_the_entries_of_closed_queues_again)
{
	begin_spill();
	fake.eager = 0;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	size_t before = 0;
	for (int i = 0; i < 3000; i++) {
		cl_command_queue queue = new_queue(world.context, 0);
		use(queue, i % 2 ? a : b);
		OK(clReleaseCommandQueue(queue));
		fake_complete_all();
		if (i % 1000 == 0) {
			(void)events(GMT_KIND_USE);    /* read, so that the ring does not fill */
			before = mallinfo2().uordblks; /* 0 under sanitizers */
		}
	}
	CHECK(mallinfo2().uordblks - before < 100000);
	fake.eager = 1;
	write_all(world.queue, c, 'c'); /* none of them holds anything back */
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	end_clean();
}

static pthread_barrier_t inside;

/* In the driver, for longer than calls waited that have pins themselves. */
static void stay(void)
{
	pthread_barrier_wait(&inside);
	pause_ms(150);
}

static void *use_slowly(void *buffer)
{
	cl_command_queue queue = new_queue(world.context, 0);
	fake.aftersubmit = stay;
	use(queue, buffer);
	OK(clReleaseCommandQueue(queue));
	return NULL;
}

/* A command finds no memory, and all that could go for it is what a call of another thread still uses. */
TEST(spill_waits_for_what_another_call_uses)
{
	begin((struct options){.spill = true});
	fake.eager = 1;
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL);
	write_all(world.queue, a, 'a');
	write_all(world.queue, b, 'b');
	EQUAL(pthread_barrier_init(&inside, NULL, 2), 0);
	pthread_t thread;
	EQUAL(pthread_create(&thread, NULL, use_slowly, b), 0);
	pthread_barrier_wait(&inside);
	fake.enqueueerror = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	fake.failenqueues = 1;
	use(world.queue, a);
	EQUAL(pthread_join(thread, NULL), 0);
	EQUAL(pthread_barrier_destroy(&inside), 0);
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	end_clean();
}

/* There a marker with a list of waits would be a null pointer, see check_version in fake_sync.c. */
TEST(spill_asks_drivers_before_opencl_1_2)
{
	fake.version = "OpenCL 1.1 fake";
	begin_spill();
	cl_mem a = make(CL_MEM_READ_WRITE, NULL), b = make(CL_MEM_READ_WRITE, NULL), c = make(CL_MEM_READ_WRITE, NULL);
	char bytes[BYTES];
	memset(bytes, 'a', sizeof bytes);
	OK(clEnqueueWriteBuffer(world.queue, a, CL_FALSE, 0, BYTES, bytes, 0, NULL, NULL));
	OK(clEnqueueWriteBuffer(world.queue, b, CL_FALSE, 0, BYTES, bytes, 0, NULL, NULL));
	write_all(world.queue, c, 'c');
	CHECK(fake.markers > 0);
	check_all(world.queue, a, 'a');
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	OK(clReleaseMemObject(c));
	end_clean();
}
