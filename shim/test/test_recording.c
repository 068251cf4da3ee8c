/* test_recording.c: command buffers, terminated contexts, OpenGL's memory, commands on shared memory. */
#include "harness.h"

#define EXTENSIONS                                                                                                     \
	EXTENSION(clCreateCommandBufferKHR);                                                                           \
	EXTENSION(clRetainCommandBufferKHR);                                                                           \
	EXTENSION(clReleaseCommandBufferKHR);                                                                          \
	EXTENSION(clEnqueueCommandBufferKHR)

TEST(nothing_is_recycled_while_a_command_buffer_may_use_it)
{
	begin((struct options){0});
	EXTENSIONS;
	EQUAL(diags(GMT_DIAG_TRANSPARENT), 0);
	cl_int err = 1;
	cl_command_buffer_khr recording = clCreateCommandBufferKHR(1, &world.queue, NULL, &err);
	OK(err);
	OK(clRetainCommandBufferKHR(recording));
	OK(clReleaseCommandBufferKHR(recording));
	EQUAL(release(new_buffer(100)), GMT_OUTCOME_REFUSED);
	EQUAL(last_event(GMT_KIND_EVICT).reason, GMT_EVICT_STATE);
	cl_context other = new_context();
	OK(clReleaseMemObject(clCreateBuffer(other, 0, 100, NULL, NULL)));
	EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_CACHED); /* no other context minds */
	OK(clReleaseContext(other));
	OK(clReleaseCommandBufferKHR(recording));
	EQUAL(release(new_buffer(100)), GMT_OUTCOME_CACHED);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_MISS), 3);
	end_clean();
}

TEST(a_command_buffer_that_cannot_be_made_does_not_matter)
{
	begin((struct options){0});
	EXTENSIONS;
	cl_int err = 0;
	CHECK(!clCreateCommandBufferKHR(0, NULL, NULL, &err));
	EQUAL(err, CL_INVALID_COMMAND_QUEUE);
	CHECK(clRetainCommandBufferKHR(NULL) != CL_SUCCESS);
	CHECK(clReleaseCommandBufferKHR(NULL) != CL_SUCCESS);
	CHECK(clEnqueueCommandBufferKHR(0, NULL, NULL, 0, NULL, NULL) != CL_SUCCESS);
	EQUAL(release(new_buffer(100)), GMT_OUTCOME_CACHED);
	end_clean();
}

/* A replay may use any memory of its context until it is over, the command buffer being gone or not. */
static void replays(bool named)
{
	begin((struct options){0});
	EXTENSIONS;
	cl_command_queue second = new_queue(world.context, 0);
	cl_command_buffer_khr recording = clCreateCommandBufferKHR(1, &second, NULL, NULL);
	cl_mem buffer = new_buffer(100), unrelated = new_buffer(100);
	fake_record(recording, buffer);
	cl_event event;
	OK(clEnqueueCommandBufferKHR(named, named ? &second : NULL, recording, 0, NULL, &event));
	OK(clReleaseCommandBufferKHR(recording));
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	EQUAL(release(unrelated), GMT_OUTCOME_COOLING);
	cl_mem fresh = new_buffer(100);
	CHECK(fresh != buffer && fresh != unrelated);
	use(world.queue, fresh);
	EQUAL(fake.hazards, 0);
	OK(clWaitForEvents(1, &event));
	EQUAL(events(GMT_KIND_COOLED), 2);
	OK(clFinish(world.queue));
	EQUAL(release(fresh), GMT_OUTCOME_CACHED);
	OK(clReleaseEvent(event));
	OK(clReleaseCommandQueue(second));
	end_clean();
}

TEST(a_replay_on_its_own_queue)
{
	replays(false);
}

TEST(a_replay_on_a_queue_that_is_named)
{
	replays(true);
}

TEST(a_replay_over_several_queues_is_never_known_to_be_over)
{
	begin((struct options){0});
	EXTENSIONS;
	cl_command_queue both[] = {world.queue, new_queue(world.context, 0)};
	cl_command_buffer_khr recording = clCreateCommandBufferKHR(2, both, NULL, NULL);
	cl_mem buffer = new_buffer(100);
	fake_record(recording, buffer);
	OK(clEnqueueCommandBufferKHR(2, both, recording, 0, NULL, NULL));
	OK(clReleaseCommandBufferKHR(recording));
	OK(clFinish(world.queue));
	EQUAL(fake.pending, 1);
	EQUAL(release(buffer), GMT_OUTCOME_REFUSED);
	OK(clReleaseCommandQueue(both[1]));
	end_clean();
}

