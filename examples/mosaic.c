/*
 * mosaic: assembles pictures. Each frame is painted in four parts, each in a buffer of its own. The parts are copied into one
 * canvas, every other one through a sub-buffer, and released. Then a kernel makes an upper edge from the canvas, in a buffer
 * of its own that is copied into the canvas, too. With the word "merged" the program follows gpumemtop advise: it paints parts
 * where they belong, and keeps buffers.
 *
 *	mosaic [-t] [FRAMES] [SIZE] [merged]     SIZE: bytes of the canvas
 */
#include "common.h"

#include <stdlib.h>

enum { PARTS = 4, EDGE = 1024, BINS = 64 };

static const char *const source =
	"__kernel void paint(__global uint *part, uint seed, uint from) {\n"
	"	uint i = get_global_id(0);\n"
	"	part[i] = ((i + from) ^ seed) * 2654435761u;\n"
	"}\n"
	"__kernel void border(__global const uint *canvas, __global uint *edge, uint pixels) {\n"
	"	uint i = get_global_id(0);\n"
	"	edge[i] = canvas[i] / 2 + canvas[pixels - 1 - i] / 2;\n"
	"}\n"
	"__kernel void count_up(__global const uint *canvas, __global uint *counts, uint part) {\n"
	"	uint bin = get_global_id(0), sum = 0;\n"
	"	for (uint i = bin * part; i < (bin + 1) * part; i++) sum = sum * 31 + canvas[i];\n"
	"	counts[bin] = sum;\n"
	"}\n";

SITE(create_canvas)
SITE(create_part)
SITE(create_edge)
SITE(create_counts)

/* A sub-buffer of the canvas, instead of a buffer of its own. */
static __attribute__((noinline)) cl_mem part_of_canvas(cl_mem canvas, size_t origin, size_t size)
{
	cl_int status;
	cl_buffer_region region = {origin, size};
	cl_mem part = clCreateSubBuffer(canvas, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
	CHECK(status);
	return part;
}

/* Kernels and buffers for a picture. When merged, frames share the buffers; otherwise each frame makes its own. */
struct studio {
	const struct gpu *gpu;
	cl_kernel paint, border, count_up;
	size_t size; /* bytes of the canvas */
	bool merged;
	cl_mem canvas, edge, counts;
};

static void open_frame(struct studio *s)
{
	if (s->canvas)
		return;
	s->canvas = create_canvas(s->gpu, s->size);
	if (s->merged) {
		s->edge = create_edge(s->gpu, EDGE * sizeof(cl_uint));
		s->counts = s->edge; /* never in use at once, and the edge is larger */
	}
}

static void close_frame(struct studio *s)
{
	CHECK(clReleaseMemObject(s->canvas));
	if (s->merged)
		CHECK(clReleaseMemObject(s->edge));
	s->canvas = s->edge = s->counts = NULL;
}

/* Copies a part to its place, either into the canvas or into a sub-buffer of the canvas there. */
static void put(const struct studio *s, cl_mem part, size_t origin, size_t size, bool to_part)
{
	cl_mem to = to_part ? part_of_canvas(s->canvas, origin, size) : s->canvas;
	CHECK(clEnqueueCopyBuffer(s->gpu->queue, part, to, 0, to_part ? 0 : origin, size, 0, NULL, NULL));
	if (to_part)
		CHECK(clReleaseMemObject(to));
}

/* Paints the parts, and copies them to their places unless they were painted there. */
static void assemble(struct studio *s, cl_uint seed)
{
	size_t size = s->size / PARTS;
	cl_mem parts[PARTS];
	for (size_t i = 0; i < PARTS; i++) {
		cl_uint from = (cl_uint)(i * size / sizeof(cl_uint));
		parts[i] = s->merged ? part_of_canvas(s->canvas, i * size, size) : create_part(s->gpu, size);
		gpu_arguments(s->paint, sizeof parts[i], &parts[i], sizeof seed, &seed, sizeof from, &from, (size_t)0);
		gpu_run(s->gpu, s->paint, size / sizeof(cl_uint));
	}
	for (size_t i = 0; i < PARTS; i++) {
		if (!s->merged)
			put(s, parts[i], i * size, size, i % 2);
		CHECK(clReleaseMemObject(parts[i]));
	}
}

/* The kernel that makes the edge reads the canvas, so the copy into the canvas cannot be avoided. */
static void draw_edge(struct studio *s)
{
	cl_uint pixels = (cl_uint)(s->size / sizeof(cl_uint));
	cl_mem edge = s->merged ? s->edge : create_edge(s->gpu, EDGE * sizeof(cl_uint));
	gpu_arguments(s->border, sizeof s->canvas, &s->canvas, sizeof edge, &edge, sizeof pixels, &pixels, (size_t)0);
	gpu_run(s->gpu, s->border, EDGE);
	CHECK(clEnqueueCopyBuffer(s->gpu->queue, edge, s->canvas, 0, 0, EDGE * sizeof(cl_uint), 0, NULL, NULL));
	if (!s->merged)
		CHECK(clReleaseMemObject(edge));
}

static uint64_t look(struct studio *s, uint64_t hash)
{
	cl_uint part = (cl_uint)(s->size / sizeof(cl_uint) / BINS), bins[BINS];
	cl_mem counts = s->merged ? s->counts : create_counts(s->gpu, sizeof bins);
	gpu_arguments(s->count_up, sizeof s->canvas, &s->canvas, sizeof counts, &counts, sizeof part, &part, (size_t)0);
	gpu_run(s->gpu, s->count_up, BINS);
	CHECK(clEnqueueReadBuffer(s->gpu->queue, counts, CL_TRUE, 0, sizeof bins, bins, 0, NULL, NULL));
	if (!s->merged)
		CHECK(clReleaseMemObject(counts));
	return checksum(hash, bins, sizeof bins);
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read(argc, argv, "[FRAMES] [SIZE] [merged]", 3);
	size_t frames = arguments_count(&arguments, 0, 50);
	size_t size = arguments_size(&arguments, 1, 4u << 20) & ~(size_t)(PARTS * EDGE * sizeof(cl_uint) - 1);
	if (size == 0 || size > 1u << 31)
		fail("%s: SIZE must be between %zu bytes and 2 GiB", arguments.program, PARTS * EDGE * sizeof(cl_uint));

	struct gpu gpu = gpu_open(0);
	cl_program program = gpu_build(&gpu, source);
	struct studio studio = {
		.gpu = &gpu,
		.paint = gpu_kernel(program, "paint"),
		.border = gpu_kernel(program, "border"),
		.count_up = gpu_kernel(program, "count_up"),
		.size = size,
		.merged = arguments_merged(&arguments, 2),
	};
	uint64_t start = now_ns(), hash = CHECKSUM_START;
	for (size_t i = 0; i < frames; i++) {
		open_frame(&studio);
		assemble(&studio, (cl_uint)i);
		draw_edge(&studio);
		hash = look(&studio, hash);
		if (!studio.merged || i == frames - 1)
			close_frame(&studio);
	}
	report_time(&arguments, start);

	CHECK(clReleaseKernel(studio.paint));
	CHECK(clReleaseKernel(studio.border));
	CHECK(clReleaseKernel(studio.count_up));
	CHECK(clReleaseProgram(program));
	gpu_close(&gpu);
	print_checksum(&arguments, hash);
	return EXIT_SUCCESS;
}
