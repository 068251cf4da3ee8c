/* commands.c: writing, reading, filling and copying buffers, and comparing what was read with what must be there. */
#include "soak.h"

#include <string.h>

size_t slot_defined(const struct slot *slot)
{
	size_t defined = slot->storage->defined;
	if (defined <= slot->offset)
		return 0;
	return defined - slot->offset < slot->size ? defined - slot->offset : slot->size;
}

void slot_written(struct slot *slot, size_t offset, size_t size)
{
	struct storage *storage = slot->storage;
	size_t start = slot->offset + offset, end = start + size;
	if (start <= storage->defined && end > storage->defined)
		storage->defined = end;
}

unsigned char *slot_mirror(const struct slot *slot) { return slot->storage->mirror + slot->offset; }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

void compare(const struct thread *t, unsigned op, const unsigned char *got, const unsigned char *want, size_t size)
{
	if (memcmp(got, want, size) == 0)
		return;
	size_t at = 0, wrong = 0;
	while (got[at] == want[at])
		at++;
	for (size_t i = at; i < size; i++)
		wrong += got[i] != want[i];
	broken(t, "read by op %u: %zu of %zu bytes are wrong, the first at %zu: got %02x, want %02x", op, wrong, size, at, got[at],
	       want[at]);
}

static unsigned char *copy_of(const unsigned char *bytes, size_t size)
{
	return memcpy(allocate(size), bytes, size);
}

static void write_region(struct thread *t, struct slot *slot, struct queue *queue, size_t offset, size_t size)
{
	bool blocking = once_in(t, 3);
	unsigned char *host = allocate(size);
	fill_random(host, size, draw(&t->random));
	struct command command;
	command_begin(&command, t, queue, slot->storage, NULL, blocking);
	command_want_event(&command);
	MUST(t, clEnqueueWriteBuffer(queue->handle, slot->mem, blocking, offset, size, host, command.waits, command.list, command.out));
	memcpy(slot_mirror(slot) + offset, host, size);
	slot_written(slot, offset, size);
	keep(&command, host, NULL, size);
	command_end(&command);
}

void op_write(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	if (!is_buffer(slot) || !host_writes(slot))
		return;
	size_t offset = 0, size = slot->size;
	if (once_in(t, 2)) {
		offset = below(t, smaller(slot_defined(slot), slot->size - 1) + 1);
		size = 1 + below(t, slot->size - offset);
	}
	write_region(t, slot, &t->queue[op->queue], offset, size);
}

static void read_region(struct thread *t, struct slot *slot, struct queue *queue, size_t offset, size_t size, bool blocking)
{
	unsigned char *host = allocate(size), *want = copy_of(slot_mirror(slot) + offset, size);
	t->hash = checksum(t->hash, want, size);
	struct command command;
	command_begin(&command, t, queue, slot->storage, NULL, blocking);
	command_want_event(&command);
	MUST(t, clEnqueueReadBuffer(queue->handle, slot->mem, blocking, offset, size, host, command.waits, command.list, command.out));
	keep(&command, host, want, size);
	command_end(&command);
}

void op_read(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	if (!is_buffer(slot))
		return;
	struct queue *queue = &t->queue[op->queue];
	define(t, slot, queue);
	if (!host_reads(slot) || once_in(t, 2)) {
		read_back(t, slot, queue);
		return;
	}
	size_t offset = below(t, slot->size);
	read_region(t, slot, queue, offset, 1 + below(t, slot->size - offset), once_in(t, 2));
}

/* What the host may not read is copied to where it may. */
static void read_copy(struct thread *t, struct slot *slot, struct queue *queue)
{
	cl_int status;
	struct slot copy = {0};
	cl_mem mem = clCreateBuffer(t->world->context, CL_MEM_READ_WRITE, slot->size, NULL, &status);
	MUST(t, status);
	slot_place(t, &copy, SLOT_BUFFER, mem, storage_new(slot->size));
	struct command command;
	command_begin(&command, t, queue, slot->storage, copy.storage, false);
	MUST(t, clEnqueueCopyBuffer(queue->handle, slot->mem, mem, 0, 0, slot->size, command.waits, command.list, command.out));
	memcpy(slot_mirror(&copy), slot_mirror(slot), slot->size);
	slot_written(&copy, 0, slot->size);
	command_end(&command);
	read_region(t, &copy, queue, 0, copy.size, true);
	slot_release(t, &copy);
}

