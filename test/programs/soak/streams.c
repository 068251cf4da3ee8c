/*
 * streams.c: contexts besides the thread's own: long runs of buffers that are used and released without waiting for
 * anything, large buffers that copy the host's memory, and contexts that stay for a while.
 */
#include "soak.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 40, SLOW = 200 /* steps of each item */ };

/* One context with nothing else in it: with one in-order queue a pool reuses what is in flight. */
struct stream {
	struct world world;
	cl_command_queue queue[2]; /* the second comes late, or never */
	cl_mem out[2];             /* a word of each round */
	cl_kernel kernel;
	cl_event gate; /* open: NULL */
	cl_uint want[2][ROUNDS_MAX];
	size_t size;
};

static cl_mem buffer_new(struct thread *t, const struct world *world, size_t size)
{
	cl_int status;
	cl_mem mem = clCreateBuffer(world->context, CL_MEM_READ_WRITE, size, NULL, &status);
	MUST(t, status);
	return mem;
}

static void stream_add_queue(struct thread *t, struct stream *stream, int index, bool inorder)
{
	stream->queue[index] = queue_new(&stream->world, inorder);
	stream->out[index] = buffer_new(t, &stream->world, ROUNDS_MAX * sizeof(cl_uint));
	cl_uint zero = 0;
	cl_event event;
	MUST(t, clEnqueueFillBuffer(stream->queue[index], stream->out[index], &zero, 4, 0, ROUNDS_MAX * 4, 0, NULL, &event));
	MUST(t, clFlush(stream->queue[index]));
	if (index > 0) /* may be out of order */
		MUST(t, clWaitForEvents(1, &event));
	MUST(t, clReleaseEvent(event));
}

/* Fill, compute, copy one word to where it stays. */
static void stream_use(struct thread *t, struct stream *stream, cl_mem buffer, int index, cl_uint round)
{
	cl_command_queue queue = stream->queue[index];
	cl_uint n = (cl_uint)(stream->size / 4), a = (cl_uint)draw(&t->random) | 1, key = (cl_uint)draw(&t->random), rounds = t->options->light ? 2 : SLOW;
	cl_uint value = (cl_uint)draw(&t->random);
	const size_t items = (n + 63) / 64 * 64, group = 64;
	cl_event event[2], done;
	cl_uint gates = stream->gate && once_in(t, 2) ? 1 : 0;
	MUST(t, clEnqueueFillBuffer(queue, buffer, &value, 4, 0, stream->size, gates, gates ? &stream->gate : NULL, &event[0]));
	MUST(t, clSetKernelArg(stream->kernel, 0, sizeof buffer, &buffer));
	MUST(t, clSetKernelArg(stream->kernel, 1, sizeof buffer, &buffer));
	MUST(t, clSetKernelArg(stream->kernel, 2, sizeof n, &n));
	MUST(t, clSetKernelArg(stream->kernel, 3, sizeof a, &a));
	MUST(t, clSetKernelArg(stream->kernel, 4, sizeof key, &key));
	MUST(t, clSetKernelArg(stream->kernel, 5, sizeof rounds, &rounds));
	MUST(t, clEnqueueNDRangeKernel(queue, stream->kernel, 1, NULL, &items, &group, 1, &event[0], &event[1]));
	size_t from = 4 * below(t, n);
	MUST(t, clEnqueueCopyBuffer(queue, buffer, stream->out[index], from, 4 * round, 4, 1, &event[1], &done));
	MUST(t, clReleaseEvent(event[0]));
	MUST(t, clReleaseEvent(event[1]));
	MUST(t, clReleaseEvent(done));
	affine_power(&a, &key, rounds);
	stream->want[index][round] = value * a + key;
}

static void stream_gate(struct thread *t, struct stream *stream, bool close)
{
	cl_int status = CL_SUCCESS;
	if (stream->gate) {
		MUST(t, clSetUserEventStatus(stream->gate, CL_COMPLETE));
		MUST(t, clReleaseEvent(stream->gate));
	}
	stream->gate = close ? clCreateUserEvent(stream->world.context, &status) : NULL;
	MUST(t, status);
}

static void stream_check(struct thread *t, struct stream *stream, int index)
{
	cl_uint words[ROUNDS_MAX];
	MUST(t, clFinish(stream->queue[index]));
	MUST(t, clEnqueueReadBuffer(stream->queue[index], stream->out[index], CL_TRUE, 0, sizeof words, words, 0, NULL, NULL));
	for (int i = 0; i < ROUNDS_MAX; i++)
		if (words[i] != stream->want[index][i])
			broken(t, "round %d in queue %d: %08x, want %08x", i, index, words[i], stream->want[index][i]);
	t->hash = checksum(t->hash, words, sizeof words);
	MUST(t, clReleaseMemObject(stream->out[index]));
	MUST(t, clReleaseCommandQueue(stream->queue[index]));
}

void op_stream(struct thread *t, const struct op *op)
{
	(void)op;
	struct stream stream = {.size = (size_t)256 << (2 * below(t, 5))};
	cl_int status;
	world_open(&stream.world);
	stream.kernel = clCreateKernel(stream.world.program, "slow", &status);
	MUST(t, status);
	stream_add_queue(t, &stream, 0, true);
	cl_uint rounds = 4 + (cl_uint)below(t, ROUNDS_MAX - 4), late = (cl_uint)below(t, 2 * rounds);
	for (cl_uint round = 0; round < rounds; round++) {
		if (t->style->gates && once_in(t, 10))
			stream_gate(t, &stream, !stream.gate);
		if (round == late)
			stream_add_queue(t, &stream, 1, t->style->inorder || once_in(t, 2));
		size_t spare = once_in(t, 4) ? 4 * below(t, 16) : 0;
		cl_mem buffer = buffer_new(t, &stream.world, stream.size + spare);
		stream_use(t, &stream, buffer, round >= late && once_in(t, 2), round);
		MUST(t, clReleaseMemObject(buffer));
	}
	if (stream.gate)
		stream_gate(t, &stream, false);
	for (int i = 0; i < 2; i++)
		if (stream.queue[i])
			stream_check(t, &stream, i);
	MUST(t, clReleaseKernel(stream.kernel));
	world_close(&stream.world);
}

