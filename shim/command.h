/* command.h: what every hook of an enqueue does around the real call. */
#ifndef GMT_COMMAND_H
#define GMT_COMMAND_H

#include "memory.h"

/* What a command does to memory, as far as that matters to a recycled block that nothing has been written to. */
enum gmt_effect { GMT_EFFECT_NONE, GMT_EFFECT_READS, GMT_EFFECT_WRITES };

/* Which bytes of an object a command touches. */
struct gmt_extent {
	uint64_t offset; /* of the first, in the object */
	uint64_t bytes;  /* 0: unknown */
	bool scattered;  /* others lie between them, or their place is unknown */
};
#define GMT_EXTENT(offset, bytes) ((struct gmt_extent){(offset), (bytes), false})
#define GMT_SCATTERED(offset, bytes) ((struct gmt_extent){(offset), (bytes), true})
#define GMT_SOMEWHERE GMT_SCATTERED(0, 0)

struct gmt_access {
	struct gmt_memory *memory;
	struct gmt_extent extent;
	uint32_t argument; /* of a kernel: 1 + its index; 0: none */
	uint8_t flags;     /* GMT_FLAG_READS, GMT_FLAG_WRITES; neither: unknown */
	uint8_t effect;    /* enum gmt_effect */
};

#define GMT_ACCESSES 64
struct gmt_command {
	const char *function;
	struct gmt_queue *queue; /* NULL: unknown, or nobody needs to know */
	uint64_t before;         /* commands that the queue had been given before this one */
	uint64_t fence;          /* of these, so many are behind a barrier */
	uint64_t time;
	uint64_t kernel;
	uint32_t site;   /* of a copy: the tag of its call */
	cl_int refused;  /* what to return instead of calling the driver */
	uint8_t op;      /* enum gmtcommand */
	bool stranger;   /* memory was named that nobody knows */
	bool uncounted;  /* it uses more memory than fits below, or memory that cannot be told */
	uint32_t count;
	struct gmt_access access[GMT_ACCESSES];
};

/* Begins an enqueue; false: only forward. Every true is followed by gmt_command_end. */
bool gmt_command_begin(struct gmt_command *c, cl_command_queue queue, enum gmtcommand op, const char *function);

/* The command names memory. Returns its entry, NULL when it is unknown. */
struct gmt_memory *gmt_command_uses(struct gmt_command *c, cl_mem handle, uint8_t flags, struct gmt_extent extent);
/* A list of it: all of each when the command migrates it, else nothing more is known. */
void gmt_command_uses_all(struct gmt_command *c, cl_uint count, const cl_mem *handles);
/* An image, and how many elements of it in each dimension. Returns how many bytes these have, 0 when that is unknown. */
uint64_t gmt_command_uses_image(struct gmt_command *c, cl_mem image, uint8_t flags, const size_t *region);
/* The same with all that is known; the memory is not NULL. */
void gmt_command_access(struct gmt_command *c, struct gmt_access access);
/* The command, whose memory has been named, is a copy that was called from caller. */
void gmt_command_copies(struct gmt_command *c, const void *caller);

/* How many bytes, or elements of an image, a region has. */
static inline uint64_t gmt_volume(const size_t *region)
{
	return region ? (uint64_t)region[0] * region[1] * region[2] : 0;
}

/* Of a mapping: reading is not told apart from keeping what the host does not write. */
static inline uint8_t gmt_map_flags(cl_map_flags flags)
{
	return (uint8_t)((flags & CL_MAP_READ ? GMT_FLAG_READS : 0u) |
			 (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION) ? GMT_FLAG_WRITES : 0u));
}

/*
 * The offset to give to the driver for a range of bytes at offset. One that lies in a block, but beyond what the program
 * asked for, is moved beyond the block, so that the driver refuses it with an error of its own choice.
 */
static inline size_t gmt_command_range(const struct gmt_memory *memory, size_t offset, size_t bytes)
{
	if (gmt_likely(!memory || !gmt_beyond(memory, offset, bytes)))
		return offset;
	return (size_t)(memory->slab ? memory->slab : memory)->granted + 1;
}

/* What the program ordered the command behind, and the event that it gets. */
struct gmt_order {
	cl_uint waits;
	const cl_event *list;
	const cl_event *event;
};

/*
 * The real call has returned err. A blocking command is complete, and on an in-order queue so is all before it. A
 * blocking write is none in this sense: before OpenCL 2.0 it may return as soon as the host's data is copied.
 * Returns err.
 */
cl_int gmt_command_end(struct gmt_command *c, cl_int err, bool blocking, struct gmt_order order);
/* The same for a marker or barrier, which runs after everything before it when it waits for nothing else. */
cl_int gmt_command_end_fence(struct gmt_command *c, cl_int err, bool barrier, struct gmt_order order);

/* Drivers allocate lazily, so an enqueue can fail for want of memory that the pool holds. */
#define GMT_TRY(err, command, expression)                                                                              \
	do {                                                                                                           \
		struct gmt_shortage gmt_short = gmt_shortage();                                                        \
		do                                                                                                     \
			(err) = (command).refused ? (command).refused : (expression);                                  \
		while (gmt_unlikely((err) != CL_SUCCESS) && gmt_pool_drain(&gmt_short, (err), 0));                     \
	} while (0)

/* Tells what is waited for since time: by a command of queue, or by this thread when there is none. */
void gmt_command_awaits(uint64_t time, const struct gmt_queue *queue, cl_uint waits, const cl_event *list);

#define GMT_ORDER ((struct gmt_order){waits, list, event})

#endif
