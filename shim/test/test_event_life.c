/* test_event_life.c: events of markers, events that fail, are released early, or whose handles are used again. */
#include "two_queues.h"

TEST(a_marker_of_the_programs_tells_about_all_before_it)
{
	for (int old = 0; old < 2; old++) {
		if (!old)
			start(UNORDERED);
		cl_event ignored[2], marker;
		cl_mem buffer[2];
		for (int i = 0; i < 2; i++)
			buffer[i] = used(second, &ignored[i]);
		OK(old ? clEnqueueMarker(second, &marker) : clEnqueueMarkerWithWaitList(second, 0, NULL, &marker));
		OK(clWaitForEvents(1, &marker));
		for (int i = 0; i < 2; i++) {
			EQUAL(release(buffer[i]), GMT_OUTCOME_CACHED);
			OK(clReleaseEvent(ignored[i]));
		}
		OK(clReleaseEvent(marker));
	}
	EQUAL(fake.markers, 2);
	finish();
}

TEST(a_marker_with_a_wait_list_tells_about_no_more)
{
	start(UNORDERED);
	cl_event first, other, marker;
	cl_mem buffer = used(second, &first), busy = used(second, &other);
	OK(clEnqueueMarkerWithWaitList(second, 1, &first, &marker));
	OK(clWaitForEvents(1, &marker));
	EQUAL(release(busy), GMT_OUTCOME_COOLING);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseEvent(first));
	OK(clReleaseEvent(other));
	OK(clReleaseEvent(marker));
	finish();
}

/* Drivers that allocate late report it there. A program's own event reports what the program likes. */
TEST(a_wait_finds_what_failed_for_lack_of_memory)
{
	start(0);
	cl_event user = clCreateUserEvent(world.context, NULL), first, failed, none;
	cl_mem buffer = used(second, &first), other = used(second, &failed), third = used(second, &none);
	OK(clSetUserEventStatus(user, CL_OUT_OF_RESOURCES));
	fake_fail_event(none, -77);
	EQUAL(clWaitForEvents(2, (cl_event[]){user, none}), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EQUAL(diags(GMT_DIAG_OUT_OF_MEMORY), 0);
	fake_fail_event(failed, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	EQUAL(clWaitForEvents(2, (cl_event[]){first, failed}), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EQUAL(diags(GMT_DIAG_OUT_OF_MEMORY), 1);
	EQUAL(last_event(GMT_KIND_DIAG).status, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	CHECK(strcmp(last_text(GMT_KIND_DIAG), "clWaitForEvents") == 0);
	release(buffer);
	release(other);
	release(third);
	OK(clReleaseEvent(user));
	OK(clReleaseEvent(first));
	OK(clReleaseEvent(failed));
	OK(clReleaseEvent(none));
	finish();
}

/* Nor is it known from here on what runs when: its context's memory is not recycled. */
TEST(a_failed_command_proves_nothing_about_others)
{
	start(0);
	static cl_int reported;
	cl_event first, failed;
	cl_mem buffer = used(second, &first), other = used(second, &failed);
	OK(clSetEventCallback(failed, CL_COMPLETE, count_call, &reported));
	fake_fail_event(failed, -77);
	EQUAL(reported, -77);
	cl_int status = 0;
	OK(clGetEventInfo(failed, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
	EQUAL(status, -77);
	EQUAL(diags(GMT_DIAG_TRANSPARENT), 1);
	EQUAL(release(buffer), GMT_OUTCOME_REFUSED);
	EQUAL(release(other), GMT_OUTCOME_REFUSED);
	OK(clReleaseEvent(first));
	OK(clReleaseEvent(failed));
	OK(clFinish(second));
	EQUAL(events(GMT_KIND_COOLED), 0);
	finish();
}

TEST(a_marker_of_ours_that_fails_proves_nothing)
{
	start(0);
	cl_event event;
	cl_mem buffer = used(second, &event);
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	CHECK(new_buffer(100) != buffer); /* which asks */
	EQUAL(fake_fail_markers(second, -5), 1);
	EQUAL(fake.pending, 1);
	CHECK(new_buffer(100) != buffer); /* which asks again */
	EQUAL(fake.markers, 1);
	EQUAL(diags(GMT_DIAG_TRANSPARENT), 1);
	fake_complete_all();
	CHECK(new_buffer(100) != buffer);
	EQUAL(fake.hazards, 0);
	OK(clReleaseEvent(event));
}

/* Nothing else shows when a queue is done that the program has released. */
TEST(a_marker_that_fails_leaves_a_released_queue_pending)
{
	start(0);
	cl_event event;
	cl_mem buffer = used(second, &event);
	OK(clReleaseEvent(event));
	OK(clReleaseCommandQueue(second));
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	EQUAL(fake_fail_markers(second, -5), 1);
	second = new_queue(world.context, 0);
	OK(clReleaseCommandQueue(second)); /* looks at the released ones */
	second = new_queue(world.context, 0);
	cl_mem fresh = new_buffer(100);
	use(world.queue, fresh);
	EQUAL(fake.hazards, 0);
	CHECK(fresh != buffer);
	OK(clReleaseMemObject(fresh));
	finish();
}

TEST(states_before_the_end_tell_nothing)
{
	start(UNORDERED);
	static cl_int reported;
	cl_event event;
	cl_mem buffer = used(second, &event);
	OK(clSetEventCallback(event, CL_RUNNING, count_call, &reported));
	fake_start_event(event);
	EQUAL(called, 1);
	EQUAL(reported, CL_RUNNING);
	cl_int status = 0;
	cl_ulong time = 1;
	OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
	EQUAL(status, CL_RUNNING);
	EQUAL(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof time, &time, NULL), CL_PROFILING_INFO_NOT_AVAILABLE);
	fake.lazyprofile = 1;
	OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof time, &time, NULL));
	EQUAL(time, 0);
	OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, sizeof time, &time, NULL));
	CHECK(time != 0);
	OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, 0, NULL, NULL));
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	OK(clReleaseEvent(event));
	finish();
}

