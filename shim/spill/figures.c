/* figures.c: see figures.h. */
#define _GNU_SOURCE
#include "figures.h"

#include "../base/call.h"
#include "../base/ring.h"
#include "../registry/memory.h"

struct gmt_spill_figures gmt_spill_figures;

/* What records call the object. The hooks know it from the end of its create to the beginning of its last release. */
static void note_record_ids(struct gmt_spill_object *root)
{
	const struct gmt_memory *memory = root->id ? NULL : gmt_memory_find(gmt_spill_handle(root));
	if (!memory)
		return;
	root->id = atomic_load_explicit(&memory->object.id, memory_order_relaxed);
	root->tag = memory->object.tag;
}

static void write_spill(enum gmtspill what, uint64_t bytes, const struct gmt_spill_object *root, uint64_t start)
{
	uint64_t now = gmt_now();
	struct gmtevent event = GMT_EVENT_SPILL(.time = now, .duration = gmt_took(start, now), .spill = what, .tag = root ? root->tag : 0,
						.object = root ? root->id : 0, .bytes = bytes,
						.resident = atomic_load(&gmt_spill_figures.resident),
						.spilled = atomic_load(&gmt_spill_figures.spilled));
	gmt_ring_write(&event);
}

void gmt_spill_record(enum gmtspill what, struct gmt_spill_object *root, uint64_t start)
{
	note_record_ids(root);
	write_spill(what, root->size, root, start);
}

void gmt_spill_record_stall(const struct gmt_spill_command *command, uint64_t start)
{
	if (!command || command->count == 0) {
		write_spill(GMT_SPILL_STALL, 0, NULL, start);
		return;
	}
	const struct gmt_spill_object *largest = command->uses[0].object->root;
	for (uint32_t i = 1; i < command->count; i++)
		if (command->uses[i].object->root->size > largest->size)
			largest = command->uses[i].object->root;
	write_spill(GMT_SPILL_STALL, gmt_spill_needed_bytes(command), largest, start);
}

uint64_t gmt_spill_needed_bytes(const struct gmt_spill_command *command)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < command->count; i++) {
		bool before = false;
		for (uint32_t j = 0; j < i && !before; j++)
			before = command->uses[j].object->root == command->uses[i].object->root;
		bytes += before ? 0 : command->uses[i].object->root->size;
	}
	return bytes;
}
