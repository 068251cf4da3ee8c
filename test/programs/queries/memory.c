/* memory.c: buffers of all flags and sub-buffers, fresh and where a pool would hand out what was there before. */
#include "queries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct query memory_queries[] = {
	QUERY(CL_MEM_TYPE, ANSWER_HEX),
	QUERY(CL_MEM_FLAGS, ANSWER_HEX),
	QUERY(CL_MEM_SIZE, ANSWER_NUMBER),
	QUERY(CL_MEM_HOST_PTR, ANSWER_HANDLES),
	QUERY(CL_MEM_MAP_COUNT, ANSWER_NUMBER),
	QUERY(CL_MEM_REFERENCE_COUNT, ANSWER_NUMBER),
	QUERY(CL_MEM_CONTEXT, ANSWER_HANDLES),
	QUERY(CL_MEM_ASSOCIATED_MEMOBJECT, ANSWER_HANDLES),
	QUERY(CL_MEM_OFFSET, ANSWER_NUMBER),
	QUERY(CL_MEM_USES_SVM_POINTER, ANSWER_NUMBER),
	QUERY(CL_MEM_PROPERTIES, ANSWER_HEX),
};

GETTER(get_memory, clGetMemObjectInfo(AS(cl_mem, object), key, room, value, needed))

cl_uint least_references(cl_uint (*count)(const void *object), const void *object, cl_uint due, int looks)
{
	cl_uint least = count(object);
	for (int look = 1; least > due && look < looks; look++) {
		pause_us(1000);
		cl_uint now = count(object);
		least = now < least ? now : least;
	}
	return least;
}

static cl_uint memory_references(const void *buffer)
{
	cl_uint count = 0;
	CHECK(clGetMemObjectInfo(AS(cl_mem, buffer), CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL));
	return count;
}

void settle(cl_mem buffer, cl_uint references)
{
	least_references(memory_references, buffer, references, 2000);
}

void ask_memory_object(const char *label, cl_mem handle)
{
	ASK(label, get_memory, handle, NULL, memory_queries);
}

__attribute__((noinline)) cl_mem create_buffer(const struct gpu *gpu, cl_mem_flags flags, size_t size, void *host)
{
	cl_int code = 1;
	cl_mem buffer = clCreateBuffer(gpu->context, flags, size, host, &code);
	if ((buffer == NULL) != (code != CL_SUCCESS))
		printf("clCreateBuffer: handle %s, code %d\n", buffer ? "there" : "NULL", code);
	return buffer;
}

static const struct mode {
	const char *name;
	cl_mem_flags flags;
} modes[] = {
	{"0", 0},
	{"READ_WRITE", CL_MEM_READ_WRITE},
	{"READ_ONLY", CL_MEM_READ_ONLY},
	{"WRITE_ONLY", CL_MEM_WRITE_ONLY},
	{"HOST_READ_ONLY", CL_MEM_HOST_READ_ONLY},
	{"HOST_WRITE_ONLY", CL_MEM_HOST_WRITE_ONLY},
	{"HOST_NO_ACCESS", CL_MEM_HOST_NO_ACCESS},
	{"READ_WRITE HOST_READ_ONLY", CL_MEM_READ_WRITE | CL_MEM_HOST_READ_ONLY},
	{"READ_ONLY HOST_WRITE_ONLY", CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY},
	{"WRITE_ONLY HOST_READ_ONLY", CL_MEM_WRITE_ONLY | CL_MEM_HOST_READ_ONLY},
	{"READ_WRITE HOST_NO_ACCESS", CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS},
	{"ALLOC_HOST_PTR", CL_MEM_ALLOC_HOST_PTR},
	{"READ_WRITE ALLOC_HOST_PTR", CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR},
	{"READ_ONLY ALLOC_HOST_PTR", CL_MEM_READ_ONLY | CL_MEM_ALLOC_HOST_PTR},
	{"COPY_HOST_PTR", CL_MEM_COPY_HOST_PTR},
	{"READ_ONLY COPY_HOST_PTR", CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR},
	{"READ_ONLY HOST_NO_ACCESS COPY_HOST_PTR", CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS | CL_MEM_COPY_HOST_PTR},
	{"USE_HOST_PTR", CL_MEM_USE_HOST_PTR},
	{"WRITE_ONLY USE_HOST_PTR", CL_MEM_WRITE_ONLY | CL_MEM_USE_HOST_PTR},
	{"ALLOC_HOST_PTR COPY_HOST_PTR", CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR},
};

