/* world.c: contexts and queues: made, shared, and torn down with commands pending. */
#include "soak.h"

#include <stdlib.h>
#include <string.h>

#define KERNELS \
	"__kernel void make(__global uint *y, uint n, uint a, uint key) {\n" \
	"	uint i = get_global_id(0);\n" \
	"	if (i < n) y[i] = i * a + key;\n" \
	"}\n" \
	"__kernel void affine(__global const uint *x, __global uint *y, uint n, uint a, uint key) {\n" \
	"	uint i = get_global_id(0);\n" \
	"	if (i < n) y[i] = x[i] * a + key;\n" \
	"}\n" \
	"__kernel void slow(__global const uint *x, __global uint *y, uint n, uint a, uint key, uint rounds) {\n" \
	"	uint i = get_global_id(0);\n" \
	"	if (i >= n) return;\n" \
	"	uint v = x[i];\n" \
	"	for (uint k = 0; k < rounds; k++) v = v * a + key;\n" \
	"	y[i] = v;\n" \
	"}\n"

/* Left out where there are no images: clover's compiler aborts. */
#define IMAGE_KERNELS \
	"__constant sampler_t exact = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;\n" \
	"__kernel void texels(__read_only image2d_t image, __global uint *y, uint n, uint width) {\n" \
	"	uint i = get_global_id(0);\n" \
	"	if (i >= n) return;\n" \
	"	uint4 v = read_imageui(image, exact, (int2)(i % width, i / width));\n" \
	"	y[i] = v.x | v.y << 8 | v.z << 16 | v.w << 24;\n" \
	"}\n"

static bool modern, images; /* see struct style */

/* Before OpenCL 2.0 a device does not know the question. */
static cl_device_svm_capabilities svm_of(cl_device_id device)
{
	cl_device_svm_capabilities svm = 0;
	return clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL) == CL_SUCCESS ? svm : 0;
}

struct style style_of(const struct options *options, cl_device_id device)
{
	char version[256] = "";
	cl_bool can_image = CL_FALSE;
	cl_device_exec_capabilities can = 0;
	cl_command_queue_properties queues = 0;
	CHECK(clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof can_image, &can_image, NULL));
	CHECK(clGetDeviceInfo(device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof can, &can, NULL));
	CHECK(clGetDeviceInfo(device, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, sizeof queues, &queues, NULL));
	CHECK(clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof version, version, NULL));
	uint64_t more = mix(options->seed ^ 0x6d6f7265u), bits = mix(options->seed ^ 0x736f616bu);
	modern = strncmp(version, "OpenCL 3.", strlen("OpenCL 3.")) == 0;
	images = (bits >> 24) % 2 == 0 && can_image && HAS_IMAGES;
	return (struct style){
		.gates = bits % 4 != 0 && !options->light,
		.inorder = (bits >> 8) % 4 == 0 || !(queues & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE),
		.callbacks = (bits >> 16) % 2 == 0,
		.images = images,
		.native = (bits >> 32) % 4 == 0 && (can & CL_EXEC_NATIVE_KERNEL),
		.destructors = (bits >> 40) % 2 == 0,
		.maps = (bits >> 48) % 4 != 0,
		.late = more % 3 == 0,
		.profiling = (more >> 8) % 3 == 0,
		.svm = (more >> 16) % 2 == 0 && (svm_of(device) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER),
		.errors = (more >> 24) % 3 == 0 && !options->light && (queues & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE),
		.large = (more >> 32) % 4 == 0,
		.modern = modern,
	};
}

cl_command_queue queue_new(const struct world *world, bool inorder)
{
	cl_command_queue_properties wanted = inorder ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
	if (world->profiling)
		wanted |= CL_QUEUE_PROFILING_ENABLE;
	cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, wanted, 0};
	cl_int status;
	cl_command_queue queue = modern ? clCreateCommandQueueWithProperties(world->context, world->device, wanted ? list : NULL, &status)
					: clCreateCommandQueue(world->context, world->device, wanted, &status);
	CHECK(status);
	return queue;
}

void world_open(struct world *world)
{
	cl_int status;
	cl_uint bits;
	world->device = gpu_device();
	CHECK(clGetDeviceInfo(world->device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL));
	world->align = bits / 8;
	world->context = clCreateContext(NULL, 1, &world->device, NULL, NULL, &status);
	CHECK(status);
	struct gpu gpu = {.device = world->device, .context = world->context};
	world->program = gpu_build(&gpu, images ? KERNELS IMAGE_KERNELS : KERNELS);
}

/* Queues of the world itself are made only for those who share them: a second queue changes what a pool may do. */
static cl_command_queue shared_queue(struct world *world, bool inorder)
{
	cl_command_queue *queue = &world->shared[inorder ? 0 : 1];
	if (!*queue)
		*queue = queue_new(world, inorder);
	CHECK(clRetainCommandQueue(*queue));
	return *queue;
}

void world_close(struct world *world)
{
	for (int i = 0; i < 2; i++)
		if (world->shared[i])
			CHECK(clReleaseCommandQueue(world->shared[i]));
	CHECK(clReleaseProgram(world->program));
	CHECK(clReleaseContext(world->context));
	*world = (struct world){0};
}

static void queue_add(struct thread *t, bool may_share)
{
	struct queue *queue = &t->queue[t->queues++];
	*queue = (struct queue){.inorder = t->style->inorder || once_in(t, 2)};
	bool shared = may_share && !t->own && t->options->threads > 1 && once_in(t, 3);
	queue->handle = shared ? shared_queue(t->world, queue->inorder) : queue_new(t->world, queue->inorder);
}

