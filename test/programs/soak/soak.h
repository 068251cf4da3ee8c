/*
 * soak.h: a random OpenCL program, drawn from a seed. It is valid whatever operations are left out, does the same
 * whatever the timing, and knows what every buffer must contain.
 *
 * A thread owns slots. A slot holds a memory object; what it refers to is a storage, which a buffer shares with its
 * sub-buffers and with images made from it. A storage has a mirror of its contents, kept up to date as commands are
 * enqueued, and its commands form a chain: each waits for the one before, by the order of the queue or by an event.
 */
#ifndef SOAK_H
#define SOAK_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* for devices that have nothing newer */
#include "common.h"
#include "images.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
	SLOTS = 10,       /* of each thread */
	GATES = 3,        /* user events of each thread that hold commands back */
	MAPS = 3,         /* of a storage at a time */
	SVMS = 3,         /* of each thread: allocations of shared virtual memory */
	FARS = 2,         /* of each thread: contexts besides its own, that stay for a while */
	FAR_BUFFERS = 3,  /* of each such context */
	QUEUES_MAX = 8,   /* of each thread */
	THREADS_MAX = 16,
	OPS_MAX = 100000, /* of each thread */
	SIZE_MAX_BYTES = 256 << 10,
};

/* The command line. */
struct options {
	uint64_t seed;
	unsigned ops, threads, queues; /* ops and queues: of each thread */
	bool list, trace;
	bool light; /* no user events, short kernels */
	bool *skip; /* one for each operation of all threads */
};

/* Exits with a message when it is wrong. */
struct options options_read(int argc, char **argv);

/* What the seed says about the whole program. */
struct style {
	bool gates;       /* user events; without them and with one queue a pool may reuse without waiting */
	bool inorder;     /* no queue is out of order */
	bool callbacks;   /* events have callbacks */
	bool images;      /* and the device can */
	bool native;      /* kernels in C, and the device can */
	bool destructors; /* memory objects have callbacks */
	bool maps;
	bool late;      /* threads start with one queue */
	bool profiling; /* queues measure times */
	bool svm;       /* shared virtual memory, and the device can */
	bool errors;    /* user events are set to errors */
	bool large;     /* buffers of 4 MiB and more */
	bool modern;    /* the device has OpenCL 3.0 */
};

/* One context and what all its threads share. */
struct world {
	cl_device_id device;
	cl_context context;
	cl_program program;
	bool profiling;             /* its queues measure times */
	cl_command_queue shared[2]; /* an in-order one; one out of order unless the style says no */
	size_t align;               /* of sub-buffers, bytes */
};

struct queue {
	cl_command_queue handle;
	bool inorder;
	uint64_t epoch; /* counts this thread's barriers */
	unsigned extra; /* references beyond the first */
};

/* A region that the program has mapped, through mem. */
struct map {
	cl_mem mem;
	void *pointer;
	size_t offset, size; /* in the storage */
	bool writes;
};

/* Bytes on the device, and what they must be. Bytes from defined on were never written. */
struct storage {
	unsigned refs; /* slots */
	size_t size, defined;
	unsigned char *mirror;
	cl_event last;        /* the last command of the chain; NULL: it is over, or see queue */
	struct queue *behind; /* the last command's, NULL when it is over */
	uint64_t epoch;       /* of behind when it was enqueued */
	struct map map[MAPS];
	unsigned maps;
	bool leaked;      /* PoCL will never destroy some object on it: no destructor callbacks */
	bool unmapped;    /* maps were ended */
	bool destructors; /* some object on it has destructor callbacks */
};

/* Shared virtual memory; pointer is NULL where there is none. */
struct svm {
	void *pointer;
	struct storage *storage;
};

/* A context besides the thread's, with buffers full of one word each. */
struct far {
	struct world world; /* context is NULL: not open */
	cl_command_queue queue[2];
	unsigned queues;
	cl_mem mem[FAR_BUFFERS];
	cl_command_queue last[FAR_BUFFERS]; /* the one that all commands of a buffer go to */
	cl_uint value[FAR_BUFFERS];
	size_t size;
};

