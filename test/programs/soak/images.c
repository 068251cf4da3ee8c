/* images.c: images, plain ones and ones made from a buffer; their texels are four bytes, so bytes are bytes. */
#include "soak.h"

#include <string.h>

static const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};

void op_image(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	if (!t->style->images)
		return;
	slot_release(t, slot);
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 1 + 21 * below(t, 4), .image_height = 1 + 21 * below(t, 3)};
	struct storage *storage = storage_new(4 * desc.image_width * desc.image_height);
	cl_int status;
	cl_mem mem = clCreateImage(t->world->context, CL_MEM_READ_WRITE, &format, &desc, NULL, &status);
	MUST(t, status);
	slot_place(t, slot, SLOT_IMAGE, mem, storage);
	slot->width = desc.image_width;
}

/* A row of texels that are the words of a buffer. */
void op_texels(struct thread *t, const struct op *op)
{
	struct slot *parent = &t->slot[op->a], *slot = &t->slot[op->b];
	if (!t->style->images || parent->kind != SLOT_BUFFER || parent == slot || parent->storage->destructors)
		return;
	parent->storage->leaked = true; /* PoCL 3.1 never calls the destructor callbacks of such an image */
	slot_release(t, slot);
	define(t, parent, &t->queue[op->queue]);
	cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = parent->size / 4, .buffer = parent->mem};
	cl_int status;
	cl_mem mem = clCreateImage(t->world->context, 0, &format, &desc, NULL, &status);
	MUST(t, status);
	slot_place(t, slot, SLOT_TEXELS, mem, parent->storage);
	slot->flags = parent->flags;
	slot->parent = parent->mem;
	slot->size = 4 * desc.image_width;
	slot->width = desc.image_width;
}

/* Whole rows of an image, or a part of its only one: consecutive bytes either way. */
struct part {
	size_t origin[3], region[3];
	size_t offset, size; /* bytes of the slot */
};

static struct part part_whole(const struct slot *slot)
{
	return (struct part){.region = {slot->width, slot->size / (4 * slot->width), 1}, .size = slot->size};
}

static struct part part_draw(struct thread *t, const struct slot *slot)
{
	struct part part = part_whole(slot);
	int axis = part.region[1] > 1 ? 1 : 0;
	size_t all = part.region[axis], first = below(t, all), unit = axis ? 4 * slot->width : 4;
	part.origin[axis] = first;
	part.region[axis] = 1 + below(t, all - first);
	part.offset = first * unit;
	part.size = part.region[axis] * unit;
	return part;
}

/* Bytes from one row to the next in the host's memory. */
static size_t pitch_draw(struct thread *t, const struct part *part)
{
	return 4 * part->region[0] + (once_in(t, 2) ? 0 : 4 * below(t, 17));
}

static void rows_move(unsigned char *to, size_t topitch, const unsigned char *from, size_t frompitch, const struct part *part)
{
	for (size_t row = 0; row < part->region[1]; row++)
		memcpy(to + row * topitch, from + row * frompitch, 4 * part->region[0]);
}

static void image_write(struct thread *t, struct slot *slot, const struct part *part, struct queue *queue)
{
	bool blocking = once_in(t, 3);
	size_t pitch = pitch_draw(t, part), size = pitch * part->region[1];
	unsigned char *host = allocate(size);
	fill_random(host, size, draw(&t->random));
	struct command command;
	command_begin(&command, t, queue, slot->storage, NULL, blocking);
	command_want_event(&command);
	MUST(t, clEnqueueWriteImage(queue->handle, slot->mem, blocking, part->origin, part->region, pitch, 0, host, command.waits,
				    command.list, command.out));
	rows_move(slot_mirror(slot) + part->offset, 4 * part->region[0], host, pitch, part);
	slot_written(slot, part->offset, part->size);
	keep(&command, host, NULL, size);
	command_end(&command);
}

static void image_read(struct thread *t, struct slot *slot, const struct part *part, struct queue *queue, bool blocking)
{
	size_t pitch = pitch_draw(t, part), size = pitch * part->region[1];
	unsigned char *host = allocate(size), *want = allocate(size);
	fill_random(host, size, draw(&t->random)); /* what lies between rows stays */
	memcpy(want, host, size);
	rows_move(want, pitch, slot_mirror(slot) + part->offset, 4 * part->region[0], part);
	t->hash = checksum(t->hash, want, size);
	struct command command;
	command_begin(&command, t, queue, slot->storage, NULL, blocking);
	command_want_event(&command);
	MUST(t, clEnqueueReadImage(queue->handle, slot->mem, blocking, part->origin, part->region, pitch, 0, host, command.waits,
				   command.list, command.out));
	keep(&command, host, want, size);
	command_end(&command);
}

