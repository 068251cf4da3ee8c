/* refuse_creates.c: creates of buffers, sub-buffers and images that must be refused, or just not. */
#include "queries.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Prints how a create ended, and releases what it created all the same. The code is behind a pointer, because the
 * create may stand in the same call.
 */
static void created(const char *label, const char *function, const char *what, cl_mem handle, const cl_int *code)
{
	print_error(label, function, what, *code);
	if ((handle == NULL) != (*code != CL_SUCCESS))
		printf("refused: %s: %s: %s: a handle and an error\n", label, function, what);
	if (handle != NULL)
		CHECK(clReleaseMemObject(handle));
}

static unsigned char host[8192];

/* A create of a buffer that is wrong in one or two ways, or stretches what is right. */
static const struct wrong {
	const char *what;
	cl_mem_flags flags;
	size_t size;
	bool host, nocontext;
} wrongs[] = {
	{"no context", 0, 4096, false, true},
	{"no context, size 0", 0, 0, false, true},
	{"size 0", 0, 0, false, false},
	{"size 0, bad flags", CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 0, false, false},
	{"size SIZE_MAX", 0, SIZE_MAX, false, false},
	{"size SIZE_MAX / 2 + 2", 0, SIZE_MAX / 2 + 2, false, false},
	{"read only and write only", CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 4096, false, false},
	{"read write and read only", CL_MEM_READ_WRITE | CL_MEM_READ_ONLY, 4096, false, false},
	{"read write and write only", CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY, 4096, false, false},
	{"host read only and write only", CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY, 4096, false, false},
	{"host read only and no access", CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS, 4096, false, false},
	{"unknown flag", (cl_mem_flags)1 << 40, 4096, false, false},
	{"flag of kernels only", CL_MEM_KERNEL_READ_AND_WRITE, 4096, false, false},
	{"flag of SVM only", CL_MEM_SVM_FINE_GRAIN_BUFFER, 4096, false, false},
	{"host pointer, no flag for it", CL_MEM_READ_WRITE, 4096, true, false},
	{"host pointer, flag to allocate", CL_MEM_ALLOC_HOST_PTR, 4096, true, false},
	{"use of no host pointer", CL_MEM_USE_HOST_PTR, 4096, false, false},
	{"copy of no host pointer", CL_MEM_COPY_HOST_PTR, 4096, false, false},
	{"use and copy", CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR, 4096, true, false},
	{"use and allocate", CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, 4096, true, false},
	{"nothing", CL_MEM_READ_WRITE, 4096, false, false},
	{"one byte", CL_MEM_READ_WRITE, 1, false, false},
};

static void refuse_buffers(const struct gpu *gpu, const char *label)
{
	static const cl_mem_properties unknown[] = {0x7fff, 1, 0};
	cl_int code;
	for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		const struct wrong *w = &wrongs[i];
		cl_context context = w->nocontext ? NULL : gpu->context;
		void *pointer = w->host ? host : NULL;
		cl_mem handle = clCreateBuffer(context, w->flags, w->size, pointer, &code);
		created(label, "clCreateBuffer", w->what, handle, &code);
		handle = clCreateBufferWithProperties(context, NULL, w->flags, w->size, pointer, &code);
		created(label, "clCreateBufferWithProperties", w->what, handle, &code);
		/* Where no code is asked for, the handle alone tells. */
		handle = clCreateBuffer(context, w->flags, w->size, pointer, NULL);
		printf("refused: %s: clCreateBuffer: %s: %s\n", label, w->what, handle ? "handle" : "NULL");
		if (handle != NULL)
			CHECK(clReleaseMemObject(handle));
	}
	cl_mem handle = clCreateBufferWithProperties(gpu->context, unknown, 0, 4096, NULL, &code);
	created(label, "clCreateBufferWithProperties", "unknown property", handle, &code);
}

/* Sizes around what the device allows at most: never backed by memory before they are used. */
static void refuse_large(const struct gpu *gpu, const char *label)
{
	cl_ulong most;
	cl_int code;
	CHECK(clGetDeviceInfo(gpu->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, NULL));
	const struct {
		const char *what;
		size_t size;
	} sizes[] = {
		{"one byte more than the most", most + 1}, {"the most", most},       {"one byte less than the most", most - 1},
		{"the most again", most},                  {"twice the most", 2 * most}, {"half the most and a byte", most / 2 + 1},
	};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		cl_mem handle = clCreateBuffer(gpu->context, CL_MEM_READ_WRITE, sizes[i].size, NULL, &code);
		created(label, "clCreateBuffer", sizes[i].what, handle, &code);
	}
}

