/*
 * objects.h: what the program holds, by handle. Entries live in tables and are type-stable: their memory is reused
 * for entries of the same type only and never returned, so that a stale pointer can be checked against a number
 * instead of crashing. Lookups take no lock. Any thread may call what is here.
 */
#ifndef GMT_OBJECTS_H
#define GMT_OBJECTS_H

#include "shim.h"

struct gmt_object {
	_Atomic(struct gmt_object *) chain;
	_Atomic(const void *) handle;
	_Atomic uint64_t number; /* from 1, never reused within its table; 0 while nobody owns the entry */
};

/* The last command on one queue that used a memory object. */
struct gmt_use {
	struct gmt_queue *queue;
	uint64_t queuenumber;
	uint64_t position;
	bool several; /* earlier ones may still run when it has completed: over when all up to position have */
};
#define GMT_USES 4
struct gmt_uses {
	uint32_t count;
	bool many; /* used on more queues than fit: it waits for all queues of its context */
	struct gmt_use use[GMT_USES];
};

/* Whether the driver makes images of sub-buffers. */
enum gmt_images { GMT_IMAGES_UNTRIED, GMT_IMAGES_OF_PARTS, GMT_IMAGES_OF_WHOLES };

#define GMT_CLASSES_MAX 16
struct gmt_context {
	struct gmt_object object;
	_Atomic uint32_t references;
	cl_device_id device;  /* its first */
	uint64_t largest;     /* bytes of the largest allocation that any of its devices takes; 0 unknown */
	uint64_t constant;    /* bytes of the largest __constant argument that all of its devices take; 0 unknown */
	uint64_t heap;        /* bytes of memory of the device that has least; 0 unknown */
	uint32_t align;       /* of sub-buffers, in bytes, a power of two; 0: there can be no parts */
	_Atomic uint8_t images; /* enum gmt_images */
	bool old;             /* before OpenCL 1.2: no markers */
	_Atomic uint32_t queues;     /* alive */
	_Atomic uint32_t unordered;  /* 1: order between commands cannot be known (native kernels, unknown queues) */
	_Atomic uint32_t gates;      /* user events that the program has yet to set */
	_Atomic uint32_t recordings; /* command buffers alive: any buffer may be in one */
	_Atomic uint32_t closed;     /* 1: terminated: nothing comes from the pool any more */
	_Atomic uint32_t idle;       /* blocks of it that are in the pool */
	_Atomic(cl_command_queue) upload; /* ours, for filling recycled blocks */
	_Atomic uint32_t lock;       /* classes, hidden */
	_Atomic uint32_t classes;    /* used entries of flags and class */
	cl_mem_flags flags[GMT_CLASSES_MAX];
	uint32_t class[GMT_CLASSES_MAX];
	struct gmt_uses hidden; /* commands that may use any memory: replayed command buffers */
};

#define GMT_MARKERS 16
struct gmt_marker {
	cl_event event;
	uint64_t position; /* all commands up to here have completed when event has */
	bool gated;        /* put while a user event was open: it may wait for that */
};

#define GMT_WINDOW 256 /* positions after done that are followed one by one; a multiple of 64 */
struct gmt_queue {
	struct gmt_object object;
	_Atomic(struct gmt_context *) context;
	_Atomic bool inorder;
	_Atomic uint32_t references;
	_Atomic uint64_t enqueued; /* commands whose enqueue has returned */
	_Atomic uint64_t done;     /* so many of these have completed, counted the same way */
	_Atomic uint64_t after[GMT_WINDOW / 64]; /* bit of position p: it has completed, though p > done */
	_Atomic uint64_t fence;    /* whatever is enqueued from now on runs after the commands up to here */
	_Atomic uint64_t handed;   /* blocks were handed out as ordered behind commands up to here */
	_Atomic uint32_t lock;     /* done, after, markers, closed */
	_Atomic bool closed;       /* the driver may have freed it: no more markers */
	_Atomic uint32_t markers;
	struct gmt_marker marker[GMT_MARKERS]; /* oldest first */
	struct gmt_queue *zombies;             /* released by the program, commands pending */
};

/* What a command runs after: commands of a queue up to before, and the one at position. */
struct gmt_cover {
	struct gmt_queue *queue;
	uint64_t queuenumber;
	uint64_t before, position;
};

#define GMT_WAITS 4
/* What has completed once a command has. */
struct gmt_completion {
	struct gmt_context *context;
	struct gmt_cover what; /* without a queue: a user event */
	uint32_t waits;        /* what it waited for, as far as there is room */
	struct gmt_cover wait[GMT_WAITS];
};

/* What the program can learn a command's completion from. */
struct gmt_event {
	struct gmt_object object;
	_Atomic uint32_t references;
	_Atomic uint32_t open; /* 1: a user event that has not been set */
	struct gmt_completion of;
	uint64_t time; /* of its command, 0: not known, or nobody asks */
	uint8_t await; /* enum gmtawait */
};

/* A command buffer. */
struct gmt_recording {
	struct gmt_object object;
	_Atomic uint32_t references;
	struct gmt_context *context;
	cl_command_queue queue; /* the first of those that it was made for */
	cl_uint queues;
};

