/* test_gaps.c: ways around what the pool looks at: handles that sub-allocations reveal, queues that were not seen, late answers. */
#include "harness.h"

static cl_mem part_of(cl_mem buffer)
{
	cl_buffer_region region = {0, 64};
	cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
	CHECK(part);
	return part;
}

/* As C++ wrappers do with the answer to CL_MEM_ASSOCIATED_MEMOBJECT. */
TEST(a_buffer_held_again_through_its_part)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(4096), part = part_of(buffer);
	OK(clReleaseMemObject(buffer));
	for (int i = 0; i < 3; i++) {
		OK(clRetainMemObject(buffer));
		OK(clReleaseMemObject(buffer));
	}
	cl_mem fresh = new_buffer(4096);
	CHECK(fresh != buffer);
	OK(clRetainMemObject(buffer));
	OK(clReleaseMemObject(part));
	cl_mem other = new_buffer(4096);
	CHECK(other != buffer); /* held again */
	OK(clReleaseMemObject(buffer));
	CHECK(new_buffer(4096) == buffer);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(other));
	OK(clReleaseMemObject(fresh));
	end_clean();
}

TEST(the_same_with_memory_that_is_not_pooled)
{
	static char backing[4096];
	enum { MANY = 200 };
	begin((struct options){0});
	cl_mem parent = clCreateBuffer(world.context, CL_MEM_USE_HOST_PTR, sizeof backing, backing, NULL), part = part_of(parent);
	OK(clReleaseMemObject(parent));
	OK(clRetainMemObject(parent));
	OK(clReleaseMemObject(parent));
	cl_mem many[MANY];
	for (int i = 0; i < MANY; i++)
		many[i] = new_buffer(100);
	OK(clReleaseMemObject(part));
	cl_mem fresh = new_buffer(100);
	for (int i = 0; i < MANY; i++) {
		CHECK(many[i] != fresh);
		OK(clReleaseMemObject(many[i]));
	}
	OK(clReleaseMemObject(fresh));
	end_clean();
}

TEST(commands_on_a_queue_that_nobody_saw)
{
	begin((struct options){0});
	cl_command_queue other = fake_unseen_queue(world.context);
	cl_mem buffer = new_buffer(100);
	use(other, buffer);
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_REFUSED);
	cl_mem fresh = new_buffer(100);
	use(world.queue, fresh);
	EQUAL(fake.hazards, 0);
	OK(clReleaseMemObject(fresh));
	OK(clReleaseCommandQueue(other));
	end_clean();
}

TEST(a_replay_that_is_pending_is_not_written_over)
{
	begin((struct options){.scrub = GMT_SCRUB_ZERO});
	EXTENSION(clCreateCommandBufferKHR);
	EXTENSION(clReleaseCommandBufferKHR);
	EXTENSION(clEnqueueCommandBufferKHR);
	cl_int err = 1;
	cl_mem buffer = new_buffer(100);
	cl_command_buffer_khr recording = clCreateCommandBufferKHR(1, &world.queue, NULL, &err);
	OK(err);
	fake_record(recording, buffer);
	OK(clEnqueueCommandBufferKHR(0, NULL, recording, 0, NULL, NULL));
	OK(clReleaseCommandBufferKHR(recording));
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RELEASE).flags, GMT_FLAG_ORDERED);
	cl_mem fresh = new_buffer(100);
	EQUAL(fake.pending, 1);
	CHECK(fresh != buffer);
	OK(clReleaseMemObject(fresh));
	end_clean();
}

TEST(a_recording_for_two_queues_is_never_known_to_be_over)
{
	begin((struct options){0});
	EXTENSION(clCreateCommandBufferKHR);
	EXTENSION(clReleaseCommandBufferKHR);
	EXTENSION(clEnqueueCommandBufferKHR);
	cl_command_queue second = new_queue(world.context, 0), both[] = {world.queue, second};
	cl_int err = 1;
	cl_mem buffer = new_buffer(100);
	cl_command_buffer_khr recording = clCreateCommandBufferKHR(2, both, NULL, &err);
	OK(err);
	fake_record(recording, buffer);
	OK(clEnqueueCommandBufferKHR(0, NULL, recording, 0, NULL, NULL));
	OK(clReleaseCommandBufferKHR(recording));
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_REFUSED);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

static int ended;

static void CL_CALLBACK on_end(cl_context context, void *data)
{
	(void)context, (void)data;
	ended++;
}

/* A marker of ours would keep the queue, and that the context. */
TEST(a_context_released_before_its_queue_ends)
{
	begin((struct options){0});
	OK(clSetContextDestructorCallback(world.context, on_end, NULL));
	cl_mem buffer = new_buffer(100);
	use(world.queue, buffer);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseContext(world.context));
	OK(clReleaseCommandQueue(world.queue));
	fake_complete_all();
	EQUAL(ended, 1);
	EQUAL(fake.livecontexts, 0);
}

/* The slot of a position is that of another, GMT_WINDOW further on. */
TEST(a_position_one_window_away_is_another)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, UNORDERED);
	cl_mem buffer = new_buffer(100), other = new_buffer(200);
	cl_event events_of[GMT_WINDOW + 1];
	for (int i = 0; i < GMT_WINDOW; i++)
		events_of[i] = fill(second, other, 0, NULL);
	events_of[GMT_WINDOW] = fill(second, buffer, 0, NULL);
	OK(clWaitForEvents(1, &events_of[0]));
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_COOLING);
	for (int i = 0; i <= GMT_WINDOW; i++)
		OK(clReleaseEvent(events_of[i]));
	OK(clReleaseMemObject(other));
	OK(clReleaseCommandQueue(second));
	end_clean();
}
