/*
 * paced: creates a buffer, has it filled and releases it in each iteration, and never waits in OpenCL.
 *
 *	paced [ITERATIONS] [SIZE] [callback | poll]
 *
 * Then it waits for the command's callback, or asks for the command's status until that is complete.
 */
#include "common.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SITE(create_temporary)

static sem_t completed;

static void CL_CALLBACK complete(cl_event event, cl_int status, void *data)
{
	(void)event, (void)status, (void)data;
	sem_post(&completed);
}

static void poll_status(cl_event event)
{
	cl_int status = CL_QUEUED;
	while (status != CL_COMPLETE)
		CHECK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ITERATIONS] [SIZE] [callback | poll]", 3);
	size_t iterations = arguments_count(&arguments, 0, 1000), size = arguments_size(&arguments, 1, 256 << 10);
	const char *how = arguments.count > 2 ? arguments.values[2] : "callback";
	int poll = !strcmp(how, "poll");
	if (!poll && strcmp(how, "callback"))
		fail("paced: %s: want callback or poll", how);
	const cl_uint pattern = 0x5a5a5a5a;
	struct gpu gpu = gpu_open(0);
	sem_init(&completed, 0, 0);
	for (size_t i = 0; i < iterations; i++) {
		cl_event event;
		cl_mem buffer = create_temporary(&gpu, size);
		CHECK(clEnqueueFillBuffer(gpu.queue, buffer, &pattern, sizeof pattern, 0, size, 0, NULL, &event));
		if (!poll)
			CHECK(clSetEventCallback(event, CL_COMPLETE, complete, NULL));
		CHECK(clReleaseMemObject(buffer));
		CHECK(clFlush(gpu.queue));
		if (poll)
			poll_status(event);
		else
			sem_wait(&completed);
		CHECK(clReleaseEvent(event));
	}
	gpu_close(&gpu);
	printf("paced: %zu iterations\n", iterations);
	return EXIT_SUCCESS;
}
