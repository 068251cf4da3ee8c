/* kernels.c: running kernels: fast and slow ones, with arguments kept, cloned, and written in C. */
#include "soak.h"

#include <string.h>

enum {
	GROUP = 64,
	WORK = 24 << 20, /* rounds of the slow kernel's loop, all items together: some milliseconds on a CPU */
};

static const char *const names[KERNELS] = {"make", "affine", "affine", "slow", "slow", "texels"};

void kernels_open(struct thread *t)
{
	for (int i = 0; i < KERNELS; i++) {
		cl_int status;
		if (i == KERNEL_TEXELS && !t->style->images)
			continue;
		t->kernel[i] = (struct kernel){.handle = clCreateKernel(t->world->program, names[i], &status)};
		MUST(t, status);
	}
}

void kernels_close(struct thread *t)
{
	for (int i = 0; i < KERNELS; i++)
		if (t->kernel[i].handle)
			MUST(t, clReleaseKernel(t->kernel[i].handle));
}

static void argument(struct thread *t, cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
	MUST(t, clSetKernelArg(kernel, index, size, value));
}

/* Enqueues n items, in whole groups. The command has begun. */
static void enqueue(struct command *command, cl_kernel kernel, cl_uint n)
{
	const size_t group = GROUP, items = (n + group - 1) / group * group;
	MUST(command->t, clEnqueueNDRangeKernel(command->queue->handle, kernel, 1, NULL, &items, &group, command->waits, command->list,
						command->out));
	command_end(command);
}

void kernel_make(struct thread *t, struct slot *y, struct queue *queue)
{
	cl_kernel kernel = t->kernel[KERNEL_MAKE].handle;
	cl_uint n = (cl_uint)(y->size / 4), a = (cl_uint)draw(&t->random), key = (cl_uint)draw(&t->random);
	argument(t, kernel, 0, sizeof y->mem, &y->mem);
	argument(t, kernel, 1, sizeof n, &n);
	argument(t, kernel, 2, sizeof a, &a);
	argument(t, kernel, 3, sizeof key, &key);
	struct command command;
	command_begin(&command, t, queue, y->storage, NULL, false);
	for (cl_uint i = 0; i < n; i++) {
		cl_uint word = i * a + key;
		memcpy(slot_mirror(y) + 4 * (size_t)i, &word, 4);
	}
	slot_written(y, 0, 4 * (size_t)n);
	enqueue(&command, kernel, n);
}

/* What applying v * a + key that many times does, as one such step: powers by squaring. */
void affine_power(cl_uint *a, cl_uint *key, cl_uint rounds)
{
	cl_uint factor = *a, term = *key, a_all = 1, key_all = 0;
	for (; rounds > 0; rounds >>= 1) {
		if (rounds & 1) {
			key_all = key_all * factor + term;
			a_all *= factor;
		}
		term = term * factor + term;
		factor *= factor;
	}
	*a = a_all;
	*key = key_all;
}

/* n words of to become those of from, times a, plus key. */
static void affine_words(unsigned char *to, const unsigned char *from, size_t n, cl_uint a, cl_uint key)
{
	for (size_t i = 0; i < n; i++) {
		cl_uint word;
		memcpy(&word, from + 4 * i, 4);
		word = word * a + key;
		memcpy(to + 4 * i, &word, 4);
	}
}

/* The kernel's effect on the mirrors; the arguments are set. */
static void effect(const struct kernel *kernel, struct slot *x, struct slot *y)
{
	cl_uint a = kernel->a, key = kernel->key;
	affine_power(&a, &key, kernel->rounds);
	affine_words(slot_mirror(y), slot_mirror(x), kernel->n, a, key);
	slot_written(y, 0, 4 * (size_t)kernel->n);
}

static bool kernel_takes(const struct slot *x, const struct slot *y)
{
	return is_buffer(x) && is_buffer(y) && !(x->flags & CL_MEM_WRITE_ONLY) && !(y->flags & CL_MEM_READ_ONLY) && x->size >= 4 &&
	       y->size >= 4 && (x == y || x->storage != y->storage);
}

