/* test_part_flight.c: parts that are released while something may still use them. */
#include "carved.h"

#include <pthread.h>
#include <sched.h>

TEST(a_part_in_use_cools)
{
	begin_carved((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_used(world.queue);
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	CHECK(is_part(GMT_KIND_RELEASE));
	CHECK(last_event(GMT_KIND_RELEASE).flags & GMT_FLAG_WOULD_RACE);
	EQUAL(fake.livememory, 2); /* the driver keeps it as long as it takes */
	cl_mem other = new_used(second);
	EQUAL(fake.hazards, 0);
	OK(clFinish(world.queue));
	EQUAL(events(GMT_KIND_COOLED), 1);
	CHECK(is_part(GMT_KIND_COOLED));
	EQUAL(fake.livememory, 2);
	cl_mem again = new_used(second); /* of the first one's range */
	EQUAL(fake.hazards, 0);
	OK(clFinish(second));
	OK(clReleaseMemObject(other));
	OK(clReleaseMemObject(again));
	OK(clReleaseCommandQueue(second));
	end_clean();
}

static cl_mem released_late;

/* The ring of this thread is full when it records the release. */
static void *release_late(void *other)
{
	OK(clReleaseMemObject(new_buffer(100))); /* so that its next decision needs no event of its own */
	session_read();
	for (int i = 0; i < GMT_RING_EVENTS; i++)
		OK(clRetainMemObject(other));
	OK(clReleaseMemObject(released_late));
	return NULL;
}

TEST(no_other_thread_ends_the_cooling_of_a_part_before_its_release_is_recorded)
{
	begin_carved((struct options){.waitms = 3600000});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem other = new_buffer(100);
	released_late = new_used(world.queue);
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, release_late, other) == 0);
	while (session_totals().waits == 0)
		CHECK(sched_yield() == 0);
	OK(clFinish(world.queue));
	EQUAL(events(GMT_KIND_COOLED), 0);
	pthread_join(thread, NULL);
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_COOLING);
	OK(clFinish(world.queue));
	EQUAL(events(GMT_KIND_COOLED), 1);
	OK(clReleaseCommandQueue(second));
}

