/* references.c: what queries say, who holds references, and when destructors are called. */
#include "conformance.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SAME(object, key, type, value)                                                                                 \
	do {                                                                                                           \
		type got_;                                                                                             \
		size_t needed_ = 0;                                                                                    \
		OK(clGetMemObjectInfo((object), (key), sizeof got_, &got_, &needed_));                                 \
		HOLDS(needed_ == sizeof got_);                                                                         \
		if (got_ != (value))                                                                                   \
			return because("line %d: %s is not %s", __LINE__, #key, #value);                               \
	} while (0)

static const char *check_info(struct bench *bench, cl_mem_flags flags, size_t size, void *host)
{
	cl_mem buffer = new_buffer(&bench->gpu, flags, size, host);
	HOLDS(buffer != NULL);
	SAME(buffer, CL_MEM_TYPE, cl_mem_object_type, CL_MEM_OBJECT_BUFFER);
	SAME(buffer, CL_MEM_FLAGS, cl_mem_flags, flags);
	SAME(buffer, CL_MEM_SIZE, size_t, size);
	SAME(buffer, CL_MEM_MAP_COUNT, cl_uint, 0);
	SAME(buffer, CL_MEM_REFERENCE_COUNT, cl_uint, 1);
	SAME(buffer, CL_MEM_CONTEXT, cl_context, bench->gpu.context);
	SAME(buffer, CL_MEM_ASSOCIATED_MEMOBJECT, cl_mem, NULL);
	SAME(buffer, CL_MEM_OFFSET, size_t, 0);
	if (flags & CL_MEM_USE_HOST_PTR)
		SAME(buffer, CL_MEM_HOST_PTR, void *, host);
	OK(clReleaseMemObject(buffer));
	return NULL;
}

/* Every combination that the specification allows of how the device and the host use a buffer and where it lies. */
const char *get_buffer_info(struct bench *bench)
{
	static unsigned char host[8192];
	const cl_mem_flags device[] = {CL_MEM_READ_WRITE, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
	const cl_mem_flags access[] = {0, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_NO_ACCESS};
	const cl_mem_flags place[] = {0, CL_MEM_ALLOC_HOST_PTR, CL_MEM_COPY_HOST_PTR, CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR, CL_MEM_USE_HOST_PTR};
	const size_t sizes[] = {4096, 4095, 3000, 1, 8192, 5000};
	for (size_t d = 0; d < 3; d++)
		for (size_t a = 0; a < 4; a++)
			for (size_t p = 0; p < 5; p++)
				for (size_t s = 0; s < 6; s++) {
					bool takes = place[p] & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR);
					PASS(check_info(bench, device[d] | access[a] | place[p], sizes[s], takes ? host : NULL));
				}
	return NULL;
}

/* Whatever a driver's threads still do with what was released: a new buffer has one reference and no map. */
const char *new_buffers_are_new(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	for (size_t i = 0; i < 300; i++) {
		const size_t size = 4096 - i;
		cl_int code;
		cl_mem buffer = new_buffer(gpu, CL_MEM_READ_WRITE, size, NULL);
		HOLDS(buffer != NULL);
		SAME(buffer, CL_MEM_REFERENCE_COUNT, cl_uint, 1);
		SAME(buffer, CL_MEM_MAP_COUNT, cl_uint, 0);
		OK(set_all(gpu, buffer, 64, 1));
		void *mapped = clEnqueueMapBuffer(gpu->queue, buffer, CL_TRUE, CL_MAP_READ, 0, size, 0, NULL, NULL, &code);
		OK(code);
		OK(clEnqueueUnmapMemObject(gpu->queue, buffer, mapped, 0, NULL, NULL));
		OK(clFinish(gpu->queue));
		OK(clReleaseMemObject(buffer));
	}
	return NULL;
}

const char *array_info_size(struct bench *bench)
{
	/* From 1 MiB down to a byte, each five sevenths of the one before, and a byte less than each. */
	for (size_t size = 1 << 20; size > 0; size = size * 5 / 7) {
		for (size_t less = 0; less < 2 && less < size; less++) {
			cl_mem buffer = new_buffer(&bench->gpu, CL_MEM_READ_WRITE, size - less, NULL);
			HOLDS(buffer != NULL);
			SAME(buffer, CL_MEM_SIZE, size_t, size - less);
			OK(clReleaseMemObject(buffer));
		}
	}
	return NULL;
}

const char *retain_mem_object_single(struct bench *bench)
{
	cl_mem buffer = new_buffer(&bench->gpu, CL_MEM_READ_ONLY, 32, NULL);
	HOLDS(references(buffer) == 1);
	OK(clReleaseMemObject(buffer));
	return NULL;
}

const char *retain_mem_object_multiple(struct bench *bench)
{
	cl_mem buffer = new_buffer(&bench->gpu, CL_MEM_READ_ONLY, 32, NULL);
	HOLDS(references(buffer) == 1);
	for (cl_uint i = 2; i <= 10; i++)
		OK(clRetainMemObject(buffer));
	HOLDS(references(buffer) == 10);
	for (int i = 0; i < 5; i++)
		OK(clReleaseMemObject(buffer));
	HOLDS(references(buffer) == 5);
	for (int i = 0; i < 3; i++)
		OK(clRetainMemObject(buffer));
	HOLDS(references(buffer) == 8);
	for (int i = 0; i < 7; i++)
		OK(clReleaseMemObject(buffer));
	HOLDS(references(buffer) == 1);
	OK(clReleaseMemObject(buffer));
	return NULL;
}

static void CL_CALLBACK count_end(cl_mem object, void *data)
{
	(void)object;
	++*(_Atomic int *)data;
}

/* A kernel holds no reference to its arguments: the buffer ends although it is still set. */
const char *retain_mem_object_set_kernel_arg(struct bench *bench)
{
	static _Atomic int ended;
	ended = 0;
	cl_kernel kernel = new_kernel(bench, "fill");
	cl_mem buffer = new_buffer(&bench->gpu, CL_MEM_READ_WRITE, 4096, NULL);
	OK(clSetMemObjectDestructorCallback(buffer, count_end, &ended));
	OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
	HOLDS(references(buffer) == 1);
	OK(clReleaseMemObject(buffer));
	HOLDS(reaches(&ended, 1));
	OK(clReleaseKernel(kernel));
	return NULL;
}

/* In what order callbacks came. */
static struct order {
	_Atomic int count;
	_Atomic int number[3];
} order;

struct caller {
	int number;
};

static struct caller callers[3] = {{0}, {1}, {2}};

static void came(const void *data)
{
	const struct caller *caller = data;
	int at = order.count;
	if (at < 3)
		order.number[at] = caller->number;
	order.count++;
}

static void CL_CALLBACK memory_ended(cl_mem object, void *data)
{
	(void)object;
	came(data);
}

static void CL_CALLBACK context_ended(cl_context context, void *data)
{
	(void)context;
	came(data);
}

static const char *came_in_reverse(void)
{
	HOLDS(reaches(&order.count, 3));
	HOLDS(order.number[0] == 2 && order.number[1] == 1 && order.number[2] == 0);
	return NULL;
}

static const char *check_destructors(cl_mem object, const struct bench *bench, bool used)
{
	order.count = 0;
	HOLDS(object != NULL);
	for (int i = 0; i < 3; i++)
		OK(clSetMemObjectDestructorCallback(object, memory_ended, &callers[i]));
	if (used)
		OK(set_all(&bench->gpu, object, 16, 1));
	OK(clRetainMemObject(object));
	OK(clReleaseMemObject(object));
	HOLDS(order.count == 0);
	OK(clReleaseMemObject(object));
	OK(clFinish(bench->gpu.queue));
	return came_in_reverse();
}

const char *mem_object_destructor_callback(struct bench *bench)
{
	const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	const cl_image_desc description = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 16, .image_height = 16};
	cl_int code;
	PASS(check_destructors(new_buffer(&bench->gpu, CL_MEM_READ_WRITE, 4096, NULL), bench, false));
	PASS(check_destructors(new_buffer(&bench->gpu, CL_MEM_READ_WRITE, 4000, NULL), bench, true));
	if (!HAS_IMAGES)
		return NULL;
	cl_mem image = clCreateImage(bench->gpu.context, CL_MEM_READ_WRITE, &format, &description, NULL, &code);
	OK(code);
	return check_destructors(image, bench, false);
}

/* Contexts end, and say so, whatever was created in them and released before or after them. */
const char *context_destructor_callback(struct bench *bench)
{
	(void)bench;
	for (int late = 0; late < 2; late++) {
		order.count = 0;
		struct gpu other = gpu_open(0);
		for (int i = 0; i < 3; i++)
			OK(clSetContextDestructorCallback(other.context, context_ended, &callers[i]));
		cl_mem last = new_buffer(&other, CL_MEM_READ_WRITE, 8192, NULL);
		for (size_t i = 0; i < 10; i++) {
			cl_mem buffer = new_buffer(&other, CL_MEM_READ_WRITE, 4096 - i, NULL);
			OK(set_all(&other, buffer, 16, 1));
			OK(clReleaseMemObject(buffer));
		}
		OK(set_all(&other, last, 16, 1));
		OK(clFinish(other.queue));
		if (!late)
			OK(clReleaseMemObject(last));
		OK(clReleaseCommandQueue(other.queue));
		OK(clReleaseContext(other.context));
		if (late) {
			HOLDS(order.count == 0);
			OK(clReleaseMemObject(last));
		}
		PASS(came_in_reverse());
	}
	return NULL;
}
