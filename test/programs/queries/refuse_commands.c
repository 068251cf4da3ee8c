/* refuse_commands.c: commands on ranges of buffers that must be refused, or just not: wrong in one way, and in two. */
#include "queries.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOST = 1 << 17 };
static unsigned char host[HOST];

/* One command on a range of a buffer. */
struct attempt {
	cl_command_queue queue;
	cl_mem buffer, other; /* other: large enough for everything */
	cl_mem image;         /* 1D, of bytes, large enough too */
	bool part;            /* buffer is a part of another */
	size_t offset, size;
	void *pointer;
	cl_uint waits;
	const cl_event *list;
};

typedef cl_int (*command)(const struct attempt *a);

#define WAITS a->waits, a->list, NULL

static cl_int try_read(const struct attempt *a)
{
	return clEnqueueReadBuffer(a->queue, a->buffer, CL_TRUE, a->offset, a->size, a->pointer, WAITS);
}

static cl_int try_write(const struct attempt *a)
{
	return clEnqueueWriteBuffer(a->queue, a->buffer, CL_TRUE, a->offset, a->size, a->pointer, WAITS);
}

static cl_int try_fill(const struct attempt *a)
{
	return clEnqueueFillBuffer(a->queue, a->buffer, a->pointer, 1, a->offset, a->size, WAITS);
}

static cl_int try_copy_from(const struct attempt *a)
{
	return clEnqueueCopyBuffer(a->queue, a->buffer, a->other, a->offset, 0, a->size, WAITS);
}

static cl_int try_copy_to(const struct attempt *a)
{
	return clEnqueueCopyBuffer(a->queue, a->other, a->buffer, 0, a->offset, a->size, WAITS);
}

/* From its first bytes to where the range says: the parts may overlap. */
static cl_int try_copy_within(const struct attempt *a)
{
	return clEnqueueCopyBuffer(a->queue, a->buffer, a->buffer, 0, a->offset, a->size, WAITS);
}

static cl_int try_read_rect(const struct attempt *a)
{
	const size_t from[3] = {a->offset, 0, 0}, to[3] = {0}, region[3] = {a->size, 1, 1};
	return clEnqueueReadBufferRect(a->queue, a->buffer, CL_TRUE, from, to, region, 0, 0, 0, 0, a->pointer, WAITS);
}

static cl_int try_write_rect(const struct attempt *a)
{
	const size_t to[3] = {a->offset, 0, 0}, from[3] = {0}, region[3] = {a->size, 1, 1};
	return clEnqueueWriteBufferRect(a->queue, a->buffer, CL_TRUE, to, from, region, 0, 0, 0, 0, a->pointer, WAITS);
}

static cl_int try_copy_rect(const struct attempt *a)
{
	const size_t from[3] = {a->offset, 0, 0}, to[3] = {0}, region[3] = {a->size, 1, 1};
	return clEnqueueCopyBufferRect(a->queue, a->buffer, a->other, from, to, region, 0, 0, 0, 0, WAITS);
}

static cl_int try_to_image(const struct attempt *a)
{
	const size_t to[3] = {0}, region[3] = {a->size, 1, 1};
	return clEnqueueCopyBufferToImage(a->queue, a->buffer, a->image, a->offset, to, region, WAITS);
}

static cl_int try_from_image(const struct attempt *a)
{
	const size_t from[3] = {0}, region[3] = {a->size, 1, 1};
	return clEnqueueCopyImageToBuffer(a->queue, a->image, a->buffer, from, region, a->offset, WAITS);
}

static cl_int map_with(const struct attempt *a, cl_map_flags flags)
{
	cl_int code;
	void *pointer = clEnqueueMapBuffer(a->queue, a->buffer, CL_TRUE, flags, a->offset, a->size, a->waits, a->list, NULL, &code);
	if ((pointer == NULL) != (code != CL_SUCCESS))
		printf("clEnqueueMapBuffer: a pointer and an error\n");
	if (pointer == NULL)
		return code;
	cl_int unmapped = clEnqueueUnmapMemObject(a->queue, a->buffer, pointer, 0, NULL, NULL);
	if (unmapped != CL_SUCCESS)
		printf("clEnqueueUnmapMemObject: %d %s\n", unmapped, error_name(unmapped));
	return code;
}