static void refuses_all(cl_mem kept)
{
	cl_int err = 1;
	CHECK(!clCreateBuffer(world.context, 0, 100, NULL, &err));
	EQUAL(err, CL_CONTEXT_TERMINATED_KHR);
	EQUAL(clEnqueueFillBuffer(world.queue, kept, "x", 1, 0, 16, 0, NULL, NULL), CL_CONTEXT_TERMINATED_KHR);
	CHECK(!clSVMAlloc(world.context, 0, 100, 0));
}

TEST(a_terminated_context_has_no_pool)
{
	begin((struct options){0});
	EXTENSION(clTerminateContextKHR);
	cl_mem kept = new_buffer(100), busy = new_buffer(100);
	OK(clReleaseMemObject(new_buffer(100)));
	use(world.queue, busy);
	OK(clReleaseMemObject(busy));
	EQUAL(fake.livememory, 3);
	OK(clTerminateContextKHR(world.context));
	EQUAL(fake.livememory, 1);
	EQUAL(events(GMT_KIND_EVICT), 2);
	refuses_all(kept);
	EQUAL(release(kept), GMT_OUTCOME_REFUSED);
	OK(clTerminateContextKHR(world.context));
	refuses_all(NULL);
	EQUAL(fake.livememory, 0);
	EQUAL(clTerminateContextKHR(NULL), CL_INVALID_CONTEXT);
	end_clean();
}