TEST(a_range_that_is_ordered_behind_its_commands_is_handed_out)
{
	begin_carved((struct options){0});
	for (int i = 0; i < 10; i++) {
		cl_mem buffer = new_used(world.queue);
		EQUAL(release(buffer), GMT_OUTCOME_CACHED);
		CHECK(last_event(GMT_KIND_RELEASE).flags & GMT_FLAG_ORDERED);
	}
	cl_mem buffer = new_buffer(100);
	cl_command_queue second = new_queue(world.context, 0); /* which runs behind it all */
	use(second, buffer);
	EQUAL(fake.hazards, 0);
	OK(clFinish(second));
	OK(clReleaseMemObject(buffer));
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(a_hasty_pool_is_noticed)
{
	setenv("FAKE_CORE_HASTY", "1", 1);
	begin_carved((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	OK(clReleaseMemObject(new_used(world.queue)));
	cl_mem buffer = new_used(second);
	EQUAL(fake.hazards, 1);
	OK(clFinish(second));
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(buffer));
	OK(clReleaseCommandQueue(second));
}

static int ended;

static void CL_CALLBACK on_end(cl_mem memory, void *data)
{
	(void)memory;
	EQUAL(ended, (int)(intptr_t)data);
	ended++;
}

static cl_mem with_destructors(void)
{
	fake.earlyends = 1;
	cl_mem buffer = new_buffer(100);
	ended = 0;
	for (intptr_t i = 2; i-- > 0;)
		OK(clSetMemObjectDestructorCallback(buffer, on_end, (void *)i));
	return buffer;
}

TEST(destructors_of_parts_are_called)
{
	begin_carved((struct options){0});
	EQUAL(release(with_destructors()), GMT_OUTCOME_CACHED);
	EQUAL(ended, 2);
	end_clean();
}

/* A driver may call them when the sub-buffer goes, though commands still use its memory (PoCL 3.1 does). */
TEST(destructors_of_parts_wait_for_their_commands)
{
	begin_carved((struct options){0});
	new_queue(world.context, 0);
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = with_destructors();
	use(world.queue, buffer);
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	EQUAL(ended, 0);
	EQUAL(clReleaseMemObject(buffer), CL_INVALID_MEM_OBJECT);
	OK(clFinish(second));
	EQUAL(ended, 0);
	OK(clFinish(world.queue));
	EQUAL(ended, 2);
	OK(clReleaseCommandQueue(second));
}

TEST(destructors_of_parts_are_called_when_their_context_goes)
{
	begin_carved((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = with_destructors();
	use(second, buffer);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseCommandQueue(second));
	end_clean();
	EQUAL(ended, 2);
}

/* Whatever the program does, or stops doing, before its last command on the part has completed. */
static void destructors_wait(bool recorded, bool released)
{
	begin_carved((struct options){0});
	EXTENSION(clCreateCommandBufferKHR);
	EXTENSION(clReleaseCommandBufferKHR);
	cl_command_queue second = new_queue(world.context, 0);
	cl_event gate = clCreateUserEvent(world.context, NULL);
	cl_mem buffer = with_destructors();
	cl_command_buffer_khr recording = recorded ? clCreateCommandBufferKHR(1, &world.queue, NULL, NULL) : NULL;
	OK(clReleaseEvent(fill(second, buffer, 1, &gate)));
	if (released)
		OK(clReleaseCommandQueue(second));
	OK(clReleaseMemObject(buffer));
	fake_complete_all();
	EQUAL(ended, 0);
	OK(clReleaseMemObject(new_buffer(100)));
	EQUAL(ended, 0);
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	fake_complete_all();
	EQUAL(ended, 2); /* without a query */
	OK(clReleaseMemObject(new_buffer(100)));
	OK(clReleaseEvent(gate));
	if (recorded)
		OK(clReleaseCommandBufferKHR(recording));
	if (!released)
		OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(destructors_of_parts_that_stay_taken_wait_for_their_commands)
{
	destructors_wait(true, false);
}

TEST(destructors_of_parts_wait_for_commands_of_released_queues)
{
	destructors_wait(false, true);
}

/* After a failure nothing shows when commands are over: they are called as bare, and not when the context ends. */
TEST(destructors_of_parts_do_not_wait_after_a_failure)
{
	begin_carved((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_event gate = clCreateUserEvent(world.context, NULL);
	cl_mem buffer = new_buffer(100);
	OK(clReleaseEvent(fill(second, buffer, 1, &gate)));
	OK(clSetUserEventStatus(gate, -5));
	fake_complete_all();
	OK(clReleaseCommandQueue(second));
	ended = 0;
	OK(clSetMemObjectDestructorCallback(buffer, on_end, NULL));
	OK(clReleaseMemObject(buffer));
	EQUAL(ended, 1);
	OK(clReleaseEvent(gate));
	end_clean();
}

static cl_event part_in_flight(const cl_event *gate)
{
	cl_command_queue second = new_queue(world.context, 0);
	fake.quietfailures = 1; /* PoCL 3.1 calls nothing back */
	cl_mem buffer = with_destructors();
	cl_event event = fill(second, buffer, gate != NULL, gate);
	OK(clReleaseCommandQueue(second));
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	EQUAL(ended, 0);
	return event;
}

TEST(destructors_of_parts_do_not_wait_for_what_the_program_fails)
{
	begin_carved((struct options){0});
	cl_event gate = clCreateUserEvent(world.context, NULL), event = part_in_flight(&gate);
	OK(clSetUserEventStatus(gate, -5));
	EQUAL(ended, 2); /* the program may ask for nothing more */
	OK(clReleaseEvent(event));
	OK(clReleaseEvent(gate));
	end_clean();
}

TEST(destructors_of_parts_do_not_wait_for_what_fails_by_itself)
{
	begin_carved((struct options){0});
	cl_event event = part_in_flight(NULL);
	fake_fail_event(event, -77);
	EQUAL(ended, 0);
	EQUAL(clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EQUAL(ended, 2);
	OK(clReleaseEvent(event));
	end_clean();
}

TEST(destructors_of_parts_wait_where_there_are_no_markers)
{
	begin_carved((struct options){0});
	new_queue(world.context, 0);
	cl_mem buffer = with_destructors();
	fake.failmarkers = 1;
	use(world.queue, buffer);
	OK(clReleaseMemObject(buffer));
	EQUAL(ended, 0);
	OK(clFinish(world.queue));
	EQUAL(ended, 2);
	EQUAL(events(GMT_KIND_COOLED), 1);
}

TEST(destructors_of_parts_do_not_wait_for_later_commands)
{
	begin_carved((struct options){0});
	cl_event first = clCreateUserEvent(world.context, NULL), second = clCreateUserEvent(world.context, NULL);
	cl_mem buffer = with_destructors(), other = new_buffer(100);
	OK(clReleaseEvent(fill(world.queue, buffer, 1, &first)));
	OK(clReleaseEvent(fill(world.queue, other, 1, &second)));
	OK(clReleaseMemObject(buffer));
	OK(clSetUserEventStatus(first, CL_COMPLETE));
	fake_complete_all();
	EQUAL(ended, 2);
	OK(clSetUserEventStatus(second, CL_COMPLETE));
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(other));
	OK(clReleaseEvent(first));
	OK(clReleaseEvent(second));
	end_clean();
}

/* The first marker after its commands reports their end: of several on the queue, none more is put. It is flushed. */
TEST(destructors_of_parts_wait_for_markers_that_are_there)
{
	begin_carved((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem early = new_used(second), buffer = with_destructors(), other = new_buffer(100);
	EQUAL(release(early), GMT_OUTCOME_COOLING);
	OK(clReleaseMemObject(new_buffer(100))); /* puts a marker */
	use(second, buffer);
	use(second, other);
	OK(clReleaseMemObject(other));
	OK(clReleaseMemObject(new_buffer(100))); /* and another */
	uint64_t markers = fake.markers;
	CHECK(markers > 1);
	EQUAL(fake.flushes, 0);
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	EQUAL(fake.markers, markers);
	EQUAL(fake.flushes, 1);
	EQUAL(ended, 0);
	fake_complete_all();
	EQUAL(ended, 2);
	OK(clReleaseCommandQueue(second));
	OK(clFinish(world.queue));
	end_clean();
}

/* Its range is handed out at once, and only once. */
TEST(destructors_of_parts_that_are_ordered)
{
	begin_carved((struct options){0});
	cl_mem buffer = with_destructors();
	use(world.queue, buffer);
	EQUAL(release(buffer), GMT_OUTCOME_CACHED);
	EQUAL(ended, 0);
	OK(clFinish(world.queue));
	EQUAL(ended, 2);
	EQUAL(events(GMT_KIND_COOLED), 0);
	end_clean();
}

/* What may be used behind our back keeps its range until the context goes. */
static void stays_taken(cl_mem buffer)
{
	OK(clEnqueueFillBuffer(world.queue, buffer, "t", 1, 0, 100, 0, NULL, NULL));
	OK(clFinish(world.queue));
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	for (int i = 0; i < 5; i++) {
		cl_mem other = new_buffer(100);
		CHECK(fake_contents(other)[0] != 't');
		OK(clReleaseMemObject(other));
	}
	EQUAL(events(GMT_KIND_COOLED), 0);
}

TEST(a_part_that_is_still_mapped_stays_until_it_is_not)
{
	begin_carved((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_buffer(100), other;
	void *mapped[2];
	for (int i = 0; i < 2; i++) {
		mapped[i] = clEnqueueMapBuffer(world.queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, 100, 0, NULL, NULL, NULL);
		CHECK(mapped[i]);
	}
	memset(mapped[0], 't', 100);
	EQUAL(release(buffer), GMT_OUTCOME_PINNED);
	EQUAL(diags(GMT_DIAG_STILL_MAPPED), 1);
	for (int i = 0; i < 2; i++) {
		other = new_buffer(100);
		CHECK(fake_contents(other)[0] != 't');
		OK(clReleaseMemObject(other));
		OK(clEnqueueUnmapMemObject(world.queue, buffer, mapped[i], 0, NULL, NULL));
	}
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_COOLING); /* the command may still use it */
	other = new_buffer(100);
	CHECK(fake_contents(other)[0] != 't');
	OK(clReleaseMemObject(other));
	OK(clFinish(world.queue));
	EQUAL(events(GMT_KIND_COOLED), 1);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(parts_and_command_buffers)
{
	begin_carved((struct options){0});
	EXTENSION(clCreateCommandBufferKHR);
	EXTENSION(clReleaseCommandBufferKHR);
	cl_mem buffer = new_buffer(100);
	cl_command_buffer_khr recording = clCreateCommandBufferKHR(1, &world.queue, NULL, NULL);
	CHECK(recording);
	stays_taken(buffer);
	EQUAL(events(GMT_KIND_SLAB), 1);
	CHECK(!is_part(GMT_KIND_CREATE)); /* no new ones meanwhile */
	OK(clReleaseCommandBufferKHR(recording));
	buffer = new_buffer(100);
	CHECK(is_part(GMT_KIND_CREATE));
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(a_part_on_a_queue_that_was_not_seen_made_stays_taken)
{
	begin_carved((struct options){0});
	cl_command_queue unseen = fake_unseen_queue(world.context);
	cl_mem buffer = new_used(unseen);
	stays_taken(buffer);
	fake_complete_all();
	fake.forgiving = 1;
}

static unsigned char first_byte(cl_mem buffer)
{
	return fake_contents(buffer)[0];
}

TEST(recycled_ranges_are_scrubbed)
{
	begin_carved((struct options){.scrub = GMT_SCRUB_POISON});
	cl_mem buffer = new_buffer(100);
	EQUAL(first_byte(buffer), FAKE_FRESH);
	use(world.queue, buffer);
	EQUAL(release(buffer), GMT_OUTCOME_COOLING); /* our queue is not ordered behind it */
	cl_mem other = new_buffer(100);
	EQUAL(first_byte(other), FAKE_FRESH);
	OK(clFinish(world.queue));
	buffer = new_buffer(100);
	EQUAL(first_byte(buffer), GMT_POISON);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(other));
	end_clean();
}

static size_t reads(cl_mem buffer)
{
	char byte;
	OK(clEnqueueReadBuffer(world.queue, buffer, CL_TRUE, 0, 1, &byte, 0, NULL, NULL));
	OK(clReleaseMemObject(buffer));
	return diags(GMT_DIAG_STALE_READ);
}

TEST(stale_contents_of_parts)
{
	begin_carved((struct options){0});
	EQUAL(reads(new_buffer(100)), 0); /* unused before */
	EQUAL(reads(new_buffer(100)), 1);
	EQUAL(reads(new_buffer(500)), 2); /* some of it */
	cl_mem written = new_used(world.queue);
	EQUAL(reads(written), 2);
	end_clean();
}

TEST(released_parts_are_told_of)
{
	begin_carved((struct options){0});
	cl_mem keep = new_buffer(100), buffer = new_buffer(100);
	fake.forgiving = 1;
	OK(clReleaseMemObject(buffer));
	EQUAL(clReleaseMemObject(buffer), CL_INVALID_MEM_OBJECT);
	EQUAL(diags(GMT_DIAG_DOUBLE_RELEASE), 1);
	EQUAL(clEnqueueFillBuffer(world.queue, buffer, "x", 1, 0, 16, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
	EQUAL(diags(GMT_DIAG_USE_AFTER_RELEASE), 1);
	OK(clReleaseMemObject(keep));
	end_clean();
}

static unsigned gone;

static void CL_CALLBACK count_end(cl_mem buffer, void *data)
{
	(void)buffer, (void)data;
	gone++;
}

TEST(many_destructors_of_parts_are_called_after_a_failure)
{
	enum { MANY = 2000 };
	begin_carved((struct options){0});
	EXTENSION(clCreateCommandBufferKHR);
	EXTENSION(clReleaseCommandBufferKHR);
	EXTENSION(clEnqueueCommandBufferKHR);
	fake.quietfailures = 1;
	cl_event event = NULL;
	cl_command_buffer_khr recording = clCreateCommandBufferKHR(1, &world.queue, NULL, NULL);
	OK(clEnqueueCommandBufferKHR(0, NULL, recording, 0, NULL, &event)); /* it may use all of them */
	OK(clReleaseCommandBufferKHR(recording));
	for (int i = 0; i < MANY; i++) {
		cl_mem buffer = new_buffer(100);
		OK(clSetMemObjectDestructorCallback(buffer, count_end, NULL));
		OK(clReleaseMemObject(buffer));
		if (i % 1000 == 0)
			session_read(); /* so that the ring does not fill */
	}
	EQUAL(gone, 0);
	fake_fail_event(event, -77);
	EQUAL(clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EQUAL(gone, MANY);
	OK(clReleaseEvent(event));
	end_clean();
}
