/* world.c: what most tests start and end with. */
#include "harness.h"

struct world world;

cl_context new_context(void)
{
	cl_int err = 1;
	cl_device_id device = fake_device();
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	OK(err);
	return context;
}

cl_command_queue new_queue(cl_context context, cl_command_queue_properties properties)
{
	cl_int err = 1;
	cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
	cl_command_queue queue = clCreateCommandQueueWithProperties(context, fake_device(), list, &err);
	OK(err);
	return queue;
}

void begin(struct options options)
{
	session_open(options);
	world.context = new_context();
	fake.creates = fake.releases = fake.commands = fake.finishes = 0; /* without what images were tried with */
	world.queue = new_queue(world.context, 0);
}

cl_mem new_buffer(size_t size)
{
	cl_int err = 1;
	cl_mem buffer = clCreateBuffer(world.context, CL_MEM_READ_WRITE, size, NULL, &err);
	OK(err);
	CHECK(buffer);
	fake_hand_out(buffer);
	return buffer;
}

void use(cl_command_queue queue, cl_mem buffer)
{
	OK(clEnqueueFillBuffer(queue, buffer, "x", 1, 0, 16, 0, NULL, NULL));
}

cl_event fill(cl_command_queue queue, cl_mem buffer, cl_uint waits, const cl_event *list)
{
	cl_event event = NULL;
	OK(clEnqueueFillBuffer(queue, buffer, "x", 1, 0, 16, waits, list, &event));
	CHECK(event);
	return event;
}

enum gmtoutcome release(cl_mem buffer)
{
	OK(clReleaseMemObject(buffer));
	return (enum gmtoutcome)last_event(GMT_KIND_RELEASE).outcome;
}

cl_mem new_used(cl_command_queue queue)
{
	cl_mem buffer = new_buffer(100);
	use(queue, buffer);
	return buffer;
}

void end_clean(void)
{
	OK(clReleaseCommandQueue(world.queue));
	OK(clReleaseContext(world.context));
	fake_complete_all();
	EQUAL(fake.livememory, 0);
	EQUAL(fake.livebytes, 0);
	EQUAL(fake.livequeues, 0);
	EQUAL(fake.liveevents, 0);
	EQUAL(fake.livecontexts, 0);
	EQUAL(fake.hazards, 0);
}
