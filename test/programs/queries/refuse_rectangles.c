/* refuse_rectangles.c: rectangles that end with the buffer, just before or just behind; with pitches that fit or not. */
#include "queries.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOST = 1 << 17, ROW = 100, SLICE = 1000, WIDTH = 10, HEIGHT = 4, DEPTH = 3 };

/* From the first byte of such a rectangle to its last. */
enum { SPAN = (DEPTH - 1) * SLICE + (HEIGHT - 1) * ROW + WIDTH };

static unsigned char host[HOST];

struct rectangle {
	size_t origin[3], region[3], row, slice;
};

static cl_int read_rectangle(const struct gpu *gpu, cl_mem buffer, cl_mem other, const struct rectangle *r)
{
	(void)other;
	const size_t zero[3] = {0};
	return clEnqueueReadBufferRect(gpu->queue, buffer, CL_TRUE, r->origin, zero, r->region, r->row, r->slice, 0, 0, host, 0, NULL, NULL);
}

static cl_int write_rectangle(const struct gpu *gpu, cl_mem buffer, cl_mem other, const struct rectangle *r)
{
	(void)other;
	const size_t zero[3] = {0};
	return clEnqueueWriteBufferRect(gpu->queue, buffer, CL_TRUE, r->origin, zero, r->region, r->row, r->slice, 0, 0, host, 0, NULL, NULL);
}

static cl_int copy_from_rectangle(const struct gpu *gpu, cl_mem buffer, cl_mem other, const struct rectangle *r)
{
	const size_t zero[3] = {0};
	return clEnqueueCopyBufferRect(gpu->queue, buffer, other, r->origin, zero, r->region, r->row, r->slice, 0, 0, 0, NULL, NULL);
}

static cl_int copy_to_rectangle(const struct gpu *gpu, cl_mem buffer, cl_mem other, const struct rectangle *r)
{
	const size_t zero[3] = {0};
	return clEnqueueCopyBufferRect(gpu->queue, other, buffer, zero, r->origin, r->region, 0, 0, r->row, r->slice, 0, NULL, NULL);
}

static const struct {
	const char *name;
	cl_int (*call)(const struct gpu *gpu, cl_mem buffer, cl_mem other, const struct rectangle *r);
} calls[] = {
	{"clEnqueueReadBufferRect", read_rectangle},
	{"clEnqueueWriteBufferRect", write_rectangle},
	{"clEnqueueCopyBufferRect from", copy_from_rectangle},
	{"clEnqueueCopyBufferRect to", copy_to_rectangle},
};

/* A rectangle that begins at an offset in the buffer. */
static struct rectangle at(size_t first)
{
	return (struct rectangle){
		.origin = {first % ROW, first % SLICE / ROW, first / SLICE},
		.region = {WIDTH, HEIGHT, DEPTH},
		.row = ROW,
		.slice = SLICE,
	};
}

static void attempt(const struct gpu *gpu, const char *label, const char *what, cl_mem buffer, cl_mem other, struct rectangle r)
{
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		print_error(label, calls[i].name, what, calls[i].call(gpu, buffer, other, &r));
		CHECK(clFinish(gpu->queue));
	}
}

static void attempt_all(const struct gpu *gpu, const char *label, cl_mem buffer, cl_mem other, size_t size)
{
	const size_t last = size - SPAN;
	struct rectangle r;
#define ATTEMPT(what, start, change)                                                                                   \
	do {                                                                                                           \
		r = at(start);                                                                                         \
		change;                                                                                                \
		attempt(gpu, label, what, buffer, other, r);                                                           \
	} while (0)
	ATTEMPT("at the beginning", 0, (void)0);
	ATTEMPT("up to the end", last, (void)0);
	ATTEMPT("a byte beyond", last + 1, (void)0);
	ATTEMPT("a column more", last, r.region[0]++);
	ATTEMPT("a row more", last, r.region[1]++);
	ATTEMPT("a slice more", last, r.region[2]++);
	ATTEMPT("a row further", last, r.origin[1]++);
	ATTEMPT("a slice further", last, r.origin[2]++);
	ATTEMPT("no columns", 0, r.region[0] = 0);
	ATTEMPT("no rows", 0, r.region[1] = 0);
	ATTEMPT("no slices", 0, r.region[2] = 0);
	ATTEMPT("no slices, beyond", size + 1, r.region[2] = 0);
	ATTEMPT("pitches of 0", 0, (r.row = 0, r.slice = 0));
	ATTEMPT("pitches of 0, a column of one", 0, (r.row = 0, r.slice = 0, r.region[0] = size / 12));
	ATTEMPT("pitches of 0, too wide", 0, (r.row = 0, r.slice = 0, r.region[0] = size / 12 + 1));
	ATTEMPT("row pitch too small", 0, r.row = WIDTH - 1);
	ATTEMPT("row pitch too small and beyond", last + 1, r.row = WIDTH - 1);
	ATTEMPT("slice pitch too small", 0, r.slice = ROW * HEIGHT - 1);
	ATTEMPT("slice pitch no multiple", 0, r.slice = SLICE + 1);
	ATTEMPT("slice pitch no multiple and beyond", last + 1, r.slice = SLICE + 1);
	ATTEMPT("origin SIZE_MAX", 0, r.origin[0] = SIZE_MAX);
	if (wholes) /* accepted by PoCL 3.1, but not for parts of slabs */
		ATTEMPT("origin of a product of 0", 0, r.origin[2] = (size_t)1 << 61);
	ATTEMPT("one row, all", 0, (r.row = 0, r.slice = 0, r.region[0] = size, r.region[1] = 1, r.region[2] = 1));
	ATTEMPT("one row, one byte more", 0, (r.row = 0, r.slice = 0, r.region[0] = size + 1, r.region[1] = 1, r.region[2] = 1));
	ATTEMPT("as rows of one, all", 0, (r.row = 1, r.slice = 0, r.region[0] = 1, r.region[1] = size, r.region[2] = 1));
	ATTEMPT("as rows of one, one more", 0, (r.row = 1, r.slice = 0, r.region[0] = 1, r.region[1] = size + 1, r.region[2] = 1));
#undef ATTEMPT
}

void refuse_rectangles(const struct gpu *gpu)
{
	const size_t sizes[] = {4096, 4000, 4095, 3333, 65536, 65000};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		char label[64];
		snprintf(label, sizeof label, "rectangle in %zu bytes", sizes[i]);
		cl_mem buffer = create_buffer(gpu, CL_MEM_READ_WRITE, sizes[i], NULL);
		cl_mem other = create_buffer(gpu, CL_MEM_READ_WRITE, HOST, NULL);
		attempt_all(gpu, label, buffer, other, sizes[i]);
		CHECK(clReleaseMemObject(other));
		CHECK(clReleaseMemObject(buffer));
	}
	print_references("after refused rectangles", gpu);
}
