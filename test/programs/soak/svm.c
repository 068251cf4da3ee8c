/* svm.c: shared virtual memory: pointers instead of handles, next to buffers that a pool serves. */
#include "soak.h"

#include <string.h>

void *svm_alloc(const struct world *world, size_t size)
{
	void *pointer = clSVMAlloc(world->context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, size, 0);
	if (!pointer)
		fail("soak: no shared virtual memory of %zu bytes", size);
	return pointer;
}

static void svm_new(struct thread *t, struct svm *svm)
{
	size_t size = t->classes[below(t, 3)];
	*svm = (struct svm){svm_alloc(t->world, size), storage_new(size)};
	svm->storage->refs = 1;
}

/* After all commands on it, or behind them. */
static void svm_free(struct thread *t, struct svm *svm, struct queue *queue)
{
	if (queue && once_in(t, 2)) {
		struct command command;
		command_begin(&command, t, queue, svm->storage, NULL, false);
		MUST(t, clEnqueueSVMFree(queue->handle, 1, &svm->pointer, NULL, NULL, command.waits, command.list, command.out));
		command_end(&command);
	} else {
		storage_wait(t, svm->storage);
		clSVMFree(t->world->context, svm->pointer);
	}
	storage_drop(t, svm->storage);
	*svm = (struct svm){0};
}

void svm_close(struct thread *t)
{
	for (int i = 0; i < SVMS; i++)
		if (t->svm[i].pointer)
			svm_free(t, &t->svm[i], NULL);
}

static void svm_fill(struct thread *t, struct svm *svm, struct queue *queue)
{
	cl_uint pattern = (cl_uint)draw(&t->random);
	struct storage *storage = svm->storage;
	struct command command;
	command_begin(&command, t, queue, storage, NULL, false);
	MUST(t, clEnqueueSVMMemFill(queue->handle, svm->pointer, &pattern, sizeof pattern, storage->size, command.waits, command.list,
				    command.out));
	for (size_t i = 0; i < storage->size; i += sizeof pattern)
		memcpy(storage->mirror + i, &pattern, sizeof pattern);
	storage->defined = storage->size;
	command_end(&command);
}

static void svm_define(struct thread *t, struct svm *svm, struct queue *queue)
{
	if (svm->storage->defined < svm->storage->size)
		svm_fill(t, svm, queue);
}

static void svm_copy(struct thread *t, struct svm *from, struct svm *to, struct queue *queue)
{
	if (from == to || !to->pointer)
		return;
	svm_define(t, from, queue);
	svm_define(t, to, queue);
	size_t size = from->storage->size < to->storage->size ? from->storage->size : to->storage->size;
	size = 1 + below(t, size);
	struct command command;
	command_begin(&command, t, queue, from->storage, to->storage, false);
	MUST(t, clEnqueueSVMMemcpy(queue->handle, CL_FALSE, to->pointer, from->pointer, size, command.waits, command.list, command.out));
	memcpy(to->storage->mirror, from->storage->mirror, size);
	command_end(&command);
}

/* To the host, all of it. */
static void svm_read(struct thread *t, struct svm *svm, struct queue *queue)
{
	svm_define(t, svm, queue);
	size_t size = svm->storage->size;
	unsigned char *host = allocate(size), *want = allocate(size);
	memcpy(want, svm->storage->mirror, size);
	t->hash = checksum(t->hash, want, size);
	struct command command;
	command_begin(&command, t, queue, svm->storage, NULL, once_in(t, 2));
	command_want_event(&command);
	MUST(t, clEnqueueSVMMemcpy(queue->handle, command.blocking, host, svm->pointer, size, command.waits, command.list, command.out));
	keep(&command, host, want, size);
	command_end(&command);
}

static void svm_map(struct thread *t, struct svm *svm, struct queue *queue)
{
	svm_define(t, svm, queue);
	struct storage *storage = svm->storage;
	struct command command;
	command_begin(&command, t, queue, storage, NULL, once_in(t, 2));
	MUST(t, clEnqueueSVMMap(queue->handle, command.blocking, CL_MAP_READ | CL_MAP_WRITE, svm->pointer, storage->size, command.waits,
				command.list, command.out));
	command_end(&command);
	storage_wait(t, storage);
	compare(t, atomic_load(&t->op), svm->pointer, storage->mirror, storage->size);
	fill_random(svm->pointer, storage->size, draw(&t->random));
	memcpy(storage->mirror, svm->pointer, storage->size);
	command_begin(&command, t, queue, storage, NULL, false);
	MUST(t, clEnqueueSVMUnmap(queue->handle, svm->pointer, command.waits, command.list, command.out));
	command_end(&command);
}

void op_svm(struct thread *t, const struct op *op)
{
	struct svm *svm = &t->svm[op->a % SVMS];
	struct queue *queue = &t->queue[op->queue];
	if (!t->style->svm)
		return;
	if (!svm->pointer)
		svm_new(t, svm);
	switch (below(t, 6)) {
	case 0:
		svm_free(t, svm, queue);
		break;
	case 1:
		svm_fill(t, svm, queue);
		break;
	case 2:
		svm_copy(t, svm, &t->svm[op->b % SVMS], queue);
		break;
	case 3:
		svm_map(t, svm, queue);
		break;
	default:
		svm_read(t, svm, queue);
	}
}

/* A kernel reads the one and writes the other: a pointer and a buffer. */
void op_svm_kernel(struct thread *t, const struct op *op)
{
	struct svm *svm = &t->svm[op->a % SVMS];
	struct slot *slot = &t->slot[op->b];
	struct queue *queue = &t->queue[op->queue];
	bool to_slot = once_in(t, 2);
	if (!t->style->svm || !is_buffer(slot) || slot->size < 4 || (slot->flags & (to_slot ? CL_MEM_READ_ONLY : CL_MEM_WRITE_ONLY)))
		return;
	if (!svm->pointer)
		svm_new(t, svm);
	svm_define(t, svm, queue);
	if (!to_slot)
		define(t, slot, queue);
	size_t size = svm->storage->size < slot->size ? svm->storage->size : slot->size;
	kernel_svm(t, svm, slot, to_slot, (cl_uint)(size / 4), queue);
}
