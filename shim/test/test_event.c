/* test_event.c: what the program learns about its commands, the shim learns with it. */
#include "two_queues.h"

enum way { WAIT, STATUS, PROFILE, CALLBACK_BEFORE, CALLBACK_AFTER, WAYS };

/* The program learns, that way, that a command has completed. */
static void learn(cl_event event, enum way way)
{
	static cl_int status;
	cl_ulong time = 0;
	int before = called;
	status = 99;
	if (way == CALLBACK_BEFORE)
		OK(clSetEventCallback(event, CL_COMPLETE, count_call, &status));
	if (way != WAIT)
		CHECK(fake_complete_event(event));
	switch (way) {
	case WAIT:
		OK(clWaitForEvents(1, &event));
		return;
	case STATUS:
		OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
		break;
	case PROFILE:
		OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof time, &time, NULL));
		CHECK(time != 0);
		return;
	case CALLBACK_AFTER:
		OK(clSetEventCallback(event, CL_COMPLETE, count_call, &status));
		/* fall through */
	default:
		EQUAL(called, before + 1);
	}
	EQUAL(status, CL_COMPLETE);
}

static void each_way(cl_command_queue_properties properties)
{
	start(properties);
	for (int way = 0; way < WAYS; way++) {
		cl_event event;
		cl_mem buffer = used(second, &event);
		learn(event, (enum way)way);
		EQUAL(release(buffer), GMT_OUTCOME_CACHED);
		EQUAL(last_event(GMT_KIND_RELEASE).flags, 0);
		CHECK(new_buffer(100) == buffer);
		OK(clReleaseMemObject(buffer));
		OK(clReleaseEvent(event));
	}
	EQUAL(fake.markers + fake.finishes + fake.flushes, 0);
	EQUAL(fake.waits, 1); /* the program's */
	finish();
}

TEST(every_way_to_learn_of_completion_on_an_ordered_queue)
{
	each_way(0);
}

TEST(every_way_to_learn_of_completion_on_an_unordered_queue)
{
	each_way(UNORDERED);
}

TEST(callbacks_on_a_thread_of_the_drivers_tell_as_well)
{
	fake.callbackthread = 1;
	each_way(UNORDERED);
}

/* The same while the block cools already: the next create finds it. */
TEST(what_cools_is_found_by_the_next_create)
{
	for (int way = 0; way < WAYS; way++) {
		if (way == 0)
			start(UNORDERED);
		cl_event event;
		cl_mem buffer = used(second, &event);
		EQUAL(release(buffer), GMT_OUTCOME_COOLING);
		learn(event, (enum way)way);
		EQUAL(fake.markers, 0);
		CHECK(new_buffer(100) == buffer);
		EQUAL(events(GMT_KIND_COOLED), (size_t)way + 1);
		OK(clReleaseMemObject(buffer));
		OK(clReleaseEvent(event));
	}
	EQUAL(fake.markers, 0);
	finish();
}

TEST(what_nobody_learns_of_is_asked_of_a_marker_at_the_next_create)
{
	start(UNORDERED);
	cl_event event;
	cl_mem buffer = used(second, &event);
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	EQUAL(fake.markers, 0);
	cl_mem other = new_buffer(100);
	CHECK(other != buffer);
	EQUAL(fake.markers, 1);
	fake_complete_all();
	cl_mem again = new_buffer(100);
	CHECK(again == buffer);
	EQUAL(fake.markers, 1);
	EQUAL(fake.finishes + fake.flushes + fake.waits, 0);
	OK(clReleaseMemObject(other));
	OK(clReleaseMemObject(again));
	OK(clReleaseEvent(event));
	finish();
}

/* On an ordered queue a command that is done says that those before it are; on another it speaks for itself. */
static void last_of_three(cl_command_queue_properties properties, enum gmtoutcome want)
{
	start(properties);
	cl_mem buffer[3];
	cl_event event[3];
	for (int i = 0; i < 3; i++)
		buffer[i] = used(second, &event[i]);
	OK(clWaitForEvents(1, &event[2]));
	EQUAL(release(buffer[0]), want);
	EQUAL(release(buffer[1]), want);
	EQUAL(release(buffer[2]), GMT_OUTCOME_CACHED);
	for (int i = 0; i < 3; i++)
		OK(clReleaseEvent(event[i]));
	finish();
}

TEST(an_ordered_queue_is_done_up_to_an_event)
{
	last_of_three(0, GMT_OUTCOME_CACHED);
}

