/* maps.c: memory mapped for the host, several regions at a time, and given back. */
#include "soak.h"

#include <string.h>

static bool overlaps(const struct map *map, size_t offset, size_t size)
{
	return offset < map->offset + map->size && map->offset < offset + size;
}

void maps_abandon(struct storage *storage, cl_mem mem)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < storage->maps; i++)
		if (storage->map[i].mem != mem)
			storage->map[kept++] = storage->map[i];
	storage->leaked |= kept < storage->maps;
	storage->maps = kept;
}

static void unmap(struct thread *t, struct storage *storage, unsigned index, struct queue *queue)
{
	struct map map = storage->map[index];
	storage->unmapped = true;
	storage->map[index] = storage->map[--storage->maps];
	struct command command;
	command_begin_map(&command, t, queue, storage, false);
	MUST(t, clEnqueueUnmapMemObject(queue->handle, map.mem, map.pointer, command.waits, command.list, command.out));
	command_end(&command);
}

void maps_end(struct thread *t, struct storage *storage, cl_mem mem, struct queue *queue)
{
	for (unsigned i = storage->maps; i-- > 0;)
		if (!mem || storage->map[i].mem == mem)
			unmap(t, storage, i, queue);
}

/* Several mappings may coexist if none writes where another one lies. */
static void make_room(struct thread *t, struct storage *storage, size_t offset, size_t size, bool writes, struct queue *queue)
{
	bool free = storage->maps < MAPS;
	for (unsigned i = 0; i < storage->maps; i++)
		if ((writes || storage->map[i].writes) && overlaps(&storage->map[i], offset, size))
			free = false;
	if (!free)
		maps_end(t, storage, NULL, queue);
}

/* Maps a region, waits for it, compares or writes, and leaves it mapped. */
static void map_region(struct thread *t, struct slot *slot, size_t offset, size_t size, cl_map_flags flags, struct queue *queue)
{
	struct storage *storage = slot->storage;
	bool blocking = once_in(t, 2), writes = flags != CL_MAP_READ;
	make_room(t, storage, slot->offset + offset, size, writes, queue);
	struct command command;
	command_begin_map(&command, t, queue, storage, blocking);
	cl_int status;
	unsigned char *pointer = clEnqueueMapBuffer(queue->handle, slot->mem, blocking, flags, offset, size, command.waits, command.list,
						    command.out, &status);
	MUST(t, status);
	command_end(&command);
	storage_wait(t, storage);
	storage->map[storage->maps++] = (struct map){slot->mem, pointer, slot->offset + offset, size, writes};
	if (flags & CL_MAP_READ) {
		t->hash = checksum(t->hash, slot_mirror(slot) + offset, size);
		compare(t, atomic_load(&t->op), pointer, slot_mirror(slot) + offset, size);
	}
	if (!writes)
		return;
	fill_random(pointer, size, draw(&t->random));
	memcpy(slot_mirror(slot) + offset, pointer, size);
	slot_written(slot, offset, size);
}

void map_define(struct thread *t, struct slot *slot, struct queue *queue)
{
	map_region(t, slot, 0, slot->size, CL_MAP_WRITE_INVALIDATE_REGION, queue);
	maps_end(t, slot->storage, NULL, queue);
}

void op_map(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	struct queue *queue = &t->queue[op->queue];
	if (!is_buffer(slot) || !t->style->maps)
		return;
	define(t, slot, queue);
	size_t offset = below(t, slot->size), size = 1 + below(t, slot->size - offset);
	cl_map_flags flags = 0;
	if (host_reads(slot) && once_in(t, 2))
		flags = host_writes(slot) && once_in(t, 2) ? CL_MAP_READ | CL_MAP_WRITE : CL_MAP_READ;
	else if (host_writes(slot))
		flags = CL_MAP_WRITE_INVALIDATE_REGION;
	if (flags != 0)
		map_region(t, slot, offset, size, flags, queue);
}

void op_unmap(struct thread *t, const struct op *op)
{
	struct slot *slot = &t->slot[op->a];
	if (slot->kind != SLOT_EMPTY && slot->storage->maps > 0)
		unmap(t, slot->storage, (unsigned)below(t, slot->storage->maps), &t->queue[op->queue]);
}
