/* test_order.c: what runs behind what: user events, and queues that appear. */
#include "harness.h"


static void behind(cl_command_queue queue, cl_mem buffer, cl_event event)
{
	OK(clEnqueueFillBuffer(queue, buffer, "x", 1, 0, 16, 1, &event, NULL));
}

static cl_event user_event(void)
{
	cl_int err = 1;
	cl_event event = clCreateUserEvent(world.context, &err);
	OK(err);
	return event;
}

/* Ordered reuse works, or does not, right now; leaves nothing behind. */
static void ordered(bool want)
{
	EQUAL(release(new_used(world.queue)), want ? GMT_OUTCOME_CACHED : GMT_OUTCOME_COOLING);
	OK(clFinish(world.queue));
}

static void opens_and_closes(bool set)
{
	begin((struct options){0});
	ordered(true);
	cl_event event = user_event();
	ordered(false);
	cl_event another = user_event();
	if (set)
		OK(clSetUserEventStatus(event, CL_COMPLETE));
	OK(clReleaseEvent(event));
	ordered(false);
	OK(clSetUserEventStatus(another, CL_COMPLETE));
	EQUAL(clSetUserEventStatus(another, CL_COMPLETE), CL_INVALID_OPERATION); /* counts once */
	ordered(set);
	OK(clReleaseEvent(another));
	ordered(set);
	EQUAL(fake.markers + fake.flushes, 0);
	end_clean();
}

TEST(ordered_reuse_stops_while_a_user_event_is_open)
{
	opens_and_closes(true);
}

TEST(a_user_event_set_to_an_error_ends_the_pool_of_its_context)
{
	begin((struct options){0});
	ordered(true);
	cl_event event = user_event();
	ordered(false);
	OK(clSetUserEventStatus(event, -1));
	EQUAL(release(new_used(world.queue)), GMT_OUTCOME_DRIVER);
	EQUAL(diags(GMT_DIAG_TRANSPARENT), 1);
	OK(clReleaseEvent(event));
	end_clean();
}

TEST(a_user_event_released_unset_stays_open)
{
	opens_and_closes(false);
}

static void CL_CALLBACK release_it(cl_event event, cl_int status, void *data)
{
	(void)status, (void)data;
	OK(clReleaseEvent(event));
}

TEST(a_user_event_released_by_its_callback_is_closed)
{
	begin((struct options){0});
	cl_event event = user_event();
	OK(clSetEventCallback(event, CL_COMPLETE, release_it, NULL));
	OK(clSetUserEventStatus(event, CL_COMPLETE));
	EQUAL(fake.liveevents, 0);
	ordered(true);
	end_clean();
}

TEST(a_user_event_that_cannot_be_made_is_not_open)
{
	begin((struct options){0});
	cl_int err = 0;
	CHECK(!clCreateUserEvent(NULL, &err));
	EQUAL(err, CL_INVALID_CONTEXT);
	ordered(true);
	end_clean();
}

TEST(user_events_of_another_context_do_not_matter)
{
	begin((struct options){0});
	cl_context other = new_context();
	cl_event event = clCreateUserEvent(other, NULL);
	CHECK(event);
	ordered(true);
	OK(clReleaseEvent(event));
	OK(clReleaseContext(other));
	end_clean();
}

/* Whatever may wait for others from now on, on which context, a marker comes before. */
TEST(what_waits_for_other_devices_marks_every_queue_that_is_not_done)
{
	enum { MANY = 9, PENDING = 4 };
	begin((struct options){0});
	cl_context contexts[MANY];
	cl_command_queue queues[MANY];
	for (int i = 0; i < MANY; i++) {
		contexts[i] = new_context();
		queues[i] = new_queue(contexts[i], 0);
		cl_mem buffer = clCreateBuffer(contexts[i], 0, 100, NULL, NULL);
		use(queues[i], buffer);
		EQUAL(release(buffer), GMT_OUTCOME_CACHED); /* behind its command */
		cl_event event = i == PENDING ? NULL : clCreateUserEvent(contexts[i], NULL); /* which puts a marker */
		if (event) {
			OK(clSetUserEventStatus(event, CL_COMPLETE));
			OK(clReleaseEvent(event));
			fake_complete(queues[i], 2);
		}
	}
	EQUAL(fake.markers, MANY - 1);
	CHECK(clGetExtensionFunctionAddress("clEnqueueWaitSemaphoresKHR"));
	EQUAL(fake.markers, MANY);
	for (int i = 0; i < MANY; i++) {
		OK(clFinish(queues[i]));
		OK(clReleaseCommandQueue(queues[i]));
		OK(clReleaseContext(contexts[i]));
	}
	end_clean();
}