TEST(an_unordered_queue_is_not_done_up_to_an_event)
{
	last_of_three(UNORDERED, GMT_OUTCOME_COOLING);
}

TEST(single_completions_out_of_order_add_up)
{
	enum { MANY = 70 }; /* more than one word of the window */
	start(UNORDERED);
	cl_mem buffer[MANY];
	cl_event event[MANY];
	for (int i = 0; i < MANY; i++)
		buffer[i] = used(second, &event[i]);
	for (int i = MANY - 1; i >= 0; i -= 2) /* the odd ones, latest first */
		OK(clWaitForEvents(1, &event[i]));
	EQUAL(fake.pending, MANY / 2);
	for (int i = 0; i < MANY; i += 7)
		EQUAL(release(buffer[i]), i % 2 ? GMT_OUTCOME_CACHED : GMT_OUTCOME_COOLING);
	for (int i = 0; i < MANY; i += 2)
		OK(clWaitForEvents(1, &event[i]));
	for (int i = 0; i < MANY; i++)
		if (i % 7)
			EQUAL(release(buffer[i]), GMT_OUTCOME_CACHED);
	for (int i = 0; i < MANY; i++)
		OK(clReleaseEvent(event[i]));
	EQUAL(fake.markers, 0);
	finish();
}

/* One after the other is learned of, far more often than the window is long: it moves along. */
TEST(the_window_moves_along)
{
	start(UNORDERED);
	for (int i = 0; i < 3 * GMT_WINDOW; i++) {
		cl_event event;
		cl_mem buffer = used(second, &event);
		OK(clWaitForEvents(1, &event));
		EQUAL(release(buffer), GMT_OUTCOME_CACHED);
		OK(clReleaseEvent(event));
	}
	EQUAL(fake.markers, 0);
	EQUAL(fake.creates, 1);
	finish();
}

/* A command that the program never asks about holds the window up: what lies beyond it is unknown until a fence is passed. */
TEST(what_lies_beyond_the_window_waits_for_what_holds_it_up)
{
	start(UNORDERED);
	cl_event stuck, event;
	cl_mem first = used(second, &stuck), other = new_buffer(200);
	for (int i = 1; i < GMT_WINDOW; i++) {
		cl_event skipped = fill(second, other, 0, NULL);
		OK(clReleaseEvent(skipped));
	}
	cl_mem buffer = used(second, &event), beyond;
	OK(clWaitForEvents(1, &event)); /* at position 257: beyond */
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	OK(clReleaseEvent(event));
	OK(clWaitForEvents(1, &stuck)); /* the window moves on by one */
	beyond = used(second, &event);
	OK(clReleaseEvent(event));
	EQUAL(release(beyond), GMT_OUTCOME_COOLING);
	EQUAL(release(first), GMT_OUTCOME_CACHED);
	OK(clFinish(second));
	EQUAL(release(other), GMT_OUTCOME_CACHED);
	EQUAL(events(GMT_KIND_COOLED), 2);
	OK(clReleaseEvent(stuck));
	finish();
}

/* Bits that were set before a long jump mean nothing after it. */
TEST(a_jump_over_the_window_leaves_nothing_behind)
{
	start(UNORDERED);
	cl_mem other = new_buffer(200);
	cl_event event[2 * GMT_WINDOW + 10];
	for (int round = 0; round < 3; round++) {
		int many = GMT_WINDOW + 5 + round * 100;
		for (int i = 0; i < many; i++)
			event[i] = fill(second, other, 0, NULL);
		for (int i = 2; i < many; i += 2)
			OK(clWaitForEvents(1, &event[i]));
		OK(clFinish(second)); /* jumps */
		for (int i = 0; i < many; i++)
			OK(clReleaseEvent(event[i]));
		cl_mem fresh[GMT_WINDOW];
		for (int i = 0; i < GMT_WINDOW; i++)
			fresh[i] = used(second, &event[i]);
		for (int i = 0; i < GMT_WINDOW; i++)
			EQUAL(release(fresh[i]), GMT_OUTCOME_COOLING);
		for (int i = 0; i < GMT_WINDOW; i++)
			OK(clReleaseEvent(event[i]));
		OK(clFinish(second));
	}
	OK(clReleaseMemObject(other));
	for (int i = 0; i < 48; i++) /* sixteen at a time */
		OK(clFinish(second));
	EQUAL(events(GMT_KIND_COOLED), 3 * GMT_WINDOW);
	finish();
}

