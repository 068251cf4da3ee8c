/*
 * temporaries: a loop with buffers of all sizes that live for a few rounds, never more than SIZE bytes at once. It counts
 * the creates that fail.
 *
 *	temporaries [CREATES] [SIZE]
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>

enum { HELD = 64 };

/* Buffers in the order in which they were created. */
struct held {
	cl_mem buffers[HELD];
	size_t sizes[HELD], first, count, bytes;
};

static void release_oldest(struct held *held)
{
	CHECK(clReleaseMemObject(held->buffers[held->first]));
	held->bytes -= held->sizes[held->first];
	held->first = (held->first + 1) % HELD;
	held->count--;
}

/* Creates a buffer once there is room for it. False: that failed. */
static bool create(const struct gpu *gpu, struct held *held, size_t size, size_t most)
{
	while (held->count == HELD || held->bytes + size > most)
		release_oldest(held);
	size_t last = (held->first + held->count) % HELD;
	cl_int status;
	held->buffers[last] = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, &status);
	if (status != CL_SUCCESS)
		return false;
	held->sizes[last] = size;
	held->bytes += size;
	held->count++;
	return true;
}

/* Numbers that look random, the same each time (xorshift). */
static uint32_t next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[CREATES] [SIZE]", 2);
	size_t count = arguments_count(&arguments, 0, 400);
	size_t most = arguments_size(&arguments, 1, 18u << 20);
	struct gpu gpu = gpu_open(0);
	struct held held = {0};
	uint32_t state = 2463534242u;
	size_t failures = 0;
	for (size_t i = 0; i < count; i++)
		failures += !create(&gpu, &held, 1 + next(&state) % (most / 6), most);
	while (held.count > 0)
		release_oldest(&held);
	gpu_close(&gpu);
	printf("%zu of %zu creates failed\n", failures, count);
	return EXIT_SUCCESS;
}
