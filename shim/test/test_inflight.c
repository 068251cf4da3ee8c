/* test_inflight.c: what becomes of a buffer that is released while queued commands use it. */
#include "harness.h"

#include <pthread.h>

/* Releases a buffer of 100 bytes and returns what the shim did with it. */
static enum gmtoutcome released(cl_mem buffer)
{
	uint64_t flushes = fake.flushes, finishes = fake.finishes, pending = fake.pending, markers = fake.markers;
	OK(clReleaseMemObject(buffer));
	EQUAL(fake.flushes, flushes);
	EQUAL(fake.finishes, finishes);
	EQUAL(fake.pending, pending + fake.markers - markers); /* nothing was waited for */
	return (enum gmtoutcome)last_event(GMT_KIND_RELEASE).outcome;
}

/* A new buffer of that size is, or is not, the old one. */
static void recycled(cl_mem old, bool want)
{
	cl_mem fresh = new_buffer(100);
	EQUAL(fresh == old, want);
	use(world.queue, fresh);
	OK(clFinish(world.queue));
	OK(clReleaseMemObject(fresh));
}

TEST(one_ordered_queue_recycles_at_once)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	use(world.queue, buffer);
	EQUAL(released(buffer), GMT_OUTCOME_CACHED);
	EQUAL(last_event(GMT_KIND_RELEASE).flags, GMT_FLAG_ORDERED);
	EQUAL(fake.pending, 1);
	recycled(buffer, true);
	EQUAL(fake.markers, 0);
	end_clean();
}

