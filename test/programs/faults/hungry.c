/*
 * hungry: works in three phases, each with a given number of live buffers, of another size and from a call
 * site of its own: half SIZE, SIZE, three quarters of it. What a pool keeps of one phase is no use to the next, so when
 * device memory is short it must be given back.
 *
 *	hungry [-s] [BUFFERS] [SIZE]
 *
 * Status 1 and a message when memory runs out; with -s a phase goes on with the buffers that it got.
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One phase: what it creates, in quarters of SIZE. */
struct phase {
	const char *name;
	cl_mem (*create)(const struct gpu *gpu, size_t size, cl_int *status);
	size_t quarters;
};

#define CREATES(name)                                                                                                  \
	static __attribute__((noinline)) cl_mem name(const struct gpu *gpu, size_t size, cl_int *status)               \
	{                                                                                                              \
		return clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, size, NULL, status);                            \
	}

CREATES(create_small)
CREATES(create_large)
CREATES(create_medium)

static const struct phase phases[] = {
	{"small", create_small, 2},
	{"large", create_large, 4},
	{"medium", create_medium, 3},
};

/* A driver may find only now that it has no memory. */
static cl_int use(const struct gpu *gpu, cl_mem buffer, size_t size, size_t number)
{
	const cl_uint pattern = (cl_uint)number;
	cl_int status = clEnqueueFillBuffer(gpu->queue, buffer, &pattern, sizeof pattern, 0, size, 0, NULL, NULL);
	return status == CL_SUCCESS ? clFinish(gpu->queue) : status;
}

/* Creates and writes buffers; returns how many there are. */
static size_t fill_buffers(const struct gpu *gpu, const struct phase *phase, cl_mem *buffers, size_t count, size_t size,
			   bool steps_down)
{
	for (size_t i = 0; i < count; i++) {
		cl_int status;
		buffers[i] = phase->create(gpu, size, &status);
		if (status == CL_SUCCESS) {
			status = use(gpu, buffers[i], size, i);
			if (status != CL_SUCCESS)
				CHECK(clReleaseMemObject(buffers[i]));
		}
		if (status == CL_SUCCESS)
			continue;
		if (!steps_down || i == 0)
			fail("hungry: out of memory at %s buffer %zu of %zu, %zu bytes: OpenCL error %d", phase->name, i + 1,
			     count, size, status);
		return i;
	}
	return count;
}

static uint64_t run_phase(const struct gpu *gpu, const struct phase *phase, size_t count, size_t size, bool steps_down,
			  uint64_t hash)
{
	cl_mem *buffers = allocate(count * sizeof *buffers);
	size_t got = fill_buffers(gpu, phase, buffers, count, size, steps_down);
	for (size_t i = 0; i < got; i++)
		hash = checksum_buffer(hash, gpu, buffers[i], size);
	for (size_t i = 0; i < got; i++)
		CHECK(clReleaseMemObject(buffers[i]));
	free(buffers);
	return hash;
}

int main(int argc, char **argv)
{
	bool steps_down = argc > 1 && strcmp(argv[1], "-s") == 0;
	if (steps_down) {
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	struct arguments arguments = arguments_read(argc, argv, "[-s] [BUFFERS] [SIZE]", 2);
	size_t count = arguments_count(&arguments, 0, 8);
	size_t size = arguments_size(&arguments, 1, 4u << 20);
	struct gpu gpu = gpu_open(0);
	uint64_t hash = CHECKSUM_START;
	for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
		hash = run_phase(&gpu, &phases[i], count, (size / 4 * phases[i].quarters) & ~(size_t)3, steps_down, hash);
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
