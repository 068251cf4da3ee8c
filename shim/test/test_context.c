/* test_context.c: programs that release a context and keep what holds it in the driver. */
#include "harness.h"

#include <pthread.h>

static _Atomic int ended;

static void CL_CALLBACK on_end(cl_context context, void *data)
{
	(void)context, (void)data;
	ended++;
}

static enum gmtoutcome created(cl_context context, cl_mem *buffer)
{
	cl_int err = 1;
	*buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 100, NULL, &err);
	OK(err);
	fake_hand_out(*buffer);
	return (enum gmtoutcome)last_event(GMT_KIND_CREATE).outcome;
}

/* Whether a buffer of the context is served by one that was just released. */
static bool pools(cl_context context)
{
	cl_mem buffer;
	created(context, &buffer);
	OK(clReleaseMemObject(buffer));
	bool hit = created(context, &buffer) == GMT_OUTCOME_HIT;
	OK(clReleaseMemObject(buffer));
	return hit;
}

static void nothing_lives(void)
{
	EQUAL(fake.livememory, 0);
	EQUAL(fake.livequeues, 0);
	EQUAL(fake.liveevents, 0);
	EQUAL(fake.livecontexts, 0);
	EQUAL(fake.hazards, 0);
}

TEST(a_queue_keeps_the_pool_of_a_context_that_was_released)
{
	begin((struct options){0});
	OK(clSetContextDestructorCallback(world.context, on_end, NULL));
	cl_command_queue second = new_queue(world.context, 0);
	OK(clReleaseContext(world.context));
	EQUAL(last_event(GMT_KIND_CONTEXT).op, GMT_LIFE_RELEASE);
	EQUAL(held_now(GMT_HELD_CONTEXT).released, 1);
	cl_context context = NULL;
	OK(clGetCommandQueueInfo(second, CL_QUEUE_CONTEXT, sizeof context, &context, NULL));
	CHECK(context == world.context && pools(context));
	OK(clRetainContext(context)); /* as PyOpenCL does for each use */
	CHECK(pools(context));
	OK(clReleaseContext(context));
	char host[100] = "x";
	for (int i = 0; i < 2; i++) /* with a queue of ours */
		OK(clReleaseMemObject(clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, 100, host, NULL)));
	cl_mem busy;
	created(context, &busy);
	use(second, busy);
	EQUAL(release(busy), GMT_OUTCOME_COOLING);
	OK(clReleaseCommandQueue(world.queue));
	CHECK(pools(context));
	EQUAL(ended, 0);
	OK(clReleaseCommandQueue(second)); /* with a command in flight */
	EQUAL(last_event(GMT_KIND_CONTEXT).op, GMT_LIFE_END);
	fake_complete_all();
	EQUAL(ended, 1);
	nothing_lives();
}

/* Buffers keep the context in the driver, but nothing that could use a pool. */
TEST(a_context_that_slept_wakes)
{
	begin((struct options){0});
	cl_mem kept, other;
	created(world.context, &kept);
	OK(clReleaseContext(world.context));
	OK(clReleaseCommandQueue(world.queue));
	EQUAL(last_event(GMT_KIND_CONTEXT).op, GMT_LIFE_END);
	uint64_t number = last_event(GMT_KIND_CONTEXT).object;
	EQUAL(created(world.context, &other), GMT_OUTCOME_DRIVER);
	EQUAL(release(other), GMT_OUTCOME_DRIVER);
	EQUAL(fake.livememory, 1);
	for (int queue = 0; queue < 2; queue++) {
		if (queue)
			world.queue = new_queue(world.context, 0);
		else
			OK(clRetainContext(world.context));
		EQUAL(last_event(GMT_KIND_CONTEXT).op, queue ? GMT_LIFE_CREATE : GMT_LIFE_RETAIN);
		EQUAL(last_event(GMT_KIND_CONTEXT).object, number);
		EQUAL(created(world.context, &other), GMT_OUTCOME_MISS);
		OK(clReleaseMemObject(other));
		CHECK(pools(world.context));
		OK(queue ? clReleaseCommandQueue(world.queue) : clReleaseContext(world.context));
		EQUAL(fake.livememory, 1);
	}
	EQUAL(release(kept), GMT_OUTCOME_REFUSED);
	nothing_lives();
}

static cl_mem taken;

static void *ends_the_pool(void *unused)
{
	(void)unused;
	CHECK(clGetExtensionFunctionAddress("clEnqueueSomethingVENDOR"));
	taken = new_buffer(100);
	return NULL;
}

static void while_the_first_goes(cl_mem memory)
{
	(void)memory;
	pthread_t thread;
	fake.beforerelease = NULL;
	CHECK(pthread_create(&thread, NULL, ends_the_pool, NULL) == 0);
	pthread_join(thread, NULL);
}

/* The pool ends on another thread, which gets a buffer at the address of a block that is among those to evict. */
TEST(a_context_that_goes_takes_no_memory_at_the_address_of_its_own)
{
	begin((struct options){0});
	cl_context other = new_context();
	cl_mem first, second;
	created(other, &first);
	created(other, &second);
	OK(clReleaseMemObject(first));
	EQUAL(release(second), GMT_OUTCOME_CACHED);
	fake.beforerelease = while_the_first_goes;
	OK(clReleaseContext(other));
	CHECK(taken == second);
	EQUAL(fake.livememory, 1);
	OK(clReleaseMemObject(taken));
	end_clean();
}