TEST(idle_memory_is_plainly_cached)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_buffer(100);
	use(second, buffer);
	OK(clFinish(second));
	EQUAL(released(buffer), GMT_OUTCOME_CACHED);
	EQUAL(last_event(GMT_KIND_RELEASE).flags, 0);
	recycled(buffer, true);
	EQUAL(fake.markers, 0);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(two_queues_make_it_cool_until_finish)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_buffer(100);
	use(second, buffer);
	EQUAL(released(buffer), GMT_OUTCOME_COOLING);
	EQUAL(last_event(GMT_KIND_RELEASE).flags, GMT_FLAG_WOULD_RACE);
	recycled(buffer, false);
	OK(clFinish(second));
	EQUAL(events(GMT_KIND_COOLED), 1);
	recycled(buffer, true);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(without_gating_a_block_is_handed_out_in_flight)
{
	begin((struct options){.ungated = true});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_buffer(100);
	use(second, buffer);
	EQUAL(released(buffer), GMT_OUTCOME_CACHED);
	EQUAL(last_event(GMT_KIND_RELEASE).flags, GMT_FLAG_WOULD_RACE);
	EQUAL(fake.markers, 0);
	recycled(buffer, true);
	EQUAL(fake.hazards, 1); /* as advertised */
	fake.hazards = 0;
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(markers_tell_when_the_device_is_done)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_buffer(100);
	use(second, buffer);
	EQUAL(released(buffer), GMT_OUTCOME_COOLING);
	EQUAL(fake.markers, 0); /* no request for it yet */
	recycled(buffer, false);
	EQUAL(fake.markers, 1 + 2); /* two try the clFinish in it out */
	EQUAL(fake_complete(second, 1), 1); /* the command, not yet the marker */
	recycled(buffer, false);
	EQUAL(fake.markers, 1 + 4);
	EQUAL(fake_complete(second, 1), 1);
	recycled(buffer, true);
	EQUAL(events(GMT_KIND_COOLED), 1);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(one_marker_serves_many_releases)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffers[20];
	for (int i = 0; i < 20; i++) {
		buffers[i] = new_buffer(100);
		use(second, buffers[i]);
	}
	for (int i = 0; i < 20; i++)
		EQUAL(released(buffers[i]), GMT_OUTCOME_COOLING);
	OK(clReleaseMemObject(new_buffer(100)));
	EQUAL(fake.markers, 1);
	EQUAL(fake_complete(second, 21), 21);
	OK(clFinish(world.queue)); /* any wait of the program's will do to look */
	EQUAL(events(GMT_KIND_COOLED), 16); /* at most that many at a time */
	OK(clFinish(world.queue));
	EQUAL(events(GMT_KIND_COOLED), 20);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(more_markers_than_a_queue_remembers)
{
	enum { MANY = 3 * GMT_MARKERS };
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	for (int i = 0; i < MANY; i++) {
		cl_mem buffer = new_buffer(100);
		use(second, buffer);
		EQUAL(released(buffer), GMT_OUTCOME_COOLING);
	}
	EQUAL(fake.markers, MANY - 1); /* each create asks about what was released before */
	EQUAL(fake.creates, MANY);
	CHECK(fake.liveevents <= 2 * MANY);
	while (fake_complete(second, 1))
		OK(clFinish(world.queue));
	for (int i = 0; i < 4; i++)
		OK(clFinish(world.queue));
	EQUAL(events(GMT_KIND_COOLED), MANY - 1); /* no query about the last */
	OK(clFinish(second));
	EQUAL(events(GMT_KIND_COOLED), MANY);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(an_unordered_queue_makes_it_cool)
{
	begin((struct options){0});
	OK(clReleaseCommandQueue(world.queue));
	world.queue = new_queue(world.context, UNORDERED);
	cl_mem buffer = new_buffer(100);
	use(world.queue, buffer);
	EQUAL(released(buffer), GMT_OUTCOME_COOLING);
	cl_mem other = new_buffer(100);
	CHECK(other != buffer);
	char byte;
	/* A blocking read says nothing about the rest of such a queue. */
	OK(clEnqueueReadBuffer(world.queue, other, CL_TRUE, 0, 1, &byte, 0, NULL, NULL));
	EQUAL(events(GMT_KIND_COOLED), 0);
	EQUAL(released(other), GMT_OUTCOME_CACHED);
	OK(clFinish(world.queue));
	EQUAL(events(GMT_KIND_COOLED), 1);
	end_clean();
}

TEST(a_user_event_makes_it_cool)
{
	begin((struct options){0});
	cl_event gate = clCreateUserEvent(world.context, NULL);
	cl_mem buffer = new_buffer(100);
	OK(clEnqueueFillBuffer(world.queue, buffer, "x", 1, 0, 16, 1, &gate, NULL));
	EQUAL(released(buffer), GMT_OUTCOME_COOLING);
	EQUAL(fake_complete(world.queue, 9), 0);
	CHECK(new_buffer(100) != buffer);
	OK(clSetUserEventStatus(gate, CL_COMPLETE));
	OK(clFinish(world.queue));
	EQUAL(events(GMT_KIND_COOLED), 1);
	CHECK(new_buffer(100) == buffer);
	OK(clReleaseEvent(gate));
}

static void CL_CALLBACK native(void *unused)
{
	(void)unused;
}

TEST(a_native_kernel_makes_it_cool)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	OK(clEnqueueNativeKernel(world.queue, native, NULL, 0, 1, &buffer, NULL, 0, NULL, NULL));
	EQUAL(released(buffer), GMT_OUTCOME_COOLING);
	CHECK(new_buffer(100) != buffer);
	OK(clFinish(world.queue));
	EQUAL(events(GMT_KIND_COOLED), 1);
	CHECK(new_buffer(100) == buffer);
}

TEST(a_blocking_call_completes_what_is_before_it)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_buffer(100), other = new_buffer(200);
	use(second, buffer);
	EQUAL(released(buffer), GMT_OUTCOME_COOLING);
	char byte;
	OK(clEnqueueReadBuffer(second, other, CL_TRUE, 0, 1, &byte, 0, NULL, NULL));
	EQUAL(last_event(GMT_KIND_SYNC).op, GMT_SYNC_BLOCKING);
	EQUAL(events(GMT_KIND_COOLED), 1);
	recycled(buffer, true);
	EQUAL(released(other), GMT_OUTCOME_CACHED);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(kernel_arguments_count_as_uses)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	cl_mem buffer = new_buffer(100), fresh = new_buffer(100);
	OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
	OK(clSetKernelArg(kernel, 3, 8, &(uint64_t){42}));
	OK(clEnqueueNDRangeKernel(second, kernel, 1, NULL, &(size_t){1}, NULL, 0, NULL, NULL));
	EQUAL(last_event(GMT_KIND_USE).op, GMT_COMMAND_KERNEL);
	EQUAL(last_event(GMT_KIND_USE).granted, 1);
	EQUAL(events(GMT_KIND_USE), 1);
	OK(clSetKernelArg(kernel, 0, sizeof fresh, &fresh)); /* what was enqueued still counts */
	EQUAL(released(buffer), GMT_OUTCOME_COOLING);
	cl_kernel clone = clCloneKernel(kernel, NULL);
	OK(clEnqueueTask(second, clone, 0, NULL, NULL));
	EQUAL(released(fresh), GMT_OUTCOME_COOLING);
	OK(clReleaseKernel(clone));
	OK(clReleaseKernel(kernel));
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(every_command_counts_as_a_use)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	static char host[100];
	size_t zero[3] = {0}, one[3] = {1, 1, 1};
	cl_mem big = new_buffer(4096);
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 16, .image_height = 16};
	cl_mem image = clCreateImage(world.context, 0, &format, &desc, NULL, NULL);
	for (int i = 0; i < 11; i++) {
		cl_mem b = new_buffer(100);
		cl_int err = 1;
		switch (i) {
		case 0: err = clEnqueueReadBuffer(second, b, CL_FALSE, 0, 1, host, 0, NULL, NULL); break;
		case 1: err = clEnqueueWriteBuffer(second, b, CL_FALSE, 0, 1, host, 0, NULL, NULL); break;
		case 2: err = clEnqueueReadBufferRect(second, b, CL_FALSE, zero, zero, one, 0, 0, 0, 0, host, 0, NULL, NULL); break;
		case 3: err = clEnqueueWriteBufferRect(second, b, CL_FALSE, zero, zero, one, 0, 0, 0, 0, host, 0, NULL, NULL); break;
		case 4: err = clEnqueueCopyBuffer(second, b, big, 0, 0, 1, 0, NULL, NULL); break;
		case 5: err = clEnqueueCopyBuffer(second, big, b, 0, 0, 1, 0, NULL, NULL); break;
		case 6: err = clEnqueueCopyBufferRect(second, big, b, zero, zero, one, 0, 0, 0, 0, 0, NULL, NULL); break;
		case 7: err = clEnqueueFillBuffer(second, b, "x", 1, 0, 1, 0, NULL, NULL); break;
		case 8: err = clEnqueueCopyImageToBuffer(second, image, b, zero, one, 0, 0, NULL, NULL); break;
		case 9: err = clEnqueueCopyBufferToImage(second, b, image, 0, zero, one, 0, NULL, NULL); break;
		case 10: err = clEnqueueMigrateMemObjects(second, 1, &b, 0, 0, NULL, NULL); break;
		}
		OK(err);
		EQUAL(released(b), GMT_OUTCOME_COOLING);
	}
	OK(clFinish(second));
	EQUAL(events(GMT_KIND_COOLED), 11);
	OK(clReleaseMemObject(image));
	OK(clReleaseMemObject(big));
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(finished_queues_make_room_for_others)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	for (int i = 0; i < 4 * GMT_USES; i++) {
		cl_command_queue queue = new_queue(world.context, 0);
		use(queue, buffer);
		OK(clFinish(queue));
		OK(clReleaseCommandQueue(queue));
	}
	EQUAL(released(buffer), GMT_OUTCOME_CACHED);
	end_clean();
}

