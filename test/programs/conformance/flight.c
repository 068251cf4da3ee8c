/* flight.c: memory that is released while commands still use it, or before they may even begin. */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 4096, BYTES = NUMBERS * 4, ROUNDS = 8000 };

/* What the slow kernel makes of a number. */
static cl_uint slow_result(cl_uint x)
{
	for (cl_uint i = 0; i < ROUNDS; i++)
		x = x * 1664525u + 1013904223u;
	return x;
}

static void run_slow(struct bench *bench, cl_kernel kernel, cl_mem buffer)
{
	cl_uint rounds = ROUNDS;
	gpu_arguments(kernel, sizeof buffer, &buffer, sizeof rounds, &rounds, (size_t)0);
	gpu_run(&bench->gpu, kernel, NUMBERS);
}

/* Creates buffers of the same size and fills them on a queue: with what is released and not yet free, if that is wrong. */
static const char *crowd(const struct gpu *gpu)
{
	for (cl_uint i = 0; i < 4; i++) {
		cl_mem buffer = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL);
		HOLDS(buffer != NULL);
		OK(set_all(gpu, buffer, NUMBERS, 0xbad + i));
		OK(clReleaseMemObject(buffer));
	}
	return NULL;
}

/* Starts a slow kernel on a buffer, copies its result and releases everything at once. */
static const char *start_and_release(struct bench *bench, cl_uint value, cl_mem *result)
{
	const struct gpu *gpu = &bench->gpu;
	cl_kernel kernel = new_kernel(bench, "slow");
	cl_mem buffer = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL);
	*result = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL);
	HOLDS(buffer != NULL && *result != NULL);
	OK(set_all(gpu, buffer, NUMBERS, value));
	run_slow(bench, kernel, buffer);
	OK(clEnqueueCopyBuffer(gpu->queue, buffer, *result, 0, 0, BYTES, 0, NULL, NULL));
	OK(clReleaseMemObject(buffer));
	OK(clReleaseKernel(kernel));
	return NULL;
}

const char *release_during_execute(struct bench *bench)
{
	cl_mem results[4];
	for (cl_uint i = 0; i < 4; i++) {
		PASS(start_and_release(bench, i, &results[i]));
		PASS(crowd(&bench->gpu));
	}
	for (cl_uint i = 0; i < 4; i++) {
		PASS(all_are(&bench->gpu, results[i], NUMBERS, slow_result(i)));
		OK(clReleaseMemObject(results[i]));
	}
	return NULL;
}

static const char *new_queue(const struct gpu *gpu, cl_command_queue_properties properties, cl_command_queue *queue)
{
	cl_int code;
	const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
	*queue = clCreateCommandQueueWithProperties(gpu->context, gpu->device, list, &code);
	OK(code);
	return NULL;
}

/* The crowd comes by another queue, which knows nothing of the first. */
const char *two_queues(struct bench *bench)
{
	const cl_command_queue_properties kinds[] = {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};
	for (size_t k = 0; k < 2; k++) {
		cl_mem result;
		struct gpu other = bench->gpu;
		PASS(new_queue(&other, kinds[k], &other.queue));
		PASS(start_and_release(bench, 5, &result));
		PASS(crowd(&other));
		OK(clFinish(other.queue));
		OK(clReleaseCommandQueue(other.queue));
		PASS(crowd(&bench->gpu));
		PASS(all_are(&bench->gpu, result, NUMBERS, slow_result(5)));
		OK(clReleaseMemObject(result));
	}
	return NULL;
}

/* An enqueued kernel keeps the arguments that it had, whatever is set afterwards. */
const char *kernel_arg_changes(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	cl_kernel kernel = new_kernel(bench, "fill");
	cl_mem buffers[8];
	for (cl_uint i = 0; i < 8; i++) {
		buffers[i] = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL);
		gpu_arguments(kernel, sizeof buffers[i], &buffers[i], sizeof i, &i, (size_t)0);
		gpu_run(gpu, kernel, NUMBERS);
		if (i % 2 == 1) { /* gone while it is still set */
			OK(clReleaseMemObject(buffers[i]));
			buffers[i] = NULL;
		}
	}
	PASS(crowd(gpu));
	for (cl_uint i = 0; i < 8; i += 2) {
		PASS(all_are(gpu, buffers[i], NUMBERS, i));
		OK(clReleaseMemObject(buffers[i]));
	}
	OK(clReleaseKernel(kernel));
	return NULL;
}