static void refuse_part(const char *label, cl_mem buffer, const char *what, cl_mem_flags flags, size_t origin, size_t size)
{
	cl_int code;
	const cl_buffer_region region = {origin, size};
	cl_mem handle = clCreateSubBuffer(buffer, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
	created(label, "clCreateSubBuffer", what, handle, &code);
}

/* Sub-buffers of a buffer whose size is a multiple of 128 (PoCL's alignment) or not. */
static void refuse_parts(const struct gpu *gpu, const char *label, size_t size)
{
	const size_t last = (size - 1) / 1024 * 1024;
	cl_int code;
	cl_mem buffer = create_buffer(gpu, CL_MEM_READ_WRITE, size, NULL);
	cl_mem readonly = create_buffer(gpu, CL_MEM_READ_ONLY, size, NULL);
	cl_mem noaccess = create_buffer(gpu, CL_MEM_HOST_NO_ACCESS, size, NULL);
	refuse_part(label, NULL, "no buffer", 0, 0, 1);
	refuse_part(label, buffer, "all", 0, 0, size);
	refuse_part(label, buffer, "one more than all", 0, 0, size + 1);
	refuse_part(label, buffer, "up to the end", 0, last, size - last);
	refuse_part(label, buffer, "beyond the end", 0, last, size - last + 1);
	refuse_part(label, buffer, "from the end", 0, size, 1);
	refuse_part(label, buffer, "from the end, size 0", 0, size, 0);
	refuse_part(label, buffer, "from beyond the end", 0, last + 1024, 1);
	refuse_part(label, buffer, "size 0", 0, 0, 0);
	refuse_part(label, buffer, "unaligned", 0, 1, 1);
	refuse_part(label, buffer, "unaligned and beyond", 0, 1, size);
	if (wholes) { /* PoCL 3.1 refuses neither, and of a part of a slab they would reach into others */
		refuse_part(label, buffer, "overflow", 0, SIZE_MAX - 1023, 1024);
		refuse_part(label, buffer, "overflow of the size", 0, 1024, SIZE_MAX - 1023);
	}
	refuse_part(label, buffer, "read only and write only", CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 0, 1);
	refuse_part(label, buffer, "bad flags and beyond", CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 0, size + 1);
	refuse_part(label, buffer, "host pointer flag", CL_MEM_ALLOC_HOST_PTR, 0, 1);
	refuse_part(label, buffer, "host pointer flag and beyond", CL_MEM_COPY_HOST_PTR, 0, size + 1);
	refuse_part(label, readonly, "write of read only", CL_MEM_WRITE_ONLY, 0, 1);
	refuse_part(label, readonly, "write of read only and beyond", CL_MEM_WRITE_ONLY, 0, size + 1);
	refuse_part(label, noaccess, "host access of none", CL_MEM_HOST_READ_ONLY, 0, 1);
	created(label, "clCreateSubBuffer", "no region", clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, NULL, &code), &code);
	const cl_buffer_region region = {0, 1}, beyond = {0, size + 1};
	created(label, "clCreateSubBuffer", "unknown type", clCreateSubBuffer(buffer, 0, 0, &region, &code), &code);
	created(label, "clCreateSubBuffer", "unknown type and beyond", clCreateSubBuffer(buffer, 0, 0, &beyond, &code), &code);
	cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
	CHECK(code);
	refuse_part(label, part, "part of a part", 0, 0, 1);
	refuse_part(label, part, "part of a part and beyond", 0, 0, size + 1);
	CHECK(clReleaseMemObject(part));
	CHECK(clReleaseMemObject(noaccess));
	CHECK(clReleaseMemObject(readonly));
	CHECK(clReleaseMemObject(buffer));
}

static void refuse_image(const struct gpu *gpu, const char *label, const char *what, cl_mem_flags flags, cl_image_desc description,
			 void *pointer)
{
	const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_int code;
	cl_mem handle = clCreateImage(gpu->context, flags, &format, &description, pointer, &code);
	created(label, "clCreateImage", what, handle, &code);
	handle = clCreateImageWithProperties(gpu->context, NULL, flags, &format, &description, pointer, &code);
	created(label, "clCreateImageWithProperties", what, handle, &code);
}

static void refuse_images(const struct gpu *gpu, const char *label, size_t size)
{
	const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	cl_int code;
	cl_mem buffer = create_buffer(gpu, CL_MEM_READ_WRITE, size, NULL);
	cl_image_desc plain = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 16, .image_height = 16};
	cl_image_desc of = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = size / 4, .mem_object = buffer};
	cl_image_desc empty = plain, huge = plain, more = of, twice = of, none = of;
	empty.image_width = 0;
	huge.image_width = (size_t)1 << 40;
	more.image_width = size / 4 + 1;
	twice.image_width = size / 2;
	none.mem_object = NULL;
	created(label, "clCreateImage", "no context", clCreateImage(NULL, 0, &format, &plain, NULL, &code), &code);
	created(label, "clCreateImage", "no format", clCreateImage(gpu->context, 0, NULL, &plain, NULL, &code), &code);
	created(label, "clCreateImage", "no description", clCreateImage(gpu->context, 0, &format, NULL, NULL, &code), &code);
	refuse_image(gpu, label, "plain", 0, plain, NULL);
	refuse_image(gpu, label, "no width", 0, empty, NULL);
	refuse_image(gpu, label, "too wide", 0, huge, NULL);
	refuse_image(gpu, label, "bad flags", CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, plain, NULL);
	refuse_image(gpu, label, "host pointer, no flag for it", 0, plain, host);
	refuse_image(gpu, label, "use of no host pointer", CL_MEM_USE_HOST_PTR, plain, NULL);
	refuse_image(gpu, label, "all of a buffer", 0, of, NULL);
	refuse_image(gpu, label, "one element more than a buffer", 0, more, NULL);
	refuse_image(gpu, label, "twice a buffer", 0, twice, NULL);
	refuse_image(gpu, label, "more than a buffer and bad flags", CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, more, NULL);
	refuse_image(gpu, label, "more than a buffer and a host pointer", CL_MEM_READ_WRITE, more, host);
	refuse_image(gpu, label, "of no buffer", 0, none, NULL);
	CHECK(clReleaseMemObject(buffer));
}

void refuse_creates(const struct gpu *gpu)
{
	refuse_buffers(gpu, "once");
	refuse_buffers(gpu, "once more"); /* in what the first ones have left */
	/* Each size in what the size before has left. */
	const size_t sizes[] = {4096, 4000, 4092, 2048, 1028, 65536, 65000};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		char label[32];
		snprintf(label, sizeof label, "%zu bytes", sizes[i]);
		refuse_parts(gpu, label, sizes[i]);
		refuse_images(gpu, label, sizes[i]);
	}
	refuse_large(gpu, "large");
	print_references("after refused creates", gpu);
}
