/*
 * objects.h: the contexts, queues, programs, kernels, events, samplers and command buffers that the program holds, by
 * handle. Any thread may call these functions. find and add return NULL if there is none; remove returns false if another
 * thread was first.
 */
#ifndef GMT_OBJECTS_H
#define GMT_OBJECTS_H

#include "../base/session.h"
#include "object.h"

/* The last command on one queue that used a memory object. */
struct gmt_use {
	struct gmt_queue *queue;
	uint64_t queue_id;
	uint64_t position : 63;
	uint64_t several : 1; /* stands for earlier uses, too: over once all commands up to position have completed */
};
#define GMT_USES 4
struct gmt_uses {
	uint32_t count;
	bool many; /* used on more queues than fit: over once all queues of its context are done */
	struct gmt_use use[GMT_USES];
};

/* The result of trying something that drivers may get wrong. */
enum gmt_trial { GMT_TRIAL_NONE, GMT_TRIAL_PASSED, GMT_TRIAL_FAILED };
/* Whether sub-allocations may serve a context, see pool/trial.h. */
enum gmt_parts {
	GMT_PARTS_UNTRIED,
	GMT_PARTS_NONE,
	GMT_PARTS_IMAGES_UNTRIED, /* as long as the program cannot create images */
	GMT_PARTS_WITHOUT_IMAGES, /* as long as the program cannot create images: the driver makes none of sub-buffers */
	GMT_PARTS_ALIASED,        /* images of them are made as pool/alias.h says */
	GMT_PARTS_ALL,
};

#define GMT_CLASSES_MAX 48 /* combinations of flags of poolable buffers: device access, host access, ALLOC_HOST_PTR, COPY_HOST_PTR */
struct gmt_context {
	struct gmt_object object;
	_Atomic uint32_t references; /* the program's own */
	_Atomic uint32_t lock;       /* held for a few instructions; each group below says what it guards */
	/*
	 * How long the program can use the context: hooks/context_holds.h. The lock guards wakes, changes of asleep, and holds
	 * leaving 0.
	 */
	struct {
		_Atomic uint32_t holds; /* the program's own references, and queues; 0: the context sleeps */
		uint32_t wakes;         /* how often holds left 0 */
		_Atomic uint32_t slept; /* turn at which it fell asleep, see hooks/context_holds.c */
		_Atomic bool asleep;    /* it sleeps, and has no block left in the pool */
	} life;
	/* Properties of the devices: hooks/hook_context.c. No lock: constant once the program has the handle. */
	struct {
		cl_device_id first;
		uint64_t largest;  /* bytes of the largest allocation that any device takes; 0: unknown */
		uint64_t constant; /* bytes of the largest __constant argument that all devices take; 0: unknown */
		uint64_t heap;     /* bytes of memory of the device that has least; 0: unknown */
		uint32_t align;    /* of sub-buffers, in bytes, a power of two; 0: no sub-allocations */
		bool old;          /* a device is of before OpenCL 1.2 */
		bool discrete;     /* a device has memory of its own, not the host's */
	} devices;
	/* Errors of its driver, found by trying. No lock. */
	struct {
		_Atomic uint32_t finishes;    /* calls of clFinish tried so far that had something to wait for, see hooks/hook_sync.c */
		_Atomic bool hasty;           /* clFinish may return before all has completed */
		_Atomic uint8_t parts;        /* enum gmt_parts, see pool/trial.h */
		_Atomic uint8_t eager;        /* whether a migration allocates memory, see pool/eager.c */
		_Atomic uint8_t image_copies; /* enum gmt_trial: whether the driver checks copies of images, see hooks/image_range.c */
	} tried;
	/* Its commands and their order: order/. The lock guards hidden and indirect. */
	struct {
		_Atomic uint32_t queues;          /* alive */
		_Atomic uint32_t unordered;       /* 1: order between commands cannot be known (native kernels, unknown queues) */
		_Atomic uint32_t gates;           /* user events that the program has not set yet */
		_Atomic uint32_t command_buffers; /* alive: any buffer may be in one */
		struct gmt_uses hidden;   /* uses by commands that may use any memory: replays of command buffers */
		struct gmt_uses indirect; /* uses by commands that may use any shared memory, through pointers in other memory */
	} order;
	/* Its part of the pool: pool/plan.c, pool/shapes.c. The lock guards shapes, and changes of classes and class. */
	struct {
		_Atomic uint32_t closed;   /* 1: pooling has ended: the context was terminated, or a command failed */
		_Atomic uint32_t blocks;   /* in the pool, without those of shared memory */
		_Atomic uint32_t pointers; /* blocks of shared memory in the pool */
		_Atomic uint32_t classes;  /* used entries of class */
		_Atomic uint64_t class[GMT_CLASSES_MAX]; /* flags << 32 | number: one word, as a context that wakes begins with none */
		struct gmt_shapes *shapes; /* shapes of images and shared memory that the pool may serve; NULL: none yet */
	} pool;
	/* For filling recycled blocks: pool/upload.c. The lock guards uses, and changes of queue. */
	struct {
		_Atomic(cl_command_queue) queue; /* ours */
		uint32_t uses;                   /* threads that use queue right now */
	} upload;
};

