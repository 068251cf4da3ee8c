/* test_callback.c: functions of the program that the driver calls, from inside our hooks, our own calls, or threads. */
#include "harness.h"

#include <pthread.h>

static int called;
static cl_mem to_release;
static cl_event to_set;
static pthread_t thread;

/* What a program may do there, and each is the program's call: a release, a create, a command, a user event. */
static void work(void)
{
	called++;
	thread = pthread_self();
	if (to_release)
		OK(clReleaseMemObject(to_release));
	to_release = NULL;
	cl_mem buffer = new_buffer(700);
	use(world.queue, buffer);
	OK(clReleaseMemObject(buffer));
	cl_event set = to_set;
	to_set = NULL;
	if (set)
		OK(clSetUserEventStatus(set, CL_COMPLETE));
}

static void CL_CALLBACK on_event(cl_event event, cl_int status, void *data)
{
	(void)event, (void)data;
	EQUAL(status, CL_COMPLETE);
	work();
}

static void CL_CALLBACK on_memory(cl_mem memory, void *data)
{
	(void)memory, (void)data;
	work();
}

static cl_event watched(cl_command_queue queue, cl_mem buffer)
{
	cl_event event = fill(queue, buffer, 0, NULL);
	OK(clSetEventCallback(event, CL_COMPLETE, on_event, NULL));
	return event;
}

struct counts {
	size_t creates, releases, uses;
};

static struct counts count(void)
{
	return (struct counts){events(GMT_KIND_CREATE), events(GMT_KIND_RELEASE), events(GMT_KIND_USE)};
}

static void grew(struct counts before, size_t creates, size_t releases, size_t uses)
{
	struct counts now = count();
	EQUAL(now.creates - before.creates, creates);
	EQUAL(now.releases - before.releases, releases);
	EQUAL(now.uses - before.uses, uses);
}

enum where { IN_FINISH, IN_WAIT, IN_READ, PLACES };

static void trigger(enum where where, cl_event event, cl_mem other)
{
	char byte;
	switch (where) {
	case IN_FINISH:
		OK(clFinish(world.queue));
		break;
	case IN_WAIT:
		OK(clWaitForEvents(1, &event));
		break;
	case IN_READ:
		OK(clEnqueueReadBuffer(world.queue, other, CL_TRUE, 0, 1, &byte, 0, NULL, NULL));
		break;
	case PLACES:
		break;
	}
}

static void calls_inside(bool own_thread)
{
	fake.callbackthread = own_thread;
	begin((struct options){0});
	cl_mem buffer = new_buffer(100), other = new_buffer(200);
	for (int where = 0; where < PLACES; where++) {
		cl_event event = watched(world.queue, buffer);
		to_release = new_buffer(300);
		struct counts before = count();
		trigger((enum where)where, event, other);
		EQUAL(called, where + 1);
		EQUAL(pthread_equal(thread, pthread_self()) != 0, !own_thread);
		grew(before, 1, 2, 1 + (where == IN_READ));
		OK(clReleaseEvent(event));
		OK(clFinish(world.queue));
	}
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(other));
	end_clean();
}

TEST(calls_from_callbacks_inside_our_hooks_are_counted)
{
	calls_inside(false);
}

TEST(calls_from_callbacks_on_other_threads_are_counted)
{
	calls_inside(true);
}

TEST(a_callback_that_is_set_when_all_is_over_runs_at_once)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	cl_event event = fill(world.queue, buffer, 0, NULL);
	OK(clFinish(world.queue));
	struct counts before = count();
	OK(clSetEventCallback(event, CL_COMPLETE, on_event, NULL));
	EQUAL(called, 1);
	grew(before, 1, 1, 1);
	EQUAL(clSetEventCallback(event, CL_COMPLETE, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clSetEventCallback(event, 77, on_event, NULL), CL_INVALID_VALUE);
	EQUAL(clSetEventCallback(NULL, CL_COMPLETE, on_event, NULL), CL_INVALID_EVENT);
	EQUAL(called, 1);
	OK(clReleaseEvent(event));
	OK(clReleaseMemObject(buffer));
	OK(clFinish(world.queue));
	end_clean();
}

/* A user event is set from a callback: its own callback runs inside that. */
TEST(callbacks_inside_callbacks)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	to_set = clCreateUserEvent(world.context, NULL);
	cl_event user = to_set;
	OK(clSetEventCallback(user, CL_COMPLETE, on_event, NULL));
	cl_event event = watched(world.queue, buffer);
	struct counts before = count();
	OK(clFinish(world.queue));
	EQUAL(called, 2);
	grew(before, 2, 2, 2);
	OK(clReleaseEvent(user));
	OK(clReleaseEvent(event));
	OK(clReleaseMemObject(buffer));
	OK(clFinish(world.queue));
	end_clean();
}

TEST(a_callback_sets_a_user_event)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	to_set = clCreateUserEvent(world.context, NULL);
	cl_event user = to_set, event = watched(world.queue, buffer);
	OK(clEnqueueFillBuffer(world.queue, buffer, "x", 1, 0, 16, 1, &user, NULL));
	OK(clWaitForEvents(1, &event));
	EQUAL(called, 1);
	OK(clFinish(world.queue)); /* which the event no longer holds up */
	use(world.queue, buffer);
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RELEASE).flags, GMT_FLAG_ORDERED); /* and order counts again */
	OK(clReleaseEvent(event));
	OK(clReleaseEvent(user));
	end_clean();
}