void read_back(struct thread *t, struct slot *slot, struct queue *queue)
{
	define(t, slot, queue);
	if (is_image(slot))
		image_read_back(t, slot, queue);
	else if (host_reads(slot))
		read_region(t, slot, queue, 0, slot->size, true);
	else
		read_copy(t, slot, queue);
}

static void fill_region(struct thread *t, struct slot *slot, struct queue *queue, size_t offset, size_t size, size_t pattern)
{
	unsigned char bytes[16];
	fill_random(bytes, sizeof bytes, draw(&t->random));
	struct command command;
	command_begin(&command, t, queue, slot->storage, NULL, false);
	MUST(t, clEnqueueFillBuffer(queue->handle, slot->mem, bytes, pattern, offset, size, command.waits, command.list, command.out));
	for (size_t i = 0; i < size; i += pattern)
		memcpy(slot_mirror(slot) + offset + i, bytes, pattern);
	slot_written(slot, offset, size);
	command_end(&command);
}

void op_fill(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	if (!is_buffer(slot))
		return;
	size_t pattern = (size_t)1 << below(t, 5);
	size_t offset = below(t, smaller(slot_defined(slot), slot->size - 1) + 1) / pattern * pattern;
	size_t room = (slot->size - offset) / pattern;
	if (room > 0)
		fill_region(t, slot, &t->queue[op->queue], offset, (1 + below(t, room)) * pattern, pattern);
}

void define(struct thread *t, struct slot *slot, struct queue *queue)
{
	if (slot_defined(slot) == slot->size)
		return;
	size_t way = below(t, 4);
	if (is_image(slot))
		image_define(t, slot, queue);
	else if (way == 0 && !(slot->flags & CL_MEM_READ_ONLY) && slot->size % 4 == 0)
		kernel_make(t, slot, queue);
	else if (way == 1 && host_writes(slot))
		write_region(t, slot, queue, 0, slot->size);
	else if (way == 2 && host_writes(slot) && t->style->maps)
		map_define(t, slot, queue);
	else
		fill_region(t, slot, queue, 0, slot->size, slot->size % 4 == 0 ? 4 : 1);
}

static void copy_region(struct thread *t, struct slot *a, size_t from, struct slot *b, size_t to, size_t size, struct queue *queue)
{
	struct command command;
	command_begin(&command, t, queue, a->storage, b->storage, false);
	MUST(t, clEnqueueCopyBuffer(queue->handle, a->mem, b->mem, from, to, size, command.waits, command.list, command.out));
	memmove(slot_mirror(b) + to, slot_mirror(a) + from, size);
	slot_written(b, to, size);
	command_end(&command);
}

void op_copy(struct thread *t, const struct op *op)
{
	struct slot *a = &t->slot[op->a], *b = &t->slot[op->b];
	struct queue *queue = &t->queue[op->queue];
	if (!is_buffer(a) || !is_buffer(b) || (a != b && a->storage == b->storage) || a->size < 8)
		return;
	define(t, a, queue);
	if (a == b) { /* what is copied must not overlap */
		copy_region(t, a, 0, a, a->size / 2, a->size / 2, queue);
		return;
	}
	size_t from = once_in(t, 2) ? 0 : below(t, a->size), to = once_in(t, 2) ? 0 : smaller(slot_defined(b), b->size - 1);
	size_t most = smaller(a->size - from, b->size - to);
	copy_region(t, a, from, b, to, once_in(t, 2) ? most : 1 + below(t, most), queue);
}

void op_migrate(struct thread *t, const struct op *op)
{
	struct slot *a = &t->slot[op->a], *b = &t->slot[op->b];
	struct queue *queue = &t->queue[op->queue];
	if (!is_buffer(a) || !is_buffer(b))
		return;
	const cl_mem list[] = {a->mem, b->mem};
	struct command command;
	command_begin(&command, t, queue, a->storage, b->storage, false);
	MUST(t, clEnqueueMigrateMemObjects(queue->handle, a == b ? 1 : 2, list, once_in(t, 2) ? CL_MIGRATE_MEM_OBJECT_HOST : 0,
					   command.waits, command.list, command.out));
	command_end(&command);
}