TEST(events_that_are_released_before_their_command_completes)
{
	start(UNORDERED);
	static cl_int reported = 1;
	cl_event event;
	cl_mem buffer = used(second, &event);
	OK(clSetEventCallback(event, CL_COMPLETE, count_call, &reported));
	OK(clReleaseEvent(event));
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	fake_complete_all();
	EQUAL(called, 1);
	EQUAL(reported, CL_COMPLETE);
	OK(clReleaseMemObject(new_buffer(100)));
	fake_complete_all(); /* the marker, if one was needed */
	CHECK(new_buffer(100));
	EQUAL(events(GMT_KIND_COOLED), 1);
}

TEST(retained_events_tell_until_their_last_release)
{
	start(UNORDERED);
	cl_event event;
	cl_mem buffer = used(second, &event);
	OK(clRetainEvent(event));
	OK(clReleaseEvent(event));
	OK(clWaitForEvents(1, &event));
	EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	OK(clReleaseEvent(event));
	finish();
}

/* The driver hands handles out again at once: what was known of the old event must not be said of the new one. */
TEST(handles_of_events_are_used_again)
{
	start(UNORDERED);
	cl_event event, again, user;
	cl_mem buffer = used(second, &event);
	OK(clWaitForEvents(1, &event));
	OK(clReleaseEvent(event));
	cl_mem other = used(second, &again);
	CHECK(again == event);
	EQUAL(release(other), GMT_OUTCOME_COOLING);
	OK(clFinish(second));
	OK(clReleaseEvent(again));
	user = clCreateUserEvent(world.context, NULL);
	CHECK(user == event);
	cl_mem third = new_buffer(300);
	use(second, third);
	OK(clSetUserEventStatus(user, CL_COMPLETE));
	OK(clWaitForEvents(1, &user));
	EQUAL(release(third), GMT_OUTCOME_COOLING);
	OK(clReleaseEvent(user));
	OK(clReleaseMemObject(buffer));
	finish();
}

/*
 * A driver gives up what waits for a user event as soon as that is set to an error, even where earlier commands of the
 * same queue still run. What waited for it ends as well, and says nothing about these.
 */
static void gives_up(bool afterwards)
{
	start(0);
	cl_command_queue third = new_queue(world.context, 0);
	cl_event user = clCreateUserEvent(world.context, NULL), running, failed, last;
	if (afterwards)
		OK(clSetUserEventStatus(user, -1));
	cl_mem buffer = used(second, &running), other = new_buffer(200);
	failed = fill(second, other, 1, &user);
	last = fill(third, buffer, 1, &failed);
	if (!afterwards)
		OK(clSetUserEventStatus(user, -1));
	fake_fail_event(failed, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	OK(clFinish(third));
	EQUAL(fake.pending, 1);
	EQUAL(release(buffer), afterwards ? GMT_OUTCOME_DRIVER : GMT_OUTCOME_REFUSED);
	cl_mem fresh = new_buffer(100);
	use(world.queue, fresh);
	EQUAL(fake.hazards, 0);
	OK(clFinish(second));
	EQUAL(events(GMT_KIND_COOLED), 0);
	OK(clReleaseMemObject(fresh));
	OK(clReleaseMemObject(other));
	cl_event all[] = {user, running, failed, last};
	for (int i = 0; i < 4; i++)
		OK(clReleaseEvent(all[i]));
	OK(clReleaseCommandQueue(third));
	finish();
}

TEST(what_is_given_up_with_a_user_event_proves_nothing_of_what_is_before_it)
{
	gives_up(false);
}

TEST(what_is_given_up_at_once_proves_nothing_of_what_is_before_it)
{
	gives_up(true);
}
