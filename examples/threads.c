/*
 * threads: many threads that create, write, read and release buffers of one context at the same time, each with a
 * queue of its own.
 *
 *	threads [-t] [THREADS] [ITERATIONS] [SIZE]     ITERATIONS: of each thread
 */
#include "common.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 1024 };

struct worker {
	pthread_t thread;
	const struct gpu *shared;
	size_t number, iterations, size;
	uint64_t hash;
};

static __attribute__((noinline)) cl_mem create_scratch(const struct gpu *gpu, size_t size)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, &status);
	CHECK(status);
	return buffer;
}

/* Writes a pattern, reads it back and returns what came. A buffer that another thread got as well would show here. */
static cl_uint exchange(const struct gpu *gpu, cl_mem buffer, size_t size, cl_uint pattern)
{
	cl_uint first, last;
	CHECK(clEnqueueFillBuffer(gpu->queue, buffer, &pattern, sizeof pattern, 0, size, 0, NULL, NULL));
	CHECK(clEnqueueReadBuffer(gpu->queue, buffer, CL_FALSE, 0, sizeof first, &first, 0, NULL, NULL));
	CHECK(clEnqueueReadBuffer(gpu->queue, buffer, CL_TRUE, size - sizeof last, sizeof last, &last, 0, NULL, NULL));
	if (first != pattern || last != pattern)
		fail("wrote %08x, read %08x and %08x: another user wrote to this buffer", pattern, first, last);
	return last;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct gpu gpu = *worker->shared;
	cl_int status;
	gpu.queue = clCreateCommandQueue(gpu.context, gpu.device, 0, &status);
	CHECK(status);
	worker->hash = CHECKSUM_START;
	for (size_t i = 0; i < worker->iterations; i++) {
		size_t size = worker->size >> (i % 3) & ~(size_t)3; /* three sizes in turn */
		size = size < sizeof(cl_uint) ? sizeof(cl_uint) : size;
		cl_mem buffer = create_scratch(&gpu, size);
		cl_uint value = exchange(&gpu, buffer, size, (cl_uint)(worker->number << 20 | i));
		worker->hash = checksum(worker->hash, &value, sizeof value);
		CHECK(clReleaseMemObject(buffer));
	}
	CHECK(clFinish(gpu.queue));
	CHECK(clReleaseCommandQueue(gpu.queue));
	return NULL;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[THREADS] [ITERATIONS] [SIZE]", 3);
	size_t threads = arguments_count(&arguments, 0, 4);
	size_t iterations = arguments_count(&arguments, 1, 2000);
	size_t size = arguments_size(&arguments, 2, 64u << 10);
	if (threads > THREADS_MAX)
		fail("%s: at most %d threads", arguments.program, THREADS_MAX);

	struct gpu gpu = gpu_open(0);
	struct worker *workers = allocate(threads * sizeof *workers);
	uint64_t start = now_ns(), hash = CHECKSUM_START;
	for (size_t i = 0; i < threads; i++) {
		workers[i] = (struct worker){.shared = &gpu, .number = i, .iterations = iterations, .size = size};
		int failure = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
		if (failure != 0)
			fail("%s: cannot start a thread: %s", arguments.program, strerror(failure));
	}
	for (size_t i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		hash = checksum(hash, &workers[i].hash, sizeof workers[i].hash);
	}
	report_time(&arguments, start);

	free(workers);
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