/* Several uses of one buffer on an unordered queue: all must be known to be over. */
TEST(several_uses_without_order)
{
	start(UNORDERED);
	cl_event first, last;
	cl_mem buffer = used(second, &first);
	last = fill(second, buffer, 0, NULL);
	OK(clWaitForEvents(1, &last));
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	OK(clWaitForEvents(1, &first));
	CHECK(new_buffer(100) == buffer);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseEvent(first));
	OK(clReleaseEvent(last));
	EQUAL(fake.markers, 0);
	finish();
}

/* A command that waits for an earlier one stands for it. */
TEST(several_uses_in_a_chain)
{
	start(UNORDERED);
	cl_event event[4];
	cl_mem buffer = used(second, &event[0]);
	for (int i = 1; i < 4; i++)
		event[i] = fill(second, buffer, 1, &event[i - 1]);
	cl_event other;
	cl_mem stuck = used(second, &other); /* holds the window up */
	OK(clWaitForEvents(1, &event[3]));
	EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	EQUAL(release(stuck), GMT_OUTCOME_COOLING);
	for (int i = 0; i < 4; i++)
		OK(clReleaseEvent(event[i]));
	OK(clReleaseEvent(other));
	finish();
}

TEST(a_chain_with_a_gap)
{
	start(UNORDERED);
	cl_event first, unrelated, last;
	cl_mem buffer = used(second, &first);
	unrelated = fill(second, buffer, 0, NULL);
	last = fill(second, buffer, 1, &first); /* not behind the second */
	OK(clWaitForEvents(1, &last));
	EQUAL(fake.pending, 1);
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	OK(clWaitForEvents(1, &unrelated));
	OK(clWaitForEvents(1, &first)); /* that it is done has been known to the program only */
	CHECK(new_buffer(100) == buffer);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseEvent(first));
	OK(clReleaseEvent(unrelated));
	OK(clReleaseEvent(last));
	finish();
}

/* The same across queues. */
TEST(a_chain_across_queues)
{
	start(0);
	cl_command_queue third = new_queue(world.context, UNORDERED);
	cl_event first, last;
	cl_mem buffer = used(second, &first);
	last = fill(third, buffer, 1, &first);
	OK(clWaitForEvents(1, &last));
	EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	OK(clReleaseEvent(first));
	OK(clReleaseEvent(last));
	EQUAL(fake.markers, 0);
	OK(clReleaseCommandQueue(third));
	finish();
}

/* An event of an ordered queue stands for all before it, those on other buffers' behalf included. */
TEST(an_event_of_an_ordered_queue_covers_what_is_before_it)
{
	start(0);
	cl_command_queue third = new_queue(world.context, 0);
	cl_event early, late, last;
	cl_mem buffer = used(second, &early), other = used(second, &late);
	last = fill(third, buffer, 1, &late);
	OK(clWaitForEvents(1, &last));
	EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	EQUAL(fake.pending, 0);
	OK(clReleaseMemObject(other));
	OK(clReleaseEvent(early));
	OK(clReleaseEvent(late));
	OK(clReleaseEvent(last));
	OK(clReleaseCommandQueue(third));
	finish();
}

/*
 * A queue that is done says nothing about another one that its commands waited for: they may have been given up.
 */
TEST(a_finished_queue_does_not_speak_for_another)
{
	start(0);
	cl_command_queue third = new_queue(world.context, 0);
	cl_event first, last;
	cl_mem buffer = used(second, &first);
	last = fill(third, buffer, 1, &first);
	OK(clFinish(third));
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	OK(clFinish(second));
	EQUAL(events(GMT_KIND_COOLED), 1);
	OK(clReleaseEvent(first));
	OK(clReleaseEvent(last));
	OK(clReleaseCommandQueue(third));
	finish();
}

static void fences(cl_int (*barrier)(cl_command_queue), enum gmtoutcome want)
{
	start(UNORDERED);
	cl_event before, after;
	cl_mem buffer = used(second, &before), other;
	OK(barrier(second));
	other = used(second, &after);
	CHECK(fake_complete_event(after));
	OK(clWaitForEvents(1, &after));
	EQUAL(release(buffer), want);
	EQUAL(release(other), GMT_OUTCOME_CACHED);
	OK(clReleaseEvent(before));
	OK(clReleaseEvent(after));
	finish();
}

static cl_int plain_barrier(cl_command_queue queue)
{
	return clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL);
}