enum slot_kind { SLOT_EMPTY, SLOT_BUFFER, SLOT_SUB, SLOT_IMAGE, SLOT_TEXELS /* image from a buffer */ };

struct slot {
	enum slot_kind kind;
	cl_mem mem;
	cl_mem parent; /* of a sub-buffer or an image from a buffer; maybe released, but not gone */
	cl_mem_flags flags;
	struct storage *storage;
	size_t offset, size; /* in the storage, bytes */
	size_t width;        /* of an image, texels of 4 bytes */
	unsigned extra;      /* references beyond the first */
	uint64_t serial;     /* of whatever is in the slot, never used twice in a thread */
	struct group *group; /* its destructor callbacks */
};

/* Memory that a command that is not over still reads or writes. want: what a read must find. */
struct pending {
	cl_event event;
	unsigned char *host, *want;
	size_t size;
	unsigned op;
	struct pending *next;
};

/* A kernel and the arguments it was last given. */
struct kernel {
	cl_kernel handle;
	uint64_t x, y; /* serials; 0: no arguments yet */
	unsigned xslot, yslot;
	cl_uint n, a, key, rounds;
};

enum { KERNEL_MAKE, KERNEL_AFFINE, KERNEL_AFFINE2, KERNEL_SLOW, KERNEL_SLOW2, KERNEL_TEXELS, KERNELS };

struct thread {
	pthread_t id;
	unsigned index;
	const struct options *options;
	const struct style *style;
	struct world *world;
	bool own; /* the world is its own */
	struct queue queue[QUEUES_MAX];
	unsigned queues; /* that exist; options have the limit */
	struct slot slot[SLOTS];
	struct svm svm[SVMS];
	struct far far[FARS];
	struct kernel kernel[KERNELS];
	cl_event gate[GATES];
	bool hold; /* the next command waits for a gate for certain */
	struct pending *pending;
	struct hostmemory *hostmemory;
	struct failed *failed;
	uint64_t random; /* of the operation that runs */
	uint64_t serial;
	uint64_t hash;
	size_t classes[3]; /* favourite sizes, so that a pool gets hits */
	atomic_uint op;    /* the operation that runs, for the watchdog */
};

struct op {
	unsigned number; /* among those of all threads */
	unsigned thread, kind, a, b, queue;
	uint64_t random;
};

/* --- random numbers (ops.c) */

uint64_t mix(uint64_t x);
uint64_t draw(uint64_t *state);
/* From 0 to below - 1; below is at least 1. */
size_t below(struct thread *t, size_t below);
/* True once in n. */
bool once_in(struct thread *t, size_t n);

/* --- operations (ops.c) */

struct op op_make(const struct options *options, unsigned number);
void op_print(const struct op *op);
void op_run(struct thread *t, const struct op *op);

/*
 * Ends the program with status 1, a message, and the operation that runs. Never runs exit handlers: others still work.
 * main.c sees to the same for fail() and CHECK().
 */