/* --- large buffers */

/* From 4 MiB on these come from a pool. What is released is still read by a command that is held back, or not. */
void op_large(struct thread *t, const struct op *op)
{
	if (!t->style->large)
		return;
	cl_command_queue queue = t->queue[op->queue].handle;
	size_t size = ((size_t)4 << 20) + 4 * below(t, 512 << 10), count = 2 + below(t, 2);
	unsigned char *host = allocate(size), last[3][64];
	cl_event event[3], gate = NULL;
	cl_int status = CL_SUCCESS;
	if (t->style->gates && once_in(t, 2))
		gate = clCreateUserEvent(t->world->context, &status);
	MUST(t, status);
	unsigned char want[3][64];
	for (size_t i = 0; i < count; i++) {
		size_t now = size - 4096 * below(t, 64), at = now - 64;
		fill_random(host, now, draw(&t->random));
		memcpy(want[i], host + at, 64);
		cl_mem mem = clCreateBuffer(t->world->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, now, host, &status);
		MUST(t, status);
		cl_mem_flags flags = 0;
		MUST(t, clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof flags, &flags, NULL));
		observe(t, flags);
		MUST(t, clEnqueueReadBuffer(queue, mem, CL_FALSE, at, 64, last[i], gate ? 1 : 0, gate ? &gate : NULL, &event[i]));
		MUST(t, clReleaseMemObject(mem));
	}
	gates_open(t);
	if (gate) {
		MUST(t, clSetUserEventStatus(gate, CL_COMPLETE));
		MUST(t, clReleaseEvent(gate));
	}
	MUST(t, clWaitForEvents((cl_uint)count, event));
	for (size_t i = 0; i < count; i++) {
		compare(t, atomic_load(&t->op), last[i], want[i], 64);
		MUST(t, clReleaseEvent(event[i]));
	}
	free(host);
}

/* --- contexts that stay */

static void far_open(struct thread *t, struct far *far)
{
	cl_int status;
	far->world.device = t->world->device;
	far->world.context = clCreateContext(NULL, 1, &far->world.device, NULL, NULL, &status);
	MUST(t, status);
	far->size = t->classes[below(t, 3)];
	far->queue[0] = queue_new(&far->world, true);
	far->queues = 1;
	cl_uint references = 0;
	MUST(t, clGetContextInfo(far->world.context, CL_CONTEXT_REFERENCE_COUNT, sizeof references, &references, NULL));
	observe(t, references);
}

static void far_read(struct thread *t, struct far *far, int i)
{
	cl_uint *words = allocate(far->size);
	MUST(t, clEnqueueReadBuffer(far->last[i], far->mem[i], CL_TRUE, 0, far->size, words, 0, NULL, NULL));
	for (size_t k = 0; k < far->size / 4; k++)
		if (words[k] != far->value[i])
			broken(t, "another context: word %zu of buffer %d is %08x, want %08x", k, i, words[k], far->value[i]);
	observe(t, far->value[i]);
	free(words);
}

static void far_release(struct thread *t, struct far *far, int i)
{
	if (far->mem[i])
		MUST(t, clReleaseMemObject(far->mem[i]));
	far->mem[i] = NULL;
}

static void far_close(struct thread *t, struct far *far)
{
	bool context_first = once_in(t, 2);
	if (!far->world.context)
		return;
	if (context_first)
		MUST(t, clReleaseContext(far->world.context));
	for (unsigned i = 0; i < far->queues; i++)
		MUST(t, clReleaseCommandQueue(far->queue[i]));
	for (int i = 0; i < FAR_BUFFERS; i++)
		far_release(t, far, i);
	if (!context_first)
		MUST(t, clReleaseContext(far->world.context));
	*far = (struct far){0};
}

void fars_close(struct thread *t)
{
	for (int i = 0; i < FARS; i++)
		far_close(t, &t->far[i]);
}

/* Each buffer's commands are all in the queue of the moment when it was made. */
void op_far(struct thread *t, const struct op *op)
{
	struct far *far = &t->far[op->a % FARS];
	int i = (int)op->b % FAR_BUFFERS;
	if (!far->world.context)
		far_open(t, far);
	size_t way = below(t, 12);
	if (way == 0) {
		far_close(t, far);
		return;
	}
	if (way == 1 && far->queues < 2)
		far->queue[far->queues++] = queue_new(&far->world, true);
	if (way < 4 && far->mem[i])
		far_read(t, far, i);
	if (way > 7 && far->mem[i])
		far_release(t, far, i);
	if (!far->mem[i]) {
		far->mem[i] = buffer_new(t, &far->world, far->size);
		far->last[i] = far->queue[below(t, far->queues)];
		MUST(t, clRetainCommandQueue(far->last[i]));
		MUST(t, clReleaseCommandQueue(far->last[i]));
	}
	far->value[i] = (cl_uint)draw(&t->random);
	MUST(t, clEnqueueFillBuffer(far->last[i], far->mem[i], &far->value[i], 4, 0, far->size, 0, NULL, NULL));
}