TEST(a_context_at_the_address_of_one_that_sleeps_begins_anew)
{
	begin((struct options){0});
	cl_context first = world.context;
	CHECK(pools(first));
	uint64_t number = last_event(GMT_KIND_CONTEXT).object;
	end_clean();
	CHECK(new_context() == first);
	CHECK(last_event(GMT_KIND_CONTEXT).object > number);
	cl_mem buffer;
	EQUAL(created(first, &buffer), GMT_OUTCOME_MISS);
	OK(clReleaseMemObject(buffer));
	CHECK(pools(first));
	OK(clReleaseContext(first));
	nothing_lives();
}

TEST(only_the_latest_contexts_that_sleep_can_wake)
{
	enum { MANY = 100, OFTEN = 200 };
	static cl_context contexts[MANY];
	static cl_mem kept[MANY];
	begin((struct options){0});
	cl_context often = new_context();
	cl_mem its;
	created(often, &its);
	for (int i = 0; i < OFTEN; i++) {
		CHECK(pools(often));
		OK(clReleaseContext(often));
		OK(clRetainContext(often));
	}
	OK(clReleaseMemObject(its));
	OK(clReleaseContext(often));
	for (int i = 0; i < MANY; i++) {
		contexts[i] = new_context();
		created(contexts[i], &kept[i]);
		OK(clReleaseContext(contexts[i]));
	}
	for (int i = 0; i < MANY; i++) {
		OK(clRetainContext(contexts[i]));
		EQUAL(pools(contexts[i]), i >= MANY - 64);
		OK(clReleaseContext(contexts[i]));
		OK(clReleaseMemObject(kept[i]));
	}
	EQUAL(fake.livecontexts, 1);
	end_clean();
}

TEST(a_context_that_goes_leaves_what_cools_in_others)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	EQUAL(release(new_used(second)), GMT_OUTCOME_COOLING);
	cl_context other = new_context();
	CHECK(pools(other));
	OK(clReleaseContext(other));
	EQUAL(events(GMT_KIND_COOLED), 0);
	OK(clFinish(second));
	EQUAL(events(GMT_KIND_COOLED), 1);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

/* A block cools on one of two queues, with a marker after its command. */
static cl_mem cools_with_a_marker(cl_context context, cl_command_queue *queues)
{
	cl_mem cooling, other;
	queues[0] = new_queue(context, 0), queues[1] = new_queue(context, 0);
	created(context, &cooling);
	use(queues[0], cooling);
	EQUAL(release(cooling), GMT_OUTCOME_COOLING);
	uint64_t markers = fake.markers;
	created(context, &other);
	OK(clReleaseMemObject(other));
	EQUAL(fake.markers, markers + 1);
	return cooling;
}

TEST(a_terminated_context_gives_up_its_markers_alone)
{
	begin((struct options){0});
	EXTENSION(clTerminateContextKHR);
	cl_context other = new_context();
	cl_command_queue queues[2][2];
	cools_with_a_marker(world.context, queues[0]);
	cl_mem cooling = cools_with_a_marker(other, queues[1]), again;
	EQUAL(fake.liveevents, 4); /* of each a command and a marker */
	OK(clTerminateContextKHR(world.context));
	EQUAL(fake.liveevents, 2);
	EQUAL(fake_complete(queues[1][0], 2), 2);
	bool back = false;
	for (int i = 0; i < 2; i++) {
		EQUAL(created(other, &again), GMT_OUTCOME_HIT);
		back |= again == cooling;
	}
	CHECK(back); /* as its marker said */
	for (int i = 0; i < 4; i++)
		OK(clReleaseCommandQueue(queues[i / 2][i % 2]));
}

enum { THREADS = 6, ROUNDS = 300 };

/* Each thread may be the one whose queue is the context's last. */
static void *come_and_go(void *copies)
{
	char host[100] = "x";
	for (int i = 0; i < ROUNDS; i++) {
		cl_command_queue queue = new_queue(world.context, 0);
		for (int j = 0; j < 3; j++) {
			cl_mem_flags flags = copies ? CL_MEM_COPY_HOST_PTR : CL_MEM_READ_WRITE;
			cl_mem buffer = clCreateBuffer(world.context, flags, 100, copies ? host : NULL, NULL);
			CHECK(buffer);
			fake_hand_out(buffer);
			use(queue, buffer);
			if (i % 3 == j)
				OK(clFinish(queue));
			OK(clReleaseMemObject(buffer));
		}
		OK(clReleaseCommandQueue(queue));
	}
	return NULL;
}

TEST(contexts_fall_asleep_and_wake_on_many_threads)
{
	begin((struct options){0});
	session_start();
	cl_mem kept;
	OK(clReleaseMemObject(new_buffer(100)));
	kept = new_buffer(100);
	OK(clReleaseContext(world.context));
	OK(clReleaseCommandQueue(world.queue));
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, come_and_go, i % 2 ? &ended : NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	fake_complete_all();
	EQUAL(fake.livememory, 1);
	OK(clReleaseMemObject(kept));
	nothing_lives();
	session_stop();
}
