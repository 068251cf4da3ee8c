/* test_hammer.c: threads that do everything at once. The fake driver watches for memory handed out too early. */
#include "harness.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 400, HELD = 6 };

static cl_command_queue shared[3];

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	return *state ^= *state << 5;
}

/* False when memory is short, which only the test that makes it so allows. */
static bool create(cl_mem *slot, size_t size)
{
	if (!fake.cap) {
		*slot = new_buffer(size);
		return true;
	}
	cl_int err = 1;
	*slot = clCreateBuffer(world.context, CL_MEM_READ_WRITE, size, NULL, &err);
	if (*slot) {
		fake_hand_out(*slot);
		return true;
	}
	EQUAL(err, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	fake_complete_all();
	return false;
}

static _Atomic unsigned called;

static void CL_CALLBACK on_event(cl_event event, cl_int status, void *data)
{
	(void)event, (void)status, (void)data;
	cl_mem buffer;
	called++;
	if (create(&buffer, 100)) {
		use(shared[called % 3], buffer);
		OK(clReleaseMemObject(buffer));
	}
}

/* Commands that wait for each other on two queues; what is learned of them in every way. */
static void with_events(uint32_t *random, cl_command_queue queue, cl_mem buffer)
{
	uint32_t dice = next_random(random);
	cl_event event[2];
	cl_int status;
	OK(clEnqueueFillBuffer(queue, buffer, "y", 1, 0, 16, 0, NULL, &event[0]));
	OK(clEnqueueFillBuffer(shared[dice % 3], buffer, "z", 1, 0, 16, 1, &event[0], &event[1]));
	if (dice & 8)
		OK(clSetEventCallback(event[dice >> 4 & 1], CL_COMPLETE, on_event, NULL));
	if (dice & 32)
		OK(clEnqueueBarrierWithWaitList(shared[dice % 3], 0, NULL, NULL));
	if (dice & 64)
		CHECK(fake_complete_event(event[1]));
	if (dice & 128)
		OK(clWaitForEvents(1, &event[dice >> 8 & 1]));
	else
		OK(clGetEventInfo(event[1], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
	for (int i = 0; i < 2; i++)
		OK(clReleaseEvent(event[i]));
}

static cl_mem copied(uint32_t dice)
{
	unsigned char host[800];
	size_t size = 100u << (dice % 4);
	memset(host, (int)(dice >> 8 & 255), sizeof host);
	cl_mem buffer = clCreateBuffer(world.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, size, host, NULL);
	CHECK(buffer && memcmp(fake_contents(buffer), host, size) == 0);
	fake_hand_out(buffer);
	return buffer;
}

static void one_step(uint32_t *random, cl_mem *held, cl_command_queue *own)
{
	uint32_t dice = next_random(random);
	cl_mem *slot = &held[dice % HELD];
	cl_command_queue queue = dice & 64 ? *own : shared[(dice >> 8) % 3];
	if (!*slot && !create(slot, 100u << ((dice >> 12) % 4)))
		return;
	if (dice % 5)
		use(queue, *slot);
	switch ((dice >> 16) % 16) {
	case 0:
		OK(clFinish(queue));
		break;
	case 1:
		OK(clReleaseCommandQueue(*own));
		*own = new_queue(world.context, dice >> 31 ? (cl_command_queue_properties)UNORDERED : 0);
		break;
	case 2:
		fake_complete(queue, 3);
		break;
	case 3:
		OK(clRetainMemObject(*slot));
		OK(clReleaseMemObject(*slot));
		break;
	case 4: {
		cl_buffer_region region = {0, 32};
		cl_mem part = clCreateSubBuffer(*slot, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
		CHECK(part);
		use(queue, part);
		OK(clReleaseMemObject(*slot));
		OK(clReleaseMemObject(part));
		*slot = NULL;
		break;
	}
	case 5: {
		char byte;
		OK(clEnqueueReadBuffer(queue, *slot, CL_TRUE, 0, 1, &byte, 0, NULL, NULL));
		break;
	}
	case 6:
		with_events(random, queue, *slot);
		break;
	case 7:
		if (!fake.cap) {
			OK(clReleaseMemObject(*slot));
			*slot = copied(next_random(random));
		}
		break;
	default:
		OK(clReleaseMemObject(*slot));
		*slot = NULL;
	}
}

static void *hammer(void *arg)
{
	uint32_t random = 0x9e3779b9u * (uint32_t)(1 + (uintptr_t)arg);
	cl_mem held[HELD] = {0};
	cl_command_queue own = new_queue(world.context, 0);
	for (int i = 0; i < ROUNDS; i++)
		one_step(&random, held, &own);
	for (int i = 0; i < HELD; i++)
		if (held[i])
			OK(clReleaseMemObject(held[i]));
	OK(clReleaseCommandQueue(own));
	return NULL;
}

static void all_together(void *(*run)(void *))
{
	pthread_t threads[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void hammer_with(struct options options)
{
	begin(options);
	session_start();
	for (int i = 0; i < 3; i++)
		shared[i] = new_queue(world.context, i == 2 ? (cl_command_queue_properties)UNORDERED : 0);
	all_together(hammer);
	fake_complete_all(); /* and the callbacks, while there is something to call */
	for (int i = 0; i < 3; i++)
		OK(clReleaseCommandQueue(shared[i]));
	end_clean();
	session_stop();
	EQUAL(session_totals().lost, 0);
}

TEST(hammer_on_shared_and_own_queues)
{
	hammer_with((struct options){.tagmode = GMT_TAGS_CALLER, .waitms = 5000});
	CHECK(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT) > 0);
	CHECK(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_COOLING) > 0);
	CHECK(called > 0);
	EQUAL(diags(GMT_DIAG_PANIC), 0);
}

TEST(hammer_with_callbacks_on_threads_of_the_drivers)
{
	fake.callbackthread = 1;
	hammer_with((struct options){.waitms = 5000, .scrub = GMT_SCRUB_POISON});
	CHECK(called > 0);
}

TEST(hammer_within_a_budget)
{
	fake.cap = 1ull << 40; /* only so that creates may fail */
	hammer_with((struct options){.waitms = 5000, .devicememory = 20000});
}

/* The same on parts of a few slabs, which drivers get wrong where they can. */
static void hammer_parts(struct options options)
{
	setenv("FAKE_CORE_SLAB", "8192", 1);
	fake.fragile = fake.countparts = 1;
	hammer_with(options);
}

TEST(hammer_with_parts)
{
	hammer_parts((struct options){.waitms = 5000});
	CHECK(events(GMT_KIND_SLAB) > 0);
	CHECK(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT) > 0);
	CHECK(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_COOLING) > 0);
}

TEST(hammer_with_parts_while_memory_is_short)
{
	fake.cap = 20000;
	hammer_parts((struct options){.waitms = 5000, .scrub = GMT_SCRUB_ZERO});
}

TEST(hammer_with_parts_that_are_not_kept)
{
	setenv("FAKE_CORE_EVICT", "1", 1);
	hammer_parts((struct options){.waitms = 5000, .devicememory = 1u << 20});
}

TEST(hammer_with_parts_while_the_core_fails)
{
	setenv("FAKE_CORE_SLAB", "8192", 1);
	setenv("FAKE_CORE_FAIL_AT", "1500", 1);
	begin((struct options){.nouses = true});
	session_start();
	for (int i = 0; i < 3; i++)
		shared[i] = new_queue(world.context, 0);
	all_together(hammer);
	session_stop();
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	EQUAL(fake.hazards, 0);
}

/* User events come and go beside threads that use two kinds of queues. */
static void *opens(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		cl_event user = clCreateUserEvent(world.context, NULL);
		cl_mem buffer = new_buffer(100);
		use(world.queue, buffer);
		OK(clReleaseMemObject(buffer));
		if (i % 5 == (int)(uintptr_t)arg) {
			cl_command_queue fresh = new_queue(world.context, i % 2 ? (cl_command_queue_properties)UNORDERED : 0);
			cl_mem other = new_buffer(100);
			use(fresh, other);
			OK(clReleaseMemObject(other));
			OK(clReleaseCommandQueue(fresh));
		}
		OK(clSetUserEventStatus(user, CL_COMPLETE));
		OK(clReleaseEvent(user));
		if (i % 7 == 0)
			OK(clFinish(world.queue));
	}
	return NULL;
}

TEST(hammer_with_user_events)
{
	begin((struct options){.waitms = 5000});
	session_start();
	all_together(opens);
	session_stop();
	cl_mem buffer = new_buffer(100);
	use(world.queue, buffer);
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RELEASE).flags, GMT_FLAG_ORDERED); /* all gates are closed again */
	end_clean();
}