/* Whether recycled blocks are filled when they are handed out. */
static inline bool gmt_scrubs(const struct gmt_context *context)
{
	uint32_t how = gmt_session.config.scrub;
	return gmt_unlikely(how) && (how != GMT_SCRUB_AUTO || context->devices.old); /* without fills on the program's queue */
}

#define GMT_MARKERS 16
struct gmt_marker {
	cl_event event;
	uint64_t position; /* all commands up to here have completed when event has */
	bool gated;        /* enqueued while a user event was open, so it may wait for that */
};

#define GMT_WINDOW 256 /* positions after done whose completion is known one by one; a multiple of 64 */
struct gmt_queue {
	struct gmt_object object;
	_Atomic(struct gmt_context *) context;
	_Atomic bool inorder;
	bool profiled; /* created with profiling, so that its events have times */
	uint8_t device; /* 1 + the index of its device in its context; 0: unknown */
	_Atomic uint32_t references;
	_Atomic uint32_t waiting;  /* blocking calls of the program that are in the driver */
	_Atomic uint64_t enqueued; /* commands whose enqueue has returned */
	_Atomic uint64_t done;     /* this many, from the first, have completed */
	_Atomic uint64_t after[GMT_WINDOW / 64]; /* a bit for each position after done: its command has completed */
	_Atomic uint64_t fence;    /* a barrier: commands enqueued from now on run after those up to here */
	_Atomic uint64_t ours;     /* a marker or a flush of ours came after the commands up to here */
	_Atomic uint64_t settled;  /* all commands up to here have completed, and their events say so */
	_Atomic uint64_t handed;   /* blocks were handed out in order after commands up to here */
	_Atomic uint64_t round;    /* the latest of order/handout.c that has taken it */
	_Atomic uint32_t lock;     /* guards done, after, markers, closed */
	_Atomic bool closed;       /* the driver may have freed it: no more markers */
	_Atomic uint32_t markers;
	struct gmt_marker marker[GMT_MARKERS]; /* oldest first */
	struct gmt_queue *next_closed; /* in the list of order/closed_queues.c */
};

/* Commands that another one runs after: those of a queue up to before, and the one at position. */
struct gmt_cover {
	struct gmt_queue *queue;
	uint64_t queue_id;
	uint64_t before, position;
};

#define GMT_WAITS 4
/* Everything that has completed once a command has. */
struct gmt_completion {
	struct gmt_context *context;
	struct gmt_cover what; /* the command; without a queue: a user event */
	uint32_t waits;        /* used entries of wait: commands that it waited for, as many as fit */
	struct gmt_cover wait[GMT_WAITS];
};