const char *null_buffer_arg(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	cl_kernel kernel = new_kernel(bench, "is_null");
	cl_mem to = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL), from = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL);
	const cl_mem none = NULL;
	gpu_arguments(kernel, sizeof from, &from, sizeof to, &to, (size_t)0);
	gpu_run(gpu, kernel, NUMBERS);
	PASS(all_are(gpu, to, NUMBERS, 0));
	gpu_arguments(kernel, sizeof none, &none, sizeof to, &to, (size_t)0);
	gpu_run(gpu, kernel, NUMBERS);
	PASS(all_are(gpu, to, NUMBERS, 1));
	gpu_arguments(kernel, sizeof none, (void *)NULL, sizeof to, &to, (size_t)0);
	OK(set_all(gpu, to, NUMBERS, 0));
	gpu_run(gpu, kernel, NUMBERS);
	PASS(all_are(gpu, to, NUMBERS, 1));
	OK(clReleaseMemObject(from));
	OK(clReleaseMemObject(to));
	OK(clReleaseKernel(kernel));
	return NULL;
}

/* Has result filled with 42 behind the gate by way of a buffer that is released at once; fills another meanwhile. */
static const char *fill_behind(cl_event gate, const struct gpu *gpu, const struct gpu *other, cl_mem result,
			       cl_mem *another)
{
	cl_uint value = 42;
	cl_mem buffer = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL);
	OK(clEnqueueFillBuffer(gpu->queue, buffer, &value, sizeof value, 0, BYTES, 1, &gate, NULL));
	OK(clEnqueueCopyBuffer(gpu->queue, buffer, result, 0, 0, BYTES, 0, NULL, NULL));
	OK(clFlush(gpu->queue));
	OK(clReleaseMemObject(buffer));
	PASS(crowd(other));
	OK(clFinish(other->queue));
	*another = new_buffer(other, CL_MEM_READ_WRITE, BYTES, NULL);
	OK(set_all(other, *another, NUMBERS, 7));
	OK(clFinish(other->queue));
	return NULL;
}

/* Commands that wait for the program itself: nothing may wait for them, and what they use is not free. */
const char *user_events(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	struct gpu other = *gpu;
	cl_int code;
	PASS(new_queue(gpu, 0, &other.queue));
	cl_event gate = clCreateUserEvent(gpu->context, &code);
	OK(code);
	cl_mem result = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL), another = NULL;
	const char *why = fill_behind(gate, gpu, &other, result, &another);
	OK(clSetUserEventStatus(gate, CL_COMPLETE)); /* in any case: the checks after this one wait for the queue */
	PASS(why);
	PASS(all_are(gpu, result, NUMBERS, 42));
	PASS(all_are(&other, another, NUMBERS, 7));
	OK(clReleaseEvent(gate));
	OK(clReleaseMemObject(result));
	OK(clReleaseMemObject(another));
	OK(clReleaseCommandQueue(other.queue));
	return NULL;
}

static _Atomic int released;
static _Atomic int release_failed;

static void CL_CALLBACK release_now(cl_event event, cl_int status, void *data)
{
	(void)event;
	if (status != CL_COMPLETE || clReleaseMemObject((cl_mem)data) != CL_SUCCESS)
		release_failed = 1;
	released++;
}

