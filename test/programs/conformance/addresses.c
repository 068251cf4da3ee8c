/* addresses.c: shared virtual memory that comes and goes, as that of a pool that hands it out again must. */
#include "conformance.h"

#include <stdint.h>

enum { NUMBERS = 64 << 10, BYTES = 4 * NUMBERS };

static bool has_svm(const struct gpu *gpu)
{
	cl_device_svm_capabilities can = 0;
	clGetDeviceInfo(gpu->device, CL_DEVICE_SVM_CAPABILITIES, sizeof can, &can, NULL);
	return can & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
}

static cl_uint *new_numbers(const struct gpu *gpu)
{
	return clSVMAlloc(gpu->context, CL_MEM_READ_WRITE, BYTES, 0);
}

static cl_int paint(cl_command_queue queue, cl_uint *numbers, cl_uint value, cl_uint waits, const cl_event *list)
{
	return clEnqueueSVMMemFill(queue, numbers, &value, sizeof value, BYTES, waits, list, NULL);
}

/* Allocates as much and paints it: over what is not free yet, if that is wrong. */
static const char *crowd(const struct gpu *gpu, cl_command_queue queue)
{
	for (cl_uint i = 0; i < 4; i++) {
		cl_uint *numbers = new_numbers(gpu);
		HOLDS(numbers != NULL);
		OK(paint(queue, numbers, 0xbad + i, 0, NULL));
		OK(clFinish(queue));
		clSVMFree(gpu->context, numbers);
	}
	return NULL;
}

static const char *numbers_are(cl_command_queue queue, cl_uint *numbers, cl_uint value)
{
	OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, numbers, BYTES, 0, NULL, NULL));
	HOLDS(numbers[0] == value && numbers[NUMBERS / 2] == value && numbers[NUMBERS - 1] == value);
	OK(clEnqueueSVMUnmap(queue, numbers, 0, NULL, NULL));
	OK(clFinish(queue));
	return NULL;
}

const char *new_svm_is_new(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	for (cl_uint i = 0; has_svm(gpu) && i < 6; i++) {
		cl_uint alignment = i % 3 == 2 ? 64 : 0;
		cl_uint *numbers = clSVMAlloc(gpu->context, CL_MEM_READ_WRITE, BYTES, alignment);
		HOLDS(numbers != NULL && (uintptr_t)numbers % (alignment ? alignment : sizeof(cl_long16)) == 0);
		OK(paint(gpu->queue, numbers, i, 0, NULL));
		PASS(numbers_are(gpu->queue, numbers, i));
		clSVMFree(gpu->context, numbers);
	}
	HOLDS(!has_svm(gpu) || !clSVMAlloc(gpu->context, CL_MEM_READ_WRITE, BYTES, 3));
	clSVMFree(gpu->context, NULL);
	return NULL;
}

/* A buffer has its bytes in it, all of them or some. */
const char *buffers_in_svm(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	for (cl_uint i = 0; has_svm(gpu) && i < 4; i++) {
		cl_uint *numbers = new_numbers(gpu);
		HOLDS(numbers != NULL);
		cl_mem buffer = new_buffer(gpu, CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE, BYTES, numbers);
		HOLDS(buffer != NULL);
		cl_bool uses = CL_FALSE;
		OK(clGetMemObjectInfo(buffer, CL_MEM_USES_SVM_POINTER, sizeof uses, &uses, NULL));
		HOLDS(uses == CL_TRUE);
		OK(set_all(gpu, buffer, NUMBERS, i));
		PASS(all_are(gpu, buffer, NUMBERS, i));
		OK(clReleaseMemObject(buffer));
		clSVMFree(gpu->context, numbers);
	}
	return NULL;
}

/* The driver frees it in its turn, and says so. */
static const char *free_in_turn(const struct gpu *gpu, cl_uint *numbers, cl_event *done)
{
	void *list = numbers;
	cl_command_type type = 0;
	OK(clEnqueueSVMFree(gpu->queue, 1, &list, NULL, NULL, 0, NULL, done));
	OK(clGetEventInfo(*done, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL));
	HOLDS(type == CL_COMMAND_SVM_FREE);
	return NULL;
}

/* It is painted, a kernel paints some of it again, all is copied, and then it is freed: one behind the other. */
const char *svm_freed_in_turn(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	size_t half = NUMBERS / 2;
	if (!has_svm(gpu))
		return NULL;
	cl_kernel kernel = new_kernel(bench, "fill");
	cl_event done[4];
	cl_uint *kept[4];
	for (cl_uint i = 0; i < 4; i++) {
		cl_uint *numbers = new_numbers(gpu), value = 100 + i;
		kept[i] = new_numbers(gpu);
		HOLDS(numbers != NULL && kept[i] != NULL);
		OK(paint(gpu->queue, numbers, value, 0, NULL));
		OK(clSetKernelArgSVMPointer(kernel, 0, numbers));
		OK(clSetKernelArg(kernel, 1, sizeof value, &value));
		OK(clEnqueueNDRangeKernel(gpu->queue, kernel, 1, NULL, &half, NULL, 0, NULL, NULL));
		OK(clEnqueueSVMMemcpy(gpu->queue, CL_FALSE, kept[i], numbers, BYTES, 0, NULL, NULL));
		PASS(free_in_turn(gpu, numbers, &done[i]));
	}
	PASS(crowd(gpu, gpu->queue));
	for (cl_uint i = 0; i < 4; i++) {
		OK(clWaitForEvents(1, &done[i]));
		OK(clReleaseEvent(done[i]));
		PASS(numbers_are(gpu->queue, kept[i], 100 + i));
		clSVMFree(gpu->context, kept[i]);
	}
	OK(clReleaseKernel(kernel));
	return NULL;
}

/* The first queue's commands and its free wait for the program, which allocates and uses memory on another meanwhile. */
const char *svm_of_two_queues(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	cl_int code;
	if (!has_svm(gpu))
		return NULL;
	cl_command_queue other = clCreateCommandQueueWithProperties(gpu->context, gpu->device, NULL, &code);
	OK(code);
	for (cl_uint i = 0; i < 4; i++) {
		cl_event gate = clCreateUserEvent(gpu->context, &code), done;
		OK(code);
		cl_uint *late = new_numbers(gpu), *result = new_numbers(gpu);
		HOLDS(late != NULL && result != NULL);
		OK(paint(gpu->queue, late, i, 1, &gate));
		OK(clEnqueueSVMMemcpy(gpu->queue, CL_FALSE, result, late, BYTES, 0, NULL, NULL));
		PASS(free_in_turn(gpu, late, &done));
		OK(clFlush(gpu->queue));
		PASS(crowd(gpu, other));
		OK(paint(other, late, 0xbad, 0, NULL)); /* it is not free yet */
		OK(clFinish(other));
		OK(clSetUserEventStatus(gate, CL_COMPLETE));
		OK(clFinish(gpu->queue));
		PASS(numbers_are(other, result, i));
		clSVMFree(gpu->context, result);
		OK(clReleaseEvent(done));
		OK(clReleaseEvent(gate));
	}
	OK(clReleaseCommandQueue(other));
	return NULL;
}
