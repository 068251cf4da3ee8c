/* contents.c: what is in a buffer, its parts and its maps; which commands its flags allow. */
#include "conformance.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 16384, BYTES = NUMBERS * 4, PARTS = 8 };

static cl_uint host[NUMBERS], back[NUMBERS];

static void make_numbers(cl_uint seed)
{
	fill_random(host, sizeof host, seed);
	memset(back, 0, sizeof back);
}

static cl_mem part_of(cl_mem whole, size_t origin, size_t size)
{
	const cl_buffer_region region = {origin, size};
	return clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
}

const char *sub_buffers_read_write(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	make_numbers(1);
	cl_mem whole = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL), parts[PARTS];
	const size_t each = BYTES / PARTS;
	for (size_t i = 0; i < PARTS; i++) {
		parts[i] = part_of(whole, i * each, each);
		HOLDS(parts[i] != NULL);
		OK(clEnqueueWriteBuffer(gpu->queue, parts[i], CL_FALSE, 0, each, (char *)host + i * each, 0, NULL, NULL));
	}
	OK(clReleaseMemObject(whole)); /* its parts keep it */
	for (size_t i = 0; i < PARTS; i++) {
		OK(clEnqueueReadBuffer(gpu->queue, parts[i], CL_TRUE, 0, each, (char *)back + i * each, 0, NULL, NULL));
		OK(clReleaseMemObject(parts[i]));
	}
	HOLDS(memcmp(host, back, sizeof host) == 0);
	return NULL;
}

const char *sub_buffers_overlapping(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	cl_mem whole = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL);
	cl_mem first = part_of(whole, 0, BYTES / 2 + 1024), second = part_of(whole, BYTES / 2, BYTES / 2);
	HOLDS(first != NULL && second != NULL);
	OK(set_all(gpu, whole, NUMBERS, 1));
	OK(set_all(gpu, first, (BYTES / 2 + 1024) / 4, 2));
	OK(set_all(gpu, second, BYTES / 8, 3));
	PASS(all_are(gpu, first, BYTES / 8, 2));
	OK(clEnqueueReadBuffer(gpu->queue, whole, CL_TRUE, 0, BYTES, back, 0, NULL, NULL));
	for (size_t i = 0; i < NUMBERS; i++)
		HOLDS(back[i] == (i < NUMBERS / 2 ? 2 : 3));
	OK(clReleaseMemObject(first));
	OK(clReleaseMemObject(whole));
	PASS(all_are(gpu, second, BYTES / 8, 3));
	OK(clReleaseMemObject(second));
	return NULL;
}

const char *buffer_map_read(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	const cl_mem_flags flags[] = {CL_MEM_READ_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_HOST_READ_ONLY};
	cl_kernel kernel = new_kernel(bench, "fill");
	cl_int code;
	for (size_t i = 0; i < 3; i++) {
		cl_uint value = (cl_uint)i + 77;
		size_t items = NUMBERS;
		cl_mem buffer = new_buffer(gpu, flags[i], BYTES - i, NULL);
		gpu_arguments(kernel, sizeof buffer, &buffer, sizeof value, &value, (size_t)0);
		items -= i > 0;
		gpu_run(gpu, kernel, items);
		cl_uint *mapped = clEnqueueMapBuffer(gpu->queue, buffer, CL_TRUE, CL_MAP_READ, 4, items * 4 - 4, 0, NULL, NULL, &code);
		OK(code);
		for (size_t k = 0; k + 1 < items; k++)
			HOLDS(mapped[k] == value);
		OK(clEnqueueUnmapMemObject(gpu->queue, buffer, mapped, 0, NULL, NULL));
		OK(clReleaseMemObject(buffer));
	}
	OK(clReleaseKernel(kernel));
	return NULL;
}

const char *buffer_map_write(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	const cl_map_flags how[] = {CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_MAP_READ | CL_MAP_WRITE};
	cl_int code;
	for (cl_uint i = 0; i < 3; i++) {
		make_numbers(i + 10);
		cl_mem buffer = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL);
		OK(set_all(gpu, buffer, NUMBERS, 0xdead));
		void *mapped = clEnqueueMapBuffer(gpu->queue, buffer, CL_TRUE, how[i], 0, BYTES, 0, NULL, NULL, &code);
		OK(code);
		memcpy(mapped, host, BYTES);
		OK(clEnqueueUnmapMemObject(gpu->queue, buffer, mapped, 0, NULL, NULL));
		OK(clEnqueueReadBuffer(gpu->queue, buffer, CL_TRUE, 0, BYTES, back, 0, NULL, NULL));
		HOLDS(memcmp(host, back, BYTES) == 0);
		OK(clReleaseMemObject(buffer));
	}
	return NULL;
}