_Noreturn void broken(const struct thread *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* On stderr, with --trace. */
void note(const struct thread *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define MUST(t, status) must((t), (status), #status)
void must(const struct thread *t, cl_int status, const char *what);
/* Adds something observable to the result. */
void observe(struct thread *t, uint64_t value);

/* --- contexts and queues (world.c) */

void world_open(struct world *world);
cl_command_queue queue_new(const struct world *world, bool inorder);
void world_close(struct world *world);
/* Called once, before worlds are opened. */
struct style style_of(const struct options *options, cl_device_id device);
void thread_open(struct thread *t);
/* Reads everything back and releases it. */
void thread_close(struct thread *t);
/* One more, up to what the options say. */
void op_late_queue(struct thread *t, const struct op *op);
void op_retain_queue(struct thread *t, const struct op *op);
void op_renew_queue(struct thread *t, const struct op *op);
void op_renew_context(struct thread *t, const struct op *op);
void op_side_context(struct thread *t, const struct op *op);

/* --- the chain (chain.c) */

/* One command that is about to be enqueued. */
struct command {
	struct thread *t;
	struct queue *queue;
	struct storage *use[2];
	cl_event wait[8];
	cl_uint waits;
	const cl_event *list; /* wait, or NULL */
	cl_event event;
	cl_event *out; /* &event, or NULL */
	bool blocking;
};

/* Opens all gates when the command blocks, ends maps, and makes the wait list. b may be NULL. */
void command_begin(struct command *command, struct thread *t, struct queue *queue, struct storage *a, struct storage *b,
		   bool blocking);
/* As above for one storage, and maps are left alone. */
void command_begin_map(struct command *command, struct thread *t, struct queue *queue, struct storage *a, bool blocking);
/* Adds to what it waits for. */
void command_wait_for(struct command *command, cl_event event);
/* Makes sure that command_end leaves an event in command->event. */
void command_want_event(struct command *command);
/* The command has been enqueued: it is now the last of its storages. The event, if any, belongs to the storages. */
void command_end(struct command *command);
/* Keeps host memory until the command is over, as a blocking one is. Takes both pointers; want may be NULL. */
void keep(struct command *command, unsigned char *host, unsigned char *want, size_t size);
/* Checks and frees what is over; waits for it if wait is set. */
void pending_sweep(struct thread *t, bool wait);
/* The event's status; negative: an error. */
cl_int event_status(const struct thread *t, cl_event event);
void gates_open(struct thread *t);
/* Turns "the last command of queue" into an event, because the queue goes. */
void chain_leave_queue(struct thread *t, struct queue *queue);
/* Returns when the storage's commands are over. */
void storage_wait(struct thread *t, struct storage *storage);
/* Whatever its commands were, they are not waited for. */
void storage_forget(struct thread *t, struct storage *storage);
/* The event of the last command, without waiting; NULL if all is over. Belongs to the storage. */
cl_event storage_event(struct thread *t, struct storage *storage);
void op_open_gate(struct thread *t, const struct op *op);
void op_finish(struct thread *t, const struct op *op);
void op_flush(struct thread *t, const struct op *op);
void op_wait(struct thread *t, const struct op *op);
void op_poll(struct thread *t, const struct op *op);
void op_marker(struct thread *t, const struct op *op);
void op_barrier(struct thread *t, const struct op *op);

/* --- memory objects (memory.c) */

bool is_buffer(const struct slot *slot);
bool is_image(const struct slot *slot);
bool host_reads(const struct slot *slot);
bool host_writes(const struct slot *slot);
/* Fills an empty slot. */
void slot_place(struct thread *t, struct slot *slot, enum slot_kind kind, cl_mem mem, struct storage *storage);
struct storage *storage_new(size_t size);
void storage_drop(struct thread *t, struct storage *storage);
/* Takes the object out of the slot; the program's references to it are the caller's. */
cl_mem slot_take(struct thread *t, struct slot *slot);
void slot_release(struct thread *t, struct slot *slot);
/* A new buffer in an empty slot. */
void slot_create(struct thread *t, struct slot *slot, size_t size, cl_mem_flags flags);
/* Frees host memory that buffers used; they must be gone. */
void hostmemory_free(struct thread *t);
/* Releases what threads have handed over. */
void mailbox_empty(void);
void op_create(struct thread *t, const struct op *op);
void op_sub(struct thread *t, const struct op *op);
void op_release(struct thread *t, const struct op *op);
void op_retain(struct thread *t, const struct op *op);
void op_handoff(struct thread *t, const struct op *op);
void op_reap(struct thread *t, const struct op *op);

/* --- callbacks and events (events.c) */

void op_destructor(struct thread *t, const struct op *op);
void op_event_callback(struct thread *t, const struct op *op);
void op_events(struct thread *t, const struct op *op);
/* Waits until all callbacks have been made. Ends the program when some were in the wrong order. */
void callbacks_wait(void);

/* --- commands on buffers (commands.c, rects.c) */

/* Writes to what was never written, in whatever way the object allows. */
void define(struct thread *t, struct slot *slot, struct queue *queue);
/* Reads all of it and compares. */
void read_back(struct thread *t, struct slot *slot, struct queue *queue);
void compare(const struct thread *t, unsigned op, const unsigned char *got, const unsigned char *want, size_t size);
/* Bytes of the slot that have been written, from its start. */
size_t slot_defined(const struct slot *slot);
/* Something wrote size bytes at offset of the slot. */
void slot_written(struct slot *slot, size_t offset, size_t size);
unsigned char *slot_mirror(const struct slot *slot);
void op_write(struct thread *t, const struct op *op);
void op_read(struct thread *t, const struct op *op);
void op_fill(struct thread *t, const struct op *op);
void op_copy(struct thread *t, const struct op *op);
void op_migrate(struct thread *t, const struct op *op);
void op_host_rect(struct thread *t, const struct op *op);
void op_copy_rect(struct thread *t, const struct op *op);

/* --- kernels (kernels.c) */

void kernels_open(struct thread *t);
void kernels_close(struct thread *t);
/* Defines the whole words of a buffer that kernels may write. */
void kernel_make(struct thread *t, struct slot *y, struct queue *queue);
void op_kernel(struct thread *t, const struct op *op);
void op_slow(struct thread *t, const struct op *op);
void op_overtake(struct thread *t, const struct op *op);
void op_again(struct thread *t, const struct op *op);
void op_clone(struct thread *t, const struct op *op);
void op_native(struct thread *t, const struct op *op);
void op_image_kernel(struct thread *t, const struct op *op);
/* n words of the pointer's memory become those of the slot, or the other way. */
void kernel_svm(struct thread *t, struct svm *svm, struct slot *slot, bool to_slot, cl_uint n, struct queue *queue);
/* The one step that equals v * a + key applied count times. */
void affine_power(cl_uint *a, cl_uint *key, cl_uint rounds);

/* --- maps (maps.c) */

void op_map(struct thread *t, const struct op *op);
void op_unmap(struct thread *t, const struct op *op);
/* Maps the whole slot, writes it, and unmaps it. */
void map_define(struct thread *t, struct slot *slot, struct queue *queue);
/* Ends all maps of a storage, or those made through mem. */
void maps_end(struct thread *t, struct storage *storage, cl_mem mem, struct queue *queue);
/* Forgets the maps made through mem without ending them. */
void maps_abandon(struct storage *storage, cl_mem mem);

/* --- images (images.c) */

void op_image(struct thread *t, const struct op *op);
void op_texels(struct thread *t, const struct op *op);
void op_image_copy(struct thread *t, const struct op *op);
void op_image_map(struct thread *t, const struct op *op);
void image_define(struct thread *t, struct slot *slot, struct queue *queue);
void image_read_back(struct thread *t, struct slot *slot, struct queue *queue);

/* --- shared virtual memory (svm.c) */

/* Memory of a device that shares single buffers; free with clSVMFree. */
void *svm_alloc(const struct world *world, size_t size);
void svm_close(struct thread *t);
void op_svm(struct thread *t, const struct op *op);
void op_svm_kernel(struct thread *t, const struct op *op);

/* --- failures (failing.c) */

/* Lets go of the events that ended with errors. */
void failed_release(struct thread *t);
void op_fail(struct thread *t, const struct op *op);

/* --- other contexts (streams.c) */

void op_stream(struct thread *t, const struct op *op);
void op_large(struct thread *t, const struct op *op);
void fars_close(struct thread *t);
void op_far(struct thread *t, const struct op *op);

/* --- questions and wrong calls (check.c) */

void op_query(struct thread *t, const struct op *op);
void op_bad(struct thread *t, const struct op *op);

#endif