/* What was handed out as ordered, then a command that waits for the program: a queue that appears now must run
 * behind the one and not behind the other. */
static void appears_while_open(cl_command_queue_properties properties, bool gone)
{
	begin((struct options){0});
	cl_mem buffer = new_used(world.queue);
	EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	CHECK(new_buffer(100) == buffer);
	cl_event event = user_event();
	cl_mem held = new_buffer(200);
	behind(world.queue, held, event);
	if (gone)
		OK(clReleaseCommandQueue(world.queue));
	cl_command_queue fresh = new_queue(world.context, properties);
	use(fresh, buffer);
	EQUAL(fake.hazards, 0);
	OK(clFinish(fresh)); /* the fake fails when this waits for the event */
	OK(clSetUserEventStatus(event, CL_COMPLETE));
	OK(clReleaseEvent(event));
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(held));
	if (gone) {
		world.queue = fresh;
	} else {
		OK(clFinish(world.queue));
		OK(clReleaseCommandQueue(fresh));
	}
	end_clean();
}

TEST(a_queue_that_appears_while_a_user_event_is_open)
{
	appears_while_open(0, false);
}

TEST(an_unordered_queue_that_appears_while_a_user_event_is_open)
{
	appears_while_open(UNORDERED, false);
}

TEST(a_queue_that_replaces_one_while_a_user_event_is_open)
{
	appears_while_open(0, true);
}

/* The same with as many markers as a queue remembers, and a second user event: the marker that counts must stay. */
TEST(a_second_user_event_keeps_the_marker_of_the_first)
{
	begin((struct options){0});
	cl_event early = user_event(), event[2];
	for (int count = 0; fake.markers < GMT_MARKERS - 1; count++) { /* each create puts one behind what cools */
		CHECK(count < GMT_MARKERS);
		EQUAL(release(new_used(world.queue)), GMT_OUTCOME_COOLING);
	}
	OK(clSetUserEventStatus(early, CL_COMPLETE));
	OK(clReleaseEvent(early));
	cl_mem buffer = clCreateBuffer(world.context, CL_MEM_READ_ONLY, 100, NULL, NULL);
	uint64_t before = fake.markers;
	use(world.queue, buffer);
	EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	event[0] = user_event();
	EQUAL(fake.markers, before + 1);
	cl_mem again = clCreateBuffer(world.context, CL_MEM_READ_ONLY, 100, NULL, NULL);
	CHECK(again == buffer);
	fake_hand_out(again);
	behind(world.queue, again, event[0]);
	event[1] = user_event();
	cl_command_queue fresh = new_queue(world.context, 0);
	cl_mem other = new_buffer(300);
	use(fresh, other);
	OK(clFinish(fresh)); /* not behind the first user event */
	for (int i = 0; i < 2; i++) {
		OK(clSetUserEventStatus(event[i], CL_COMPLETE));
		OK(clReleaseEvent(event[i]));
	}
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(again));
	OK(clReleaseMemObject(other));
	OK(clReleaseCommandQueue(fresh));
	end_clean();
}

TEST(nothing_is_flushed_with_a_user_event_open_and_no_queue_new)
{
	begin((struct options){0});
	cl_event event = user_event();
	for (int i = 0; i < 40; i++) {
		cl_mem buffer = new_buffer(100);
		behind(world.queue, buffer, event);
		EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	}
	EQUAL(fake.flushes + fake.finishes + fake.waits, 0);
	CHECK(fake.markers > 0);
	EQUAL(fake.pending, 40 + fake.markers);
	OK(clSetUserEventStatus(event, CL_COMPLETE));
	OK(clReleaseEvent(event));
	end_clean();
}