TEST(a_queue_released_with_commands_pending)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	use(world.queue, buffer);
	OK(clReleaseCommandQueue(world.queue));
	EQUAL(fake.livequeues, 1);
	EQUAL(released(buffer), GMT_OUTCOME_COOLING);
	world.queue = new_queue(world.context, 0);
	recycled(buffer, false);
	fake_complete_all();
	recycled(buffer, true);
	EQUAL(fake.livequeues, 1);
	end_clean();
}

TEST(without_markers_a_released_queue_proves_nothing)
{
	begin((struct options){0});
	fake.failmarkers = 1;
	cl_mem buffer = new_buffer(100);
	use(world.queue, buffer);
	OK(clReleaseCommandQueue(world.queue));
	EQUAL(released(buffer), GMT_OUTCOME_COOLING);
	world.queue = new_queue(world.context, 0);
	recycled(buffer, false);
	recycled(buffer, false);
	end_clean();
}

/* Commands may wait for a semaphore from then on, in all contexts: more than are looked at together. */
TEST(all_of_a_hundred_contexts_are_marked_before_the_first_semaphore)
{
	begin((struct options){0});
	enum { MANY = 100 };
	cl_context context[MANY];
	cl_command_queue queue[MANY];
	cl_mem buffer[MANY];
	for (int i = 0; i < MANY; i++) {
		context[i] = new_context();
		queue[i] = new_queue(context[i], 0);
		buffer[i] = clCreateBuffer(context[i], CL_MEM_READ_WRITE, 100, NULL, NULL);
		use(queue[i], buffer[i]);
		OK(clReleaseMemObject(buffer[i]));
		CHECK(clCreateBuffer(context[i], CL_MEM_READ_WRITE, 100, NULL, NULL) == buffer[i]);
	}
	uint64_t before = fake.markers;
	CHECK(clGetExtensionFunctionAddress("clEnqueueWaitSemaphoresKHR"));
	EQUAL(fake.markers, before + MANY);
	for (int i = 0; i < MANY; i++) {
		OK(clFinish(queue[i]));
		OK(clReleaseMemObject(buffer[i]));
		OK(clReleaseCommandQueue(queue[i]));
		OK(clReleaseContext(context[i]));
	}
	end_clean();
}