/* A kernel that adds from one buffer to another, created as the check wants them. */
static const char *check_add(struct bench *bench, cl_mem from, cl_mem to, cl_uint by)
{
	cl_kernel kernel = new_kernel(bench, "add");
	HOLDS(from != NULL && to != NULL);
	gpu_arguments(kernel, sizeof from, &from, sizeof to, &to, sizeof by, &by, (size_t)0);
	gpu_run(&bench->gpu, kernel, NUMBERS);
	OK(clReleaseKernel(kernel));
	OK(clEnqueueReadBuffer(bench->gpu.queue, to, CL_TRUE, 0, BYTES, back, 0, NULL, NULL));
	for (size_t i = 0; i < NUMBERS; i++)
		HOLDS(back[i] == host[i] + by);
	OK(clReleaseMemObject(from));
	OK(clReleaseMemObject(to));
	return NULL;
}

static const char *check_flags(struct bench *bench, cl_mem_flags reads, cl_mem_flags writes)
{
	make_numbers((cl_uint)(reads * 3 + writes));
	bool takes = reads & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR);
	cl_mem from = new_buffer(&bench->gpu, reads, BYTES, takes ? host : NULL);
	HOLDS(from != NULL);
	if (!takes)
		OK(clEnqueueWriteBuffer(bench->gpu.queue, from, CL_TRUE, 0, BYTES, host, 0, NULL, NULL));
	return check_add(bench, from, new_buffer(&bench->gpu, writes, BYTES, NULL), 5);
}

const char *mem_read_only_flags(struct bench *bench)
{
	return check_flags(bench, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE);
}

const char *mem_write_only_flags(struct bench *bench)
{
	return check_flags(bench, CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY);
}

const char *mem_copy_host_flags(struct bench *bench)
{
	PASS(check_flags(bench, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, CL_MEM_WRITE_ONLY));
	/* What the host does to its memory afterwards is nothing to the buffer. */
	make_numbers(99);
	cl_mem buffer = new_buffer(&bench->gpu, CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, BYTES, host);
	memcpy(back, host, BYTES);
	memset(host, 0, BYTES);
	OK(clEnqueueReadBuffer(bench->gpu.queue, buffer, CL_TRUE, 0, BYTES, host, 0, NULL, NULL));
	HOLDS(memcmp(host, back, BYTES) == 0);
	OK(clReleaseMemObject(buffer));
	return NULL;
}

const char *mem_use_host_flags(struct bench *bench)
{
	static cl_uint own[NUMBERS];
	cl_int code;
	cl_mem buffer = new_buffer(&bench->gpu, CL_MEM_USE_HOST_PTR, BYTES, own);
	HOLDS(buffer != NULL);
	OK(set_all(&bench->gpu, buffer, NUMBERS, 4711));
	void *mapped = clEnqueueMapBuffer(bench->gpu.queue, buffer, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &code);
	OK(code);
	HOLDS(mapped == own);
	HOLDS(own[0] == 4711 && own[NUMBERS - 1] == 4711);
	OK(clEnqueueUnmapMemObject(bench->gpu.queue, buffer, mapped, 0, NULL, NULL));
	OK(clFinish(bench->gpu.queue));
	OK(clReleaseMemObject(buffer));
	return NULL;
}

const char *mem_alloc_ref_flags(struct bench *bench)
{
	PASS(check_flags(bench, CL_MEM_READ_ONLY | CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR));
	return check_flags(bench, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, CL_MEM_WRITE_ONLY | CL_MEM_ALLOC_HOST_PTR);
}

const char *buffer_migrate(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	const cl_mem_migration_flags flags[] = {0, CL_MIGRATE_MEM_OBJECT_HOST, 0};
	cl_mem buffers[3];
	for (cl_uint i = 0; i < 3; i++) {
		buffers[i] = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES - 4 * i, NULL);
		OK(set_all(gpu, buffers[i], NUMBERS - i, i + 100));
	}
	for (size_t i = 0; i < 3; i++)
		OK(clEnqueueMigrateMemObjects(gpu->queue, 3, buffers, flags[i], 0, NULL, NULL));
	for (cl_uint i = 0; i < 3; i++) {
		PASS(all_are(gpu, buffers[i], NUMBERS - i, i + 100));
		OK(clReleaseMemObject(buffers[i]));
	}
	return NULL;
}

/* One thread's: a queue, and the half of a buffer that goes to the host and back. */
struct mover {
	struct bench *bench;
	const char *why;
	pthread_t thread;
};

static const char *move_half(const struct gpu *gpu, cl_uint value)
{
	cl_event moved;
	cl_uint got[256];
	cl_mem whole = new_buffer(gpu, CL_MEM_READ_WRITE, 2 * sizeof got, NULL);
	cl_mem half = part_of(whole, 0, sizeof got);
	HOLDS(half != NULL);
	for (cl_uint i = 0; i < 300; i++) {
		OK(set_all(gpu, half, 256, value + i));
		OK(clEnqueueMigrateMemObjects(gpu->queue, 1, &half, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL, &moved));
		OK(clEnqueueReadBuffer(gpu->queue, half, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL));
		HOLDS(got[255] == value + i);
		OK(clWaitForEvents(1, &moved));
		OK(clReleaseEvent(moved));
	}
	OK(clReleaseMemObject(half));
	OK(clReleaseMemObject(whole));
	return NULL;
}

