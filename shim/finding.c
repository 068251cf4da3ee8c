/*
 * finding.c: mistakes of the program. The shim writes each as it happens; folding repeats is the model's work.
 */
#define _GNU_SOURCE
#include "pool.h"

#include <string.h>

static void write(enum gmtdiag code, const char *function, struct gmtevent event)
{
	event.time = gmt_now();
	event.kind = GMT_KIND_DIAG;
	event.op = (uint8_t)code;
	gmt_ring_write_payload(&event, function, strlen(function));
}

static struct gmtevent about(const struct gmt_memory *memory)
{
	return (struct gmtevent){
		.scope = memory->scope, .tag = memory->tag, .object = memory->object.number, .granted = memory->size,
	};
}

void gmt_finding(enum gmtdiag code, const char *function, const struct gmt_memory *memory, cl_int status)
{
	struct gmtevent event = about(memory);
	event.status = gmt_clamp16(status);
	write(code, function, event);
}

void gmt_finding_kernel(enum gmtdiag code, const char *function, const struct gmt_memory *memory, uint64_t kernel)
{
	struct gmtevent event = about(memory);
	event.link = kernel;
	write(code, function, event);
}

/* The latest of those whose handles fall on the same place: enough to tell a second release from a wild pointer. */
#define GRAVES 1024 /* a power of two; they are to stay in the processor's cache */
static struct grave {
	_Atomic uint32_t lock;
	uint32_t tag;
	const void *handle;
	uint64_t object, size;
} graves[GRAVES];

static struct grave *grave_of(const void *handle)
{
	return &graves[((uintptr_t)handle * 0x9e3779b97f4a7c15u) >> 54];
}

void gmt_finding_buried(const struct gmt_memory *memory)
{
	const void *handle = atomic_load_explicit(&memory->object.handle, memory_order_relaxed);
	struct grave *grave = grave_of(handle);
	gmt_lock(&grave->lock);
	grave->handle = handle;
	grave->tag = memory->tag;
	grave->object = atomic_load_explicit(&memory->object.number, memory_order_relaxed);
	grave->size = memory->size;
	gmt_unlock(&grave->lock);
}

bool gmt_finding_ghost(enum gmtdiag code, const char *function, const void *handle)
{
	struct grave *grave = grave_of(handle);
	gmt_lock(&grave->lock);
	bool known = grave->handle == handle;
	struct gmtevent event = {.tag = grave->tag, .object = grave->object, .granted = grave->size};
	gmt_unlock(&grave->lock);
	if (known)
		write(code, function, event);
	return known;
}

void gmt_finding_unknown(const char *function, cl_int status)
{
	write(GMT_DIAG_UNKNOWN_MEMORY, function, (struct gmtevent){.status = gmt_clamp16(status)});
}