static void image_fill(struct thread *t, struct slot *slot, const struct part *part, struct queue *queue)
{
	cl_uint colour[4];
	unsigned char texel[4];
	for (int i = 0; i < 4; i++)
		colour[i] = texel[i] = (unsigned char)draw(&t->random);
	struct command command;
	command_begin(&command, t, queue, slot->storage, NULL, false);
	MUST(t, clEnqueueFillImage(queue->handle, slot->mem, colour, part->origin, part->region, command.waits, command.list, command.out));
	for (size_t i = 0; i < part->size; i += 4)
		memcpy(slot_mirror(slot) + part->offset + i, texel, 4);
	slot_written(slot, part->offset, part->size);
	command_end(&command);
}

void image_define(struct thread *t, struct slot *slot, struct queue *queue)
{
	struct part whole = part_whole(slot);
	if (once_in(t, 2))
		image_write(t, slot, &whole, queue);
	else
		image_fill(t, slot, &whole, queue);
}

void image_read_back(struct thread *t, struct slot *slot, struct queue *queue)
{
	if (!host_reads(slot)) /* made from a buffer, which is read */
		return;
	struct part whole = part_whole(slot);
	image_read(t, slot, &whole, queue, true);
}

static void image_to_buffer(struct thread *t, struct slot *image, const struct part *part, struct slot *buffer, struct queue *queue)
{
	define(t, image, queue);
	struct command command;
	command_begin(&command, t, queue, image->storage, buffer->storage, false);
	MUST(t, clEnqueueCopyImageToBuffer(queue->handle, image->mem, buffer->mem, part->origin, part->region, 0, command.waits,
					   command.list, command.out));
	memcpy(slot_mirror(buffer), slot_mirror(image) + part->offset, part->size);
	slot_written(buffer, 0, part->size);
	command_end(&command);
}

static void buffer_to_image(struct thread *t, struct slot *buffer, struct slot *image, const struct part *part, struct queue *queue)
{
	define(t, buffer, queue);
	define(t, image, queue);
	struct command command;
	command_begin(&command, t, queue, buffer->storage, image->storage, false);
	MUST(t, clEnqueueCopyBufferToImage(queue->handle, buffer->mem, image->mem, 0, part->origin, part->region, command.waits,
					   command.list, command.out));
	memcpy(slot_mirror(image) + part->offset, slot_mirror(buffer), part->size);
	command_end(&command);
}

/* An image with the host, or with a buffer. */
void op_image_copy(struct thread *t, const struct op *op)
{
	struct slot *image = &t->slot[op->a], *other = &t->slot[op->b];
	struct queue *queue = &t->queue[op->queue];
	if (!is_image(image))
		return;
	define(t, image, queue);
	struct part part = part_draw(t, image);
	size_t way = below(t, 5);
	/* PoCL 3.1 crashes in copies between images and sub-buffers, and with images made from buffers. */
	bool fits = other->kind == SLOT_BUFFER && image->kind == SLOT_IMAGE && other->size >= part.size;
	if (way == 0 && host_writes(image))
		image_write(t, image, &part, queue);
	else if (way == 1 && host_reads(image))
		image_read(t, image, &part, queue, once_in(t, 2));
	else if (way == 2 && image->kind == SLOT_IMAGE) /* PoCL 3.1 crashes filling an image made from a buffer */
		image_fill(t, image, &part, queue);
	else if (way == 3 && fits)
		image_to_buffer(t, image, &part, other, queue);
	else if (way == 4 && fits)
		buffer_to_image(t, other, image, &part, queue);
}

/* Maps a part, compares, rewrites it, and gives it back. */
void op_image_map(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	struct queue *queue = &t->queue[op->queue];
	if (slot->kind != SLOT_IMAGE || !t->style->maps)
		return;
	define(t, slot, queue);
	struct part part = part_draw(t, slot);
	size_t pitch = 0, line = 4 * part.region[0];
	cl_int status;
	struct command command;
	command_begin(&command, t, queue, slot->storage, NULL, once_in(t, 2));
	unsigned char *pointer = clEnqueueMapImage(queue->handle, slot->mem, command.blocking, CL_MAP_READ | CL_MAP_WRITE, part.origin,
						   part.region, &pitch, NULL, command.waits, command.list, command.out, &status);
	MUST(t, status);
	command_end(&command);
	storage_wait(t, slot->storage);
	slot->storage->unmapped = true;
	for (size_t row = 0; row < part.region[1]; row++) {
		unsigned char *mirror = slot_mirror(slot) + part.offset + row * line;
		compare(t, atomic_load(&t->op), pointer + row * pitch, mirror, line);
		fill_random(mirror, line, draw(&t->random));
		memcpy(pointer + row * pitch, mirror, line);
	}
	command_begin(&command, t, queue, slot->storage, NULL, false);
	MUST(t, clEnqueueUnmapMemObject(queue->handle, slot->mem, pointer, command.waits, command.list, command.out));
	command_end(&command);
}
