/*
 * spawner: threads that come and go, each with a little OpenCL work of its own, and never more than a few at a time.
 *
 *	spawner [-t] [THREADS] [ITERATIONS] [SIZE]     THREADS: in all; ITERATIONS: of each thread
 */
#include "work.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 64 };

struct worker {
	pthread_t thread;
	const struct gpu *shared;
	size_t number, iterations, size;
	uint64_t hash;
};

/* Buffers that are created, asked about and released: no command runs, so nothing but these calls takes time. */
static void *serve(void *argument)
{
	struct worker *worker = argument;
	worker->hash = CHECKSUM_START;
	for (size_t i = 0; i < worker->iterations; i++) {
		size_t size = worker->size >> (worker->number % 4), answer = 0;
		cl_mem buffer = create_worked(worker->shared, size);
		CHECK(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof answer, &answer, NULL));
		worker->hash = checksum(worker->hash, &answer, sizeof answer);
		CHECK(clReleaseMemObject(buffer));
	}
	return NULL;
}

static uint64_t join(struct worker *worker, uint64_t hash)
{
	pthread_join(worker->thread, NULL);
	return checksum(hash, &worker->hash, sizeof worker->hash);
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[THREADS] [ITERATIONS] [SIZE]", 3);
	size_t threads = arguments_count(&arguments, 0, 1000);
	size_t iterations = arguments_count(&arguments, 1, 10);
	size_t size = arguments_size(&arguments, 2, 64u << 10);

	struct gpu gpu = gpu_open(0);
	static struct worker workers[AT_ONCE];
	uint64_t start = now_ns(), hash = CHECKSUM_START;
	for (size_t i = 0; i < threads + AT_ONCE; i++) {
		struct worker *worker = &workers[i % AT_ONCE];
		if (i >= AT_ONCE && i - AT_ONCE < threads)
			hash = join(worker, hash); /* the oldest makes room */
		if (i >= threads)
			continue;
		*worker = (struct worker){.shared = &gpu, .number = i, .iterations = iterations, .size = size};
		int failure = pthread_create(&worker->thread, NULL, serve, worker);
		if (failure != 0)
			fail("%s: cannot start a thread: %s", arguments.program, strerror(failure));
	}
	report_time(&arguments, start);
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