/* Sizes one after another: the first is freed before the second comes, and so on; 4096 and 65536 fill their blocks. */
static const size_t sizes[] = {4096, 4095, 4000, 2049, 1, 65536, 65535, 40000, 128};

/* Fills a buffer; maps it where its flags allow that, and unmaps it again, as programs do before they release it. */
static void use_buffer(const struct gpu *gpu, cl_mem buffer, cl_mem_flags flags, size_t size)
{
	const unsigned char pattern = 0x5a;
	CHECK(clEnqueueFillBuffer(gpu->queue, buffer, &pattern, 1, 0, size, 0, NULL, NULL));
	if (!(flags & CL_MEM_HOST_NO_ACCESS)) {
		cl_int code;
		cl_map_flags how = flags & CL_MEM_HOST_WRITE_ONLY ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ;
		void *mapped = clEnqueueMapBuffer(gpu->queue, buffer, CL_TRUE, how, 0, size, 0, NULL, NULL, &code);
		CHECK(code);
		CHECK(clEnqueueUnmapMemObject(gpu->queue, buffer, mapped, 0, NULL, NULL));
	}
	CHECK(clFinish(gpu->queue));
}

/* One buffer: asked when it is new, retained, filled, mapped and unmapped; then released. */
static void ask_buffer(const struct gpu *gpu, const struct mode *mode, size_t size, size_t round, void *host)
{
	char label[128];
	snprintf(label, sizeof label, "buffer %s, %zu bytes, number %zu", mode->name, size, round);
	const bool takes = mode->flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR);
	cl_mem buffer = create_buffer(gpu, mode->flags, size, takes ? host : NULL);
	if (buffer == NULL)
		fail("%s: cannot be created", label);
	name_add(buffer, "this buffer");
	ask_memory_object(label, buffer);
	CHECK(clRetainMemObject(buffer));
	CHECK(clRetainMemObject(buffer));
	use_buffer(gpu, buffer, mode->flags, size);
	settle(buffer, 3);
	snprintf(label, sizeof label, "used %s, %zu bytes, number %zu", mode->name, size, round);
	ask_memory_object(label, buffer);
	CHECK(clReleaseMemObject(buffer));
	CHECK(clReleaseMemObject(buffer));
	name_remove(buffer);
	CHECK(clReleaseMemObject(buffer));
}

/* Map counts, with as many maps as that. */
static void ask_mapped(const struct gpu *gpu, size_t size, size_t round)
{
	cl_mem buffer = create_buffer(gpu, CL_MEM_READ_WRITE, size, NULL);
	void *mapped[3];
	const size_t maps = lenient ? 1 : 3; /* rusticl counts only one */
	cl_int code;
	char label[128];
	for (size_t i = 0; i < maps; i++) {
		mapped[i] = clEnqueueMapBuffer(gpu->queue, buffer, CL_TRUE, CL_MAP_READ, i, size - i, 0, NULL, NULL, &code);
		CHECK(code);
		settle(buffer, lenient ? 1 : (cl_uint)i + 2); /* PoCL counts a map as a reference */
		snprintf(label, sizeof label, "mapped %zu times, %zu bytes, number %zu", i + 1, size, round);
		ask_memory_object(label, buffer);
	}
	if (!lenient)
		printf("%s: second map lies 1 byte behind the first: %d\n", label, (char *)mapped[1] - (char *)mapped[0] == 1);
	const bool late = round % 2 != 0 && !lenient; /* released as it is */
	if (!late) {
		for (size_t i = 0; i < maps; i++)
			CHECK(clEnqueueUnmapMemObject(gpu->queue, buffer, mapped[i], 0, NULL, NULL));
		CHECK(clFinish(gpu->queue));
		settle(buffer, 1);
		snprintf(label, sizeof label, "unmapped, %zu bytes, number %zu", size, round);
		ask_memory_object(label, buffer);
	}
	CHECK(clReleaseMemObject(buffer));
	/* Mappings keep buffers alive in PoCL, and those keep their queue, which parts of slabs would not. */
	for (size_t i = 0; late && !wholes && i < maps; i++)
		CHECK(clEnqueueUnmapMemObject(gpu->queue, buffer, mapped[i], 0, NULL, NULL));
	CHECK(clFinish(gpu->queue));
}