TEST(hammer_while_memory_is_short)
{
	fake.cap = 20000;
	hammer_with((struct options){.waitms = 5000});
}

TEST(hammer_while_the_core_fails)
{
	setenv("FAKE_CORE_FAIL_AT", "1500", 1);
	begin((struct options){.nouses = true});
	session_start();
	for (int i = 0; i < 3; i++)
		shared[i] = new_queue(world.context, 0);
	all_together(hammer);
	session_stop();
	EQUAL(diags(GMT_DIAG_PANIC), 1);
	EQUAL(fake.hazards, 0);
}

/* Each thread creates and uses on one ordered queue; others add queues now and then. */
static void *ordered(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		cl_mem buffer = new_buffer(100);
		use(world.queue, buffer);
		OK(clReleaseMemObject(buffer));
		if ((uintptr_t)arg == 0 && i % 8 == 0) {
			cl_command_queue second = new_queue(world.context, 0);
			cl_mem other = new_buffer(100);
			use(second, other);
			OK(clReleaseMemObject(other));
			OK(clReleaseCommandQueue(second));
		}
		if (i % 16 == 0)
			fake_complete(world.queue, 100);
	}
	return NULL;
}

TEST(hammer_with_queues_that_come_and_go)
{
	begin((struct options){.waitms = 5000});
	session_start();
	all_together(ordered);
	session_stop();
	end_clean();
}

/* A buffer and the last of its parts are let go by two threads at the same moment. */
static pthread_barrier_t together;
static cl_mem both[2];

static void *let_go(void *arg)
{
	for (int i = 0; i < ROUNDS * 5; i++) {
		pthread_barrier_wait(&together);
		OK(clReleaseMemObject(both[(uintptr_t)arg]));
		pthread_barrier_wait(&together);
	}
	return NULL;
}

static void parts_and_buffers(bool pooled)
{
	static char storage[100];
	begin((struct options){.nouses = true});
	pthread_t threads[2];
	pthread_barrier_init(&together, NULL, 3);
	for (uintptr_t i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, let_go, (void *)i) == 0);
	for (int i = 0; i < ROUNDS * 5; i++) {
		cl_buffer_region region = {0, 32};
		both[0] = pooled ? new_buffer(100) : clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, 100, storage, NULL);
		both[1] = clCreateSubBuffer(both[0], 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
		pthread_barrier_wait(&together);
		pthread_barrier_wait(&together);
		EQUAL(fake.livememory, pooled);
		session_read();
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	end_clean();
	EQUAL(events(GMT_KIND_EVICT), pooled);
}

TEST(a_buffer_and_its_last_part_go_together)
{
	parts_and_buffers(true);
}

TEST(an_unpooled_buffer_and_its_last_part_go_together)
{
	parts_and_buffers(false);
}