static cl_int try_map_read(const struct attempt *a)
{
	return map_with(a, CL_MAP_READ);
}

static cl_int try_map_write(const struct attempt *a)
{
	return map_with(a, CL_MAP_WRITE);
}

static cl_int try_map_badly(const struct attempt *a)
{
	return map_with(a, CL_MAP_READ | CL_MAP_WRITE_INVALIDATE_REGION);
}

static cl_int try_map_unknown(const struct attempt *a)
{
	return map_with(a, (cl_map_flags)1 << 40);
}

static cl_int try_migrate(const struct attempt *a)
{
	return clEnqueueMigrateMemObjects(a->queue, 1, &a->buffer, CL_MIGRATE_MEM_OBJECT_HOST, WAITS);
}

static const struct {
	const char *name;
	command call;
} commands[] = {
	{"clEnqueueReadBuffer", try_read},
	{"clEnqueueWriteBuffer", try_write},
	{"clEnqueueFillBuffer", try_fill},
	{"clEnqueueCopyBuffer from", try_copy_from},
	{"clEnqueueCopyBuffer to", try_copy_to},
	{"clEnqueueCopyBuffer within", try_copy_within},
	{"clEnqueueReadBufferRect", try_read_rect},
	{"clEnqueueWriteBufferRect", try_write_rect},
	{"clEnqueueCopyBufferRect", try_copy_rect},
	{"clEnqueueCopyBufferToImage", try_to_image},
	{"clEnqueueCopyImageToBuffer", try_from_image},
	{"clEnqueueMapBuffer read", try_map_read},
	{"clEnqueueMapBuffer write", try_map_write},
	{"clEnqueueMapBuffer bad flags", try_map_badly},
	{"clEnqueueMapBuffer unknown flags", try_map_unknown},
	{"clEnqueueMigrateMemObjects", try_migrate},
};

/* What PoCL 3.1 crashes on, mostly without being allowed to: left out. */
static bool crashes(command call, const struct attempt *a)
{
	if (a->part && (call == try_copy_rect || call == try_to_image || call == try_from_image))
		return true;
	return (call == try_copy_rect && (a->buffer == NULL || a->other == NULL)) || (call == try_from_image && a->buffer == NULL) ||
	       (call == try_to_image && a->image == NULL);
}

/* Makes the attempt with every command. */
static void attempt_all(const struct gpu *gpu, const char *label, const char *what, const struct attempt *a)
{
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		if (crashes(commands[i].call, a))
			continue;
		print_error(label, commands[i].name, what, commands[i].call(a));
		CHECK(clFinish(gpu->queue));
	}
}

/* Ranges in, at and beyond the end of size bytes. */
static void attempt_ranges(const struct gpu *gpu, const char *label, const struct attempt *base, size_t size)
{
	const struct {
		const char *what;
		size_t offset, size;
	} ranges[] = {
		{"all", 0, size},
		{"the last byte", size - 1, 1},
		{"size 0", 0, 0},
		{"size 0 at the end", size, 0},
		{"size 0 beyond the end", size + 1, 0},
		{"one byte more than all", 0, size + 1},
		{"all from the second byte", 1, size},
		{"two bytes from the last", size - 1, 2},
		{"one byte from the end", size, 1},
		{"one byte beyond", size + 1, 1},
		{"offset SIZE_MAX", SIZE_MAX, 1},
		{"size SIZE_MAX", 1, SIZE_MAX},
		{"both SIZE_MAX", SIZE_MAX, SIZE_MAX},
		{"a sum of 0", SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1},
		{"a sum of 1", SIZE_MAX - 3, 5},
	};
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		struct attempt a = *base;
		a.offset = ranges[i].offset;
		a.size = ranges[i].size;
		attempt_all(gpu, label, ranges[i].what, &a);
	}
}

