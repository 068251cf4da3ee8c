/*
 * keeper: releases its context and keeps a queue, which it asks for the context each time. Prints how many buffers had the
 * wrong contents, and what it had released when the context ended.
 *
 *	keeper [ROUNDS [SIZE]]
 */
#define CL_TARGET_OPENCL_VERSION 300 /* the callback came with it */
#include "work.h"

#include <stdio.h>
#include <time.h>

static const char *_Atomic released = "context", *_Atomic ended; /* the latest, and at the context's end */

static void CL_CALLBACK on_end(cl_context context, void *data)
{
	(void)context, (void)data;
	ended = released;
}

static cl_context context_of(cl_command_queue queue)
{
	cl_context context = NULL;
	CHECK(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL));
	return context;
}

static cl_mem filled(cl_command_queue queue, size_t size, cl_int with)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(context_of(queue), CL_MEM_READ_WRITE, size, NULL, &status);
	CHECK(status);
	CHECK(clEnqueueFillBuffer(queue, buffer, &with, sizeof with, 0, size, 0, NULL, NULL));
	return buffer;
}

static int wrong(cl_command_queue queue, cl_mem buffer, size_t size, cl_int want)
{
	cl_int got = 0;
	CHECK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, size - sizeof got, sizeof got, &got, 0, NULL, NULL));
	return got != want;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[ROUNDS [SIZE]]", 2);
	int rounds = (int)arguments_count(&arguments, 0, 20);
	size_t size = arguments_size(&arguments, 1, 64 << 10);
	struct gpu gpu = gpu_open(0);
	CHECK(clSetContextDestructorCallback(gpu.context, on_end, NULL));
	CHECK(clReleaseContext(gpu.context));
	released = "buffers";
	int bad = 0;
	for (int i = 0; i < rounds; i++) {
		cl_mem first = filled(gpu.queue, size, i), second = filled(gpu.queue, size, -i);
		bad += wrong(gpu.queue, first, size, i) + wrong(gpu.queue, second, size, -i);
		CHECK(clReleaseMemObject(first));
		CHECK(clReleaseMemObject(second));
	}
	printf("wrong %d of %d\n", bad, 2 * rounds);
	/* A buffer keeps the context now; a queue of its own comes and goes. */
	cl_mem kept = filled(gpu.queue, size, 7);
	cl_context context = context_of(gpu.queue);
	CHECK(clFinish(gpu.queue)); /* else the other may read too early */
	CHECK(clReleaseCommandQueue(gpu.queue));
	cl_int status;
	cl_command_queue other = clCreateCommandQueueWithProperties(context, gpu.device, NULL, &status);
	CHECK(status);
	printf("wrong %d\n", wrong(other, kept, size, 7));
	for (int i = 0; i < rounds; i++)
		CHECK(clReleaseMemObject(filled(other, size, i)));
	CHECK(clReleaseMemObject(kept));
	released = "queue";
	CHECK(clReleaseCommandQueue(other));
	/* The command's thread may be the last to leave the context. */
	for (int i = 0; i < 2000 && !ended; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	printf("ended after the %s\n", ended ? ended : "program");
	return 0;
}