/* A driver's thread releases what a command has used, while this one creates. */
const char *release_in_event_callback(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	enum { COMMANDS = 20 };
	released = 0;
	release_failed = 0;
	for (cl_uint i = 0; i < COMMANDS; i++) {
		cl_event event;
		cl_mem buffer = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL);
		HOLDS(buffer != NULL);
		OK(clEnqueueFillBuffer(gpu->queue, buffer, &i, sizeof i, 0, BYTES, 0, NULL, &event));
		OK(clSetEventCallback(event, CL_COMPLETE, release_now, buffer));
		OK(clReleaseEvent(event));
		OK(clFlush(gpu->queue));
		cl_mem mine = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL);
		OK(set_all(gpu, mine, NUMBERS, i + 1000));
		PASS(all_are(gpu, mine, NUMBERS, i + 1000));
		OK(clReleaseMemObject(mine));
	}
	HOLDS(reaches(&released, COMMANDS));
	HOLDS(release_failed == 0);
	return NULL;
}

/* Buffers of one size in several contexts: each has its own context and its own contents. */
const char *multiple_contexts(struct bench *bench)
{
	enum { CONTEXTS = 3, BUFFERS = 4 };
	struct gpu gpus[CONTEXTS];
	cl_mem buffers[CONTEXTS][BUFFERS];
	for (size_t c = 0; c < CONTEXTS; c++) {
		gpus[c] = gpu_open(0);
		PASS(crowd(&gpus[c]));
	}
	for (cl_uint b = 0; b < BUFFERS; b++) {
		for (cl_uint c = 0; c < CONTEXTS; c++) {
			cl_context context;
			buffers[c][b] = new_buffer(&gpus[c], CL_MEM_READ_WRITE, BYTES, NULL);
			HOLDS(buffers[c][b] != NULL);
			OK(clGetMemObjectInfo(buffers[c][b], CL_MEM_CONTEXT, sizeof context, &context, NULL));
			HOLDS(context == gpus[c].context);
			OK(set_all(&gpus[c], buffers[c][b], NUMBERS, 10 * c + b));
		}
	}
	PASS(crowd(&bench->gpu));
	for (cl_uint c = 0; c < CONTEXTS; c++) {
		for (cl_uint b = 0; b < BUFFERS; b++) {
			PASS(all_are(&gpus[c], buffers[c][b], NUMBERS, 10 * c + b));
			OK(clReleaseMemObject(buffers[c][b]));
		}
		gpu_close(&gpus[c]);
	}
	return NULL;
}

/* A part, or an image, of a buffer that the program has released keeps its memory, and so does a part in use. */
const char *parts_keep_the_whole(struct bench *bench)
{
	const struct gpu *gpu = &bench->gpu;
	const cl_buffer_region region = {1024, BYTES / 2};
	const cl_image_format format = {CL_R, CL_UNSIGNED_INT32};
	cl_image_desc description = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = NUMBERS};
	const size_t zero[3] = {0}, pixels[3] = {NUMBERS, 1, 1};
	static cl_uint back[NUMBERS];
	memset(back, 0, sizeof back); /* not what the round before left there */
	cl_int code;
	cl_mem whole = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL), result = new_buffer(gpu, CL_MEM_READ_WRITE, BYTES, NULL);
	cl_mem part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
	OK(code);
	OK(set_all(gpu, whole, NUMBERS, 3));
	OK(clReleaseMemObject(whole));
	PASS(crowd(gpu));
	OK(clEnqueueCopyBuffer(gpu->queue, part, result, 0, 0, BYTES / 2, 0, NULL, NULL));
	OK(clReleaseMemObject(part));
	PASS(crowd(gpu));
	PASS(all_are(gpu, result, NUMBERS / 2, 3));
	if (!HAS_IMAGES) {
		OK(clReleaseMemObject(result));
		return NULL;
	}
	description.mem_object = result;
	cl_mem image = clCreateImage(gpu->context, CL_MEM_READ_WRITE, &format, &description, NULL, &code);
	OK(code);
	OK(set_all(gpu, result, NUMBERS, 8));
	OK(clReleaseMemObject(result));
	PASS(crowd(gpu));
	OK(clEnqueueReadImage(gpu->queue, image, CL_TRUE, zero, pixels, 0, 0, back, 0, NULL, NULL));
	OK(clReleaseMemObject(image));
	for (size_t i = 0; i < NUMBERS; i++)
		HOLDS(back[i] == 8);
	return NULL;
}