TEST(a_second_queue_runs_behind_the_first)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	use(world.queue, buffer);
	OK(clReleaseMemObject(buffer));
	CHECK(new_buffer(100) == buffer); /* freed as ordered, in use by its next owner */
	cl_command_queue second = new_queue(world.context, 0), third = new_queue(world.context, UNORDERED);
	EQUAL(fake.barriers, 2); /* each behind what the buffer was handed out behind */
	use(second, buffer);
	use(third, buffer);
	EQUAL(fake.hazards, 0);
	OK(clFinish(third));
	OK(clFinish(second));
	OK(clReleaseMemObject(buffer));
	OK(clReleaseCommandQueue(second));
	OK(clReleaseCommandQueue(third));
	end_clean();
}

/* A hand-out behind the first queue says nothing of a queue that is over, nor of one that has its entry now. */
TEST(a_queue_is_not_held_up_by_the_entry_of_an_earlier_one)
{
	enum { MANY = 40 }; /* so that one has the entry */
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0), later[MANY];
	cl_mem buffer = new_used(world.queue), other = new_buffer(200);
	use(second, buffer);
	OK(clFinish(second));
	OK(clReleaseCommandQueue(second));
	OK(clReleaseMemObject(buffer));
	cl_event user = clCreateUserEvent(world.context, NULL);
	for (int i = 0; i < MANY; i++) {
		later[i] = new_queue(world.context, 0);
		OK(clReleaseEvent(fill(later[i], other, 1, &user)));
	}
	second = new_queue(world.context, 0);
	OK(clFinish(second));
	OK(clSetUserEventStatus(user, CL_COMPLETE));
	OK(clReleaseEvent(user));
	for (int i = 0; i < MANY; i++)
		OK(clReleaseCommandQueue(later[i]));
	OK(clReleaseCommandQueue(second));
	OK(clReleaseMemObject(other));
	end_clean();
}