/* Gives a kernel its arguments. False when the slots do not fit. */
static bool prepare(struct thread *t, const struct op *op, struct kernel *kernel, bool slow)
{
	struct slot *x = &t->slot[op->a], *y = &t->slot[op->b];
	if (!kernel_takes(x, y))
		return false;
	define(t, x, &t->queue[op->queue]);
	size_t size = x->size < y->size ? x->size : y->size;
	cl_kernel handle = kernel->handle;
	*kernel = (struct kernel){.handle = handle, .x = x->serial, .y = y->serial, .xslot = op->a, .yslot = op->b, .rounds = 1};
	kernel->n = (cl_uint)(size / 4);
	kernel->a = (cl_uint)draw(&t->random) | 1;
	kernel->key = (cl_uint)draw(&t->random);
	if (slow)
		kernel->rounds = (t->options->light ? WORK / 4096 : WORK) / (kernel->n < 1024 ? 1024 : kernel->n);
	argument(t, handle, 0, sizeof x->mem, &x->mem);
	argument(t, handle, 1, sizeof y->mem, &y->mem);
	argument(t, handle, 2, sizeof kernel->n, &kernel->n);
	argument(t, handle, 3, sizeof kernel->a, &kernel->a);
	argument(t, handle, 4, sizeof kernel->key, &kernel->key);
	if (slow)
		argument(t, handle, 5, sizeof kernel->rounds, &kernel->rounds);
	return true;
}

static void launch(struct thread *t, const struct kernel *kernel, cl_kernel handle, struct queue *queue)
{
	struct slot *x = &t->slot[kernel->xslot], *y = &t->slot[kernel->yslot];
	struct command command;
	command_begin(&command, t, queue, x->storage, y->storage, false);
	effect(kernel, x, y);
	enqueue(&command, handle, kernel->n);
}

void op_kernel(struct thread *t, const struct op *op)
{
	struct kernel *kernel = &t->kernel[once_in(t, 2) ? KERNEL_AFFINE : KERNEL_AFFINE2];
	if (prepare(t, op, kernel, false))
		launch(t, kernel, kernel->handle, &t->queue[op->queue]);
}

void op_slow(struct thread *t, const struct op *op)
{
	struct kernel *kernel = &t->kernel[once_in(t, 2) ? KERNEL_SLOW : KERNEL_SLOW2];
	if (prepare(t, op, kernel, true))
		launch(t, kernel, kernel->handle, &t->queue[op->queue]);
}

/*
 * A buffer is released while a kernel that reads it is held back, or runs long; then one like it is created and written
 * through another queue. A pool that hands the memory out too early makes the kernel read the wrong data.
 */
void op_overtake(struct thread *t, const struct op *op)
{
	struct slot *x = &t->slot[op->a];
	struct queue *queue = &t->queue[op->queue], *other = &t->queue[(op->queue + 1) % t->queues];
	struct kernel *kernel = &t->kernel[KERNEL_SLOW];
	if (x->kind != SLOT_BUFFER || op->a == op->b || !prepare(t, op, kernel, true))
		return;
	size_t size = x->size;
	cl_mem_flags flags = x->flags;
	t->hold = true;
	launch(t, kernel, kernel->handle, queue);
	t->hold = false;
	slot_release(t, x);
	slot_create(t, x, size, flags);
	define(t, x, other);
}

/* With the arguments of last time, when those buffers are still there. */
void op_again(struct thread *t, const struct op *op)
{
	struct kernel *kernel = &t->kernel[KERNEL_AFFINE + below(t, 4)];
	bool there = kernel->x != 0 && t->slot[kernel->xslot].serial == kernel->x && t->slot[kernel->yslot].serial == kernel->y;
	if (there)
		launch(t, kernel, kernel->handle, &t->queue[op->queue]);
}