static cl_int barrier_behind_something(cl_command_queue queue)
{
	cl_event event;
	cl_mem buffer = used(queue, &event);
	cl_int err = clEnqueueBarrierWithWaitList(queue, 1, &event, NULL);
	OK(clReleaseEvent(event));
	OK(clReleaseMemObject(buffer));
	return err;
}

static cl_int plain_marker(cl_command_queue queue)
{
	return clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL);
}

TEST(a_barrier_is_a_fence)
{
	fences(plain_barrier, GMT_OUTCOME_CACHED);
}

TEST(an_old_barrier_is_a_fence)
{
	fences(clEnqueueBarrier, GMT_OUTCOME_CACHED);
}

TEST(a_barrier_with_a_wait_list_is_none)
{
	fences(barrier_behind_something, GMT_OUTCOME_COOLING);
}

TEST(a_marker_is_no_fence)
{
	fences(plain_marker, GMT_OUTCOME_COOLING);
}

/* What a command, a marker or the thread waits for is recorded as the queue and the time of the command there. */
TEST(what_waits_for_what_is_told)
{
	start(0);
	cl_event first, marker, third;
	cl_mem a = used(world.queue, &first);
	struct gmtevent use = last_event(GMT_KIND_USE);
	cl_mem b = new_buffer(100);
	OK(clReleaseEvent(fill(world.queue, b, 1, &first))); /* its own queue has an order anyway */
	EQUAL(events(GMT_KIND_AWAIT), 0);
	OK(clEnqueueMarkerWithWaitList(second, 1, &first, &marker));
	struct gmtevent await = last_event(GMT_KIND_AWAIT);
	EQUAL(await.object, use.link);
	EQUAL(await.size, use.time);
	EQUAL(await.op, GMT_AWAIT_ALL);
	uint64_t marked = await.time, behind = await.link;
	CHECK(behind != use.link);
	third = fill(world.queue, a, 1, &marker);
	await = last_event(GMT_KIND_AWAIT);
	EQUAL(await.object, behind);
	EQUAL(await.size, marked);
	use = last_event(GMT_KIND_USE);
	EQUAL(await.time, use.time);
	EQUAL(await.link, use.link);
	OK(clWaitForEvents(1, &third));
	await = last_event(GMT_KIND_AWAIT);
	EQUAL(await.link, 0);
	EQUAL(await.size, use.time);
	EQUAL(await.time, last_event(GMT_KIND_SYNC).time);
	EQUAL(events(GMT_KIND_AWAIT), 3);
	OK(clReleaseEvent(first));
	OK(clReleaseEvent(marker));
	OK(clReleaseEvent(third));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	finish();
}

TEST(without_an_order_only_the_command_itself_has_ended)
{
	start(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_event first, next;
	cl_mem a = used(second, &first), b = used(second, &next);
	OK(clWaitForEvents(1, &next));
	EQUAL(last_event(GMT_KIND_AWAIT).op, GMT_AWAIT_ONE);
	OK(clReleaseEvent(first));
	OK(clReleaseEvent(next));
	OK(clReleaseMemObject(a));
	OK(clReleaseMemObject(b));
	finish();
}

static void await_without_a_pool(bool uses)
{
	begin((struct options){.observe = true, .nouses = !uses});
	cl_mem buffer = new_buffer(100);
	cl_event event = fill(world.queue, buffer, 0, NULL);
	OK(clWaitForEvents(1, &event));
	EQUAL(events(GMT_KIND_AWAIT), uses);
	OK(clReleaseEvent(event));
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(waits_are_told_of_without_a_pool)
{
	await_without_a_pool(true);
}

TEST(uses_are_written_while_the_session_asks)
{
	begin((struct options){.observe = true, .asked = true});
	cl_mem buffer = new_buffer(100);
	for (uint32_t asked = 0; asked < 4; asked++) {
		size_t uses = events(GMT_KIND_USE), syncs = events(GMT_KIND_SYNC), awaits = events(GMT_KIND_AWAIT);
		session_ask_uses(asked % 2);
		cl_event event = fill(world.queue, buffer, 0, NULL);
		OK(clWaitForEvents(1, &event));
		OK(clReleaseEvent(event));
		EQUAL(events(GMT_KIND_USE) - uses, asked % 2);
		EQUAL(events(GMT_KIND_SYNC) - syncs, asked % 2);
		EQUAL(events(GMT_KIND_AWAIT) - awaits, asked % 2);
	}
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(waits_are_not_told_of_where_uses_are_not)
{
	await_without_a_pool(false);
}