/* What else can be wrong, each with a range that is right and with one that is not: which error comes first? */
static void attempt_others(const struct gpu *gpu, const char *label, const struct attempt *base, size_t size, const struct gpu *foreign)
{
	const cl_event nothing[] = {NULL};
	for (size_t beyond = 0; beyond < 2; beyond++) {
		struct attempt a = *base;
		a.size = size + beyond;
		const char *add = beyond ? ", and beyond" : "";
		char what[64];
#define ATTEMPT(text, change)                                                                                          \
	do {                                                                                                           \
		struct attempt saved = a;                                                                              \
		change;                                                                                                \
		snprintf(what, sizeof what, "%s%s", text, add);                                                        \
		attempt_all(gpu, label, what, &a);                                                                     \
		a = saved;                                                                                             \
	} while (0)
		ATTEMPT("no queue", a.queue = NULL);
		ATTEMPT("a queue of another context", a.queue = foreign->queue);
		ATTEMPT("no buffer", a.buffer = NULL);
		ATTEMPT("no other buffer", a.other = NULL);
		ATTEMPT("an image instead of a buffer", a.buffer = a.image);
		ATTEMPT("no image", a.image = NULL);
		ATTEMPT("no pointer", a.pointer = NULL);
		ATTEMPT("a wait list of nothing", a.waits = 1);
		ATTEMPT("a wait list without length", a.list = nothing);
		ATTEMPT("a wait list with NULL", (a.waits = 1, a.list = nothing));
#undef ATTEMPT
	}
}

static cl_mem create_line(const struct gpu *gpu, size_t width)
{
	const cl_image_format format = {CL_R, CL_UNSIGNED_INT8};
	const cl_image_desc description = {.image_type = CL_MEM_OBJECT_IMAGE1D, .image_width = width};
	cl_int code;
	cl_mem image = clCreateImage(gpu->context, CL_MEM_READ_WRITE, &format, &description, NULL, &code);
	if (HAS_IMAGES)
		CHECK(code);
	return image;
}

/* Everything on one buffer, or part of a buffer, of size bytes, which is released. */
static void refuse_on(const struct gpu *gpu, const struct gpu *foreign, const char *label, cl_mem buffer, bool part,
		      size_t size)
{
	struct attempt base = {.queue = gpu->queue, .buffer = buffer, .part = part, .pointer = host};
	base.other = create_buffer(gpu, CL_MEM_READ_WRITE, HOST, NULL);
	base.image = create_line(gpu, 8192);
	attempt_ranges(gpu, label, &base, size);
	attempt_others(gpu, label, &base, size, foreign);
	if (base.image != NULL)
		CHECK(clReleaseMemObject(base.image));
	CHECK(clReleaseMemObject(base.other));
	CHECK(clReleaseMemObject(buffer));
}

static void refuse_on_buffer(const struct gpu *gpu, const struct gpu *foreign, cl_mem_flags flags, const char *mode, size_t size)
{
	char label[64];
	snprintf(label, sizeof label, "%s buffer, %zu bytes", mode, size);
	refuse_on(gpu, foreign, label, create_buffer(gpu, flags, size, NULL), false, size);
}

/* The same on a part of a buffer: there is memory behind its end in any case. */
static void refuse_on_part(const struct gpu *gpu, const struct gpu *foreign, size_t size)
{
	const cl_buffer_region region = {128, size - 300};
	char label[64];
	cl_int code;
	snprintf(label, sizeof label, "part of %zu bytes", size);
	cl_mem whole = create_buffer(gpu, CL_MEM_READ_WRITE, size, NULL);
	cl_mem part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
	CHECK(code);
	refuse_on(gpu, foreign, label, part, true, region.size);
	CHECK(clReleaseMemObject(whole));
}

void refuse_commands(const struct gpu *gpu)
{
	struct gpu foreign = gpu_open(0);
	const size_t sizes[] = {4096, 4000, 4095, 2050, 65000};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		refuse_on_buffer(gpu, &foreign, CL_MEM_READ_WRITE, "read-write", sizes[i]);
		refuse_on_buffer(gpu, &foreign, CL_MEM_HOST_NO_ACCESS, "no-access", sizes[i]);
		refuse_on_buffer(gpu, &foreign, CL_MEM_HOST_READ_ONLY, "host-read-only", sizes[i]);
		refuse_on_buffer(gpu, &foreign, CL_MEM_HOST_WRITE_ONLY, "host-write-only", sizes[i]);
		refuse_on_part(gpu, &foreign, sizes[i]);
	}
	gpu_close(&foreign);
	print_references("after refused commands", gpu);
}
