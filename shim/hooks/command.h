/* command.h: the steps that every hook of an enqueue takes before and after the driver's call. */
#ifndef GMT_COMMAND_H
#define GMT_COMMAND_H

#include "../../internal/wire/event.h"
#include "../entry/start.h"
#include "../order/inflight.h"
#include "../pool/oom.h"
#include "transfer.h"
#include "unwritten.h"

/* The bytes of an object that a command touches. */
struct gmt_extent {
	uint64_t offset; /* of the first, in the object */
	uint64_t bytes;  /* 0: unknown */
	bool scattered;  /* they have gaps, or their place is unknown */
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
	struct gmt_queue *queue; /* NULL: unknown, or not needed */
	uint64_t before;         /* commands enqueued before this one */
	uint64_t fence;          /* how many of these a barrier orders before this one */
	uint64_t time;
	uint64_t kernel;
	uint32_t site;   /* tag of its call site; 0: not wanted */
	uint32_t took;   /* ns of a blocking command, 0: not measured */
	struct gmt_transfer transfer;
	bool reports;    /* it writes USE events, and a SYNC if it blocks */
	bool moves;      /* it writes a TRANSFER event before them */
	cl_int refused;  /* what to return instead of calling the driver */
	uint8_t op;      /* enum gmtcommand */
	bool unknown;    /* it names a handle that we do not know */
	bool waits;      /* it blocks: see gmt_queue_begin_wait */
	bool uses;       /* USE events of all commands are wanted */
	bool uncounted;  /* it uses unknown memory, or more than access has room for */
	bool indirect;   /* it may use any shared memory of its context */
	uint32_t count;
	struct gmt_access access[GMT_ACCESSES];
};

/* Begins an enqueue. False: the hook only calls the driver. After true the hook must call gmt_command_end. */
bool gmt_command_begin(struct gmt_command *c, cl_command_queue queue, enum gmtcommand op, const char *function);

/* Notes that the command names memory. Returns its entry, NULL if the handle is unknown. */
struct gmt_memory *gmt_command_uses(struct gmt_command *c, cl_mem handle, uint8_t flags, struct gmt_extent extent);
/*
 * Notes that the command names bytes at an address; 0 bytes: all from there to the end of the allocation. Returns the shared
 * memory there, NULL if the address is the host's own.
 */
struct gmt_memory *gmt_command_uses_pointer(struct gmt_command *c, const void *pointer, uint8_t flags, size_t bytes);
/* Notes that the command names a list of memory. A migration uses all bytes of each; for other commands the extent is unknown. */
void gmt_command_uses_all(struct gmt_command *c, cl_uint count, const cl_mem *handles);
/* Notes with which flags the command migrates all that it uses, at the end: with undefined contents no bytes move. */
void gmt_command_migrates(struct gmt_command *c, cl_mem_migration_flags flags);
/* Notes that the command names a region of an image, in elements. Returns the region's bytes, 0 if unknown. */
uint64_t gmt_command_uses_image(struct gmt_command *c, cl_mem image, uint8_t flags, const size_t *region);
/*
 * Notes an access whose memory is not NULL. Inline: in a call of its own, the copy would wait until all fields have been
 * written to memory.
 */
static inline void gmt_command_note_access(struct gmt_command *c, struct gmt_access access)
{
	if (gmt_unlikely(c->count == GMT_ACCESSES))
		c->uncounted = true;
	else
		c->access[c->count++] = access;
}
/* Notes that the command is a copy. Its memory must have been named before. */
void gmt_command_copies(struct gmt_command *c, const struct gmt_caller *caller);

/*
 * Notes that the command moves bytes between device and host. Its memory must have been named before. host: the program's
 * side, NULL if there is none; bytes: how many are contiguous there, 0: unknown.
 */
void gmt_command_transfers(struct gmt_command *c, const struct gmt_caller *caller, const void *host, uint64_t bytes);
/* The same for a copy between two pointers. If one of them is no shared memory, the command is a read or a write. */
void gmt_command_copies_pointers(struct gmt_command *c, const void *to, const void *from, uint64_t bytes, const struct gmt_caller *caller);
/* Notes, just before the driver is called, whether the command blocks. */
void gmt_command_note_blocking(struct gmt_command *c, cl_bool blocking);
/* To be called when the driver has returned from a command that blocks. */
void gmt_command_done(struct gmt_command *c);

/* The bytes of a buffer's region, or the elements of an image's. */
static inline uint64_t gmt_region_volume(const size_t *region)
{
	return region ? (uint64_t)region[0] * region[1] * region[2] : 0;
}

/* What a mapping does to memory. CL_MAP_WRITE leaves open whether the host reads. */
static inline uint8_t gmt_map_flags(cl_map_flags flags)
{
	return (uint8_t)((flags & CL_MAP_READ ? GMT_FLAG_READS : 0u) |
			 (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION) ? GMT_FLAG_WRITES : 0u));
}

/*
 * The offset to give to the driver for a range of bytes at offset. A range in the block, but beyond what the program asked
 * for, is moved beyond the block, so that the driver refuses it with an error of its own choice. Its size in *given becomes
 * small, because rusticl aborts where the end of a range overflows.
 */
static inline size_t gmt_command_range(const struct gmt_memory *memory, size_t offset, size_t bytes, size_t *given)
{
	if (gmt_likely(!memory || !gmt_memory_beyond(memory, offset, bytes)))
		return offset;
	*given = bytes ? 1 : 0;
	return (size_t)(memory->slab ? memory->slab : memory)->granted + 1;
}

/* The events that a command waits for, and the event that the program gets. */
struct gmt_wait_list {
	cl_uint waits;
	const cl_event *list;
	const cl_event *event;
	const struct gmt_caller *caller; /* NULL: unknown; never NULL if the program gets an event */
};

/*
 * Ends a command after the driver has returned err, and returns err. A blocking command is complete, and on an in-order queue
 * so are all before it. Pass false for a blocking write: before OpenCL 2.0 it may return as soon as the host's data is copied.
 */
cl_int gmt_command_end(struct gmt_command *c, cl_int err, bool blocking, const struct gmt_wait_list *waits);
/* The same for a marker or barrier, which without a wait list runs after everything before it. */
cl_int gmt_command_end_fence(struct gmt_command *c, cl_int err, bool barrier, const struct gmt_wait_list *waits);

/* Repeats an enqueue after the pool has given memory back: drivers allocate lazily, so it may fail for lack of memory. */
#define GMT_TRY(err, command, expression)                                                                              \
	do {                                                                                                           \
		struct gmt_shortage gmt_short = gmt_shortage();                                                        \
		do                                                                                                     \
			(err) = (command).refused ? (command).refused : (expression);                                  \
		while (gmt_unlikely((err) != CL_SUCCESS) && gmt_oom_drain(&gmt_short, (err), 0));                     \
	} while (0)

/* Writes AWAIT events: since time, a command of queue, or this thread if queue is NULL, waits for the events in list. */
void gmt_command_write_awaits(uint64_t time, const struct gmt_queue *queue, cl_uint waits, const cl_event *list);

/* A SYNC event; queue: NULL if there are several, or none that we know. */
void gmt_command_write_sync(const struct gmt_call *call, enum gmtsync op, const struct gmt_queue *queue);

/* The wait list of a hook whose arguments have the usual names. */
#define GMT_WAIT_LIST (&(struct gmt_wait_list){waits, list, event, &GMT_CALLER})

#endif