TEST(calls_from_destructors_are_counted)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	OK(clSetMemObjectDestructorCallback(buffer, on_memory, NULL));
	EQUAL(clSetMemObjectDestructorCallback(buffer, NULL, NULL), CL_INVALID_VALUE);
	to_release = new_buffer(300);
	struct counts before = count();
	OK(clReleaseMemObject(buffer));
	EQUAL(called, 1);
	grew(before, 1, 3, 1);
	end_clean();
}

static void CL_CALLBACK on_free(cl_command_queue queue, cl_uint many, void *pointers[], void *data)
{
	CHECK(queue && data == &called);
	for (cl_uint i = 0; i < many; i++)
		clSVMFree(world.context, pointers[i]);
	called++;
}

TEST(shared_memory_that_is_freed_in_a_callback)
{
	begin((struct options){0});
	void *both[2] = {clSVMAlloc(world.context, 0, 10, 0), clSVMAlloc(world.context, 0, 20, 0)};
	OK(clEnqueueSVMFree(world.queue, 2, both, on_free, &called, 0, NULL, NULL));
	EQUAL(called, 0);
	EQUAL(events(GMT_KIND_RELEASE), 0);
	OK(clFinish(world.queue));
	EQUAL(called, 1);
	EQUAL(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_CACHED), 2);
	end_clean();
	EQUAL(fake.livepointers, 0);
}

static cl_command_queue fresh;

static void CL_CALLBACK makes_a_queue(cl_event event, cl_int status, void *data)
{
	(void)event, (void)status, (void)data;
	called++;
	fresh = new_queue(world.context, 0);
	cl_mem buffer = new_buffer(500);
	use(fresh, buffer);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseCommandQueue(fresh));
}

/* A driver that completes commands inside whatever we call while we hold a lock of ours. */
TEST(callbacks_inside_our_own_calls_do_not_wait_for_us)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	for (int i = 0; i < 20; i++) {
		cl_mem buffer = new_buffer(100);
		cl_event event = fill(second, buffer, 0, NULL);
		OK(clSetEventCallback(event, CL_COMPLETE, i % 2 ? on_event : makes_a_queue, NULL));
		OK(clReleaseMemObject(buffer));
		OK(clReleaseEvent(event));
		fake.eager = 1;
		OK(clReleaseMemObject(new_buffer(100))); /* puts a marker behind it */
		fake.eager = 0;
	}
	CHECK(called > 10); /* most inside our own calls, */
	fake_complete_all();
	EQUAL(called, 20); /* the others here */
	OK(clReleaseCommandQueue(second));
	OK(clFinish(world.queue));
	end_clean();
}

TEST(callbacks_while_released_queues_are_looked_at)
{
	begin((struct options){0});
	for (int i = 0; i < 10; i++) {
		cl_command_queue second = new_queue(world.context, 0), third = new_queue(world.context, 0);
		cl_mem buffer = new_buffer(100);
		cl_event event = fill(second, buffer, 0, NULL);
		OK(clSetEventCallback(event, CL_COMPLETE, makes_a_queue, NULL));
		OK(clReleaseMemObject(buffer));
		OK(clReleaseEvent(event));
		OK(clReleaseCommandQueue(second));
		fake.eager = 1;
		OK(clReleaseCommandQueue(third));
		fake.eager = 0;
		EQUAL(called, i + 1);
	}
	OK(clFinish(world.queue));
	end_clean();
}

static clTerminateContextKHR_fn terminate;

static void CL_CALLBACK ends_the_context(cl_event event, cl_int status, void *data)
{
	(void)event, (void)status, (void)data;
	called++;
	OK(terminate(world.context));
}

/* The queue is locked meanwhile: its second marker is given up later. */
TEST(a_context_ends_while_its_released_queue_is_looked_at)
{
	begin((struct options){0});
	EXTENSION(clTerminateContextKHR);
	terminate = clTerminateContextKHR;
	cl_command_queue second = new_queue(world.context, 0), third = new_queue(world.context, 0);
	cl_mem buffer = new_buffer(100), held = new_buffer(200);
	cl_event event = fill(second, buffer, 0, NULL), gate = clCreateUserEvent(world.context, NULL);
	OK(clSetEventCallback(event, CL_COMPLETE, ends_the_context, NULL));
	OK(clReleaseMemObject(buffer));
	OK(clReleaseEvent(event));
	OK(clReleaseMemObject(new_buffer(100))); /* puts a marker behind it */
	OK(clReleaseEvent(fill(second, held, 1, &gate)));
	OK(clReleaseCommandQueue(second));
	EQUAL(fake.markers, 2);
	fake.eager = 1;
	OK(clReleaseCommandQueue(third));
	fake.eager = 0;
	EQUAL(called, 1);
	OK(clReleaseMemObject(held));
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	OK(clReleaseEvent(gate));
	end_clean();
}

static void CL_CALLBACK on_context(cl_context context, void *data)
{
	CHECK(context);
	*(int *)data += 1;
	cl_context other = new_context();
	cl_mem buffer = clCreateBuffer(other, 0, 100, NULL, NULL);
	CHECK(buffer);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseContext(other));
}

TEST(calls_from_the_end_of_a_context_are_counted)
{
	begin((struct options){0});
	OK(clSetContextDestructorCallback(world.context, on_context, &called));
	EQUAL(clSetContextDestructorCallback(world.context, NULL, NULL), CL_INVALID_VALUE);
	EQUAL(clSetContextDestructorCallback(NULL, on_context, NULL), CL_INVALID_CONTEXT);
	OK(clReleaseMemObject(new_buffer(100)));
	struct counts before = count();
	end_clean();
	EQUAL(called, 1);
	grew(before, 1, 1, 0);
}