/* A clone has the arguments of its original, which may be given other ones while the clone runs. */
void op_clone(struct thread *t, const struct op *op)
{
	bool slow = once_in(t, 2);
	struct kernel *kernel = &t->kernel[slow ? KERNEL_SLOW : KERNEL_AFFINE];
	if (!t->style->modern || !prepare(t, op, kernel, slow))
		return;
	cl_int status;
	cl_kernel clone = clCloneKernel(kernel->handle, &status);
	MUST(t, status);
	launch(t, kernel, clone, &t->queue[op->queue]);
	MUST(t, clReleaseKernel(clone));
}

void kernel_svm(struct thread *t, struct svm *svm, struct slot *slot, bool to_slot, cl_uint n, struct queue *queue)
{
	struct kernel *kernel = &t->kernel[KERNEL_AFFINE2];
	*kernel = (struct kernel){.handle = kernel->handle}; /* not to be run again as it is */
	cl_uint a = (cl_uint)draw(&t->random), key = (cl_uint)draw(&t->random);
	MUST(t, clSetKernelArgSVMPointer(kernel->handle, to_slot ? 0 : 1, svm->pointer));
	argument(t, kernel->handle, to_slot ? 1 : 0, sizeof slot->mem, &slot->mem);
	argument(t, kernel->handle, 2, sizeof n, &n);
	argument(t, kernel->handle, 3, sizeof a, &a);
	argument(t, kernel->handle, 4, sizeof key, &key);
	struct command command;
	command_begin(&command, t, queue, svm->storage, slot->storage, false);
	unsigned char *x = svm->storage->mirror, *y = slot_mirror(slot);
	affine_words(to_slot ? y : x, to_slot ? x : y, n, a, key);
	if (to_slot)
		slot_written(slot, 0, 4 * (size_t)n);
	enqueue(&command, kernel->handle, n);
}

struct native {
	void *bytes;
	size_t size;
	unsigned char key;
};

static void CL_CALLBACK native_add(void *data)
{
	const struct native *native = data;
	unsigned char *bytes = native->bytes;
	for (size_t i = 0; i < native->size; i++)
		bytes[i] = (unsigned char)(bytes[i] + native->key);
}

void op_native(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	struct queue *queue = &t->queue[op->queue];
	if (!t->style->native || slot->kind != SLOT_BUFFER)
		return;
	define(t, slot, queue);
	struct native native = {.size = slot->size, .key = (unsigned char)draw(&t->random)};
	const void *place = &native.bytes;
	struct command command;
	command_begin(&command, t, queue, slot->storage, NULL, false);
	MUST(t, clEnqueueNativeKernel(queue->handle, native_add, &native, sizeof native, 1, &slot->mem, &place, command.waits,
				      command.list, command.out));
	native.bytes = slot_mirror(slot);
	native_add(&native);
	command_end(&command);
}

/* The texels of an image become words of a buffer. */
void op_image_kernel(struct thread *t, const struct op *op)
{
	struct slot *image = &t->slot[op->a], *y = &t->slot[op->b];
	struct queue *queue = &t->queue[op->queue];
	if (image->kind != SLOT_IMAGE || !is_buffer(y) || (y->flags & CL_MEM_READ_ONLY) || y->size < 4)
		return;
	define(t, image, queue);
	cl_kernel kernel = t->kernel[KERNEL_TEXELS].handle;
	size_t size = image->size < y->size ? image->size : y->size;
	cl_uint n = (cl_uint)(size / 4), width = (cl_uint)image->width;
	argument(t, kernel, 0, sizeof image->mem, &image->mem);
	argument(t, kernel, 1, sizeof y->mem, &y->mem);
	argument(t, kernel, 2, sizeof n, &n);
	argument(t, kernel, 3, sizeof width, &width);
	struct command command;
	command_begin(&command, t, queue, image->storage, y->storage, false);
	memcpy(slot_mirror(y), slot_mirror(image), 4 * (size_t)n);
	slot_written(y, 0, 4 * (size_t)n);
	enqueue(&command, kernel, n);
}