/* An event, by which the program learns that a command has completed. It is only counted if gmt_follows_events is false. */
struct gmt_event {
	struct gmt_object object;
	_Atomic uint32_t references;
	_Atomic uint32_t open; /* 1: a user event that has not been set */
	uint64_t time; /* of its command, 0: unknown or not needed */
	uint8_t await; /* enum gmtawait */
	_Atomic uint8_t moves; /* enum gmtcommand of a transfer whose times are not known yet; 0: none */
	uint32_t moved_at;     /* the transfer's call site */
	uint64_t moved;        /* the transfer's bytes */
	/* Events that are only counted have no memory for the rest. */
	struct gmt_completion of;
};

struct gmt_command_buffer {
	struct gmt_object object;
	_Atomic uint32_t references;
	struct gmt_context *context;
	cl_command_queue queue; /* the first of those that it was created for */
	cl_uint queues;
};

enum gmt_argument {
	GMT_ARGUMENT_ASKED = 1,  /* the driver was asked; without another bit: it did not know */
	GMT_ARGUMENT_MEMORY = 2, /* a __global or __constant pointer */
	GMT_ARGUMENT_READS = 4,  /* the kernel cannot write through it */
	GMT_ARGUMENT_WRITES = 16, /* an image that the kernel cannot read */
	GMT_ARGUMENT_POINTER = 8, /* was set to an address, not to a handle; may be set without ASKED */
};
struct gmt_kernel {
	struct gmt_object object;
	_Atomic uint32_t references;
	uint32_t arguments;
	uint64_t *argument; /* the 8 bytes last set, 0 for anything else */
	uint8_t *kind;      /* enum gmt_argument */
	_Atomic uint32_t indirect; /* not 0: it may use shared memory that no argument names, see hooks/hook_kernel.c */
};

/* A program or a sampler: it is only counted. */
struct gmt_counted {
	struct gmt_object object;
	_Atomic uint32_t references;
};

struct gmt_context *gmt_context_find(cl_context handle);
struct gmt_context *gmt_context_add(cl_context handle);
/* Counts the end of the program's own references. */
void gmt_context_uncount(struct gmt_context *context);
/* The entry stays valid: objects of the context may outlive it and still point to it. */
bool gmt_context_remove(struct gmt_context *context);

static inline bool gmt_is_old_opencl(const struct gmt_context *context)
{
	return context && context->devices.old;
}
static inline uint16_t gmt_context_id(const struct gmt_context *context)
{
	return context ? (uint16_t)context->object.id : 0;
}

struct gmt_queue *gmt_queue_find(cl_command_queue handle);
struct gmt_queue *gmt_queue_add(cl_command_queue handle);
/* The entry stays valid until gmt_queue_recycle, because its commands may be pending. */
bool gmt_queue_remove(struct gmt_queue *queue);
void gmt_queue_recycle(struct gmt_queue *queue);
/* Calls visit for every queue that the program holds; visit must not add or remove one. */
void gmt_queue_each(void (*visit)(struct gmt_queue *, void *), void *arg);

struct gmt_kernel *gmt_kernel_find(cl_kernel handle);
struct gmt_kernel *gmt_kernel_add(cl_kernel handle, uint32_t arguments);
void gmt_kernel_remove(struct gmt_kernel *kernel);

/* Whether the pool or the recording wants to know which command an event belongs to. */
static inline bool gmt_follows_events(void)
{
	return gmt_session.config.pooling || gmt_session.config.uses;
}
/* Called before the first event. */
void gmt_events_begin(void);
struct gmt_event *gmt_event_find(cl_event handle);
struct gmt_event *gmt_event_add(cl_event handle);
bool gmt_event_remove(struct gmt_event *event);

struct gmt_command_buffer *gmt_command_buffer_find(cl_command_buffer_khr handle);
struct gmt_command_buffer *gmt_command_buffer_add(cl_command_buffer_khr handle);
bool gmt_command_buffer_remove(struct gmt_command_buffer *buffer);

struct gmt_counted *gmt_program_find(cl_program handle);
struct gmt_counted *gmt_program_add(cl_program handle);
bool gmt_program_remove(struct gmt_counted *program);

struct gmt_counted *gmt_sampler_find(cl_sampler handle);
struct gmt_counted *gmt_sampler_add(cl_sampler handle);
bool gmt_sampler_remove(struct gmt_counted *sampler);

#endif