TEST(memory_of_opengl_is_tracked)
{
	begin((struct options){0});
	cl_int err[5] = {1, 1, 1, 1, 1};
	cl_mem all[5] = {
		clCreateFromGLBuffer(world.context, 0, 7, &err[0]),
		clCreateFromGLRenderbuffer(world.context, 0, 7, &err[1]),
		clCreateFromGLTexture(world.context, 0, 0, 0, 7, &err[2]),
		clCreateFromGLTexture2D(world.context, 0, 0, 0, 7, &err[3]),
		clCreateFromGLTexture3D(world.context, 0, 0, 0, 7, NULL),
	};
	EQUAL(events(GMT_KIND_CREATE), 5);
	for (int i = 0; i < 5; i++) {
		EQUAL(err[i], i < 4 ? CL_SUCCESS : 1);
		EQUAL(last_event(GMT_KIND_CREATE).op, GMT_MEMORY_EXTERNAL);
		EQUAL(last_event(GMT_KIND_CREATE).size, 4096);
		OK(clEnqueueAcquireGLObjects(world.queue, 1, &all[i], 0, NULL, NULL));
		EQUAL(last_event(GMT_KIND_USE).op, GMT_COMMAND_ACQUIRE);
		OK(clEnqueueReleaseGLObjects(world.queue, 1, &all[i], 0, NULL, NULL));
		EQUAL(last_event(GMT_KIND_USE).op, GMT_COMMAND_RELEASE);
		OK(clReleaseMemObject(all[i]));
		EQUAL(last_event(GMT_KIND_RELEASE).outcome, GMT_OUTCOME_DRIVER);
	}
	EQUAL(events(GMT_KIND_USE), 10);
	CHECK(!clCreateFromGLBuffer(world.context, 0, 0, &err[0]));
	EQUAL(err[0], CL_INVALID_GL_OBJECT);
	EQUAL(last_event(GMT_KIND_CREATE).outcome, GMT_OUTCOME_FAILED);
	EQUAL(clEnqueueAcquireGLObjects(world.queue, 0, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
	end_clean();
}

TEST(commands_on_shared_memory_are_uses)
{
	begin((struct options){0});
	char *a = clSVMAlloc(world.context, 0, 64, 0), *b = clSVMAlloc(world.context, 0, 64, 0);
	uint64_t second = last_event(GMT_KIND_CREATE).object;
	OK(clEnqueueSVMMemFill(world.queue, a, "z", 1, 64, 0, NULL, NULL));
	EQUAL(last_event(GMT_KIND_USE).flags, GMT_FLAG_WRITES);
	OK(clEnqueueSVMMemcpy(world.queue, CL_TRUE, b, a, 64, 0, NULL, NULL));
	EQUAL(events(GMT_KIND_USE), 3);
	EQUAL(last_event(GMT_KIND_USE).object, second);
	EQUAL(b[63], 'z');
	OK(clEnqueueSVMMap(world.queue, CL_TRUE, CL_MAP_READ, b, 64, 0, NULL, NULL));
	OK(clEnqueueSVMUnmap(world.queue, b, 0, NULL, NULL));
	OK(clEnqueueSVMMigrateMem(world.queue, 2, (const void *[]){a, b}, NULL, 0, 0, NULL, NULL));
	EQUAL(events(GMT_KIND_USE), 7);
	OK(clEnqueueSVMMemcpy(world.queue, CL_TRUE, b + 1, a + 2, 8, 0, NULL, NULL));
	EQUAL(events(GMT_KIND_USE), 9);
	EQUAL(last_event(GMT_KIND_USE).object, second);
	EQUAL(last_event(GMT_KIND_USE).granted, 1); /* where it begins */
	CHECK(clEnqueueSVMMemcpy(world.queue, CL_TRUE, NULL, a, 8, 0, NULL, NULL) != CL_SUCCESS);
	CHECK(clEnqueueSVMMemFill(world.queue, NULL, NULL, 0, 0, 0, NULL, NULL) != CL_SUCCESS);
	CHECK(clEnqueueSVMMigrateMem(world.queue, 1, NULL, NULL, 0, 0, NULL, NULL) != CL_SUCCESS);
	clSVMFree(world.context, a);
	clSVMFree(world.context, b);
	end_clean();
}

TEST(kernels_use_shared_memory)
{
	begin((struct options){0});
	char *a = clSVMAlloc(world.context, 0, 64, 0), *b = clSVMAlloc(world.context, 0, 64, 0);
	uint64_t second = last_event(GMT_KIND_CREATE).object;
	cl_kernel kernel = clCreateKernel(fake_program(), "k", NULL);
	size_t one = 1;
	OK(clSetKernelArgSVMPointer(kernel, 0, a));
	OK(clSetKernelArgSVMPointer(kernel, 1, b));
	CHECK(clSetKernelArgSVMPointer(kernel, 1000, b) != CL_SUCCESS);
	OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
	EQUAL(events(GMT_KIND_USE), 2);
	EQUAL(last_event(GMT_KIND_USE).object, second);
	OK(clSetKernelArgSVMPointer(kernel, 1, NULL));
	OK(clEnqueueNDRangeKernel(world.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
	EQUAL(events(GMT_KIND_USE), 3);
	OK(clReleaseKernel(kernel));
	OK(clFinish(world.queue));
	clSVMFree(world.context, a);
	clSVMFree(world.context, b);
	end_clean();
}

TEST(an_extension_that_moves_memory_is_followed)
{
	begin((struct options){0});
	EXTENSION(clEnqueueMigrateMemObjectEXT);
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem buffer = new_buffer(100);
	OK(clEnqueueMigrateMemObjectEXT(second, 1, &buffer, 0, 0, NULL, NULL));
	EQUAL(release(buffer), GMT_OUTCOME_COOLING);
	EQUAL(clEnqueueMigrateMemObjectEXT(second, 1, &buffer, 0, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
	OK(clReleaseCommandQueue(second));
	end_clean();
}

/* More memory than a command's books have room for: what does not fit may be any memory of the context. */
TEST(a_command_on_more_memory_than_is_noted)
{
	enum { MANY = 70 };
	begin((struct options){0});
	cl_command_queue second = new_queue(world.context, 0);
	cl_mem all[MANY], unrelated = new_buffer(100);
	for (int i = 0; i < MANY; i++)
		all[i] = new_buffer(100);
	OK(clEnqueueMigrateMemObjects(second, MANY, all, 0, 0, NULL, NULL));
	EQUAL(release(all[0]), GMT_OUTCOME_COOLING);
	EQUAL(release(all[MANY - 1]), GMT_OUTCOME_COOLING);
	EQUAL(release(unrelated), GMT_OUTCOME_COOLING);
	OK(clFinish(second));
	EQUAL(events(GMT_KIND_COOLED), 3);
	for (int i = 1; i < MANY - 1; i++)
		EQUAL(release(all[i]), GMT_OUTCOME_CACHED);
	OK(clReleaseCommandQueue(second));
	end_clean();
}