TEST(a_second_queue_runs_behind_the_first_without_markers)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	use(world.queue, buffer);
	OK(clReleaseMemObject(buffer));
	CHECK(new_buffer(100) == buffer);
	fake.failmarkers = 1;
	cl_command_queue second = new_queue(world.context, 0);
	use(second, buffer);
	EQUAL(fake.hazards, 0);
	OK(clReleaseMemObject(buffer));
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(a_new_queue_runs_behind_one_that_is_gone)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100);
	use(world.queue, buffer);
	OK(clReleaseMemObject(buffer));
	CHECK(new_buffer(100) == buffer);
	OK(clReleaseCommandQueue(world.queue));
	world.queue = new_queue(world.context, 0);
	EQUAL(fake.barriers, 1);
	use(world.queue, buffer);
	EQUAL(fake.hazards, 0);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(queues_without_ordered_reuse_get_no_barrier)
{
	begin((struct options){0});
	use(world.queue, new_buffer(100));
	cl_command_queue second = new_queue(world.context, 0);
	EQUAL(fake.barriers, 0);
	EQUAL(fake.markers, 0);
	OK(clReleaseCommandQueue(second));
}

TEST(a_context_goes_with_blocks_cooling_and_cached)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem cooling = new_buffer(100), cached = new_buffer(100);
	use(second, cooling);
	EQUAL(released(cooling), GMT_OUTCOME_COOLING);
	EQUAL(released(cached), GMT_OUTCOME_CACHED);
	OK(clReleaseCommandQueue(second));
	end_clean();
	EQUAL(events(GMT_KIND_EVICT), 2);
}

TEST(buffers_may_outlive_their_context)
{
	begin((struct options){0});
	cl_mem buffer = new_buffer(100), busy = new_buffer(100);
	use(world.queue, busy);
	OK(clReleaseContext(world.context));
	OK(clReleaseCommandQueue(world.queue));
	EQUAL(fake.livecontexts, 1);
	OK(clReleaseMemObject(buffer));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_REFUSED);
	OK(clReleaseMemObject(busy));
	fake_complete_all();
	EQUAL(fake.livememory, 0);
	EQUAL(fake.livequeues, 0);
	EQUAL(fake.livecontexts, 0);
}

TEST(a_hasty_pool_would_be_caught)
{
	setenv("FAKE_CORE_HASTY", "1", 1);
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_buffer(100);
	use(second, buffer);
	OK(clReleaseMemObject(buffer));
	CHECK(new_buffer(100) == buffer);
	use(world.queue, buffer);
	EQUAL(fake.hazards, 1);
}

static cl_mem released_meanwhile;
static uint64_t markers_meanwhile;

static void *release_and_create(void *arg)
{
	EQUAL(released(released_meanwhile), GMT_OUTCOME_COOLING);
	cl_mem fresh = new_buffer(100);
	CHECK(fresh != released_meanwhile);
	OK(clReleaseMemObject(fresh));
	return arg;
}

static void in_another_thread(void *arg)
{
	(void)arg;
	uint64_t before = fake.markers;
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, release_and_create, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	markers_meanwhile = fake.markers - before;
}

/* The markers that another thread puts on a queue while this thread reads. */
static uint64_t markers_while_reading(cl_command_queue queue, cl_bool blocking)
{
	char byte;
	cl_mem read = new_buffer(200);
	released_meanwhile = new_buffer(100);
	use(queue, released_meanwhile);
	atomic_store(&fake.beforeread, in_another_thread);
	OK(clEnqueueReadBuffer(queue, read, blocking, 0, 1, &byte, 0, NULL, NULL));
	atomic_store(&fake.beforeread, NULL);
	OK(clFinish(queue));
	OK(clReleaseMemObject(read));
	return markers_meanwhile;
}

/* rusticl holds a lock while it waits, which every enqueue on that queue takes. */
TEST(no_marker_comes_onto_a_queue_that_the_program_waits_for)
{
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	EQUAL(markers_while_reading(second, CL_FALSE), 1);
	EQUAL(markers_while_reading(second, CL_TRUE), 0);
	EQUAL(markers_while_reading(second, CL_FALSE), 1);
	OK(clReleaseCommandQueue(second));
	end_clean();
}