TEST(a_new_queue_flushes_once_what_it_waits_for)
{
	begin((struct options){0});
	cl_mem buffer = new_used(world.queue);
	EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	EQUAL(fake.flushes, 0);
	cl_command_queue fresh = new_queue(world.context, 0);
	EQUAL(fake.flushes, 1);
	EQUAL(fake.markers, 1);
	EQUAL(fake.barriers, 1);
	OK(clReleaseCommandQueue(fresh));
	EQUAL(fake.flushes, 1);
	end_clean();
}

TEST(before_opencl_1_2_a_new_queue_is_ordered_as_well)
{
	fake.version = "OpenCL 1.1 fake";
	begin((struct options){0});
	cl_mem buffer = new_used(world.queue);
	EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	cl_command_queue second = new_queue(world.context, 0);
	EQUAL(fake.flushes, 1);
	EQUAL(fake.markers, 1);
	EQUAL(fake.barriers, 1);
	CHECK(new_buffer(100) == buffer);
	use(second, buffer);
	OK(clFinish(second));
	EQUAL(fake.hazards, 0);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(before_opencl_1_2_what_cools_is_asked_for_by_a_marker)
{
	fake.version = "OpenCL 1.1 fake";
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_used(second);
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	cl_mem other = new_buffer(100);
	CHECK(other != buffer);
	EQUAL(fake.markers, 1);
	fake_complete_all();
	CHECK(new_buffer(100) == buffer);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(other));
	OK(clReleaseCommandQueue(second));
	end_clean();
}

/* As of rusticl behind a clFlush: what the program has waited for still runs, and may read what it releases then. */
TEST(a_finish_that_returns_too_early_is_waited_for)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	fake.hasty = 1;
	for (int i = 0; i < 40; i++) {
		cl_mem buffer = new_buffer(100);
		use(world.queue, buffer);
		OK(clFlush(world.queue));
		OK(clFinish(world.queue));
		EQUAL(fake.pending, 0);
		EQUAL(release(buffer), GMT_OUTCOME_CACHED);
		buffer = new_buffer(100);
		use(second, buffer);
		OK(clFinish(second));
		EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	}
	EQUAL(fake.hazards, 0);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

static cl_int status_of(cl_event event)
{
	cl_int status = 1;
	OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
	return status;
}

/* Also of rusticl: only the last command says so then, and the last must not be one of ours. */
TEST(after_a_finish_the_last_command_says_that_it_has_run)
{
	begin((struct options){0});
	fake.rusticl = 1;
	for (int i = 0; i < 20; i++) {
		cl_event event;
		cl_command_queue second = new_queue(world.context, 0);
		cl_mem buffer = new_buffer(100), other = new_used(second);
		OK(clEnqueueFillBuffer(world.queue, buffer, "x", 1, 0, 16, 0, NULL, &event));
		if (i % 2)
			OK(clReleaseMemObject(other)); /* cools */
		OK(clReleaseMemObject(new_used(world.queue)));
		OK(clReleaseEvent(event));
		OK(clEnqueueFillBuffer(world.queue, buffer, "x", 1, 0, 16, 0, NULL, &event));
		cl_mem next = new_buffer(100); /* puts markers */
		OK(clFinish(world.queue));
		EQUAL(status_of(event), CL_COMPLETE);
		OK(clReleaseEvent(event));
		OK(clFinish(second));
		OK(clReleaseMemObject(buffer));
		OK(clReleaseMemObject(next));
		if (!(i % 2))
			OK(clReleaseMemObject(other));
		OK(clReleaseCommandQueue(second));
	}
	EQUAL(fake.hazards, 0);
	end_clean();
}

/* A driver that waits is believed after some, and gets no more markers for it. */
TEST(a_driver_that_finishes_is_believed)
{
	begin((struct options){0});
	OK(clFlush(world.queue));
	for (int i = 0; i < 40; i++) {
		cl_mem buffer = new_buffer(100);
		use(world.queue, buffer);
		OK(clFinish(world.queue));
		EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	}
	EQUAL(fake.flushes, 1 + 2 * 8);
	EQUAL(fake.markers, 2 * 8);
	EQUAL(fake.waits, 8);
	end_clean();
}