enum gmt_argument {
	GMT_ARGUMENT_ASKED = 1,  /* the driver was asked; nothing else is set when it does not tell */
	GMT_ARGUMENT_MEMORY = 2, /* a __global or __constant pointer */
	GMT_ARGUMENT_READS = 4,  /* that the kernel cannot write through */
};
struct gmt_kernel {
	struct gmt_object object;
	_Atomic uint32_t references;
	uint32_t arguments;
	uint64_t *argument; /* the 8 bytes last set, 0 for anything else */
	uint8_t *kind;      /* enum gmt_argument */
};

#define GMT_MAPPINGS 4
struct gmt_memory {
	struct gmt_object object;
	struct gmt_memory *parent; /* of a sub-buffer that the program made: its buffer */
	struct gmt_context *context;
	uint64_t size;    /* requested */
	uint64_t granted; /* of the driver's object */
	_Atomic uint64_t block; /* 0: not pooled; whoever looks for one asks entries that may be another's by now */
	struct gmt_memory *slab; /* the slab that its driver object is a part of, or NULL */
	uint64_t offset;         /* in there, bytes; of a sub-buffer that the program made, in its parent */
	cl_mem_flags flags; /* as requested */
	uint32_t tag;
	uint16_t scope;
	uint8_t kind;    /* enum gmtmemory */
	uint8_t element; /* bytes of one element of an image, 0 when unknown */
	uint8_t counted; /* 1: in the budget */
	uint8_t whole;   /* 1: a slab, which the program never gets: idle until it leaves the pool */
	uint8_t reason;  /* enum gmtevict, of a slab that has left the pool and waits for its parts */
	_Atomic uint8_t calls_back; /* a part with a destructor callback, which must not come while commands use it */
	_Atomic uint8_t ended;   /* its last reference has gone once: what came after are references of parts' users */
	_Atomic uint8_t unfit;   /* not to be recycled: the driver holds something that belongs to this owner */
	_Atomic uint8_t blank;   /* recycled, and nothing has been written since */
	_Atomic uint8_t fresh;   /* recycled, and no command has used it since */
	_Atomic uint8_t idle;    /* the program has released it, the pool has its block; who clears this owns the block */
	_Atomic uint32_t references;
	_Atomic uint32_t pins; /* 1 for all references together (a slab's: the pool's), 1 for each part, in parts for each map: who takes the last one ends it */
	_Atomic uint32_t children; /* of a part or slab: sub-buffers of its memory that are alive */
	_Atomic int32_t maps;
	_Atomic uint32_t lock; /* uses, mappings, unlisted, mapping */
	uint32_t mappings; /* of a part: pointers that it and its sub-buffers are mapped to */
	uint32_t unlisted; /* more of these than fit */
	struct gmt_uses uses;
	const void *mapping[GMT_MAPPINGS];
};

struct gmt_context *gmt_context_find(cl_context handle);
struct gmt_context *gmt_context_add(cl_context handle);
struct gmt_queue *gmt_queue_find(cl_command_queue handle);
struct gmt_queue *gmt_queue_add(cl_command_queue handle);
struct gmt_kernel *gmt_kernel_find(cl_kernel handle);
struct gmt_kernel *gmt_kernel_add(cl_kernel handle, uint32_t arguments);
struct gmt_event *gmt_event_find(cl_event handle);
struct gmt_event *gmt_event_add(cl_event handle);
struct gmt_recording *gmt_recording_find(cl_command_buffer_khr handle);
struct gmt_recording *gmt_recording_add(cl_command_buffer_khr handle);
/* Also finds what the pool has: see idle. */
struct gmt_memory *gmt_memory_find(const void *handle);
struct gmt_memory *gmt_memory_add(const void *handle);
/* The entry of that handle and block with one more pin; NULL when it is gone, or going. */
struct gmt_memory *gmt_memory_pin(const void *handle, uint64_t block);
/* Whether the entry of that handle and block is there, and the pool has it. */
bool gmt_memory_waits(const void *handle, uint64_t block);
/* The entry of a block that was claimed from the pool gets a new owner and number. */
void gmt_memory_renew(struct gmt_memory *memory);
/*
 * Takes an entry out of its table; false when another thread was first. Kernels, events, command buffers and memory
 * objects are reused from then on; a queue waits for recycle, because its commands may be pending; a context is kept, because
 * its objects may outlive it.
 */
bool gmt_context_remove(struct gmt_context *context);
bool gmt_queue_remove(struct gmt_queue *queue);
void gmt_queue_recycle(struct gmt_queue *queue);
bool gmt_kernel_remove(struct gmt_kernel *kernel);
bool gmt_event_remove(struct gmt_event *event);
bool gmt_recording_remove(struct gmt_recording *recording);
bool gmt_memory_remove(struct gmt_memory *memory);
/* Calls visit for every queue that the program holds; visit must not add or remove one. */
void gmt_queue_each(void (*visit)(struct gmt_queue *, void *), void *arg);
/* Calls visit for every entry of memory, idle ones included; visit must not add or remove one. */
void gmt_memory_each(void (*visit)(struct gmt_memory *, void *), void *arg);
/* Any idle entry from *bucket on, which moves; NULL when there is none. */
struct gmt_memory *gmt_memory_idle(uint32_t *bucket);

/* Counts one reference down; true for the last. Never below zero: over-release is the driver's to report. */
static inline bool gmt_last_reference(_Atomic uint32_t *references)
{
	uint32_t count = atomic_load(references);
	while (count > 0 && !atomic_compare_exchange_weak(references, &count, count - 1))
		;
	return count == 1;
}

static inline uint16_t gmt_scope(const struct gmt_context *context)
{
	return context ? (uint16_t)context->object.number : 0;
}

#endif