static void queues_open(struct thread *t, bool may_share)
{
	t->queues = 0;
	do
		queue_add(t, may_share);
	while (t->queues < t->options->queues && !t->style->late);
}

/* Called by the main thread, one thread after the other. */
void thread_open(struct thread *t)
{
	static const size_t classes[] = {64, 256, 1024, 4096, 16384, 65536, SIZE_MAX_BYTES};
	t->random = mix(t->options->seed + 0x746872656164u * (t->index + 1u));
	t->hash = CHECKSUM_START;
	for (int i = 0; i < 3; i++)
		t->classes[i] = classes[below(t, sizeof classes / sizeof classes[0])];
	queues_open(t, true);
	kernels_open(t);
}

static void release_all(struct thread *t)
{
	size_t first = below(t, SLOTS); /* parents before parts, and the other way */
	for (size_t i = 0; i < SLOTS; i++)
		slot_release(t, &t->slot[(first + i) % SLOTS]);
}

static void queue_release(struct thread *t, const struct queue *queue)
{
	for (unsigned i = 0; i <= queue->extra; i++)
		MUST(t, clReleaseCommandQueue(queue->handle));
}

static void queues_close(struct thread *t)
{
	for (int i = 0; i < SLOTS; i++)
		if (t->slot[i].kind != SLOT_EMPTY)
			maps_end(t, t->slot[i].storage, NULL, &t->queue[0]);
	for (unsigned i = 0; i < t->queues; i++) {
		chain_leave_queue(t, &t->queue[i]);
		queue_release(t, &t->queue[i]);
	}
}

void thread_close(struct thread *t)
{
	t->random = mix(t->options->seed + t->index);
	for (int i = 0; i < SLOTS; i++)
		if (t->slot[i].kind != SLOT_EMPTY)
			read_back(t, &t->slot[i], &t->queue[below(t, t->queues)]);
	pending_sweep(t, true);
	svm_close(t);
	release_all(t);
	kernels_close(t);
	queues_close(t);
	fars_close(t);
}

/* While blocks are in flight, perhaps. */
void op_late_queue(struct thread *t, const struct op *op)
{
	(void)op;
	if (t->queues < t->options->queues)
		queue_add(t, false);
}

void op_retain_queue(struct thread *t, const struct op *op)
{
	struct queue *queue = &t->queue[op->queue];
	if (queue->extra > 0 && once_in(t, 2)) {
		MUST(t, clReleaseCommandQueue(queue->handle));
		queue->extra--;
	} else if (queue->extra < 3) {
		MUST(t, clRetainCommandQueue(queue->handle));
		queue->extra++;
	}
}

void op_renew_queue(struct thread *t, const struct op *op)
{
	struct queue *queue = &t->queue[op->queue];
	bool overlap = once_in(t, 2);
	chain_leave_queue(t, queue);
	struct queue old = *queue;
	if (!overlap)
		queue_release(t, &old);
	*queue = (struct queue){.inorder = t->style->inorder || once_in(t, 2)};
	queue->handle = queue_new(t->world, queue->inorder);
	if (overlap)
		queue_release(t, &old);
}

/* Only for a thread with a context of its own. What is pending keeps what it needs. */
void op_renew_context(struct thread *t, const struct op *op)
{
	(void)op;
	if (!t->own)
		return;
	bool queues_first = once_in(t, 2), wait = once_in(t, 2);
	gates_open(t);
	if (wait)
		pending_sweep(t, true);
	if (queues_first)
		queues_close(t);
	svm_close(t);
	release_all(t);
	kernels_close(t);
	if (!queues_first)
		queues_close(t);
	world_close(t->world);
	pending_sweep(t, true);
	t->world->profiling = t->style->profiling;
	world_open(t->world);
	queues_open(t, false);
	kernels_open(t);
}

/* Something small in a context that lives no longer than this. Two buffers, one after the other: a pool reuses the first. */
void op_side_context(struct thread *t, const struct op *op)
{
	(void)op;
	struct world side = {.device = t->world->device};
	cl_int status;
	side.context = clCreateContext(NULL, 1, &side.device, NULL, NULL, &status);
	MUST(t, status);
	cl_command_queue queue = queue_new(&side, true);
	cl_uint words[64], key = (cl_uint)draw(&t->random);
	for (cl_uint round = 0; round < 2; round++) {
		cl_uint pattern = key + round;
		cl_mem buffer = clCreateBuffer(side.context, CL_MEM_READ_WRITE, sizeof words, NULL, &status);
		MUST(t, status);
		MUST(t, clEnqueueFillBuffer(queue, buffer, &pattern, sizeof pattern, 0, sizeof words, 0, NULL, NULL));
		MUST(t, clEnqueueReadBuffer(queue, buffer, once_in(t, 2), 0, sizeof words, words, 0, NULL, NULL));
		MUST(t, clReleaseMemObject(buffer));
	}
	bool context_first = once_in(t, 2);
	if (context_first)
		MUST(t, clReleaseContext(side.context));
	MUST(t, clFinish(queue));
	MUST(t, clReleaseCommandQueue(queue));
	if (!context_first)
		MUST(t, clReleaseContext(side.context));
	for (int i = 0; i < 64; i++)
		if (words[i] != key + 1)
			broken(t, "side context: word %d is %08x, want %08x", i, words[i], key + 1);
	observe(t, words[0]);
}
