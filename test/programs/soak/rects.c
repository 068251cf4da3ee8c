/* rects.c: boxes of bytes, in two and three dimensions, between buffers, and between a buffer and the host. */
#include "soak.h"

#include <string.h>

/* Where the bytes of a region lie. */
struct box {
	size_t origin[3];
	size_t row, slice; /* bytes from one row, and one slice, to the next */
};

static size_t at(const struct box *box, size_t x, size_t y, size_t z)
{
	return (box->origin[2] + z) * box->slice + (box->origin[1] + y) * box->row + box->origin[0] + x;
}

static size_t end_of(const struct box *box, const size_t region[3])
{
	return at(box, region[0], region[1] - 1, region[2] - 1);
}

/* Bytes of each row, rows, slices: no more in all than there is room for. */
static void region_draw(struct thread *t, size_t room, size_t region[3])
{
	region[0] = 1 + below(t, 64);
	region[1] = 1 + below(t, 12);
	region[2] = once_in(t, 2) ? 1 : 1 + below(t, 4);
	for (int i = 0; region[0] * region[1] * region[2] > room; i = (i + 1) % 3)
		region[i] = (region[i] + 1) / 2;
}

/* Somewhere within room bytes, with gaps where they fit. */
static struct box box_draw(struct thread *t, size_t room, const size_t region[3])
{
	struct box tight = {.row = region[0], .slice = region[0] * region[1]}, box = tight;
	box.row += below(t, 32);
	box.slice = box.row * (region[1] + below(t, 3));
	box.origin[0] = below(t, box.row - region[0] + 1);
	box.origin[1] = below(t, box.slice / box.row - region[1] + 1);
	box.origin[2] = below(t, 2);
	if (end_of(&box, region) <= room)
		return box;
	memset(box.origin, 0, sizeof box.origin);
	return end_of(&box, region) <= room ? box : tight;
}

static void move(unsigned char *to, const struct box *tobox, const unsigned char *from, const struct box *frombox,
		 const size_t region[3])
{
	for (size_t z = 0; z < region[2]; z++)
		for (size_t y = 0; y < region[1]; y++)
			memcpy(to + at(tobox, 0, y, z), from + at(frombox, 0, y, z), region[0]);
}

void op_copy_rect(struct thread *t, const struct op *op)
{
	struct slot *a = &t->slot[op->a], *b = &t->slot[op->b];
	struct queue *queue = &t->queue[op->queue];
	if (a->kind != SLOT_BUFFER || b->kind != SLOT_BUFFER || a->storage == b->storage)
		return; /* PoCL 3.1 crashes in the call when one is a sub-buffer */
	define(t, a, queue);
	define(t, b, queue); /* what lies between the rows stays */
	size_t region[3];
	region_draw(t, a->size < b->size ? a->size : b->size, region);
	struct box from = box_draw(t, a->size, region), to = box_draw(t, b->size, region);
	struct command command;
	command_begin(&command, t, queue, a->storage, b->storage, false);
	MUST(t, clEnqueueCopyBufferRect(queue->handle, a->mem, b->mem, from.origin, to.origin, region, from.row, from.slice, to.row,
					to.slice, command.waits, command.list, command.out));
	move(slot_mirror(b), &to, slot_mirror(a), &from, region);
	command_end(&command);
}

static void write_rect(struct thread *t, struct slot *slot, struct queue *queue)
{
	bool blocking = once_in(t, 3);
	size_t region[3];
	region_draw(t, slot->size, region);
	struct box there = box_draw(t, slot->size, region), here = box_draw(t, SIZE_MAX, region);
	size_t size = end_of(&here, region);
	unsigned char *host = allocate(size);
	fill_random(host, size, draw(&t->random));
	struct command command;
	command_begin(&command, t, queue, slot->storage, NULL, blocking);
	command_want_event(&command);
	MUST(t, clEnqueueWriteBufferRect(queue->handle, slot->mem, blocking, there.origin, here.origin, region, there.row, there.slice,
					 here.row, here.slice, host, command.waits, command.list, command.out));
	move(slot_mirror(slot), &there, host, &here, region);
	keep(&command, host, NULL, size);
	command_end(&command);
}

/* What lies between the rows in the host's memory must stay, too. */
static void read_rect(struct thread *t, struct slot *slot, struct queue *queue)
{
	size_t region[3];
	region_draw(t, slot->size, region);
	struct box there = box_draw(t, slot->size, region), here = box_draw(t, SIZE_MAX, region);
	size_t size = end_of(&here, region);
	unsigned char *host = allocate(size), *want = allocate(size);
	fill_random(host, size, draw(&t->random));
	memcpy(want, host, size);
	move(want, &here, slot_mirror(slot), &there, region);
	t->hash = checksum(t->hash, want, size);
	struct command command;
	command_begin(&command, t, queue, slot->storage, NULL, once_in(t, 2));
	command_want_event(&command);
	MUST(t, clEnqueueReadBufferRect(queue->handle, slot->mem, command.blocking, there.origin, here.origin, region, there.row,
					there.slice, here.row, here.slice, host, command.waits, command.list, command.out));
	keep(&command, host, want, size);
	command_end(&command);
}

void op_host_rect(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	struct queue *queue = &t->queue[op->queue];
	if (slot->kind != SLOT_BUFFER)
		return;
	define(t, slot, queue);
	if (host_writes(slot) && once_in(t, 2))
		write_rect(t, slot, queue);
	else if (host_reads(slot))
		read_rect(t, slot, queue);
}
