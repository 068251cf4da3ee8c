/*
 * churn: creates and releases buffers and does nothing else; says on stderr what a pair costs. For measurements.
 *
 *	churn [-t] [PAIRS] [SIZE] [THREADS] [SIZES] [PAUSE]     PAIRS: by all threads together
 *
 * SIZES: number of sizes in turn, from SIZE on, each four times the one before; default 1. PAUSE: us after each pair.
 */
#include "common.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 256, SIZES_MAX = 16 };

struct worker {
	pthread_t thread;
	cl_context context;
	size_t pairs, size, sizes, pause;
};

static __attribute__((noinline)) cl_mem create_empty(cl_context context, size_t size)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &status);
	CHECK(status);
	return buffer;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	for (size_t i = 0; i < worker->pairs; i++) {
		CHECK(clReleaseMemObject(create_empty(worker->context, worker->size << 2 * (i % worker->sizes))));
		if (worker->pause)
			pause_us((unsigned)worker->pause);
	}
	return NULL;
}

/* Runs the workers to their end and returns how many ns that took. */
static uint64_t run(const struct arguments *arguments, struct worker *workers, size_t threads)
{
	uint64_t start = now_ns();
	for (size_t i = 0; i < threads; i++) {
		int failure = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
		if (failure != 0)
			fail("%s: cannot start a thread: %s", arguments->program, strerror(failure));
	}
	for (size_t i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	return now_ns() - start;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[PAIRS] [SIZE] [THREADS] [SIZES] [PAUSE]", 5);
	size_t pairs = arguments_count(&arguments, 0, 1000000);
	size_t size = arguments_size(&arguments, 1, 4096);
	size_t threads = arguments_count(&arguments, 2, 1);
	size_t sizes = arguments_count(&arguments, 3, 1);
	size_t pause = arguments_count(&arguments, 4, 0);
	if (sizes == 0 || sizes > SIZES_MAX)
		fail("%s: 1 to %d sizes", arguments.program, SIZES_MAX);
	if (threads > THREADS_MAX || threads > pairs)
		fail("%s: at most %d threads, and no more than pairs", arguments.program, THREADS_MAX);

	struct gpu gpu = gpu_open(0);
	struct worker *workers = allocate(threads * sizeof *workers);
	for (size_t i = 0; i < threads; i++) {
		size_t share = pairs / threads + (i < pairs % threads ? 1 : 0);
		workers[i] = (struct worker){.context = gpu.context, .pairs = share, .size = size, .sizes = sizes, .pause = pause};
	}
	uint64_t took = run(&arguments, workers, threads);
	fprintf(stderr, "%s: %.1f ns per pair, %zu pairs, %zu threads\n", arguments.program, (double)took / (double)pairs,
		pairs, threads);
	uint64_t hash = checksum(checksum(CHECKSUM_START, &pairs, sizeof pairs), &size, sizeof size);
	free(workers);
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
