/*
 * neighbours: many buffers of odd sizes, each full of a byte of its own. Again and again one is released and another
 * created, or one is filled, copied over or written by a kernel, up to its last byte; then all of them are looked at. A
 * pool that hands out memory which overlaps, or a command that reaches too far, changes a byte of another buffer.
 *
 *	neighbours [-t] [STEPS] [BUFFERS]
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 20000 };

static const char *const source =
	"kernel void add(global uchar *bytes, uint size, uchar more)\n"
	"{\n"
	"	uint i = get_global_id(0);\n"
	"	if (i < size) bytes[i] += more;\n"
	"}\n";

struct buffer {
	cl_mem mem;
	size_t size;
	unsigned char byte;
};

static uint32_t state = 2463534242u;

static uint32_t dice(uint32_t sides)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % sides;
}

static void fill(const struct gpu *gpu, struct buffer *b)
{
	b->byte = (unsigned char)dice(256);
	CHECK(clEnqueueFillBuffer(gpu->queue, b->mem, &b->byte, 1, 0, b->size, 0, NULL, NULL));
}

static __attribute__((noinline)) void create(const struct gpu *gpu, struct buffer *b)
{
	cl_int status;
	b->size = 1 + dice(dice(2) ? 300 : LARGEST);
	b->mem = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, b->size, NULL, &status);
	CHECK(status);
	fill(gpu, b);
}

/* As much of one as fits, as lines or at once; the rest of the other is filled alike. */
static void copy(const struct gpu *gpu, const struct buffer *from, struct buffer *to)
{
	size_t size = from->size < to->size ? from->size : to->size;
	const size_t zero[3] = {0}, lines[3] = {size, 1, 1};
	if (from == to)
		return;
	if (dice(2))
		CHECK(clEnqueueCopyBuffer(gpu->queue, from->mem, to->mem, 0, 0, size, 0, NULL, NULL));
	else
		CHECK(clEnqueueCopyBufferRect(gpu->queue, from->mem, to->mem, zero, zero, lines, 0, 0, 0, 0, 0, NULL, NULL));
	to->byte = from->byte;
	if (size < to->size)
		CHECK(clEnqueueFillBuffer(gpu->queue, to->mem, &to->byte, 1, size, to->size - size, 0, NULL, NULL));
}

static void run(const struct gpu *gpu, cl_kernel kernel, struct buffer *b)
{
	const cl_uint size = (cl_uint)b->size;
	const cl_uchar more = (cl_uchar)dice(256);
	gpu_arguments(kernel, sizeof b->mem, &b->mem, sizeof size, &size, sizeof more, &more, (size_t)0);
	gpu_run(gpu, kernel, (b->size + 63) / 64 * 64);
	b->byte = (unsigned char)(b->byte + more);
}

static void look(const struct gpu *gpu, const struct buffer *buffers, size_t count, size_t step)
{
	static unsigned char bytes[LARGEST];
	for (size_t i = 0; i < count; i++) {
		const struct buffer *b = &buffers[i];
		CHECK(clEnqueueReadBuffer(gpu->queue, b->mem, CL_TRUE, 0, b->size, bytes, 0, NULL, NULL));
		for (size_t at = 0; at < b->size; at++)
			if (bytes[at] != b->byte)
				fail("neighbours: step %zu: byte %zu of buffer %zu (%zu bytes) is %u, not %u", step, at, i, b->size,
				     bytes[at], b->byte);
	}
}

static void one_step(const struct gpu *gpu, cl_kernel kernel, struct buffer *buffers, uint32_t count)
{
	struct buffer *b = &buffers[dice(count)];
	switch (dice(4)) {
	case 0:
		CHECK(clReleaseMemObject(b->mem));
		create(gpu, b);
		break;
	case 1:
		fill(gpu, b);
		break;
	case 2:
		copy(gpu, &buffers[dice(count)], b);
		break;
	default:
		run(gpu, kernel, b);
	}
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[STEPS] [BUFFERS]", 2);
	size_t steps = arguments_count(&arguments, 0, 300), count = arguments_count(&arguments, 1, 64);
	struct buffer *buffers = calloc(count, sizeof *buffers);
	if (buffers == NULL)
		fail("out of memory");
	struct gpu gpu = gpu_open(0);
	cl_program program = gpu_build(&gpu, source);
	cl_kernel kernel = gpu_kernel(program, "add");
	uint64_t start = now_ns(), hash = CHECKSUM_START;
	for (size_t i = 0; i < count; i++)
		create(&gpu, &buffers[i]);
	for (size_t i = 0; i < steps; i++) {
		one_step(&gpu, kernel, buffers, (uint32_t)count);
		look(&gpu, buffers, count, i);
	}
	for (size_t i = 0; i < count; i++) {
		hash = checksum(hash, &buffers[i].byte, 1);
		CHECK(clReleaseMemObject(buffers[i].mem));
	}
	CHECK(clReleaseKernel(kernel));
	CHECK(clReleaseProgram(program));
	report_time(&arguments, start);
	gpu_close(&gpu);
	free(buffers);
	printf("%s: %zu steps on %zu buffers, checksum %016llx\n", arguments.program, steps, count, (unsigned long long)hash);
	return EXIT_SUCCESS;
}