static void ask_with_properties(const struct gpu *gpu, const char *label, const cl_mem_properties *properties)
{
	cl_int code;
	for (int round = 0; round < 3; round++) {
		cl_mem buffer = clCreateBufferWithProperties(gpu->context, properties, CL_MEM_READ_WRITE, 4000, NULL, &code);
		printf("%s: %d %s\n", label, code, error_name(code));
		if (buffer == NULL)
			continue;
		ask_memory_object(label, buffer);
		CHECK(clReleaseMemObject(buffer));
	}
}

/* A sub-buffer of a buffer, and the buffer as it is seen from there once the program has let go of it. */
static void ask_part(const struct gpu *gpu, size_t size, size_t origin, size_t length)
{
	char label[128];
	cl_int code;
	cl_mem buffer = create_buffer(gpu, CL_MEM_READ_WRITE, size, NULL);
	name_add(buffer, "whole");
	const cl_buffer_region region = {origin, length};
	cl_mem part = clCreateSubBuffer(buffer, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
	CHECK(code);
	snprintf(label, sizeof label, "part of %zu from %zu of %zu", length, origin, size);
	ask_memory_object(label, part);
	snprintf(label, sizeof label, "whole of a part, %zu bytes", size);
	ask_memory_object(label, buffer);
	CHECK(clReleaseMemObject(buffer));
	snprintf(label, sizeof label, "part of a released whole, %zu bytes", size);
	ask_memory_object(label, part);
	/* The program has no reference left, but the part keeps it alive, and says where it is. */
	snprintf(label, sizeof label, "released whole, %zu bytes", size);
	ask_memory_object(label, buffer);
	CHECK(clReleaseMemObject(part));
	name_remove(buffer);
}

static void ask_svm(const struct gpu *gpu)
{
	void *pointer = clSVMAlloc(gpu->context, CL_MEM_READ_WRITE, 4096, 0);
	printf("clSVMAlloc: %s\n", pointer ? "there" : "NULL");
	if (pointer == NULL)
		return;
	name_add(pointer, "SVM pointer");
	cl_mem buffer = create_buffer(gpu, CL_MEM_USE_HOST_PTR, 4096, pointer);
	ask_memory_object("buffer on an SVM pointer", buffer);
	CHECK(clReleaseMemObject(buffer));
	name_remove(pointer);
	clSVMFree(gpu->context, pointer);
}

void ask_memory(const struct gpu *gpu)
{
	const size_t count = sizeof sizes / sizeof *sizes;
	char moment[64];
	unsigned char *host = allocate(65536);
	memset(host, 7, 65536);
	name_add(host, "host memory");
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		for (size_t round = 0; round < 2 * count; round++)
			ask_buffer(gpu, &modes[i], sizes[round % count], round, host);
		snprintf(moment, sizeof moment, "after buffers of flags %llu", (unsigned long long)modes[i].flags);
		print_references(moment, gpu);
	}
	for (size_t round = 0; round < 2 * count; round++)
		if (sizes[round % count] > 3)
			ask_mapped(gpu, sizes[round % count], round);
	print_references("after maps", gpu);
	static const cl_mem_properties none[] = {0};
	if (!lenient) {
		ask_with_properties(gpu, "properties NULL", NULL);
		ask_with_properties(gpu, "properties {0}", none);
		ask_with_properties(gpu, "properties NULL again", NULL);
	}
	ask_part(gpu, 65536, 0, 65536);
	ask_part(gpu, 65535, 1024, 64511);
	ask_part(gpu, 4000, 128, 1);
	ask_part(gpu, 4096, 0, 4096);
	print_references("after parts", gpu);
	for (int i = 0; i < 3 && !lenient; i++) {
		if (i < 2)
			clSVMFree(gpu->context, clSVMAlloc(gpu->context, CL_MEM_READ_WRITE, i ? 4096 : 8192, 0));
		ask_svm(gpu);
	}
	print_references("after shared virtual memory", gpu);
	name_remove(host);
	free(host);
}