static void *move(void *arg)
{
	struct mover *mover = arg;
	struct gpu gpu = mover->bench->gpu;
	cl_int code;
	gpu.queue = clCreateCommandQueueWithProperties(gpu.context, gpu.device, NULL, &code);
	mover->why = code == CL_SUCCESS ? move_half(&gpu, (cl_uint)(uintptr_t)mover) : "there is no queue";
	if (code == CL_SUCCESS)
		clReleaseCommandQueue(gpu.queue);
	return NULL;
}

/* PoCL 3.1 crashes where these are parts of one buffer. */
const char *halves_of_threads_migrate(struct bench *bench)
{
	struct mover movers[3];
	const char *why = NULL;
	for (int i = 0; i < 3; i++) {
		movers[i] = (struct mover){.bench = bench};
		HOLDS(pthread_create(&movers[i].thread, NULL, move, &movers[i]) == 0);
	}
	for (int i = 0; i < 3; i++) {
		HOLDS(pthread_join(movers[i].thread, NULL) == 0);
		why = why ? why : movers[i].why;
	}
	return why;
}

/* What the host may not do to such a buffer is refused, the rest works. */
static const char *check_host_flag(struct bench *bench, cl_mem_flags flag, size_t size, cl_int reading, cl_int writing)
{
	const struct gpu *gpu = &bench->gpu;
	const size_t zero[3] = {0}, region[3] = {4, 2, 1};
	cl_int code;
	memset(back, 0, sizeof back); /* not what an earlier read left there */
	cl_mem buffer = new_buffer(gpu, CL_MEM_READ_WRITE | flag, size, NULL);
	HOLDS(buffer != NULL);
	OK(set_all(gpu, buffer, size / 4, 9));
	WANT(reading, clEnqueueReadBuffer(gpu->queue, buffer, CL_TRUE, 0, size, back, 0, NULL, NULL));
	HOLDS(reading != CL_SUCCESS || back[size / 4 - 1] == 9);
	WANT(writing, clEnqueueWriteBuffer(gpu->queue, buffer, CL_TRUE, 0, size, host, 0, NULL, NULL));
	WANT(reading, clEnqueueReadBufferRect(gpu->queue, buffer, CL_TRUE, zero, zero, region, 8, 0, 8, 0, back, 0, NULL, NULL));
	WANT(writing, clEnqueueWriteBufferRect(gpu->queue, buffer, CL_TRUE, zero, zero, region, 8, 0, 8, 0, host, 0, NULL, NULL));
	void *mapped = clEnqueueMapBuffer(gpu->queue, buffer, CL_TRUE, CL_MAP_READ, 0, size, 0, NULL, NULL, &code);
	HOLDS(code == reading);
	if (mapped != NULL)
		OK(clEnqueueUnmapMemObject(gpu->queue, buffer, mapped, 0, NULL, NULL));
	mapped = clEnqueueMapBuffer(gpu->queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, size, 0, NULL, NULL, &code);
	HOLDS(code == writing);
	if (mapped != NULL)
		OK(clEnqueueUnmapMemObject(gpu->queue, buffer, mapped, 0, NULL, NULL));
	OK(clFinish(gpu->queue));
	OK(clReleaseMemObject(buffer));
	return NULL;
}

const char *mem_host_flags(struct bench *bench)
{
	const size_t sizes[] = {8192, 8000, 4100, 64};
	for (size_t i = 0; i < 4; i++) {
		PASS(check_host_flag(bench, 0, sizes[i], CL_SUCCESS, CL_SUCCESS));
		PASS(check_host_flag(bench, CL_MEM_HOST_READ_ONLY, sizes[i], CL_SUCCESS, CL_INVALID_OPERATION));
		PASS(check_host_flag(bench, CL_MEM_HOST_WRITE_ONLY, sizes[i], CL_INVALID_OPERATION, CL_SUCCESS));
		PASS(check_host_flag(bench, CL_MEM_HOST_NO_ACCESS, sizes[i], CL_INVALID_OPERATION, CL_INVALID_OPERATION));
	}
	return NULL;
}

/* Many large buffers at once, each with its own contents; then the same memory cut in another way. */
const char *allocations(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	const size_t all = (size_t)64 << 20, chunks[] = {(size_t)16 << 20, (size_t)4 << 20, ((size_t)6 << 20) - 4};
	for (size_t c = 0; c < 3; c++) {
		cl_mem buffers[16];
		const size_t count = all / chunks[c]; /* 16 at most */
		for (size_t i = 0; i < count; i++) {
			buffers[i] = new_buffer(gpu, CL_MEM_READ_WRITE, chunks[c], NULL);
			HOLDS(buffers[i] != NULL);
			OK(set_all(gpu, buffers[i], chunks[c] / 4, (cl_uint)(100 * c + i)));
		}
		for (size_t i = 0; i < count; i++)
			PASS(all_are(gpu, buffers[i], chunks[c] / 4, (cl_uint)(100 * c + i)));
		for (size_t i = 0; i < count; i++)
			OK(clReleaseMemObject(buffers[i]));
	}
	return NULL;
}
