/*
 * spill: a working set that is larger than what one command needs. Buffers of SIZE bytes are visited over and over; each visit
 * mixes a buffer with its neighbour. The program computes the same on the host and says so if the device has other numbers.
 *
 *	spill [-t] [VISITS] [SIZE] [cycle | tiled | random]
 *
 *	cycle: one after the other; tiled: a few for long, then the next few; random: in no order
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 16, TILE = 4, STAY = 32 };

static const char *const source =
	"__kernel void mix_in(__global const uint *from, __global uint *to, uint seed) {\n"
	"	uint i = get_global_id(0);\n"
	"	to[i] = to[i] * 2654435761u + (from[i] ^ seed);\n"
	"}\n";

SITE(create_block)

enum order { CYCLE, TILED, RANDOM };

static enum order order_of(const struct arguments *arguments)
{
	const char *word = arguments->count > 2 ? arguments->values[2] : "cycle";
	if (strcmp(word, "cycle") == 0)
		return CYCLE;
	if (strcmp(word, "tiled") == 0)
		return TILED;
	if (strcmp(word, "random") != 0)
		fail("%s is none of cycle, tiled, random", word);
	return RANDOM;
}

static size_t visited(enum order order, size_t visit)
{
	switch (order) {
	case TILED:
		return (visit / STAY * TILE + visit % TILE) % BUFFERS;
	case RANDOM:
		return (visit * 2654435761u >> 7) % BUFFERS;
	default:
		return visit % BUFFERS;
	}
}

static size_t neighbour(enum order order, size_t at)
{
	return order == TILED ? at / TILE * TILE + (at + 1) % TILE : (at + 1) % BUFFERS;
}

static void mix_on_host(const cl_uint *from, cl_uint *to, cl_uint seed, size_t items)
{
	for (size_t i = 0; i < items; i++)
		to[i] = to[i] * 2654435761u + (from[i] ^ seed);
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[VISITS] [SIZE] [cycle | tiled | random]", 3);
	size_t visits = arguments_count(&arguments, 0, 256), size = arguments_size(&arguments, 1, 256 << 10);
	enum order order = order_of(&arguments);
	struct gpu gpu = gpu_open(0);
	cl_program program = gpu_build(&gpu, source);
	cl_kernel mix = gpu_kernel(program, "mix_in");
	cl_mem block[BUFFERS];
	cl_uint *host[BUFFERS];

	uint64_t start = now_ns(), hash = CHECKSUM_START, expected = CHECKSUM_START;
	for (size_t i = 0; i < BUFFERS; i++) {
		host[i] = allocate(size);
		fill_random(host[i], size, i);
		block[i] = create_block(&gpu, size);
		CHECK(clEnqueueWriteBuffer(gpu.queue, block[i], CL_TRUE, 0, size, host[i], 0, NULL, NULL));
	}
	for (size_t visit = 0; visit < visits; visit++) {
		size_t to = visited(order, visit), from = neighbour(order, to), items = size / sizeof(cl_uint);
		cl_uint seed = (cl_uint)visit;
		gpu_arguments(mix, sizeof block[from], &block[from], sizeof block[to], &block[to], sizeof seed, &seed, (size_t)0);
		gpu_run(&gpu, mix, items);
		mix_on_host(host[from], host[to], seed, items);
	}
	for (size_t i = 0; i < BUFFERS; i++) {
		hash = checksum_buffer(hash, &gpu, block[i], size);
		expected = checksum(expected, host[i], size);
		CHECK(clReleaseMemObject(block[i]));
		free(host[i]);
	}
	report_time(&arguments, start);
	CHECK(clReleaseKernel(mix));
	CHECK(clReleaseProgram(program));
	gpu_close(&gpu);
	if (hash != expected)
		fail("the device has %016llx, the host %016llx", (unsigned long long)hash, (unsigned long long)expected);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
