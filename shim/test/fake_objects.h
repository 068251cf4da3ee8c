/* fake_objects.h: the fake driver's insides. Everything is under one recursive lock. */
#ifndef FAKE_OBJECTS_H
#define FAKE_OBJECTS_H

#include "fake_driver.h"

enum fake_type { FAKE_DEVICE, FAKE_PROGRAM, FAKE_CONTEXT, FAKE_QUEUE, FAKE_MEMORY, FAKE_KERNEL, FAKE_EVENT, FAKE_RECORDING, FAKE_SAMPLER, FAKE_TYPES };

#define FAKE_ARGUMENTS 4 /* three memory objects and eight bytes of something else */

struct fake_object {
	uint32_t magic;
	enum fake_type type;
	uint32_t references; /* the program's */
	uint32_t holds;      /* of other objects and of queued commands */
	struct fake_object *next;
};

struct fake_context_callback {
	struct fake_context_callback *next;
	void(CL_CALLBACK *notify)(cl_context, void *);
	void *data;
};

struct _cl_context {
	struct fake_object object;
	bool terminated;
	struct fake_context_callback *callbacks; /* latest first */
};

struct fake_callback {
	struct fake_callback *next;
	void(CL_CALLBACK *notify)(cl_mem, void *);
	void *data;
};

struct _cl_mem {
	struct fake_object object;
	cl_context context;
	cl_mem parent;
	cl_mem_flags flags;
	size_t origin; /* in its parent */
	size_t size, element;
	uint64_t owner;   /* counts fake_hand_out */
	uint64_t born, died; /* of a sub-buffer: when it was created and released, 0: not yet */
	uint32_t pending; /* commands that use it, or parts of it */
	uint32_t maps;    /* with fake.countparts, those of its sub-buffers included */
	uint32_t parts;   /* sub-buffers */
	cl_command_queue last; /* that it keeps; NULL: none */
	struct fake_callback *callbacks; /* latest first */
	unsigned char *storage; /* of one without a parent, once it is needed */
	unsigned char *host;    /* where that is the host's, instead */
};

/* What a command does to the contents of memory when it runs. */
struct fake_action {
	enum { FAKE_NOTHING, FAKE_READ, FAKE_WRITE, FAKE_FILL, FAKE_COPY, FAKE_RECTANGLE, FAKE_POINTERS, FAKE_POINTER_COPY, FAKE_POINTER_FILL, FAKE_POINTER_FREE } kind;
	size_t region[3], row, slice, torow, toslice; /* of a rectangle, without zeros */
	size_t from, to, size;
	union {
		void *out;
		const void *in;
	} host;
	unsigned char pattern[16];
	size_t patternsize;
	const void *pointer[FAKE_ARGUMENTS]; /* addresses that it uses */
	unsigned pointers;
	void(CL_CALLBACK *notify)(cl_command_queue, cl_uint, void *[], void *);
	void *data;
	void **free; /* addresses that it frees */
	cl_uint freed;
};

#define FAKE_USES 80
struct fake_command {
	struct fake_command *next, *previous;
	cl_command_queue queue;
	bool barrier;      /* everything behind it waits for it */
	bool after_all;    /* it waits for everything before it */
	unsigned memories;
	cl_mem memory[FAKE_USES];
	uint64_t owner[FAKE_USES];
	cl_uint waits;
	cl_event *wait;
	cl_event event;
	uint64_t visited;
	bool marker;
	bool ends; /* its callback runs, which may ask for more to be completed */
	struct fake_action action;
};

struct _cl_command_queue {
	struct fake_object object;
	cl_context context;
	cl_command_queue_properties properties;
	struct fake_command *first, *last;
	cl_command_queue sibling; /* all queues that are alive */
};

struct fake_event_callback {
	struct fake_event_callback *next;
	cl_int type;
	void(CL_CALLBACK *notify)(cl_event, cl_int, void *);
	void *data;
};

struct _cl_event {
	struct fake_object object;
	struct fake_event_callback *callbacks; /* latest first */
	cl_context context; /* of a user event */
	struct fake_command *command; /* NULL: complete, or a user event */
	cl_int status, doom; /* doom: what its command will end with, 0: nothing special */
	uint64_t batch; /* of its command */
	bool shown;      /* it was waited for */
};

struct _cl_kernel {
	struct fake_object object;
	cl_context context;
	cl_mem memory[FAKE_ARGUMENTS - 1];
	cl_mem kept[FAKE_ARGUMENTS - 1];
	const void *pointer[FAKE_ARGUMENTS];
};

struct _cl_command_buffer_khr {
	struct fake_object object;
	cl_command_queue queue;
	unsigned memories;
	cl_mem memory[FAKE_USES];
	uint64_t owner[FAKE_USES];
};

void fake_lock(void);
void fake_unlock(void *unused);
#define FAKE_LOCKED                                                                                                    \
	int fake_guard __attribute__((cleanup(fake_unlock), unused)) = (fake_lock(), 0)

void fake_fail(const char *what) __attribute__((noreturn));
void *fake_new(enum fake_type type, size_t size);
/* Aborts for a handle that is dead; false for NULL and other types. */
bool fake_alive(const void *handle, enum fake_type type);
/* A kernel of a driver that does so keeps memory, or NULL. */
void fake_keep(cl_kernel kernel, unsigned index, cl_mem memory);
void fake_hold(void *object);
void fake_drop(void *object); /* undoes fake_hold */
cl_int fake_retain(void *handle, enum fake_type type, cl_int invalid);
cl_int fake_release(void *handle, enum fake_type type, cl_int invalid);
cl_int fake_answer(const void *value, size_t size, size_t room, void *out, size_t *needed);
cl_int fake_submit(cl_command_queue queue, cl_bool blocking, unsigned count, const cl_mem *memories, cl_uint waits,
		   const cl_event *list, cl_event *event);
cl_int fake_submit_action(cl_command_queue queue, cl_bool blocking, unsigned count, const cl_mem *memories,
			  const struct fake_action *action, cl_uint waits, const cl_event *list, cl_event *event);
struct fake_command *fake_append(cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event);
/* What is wrong with a command, before its ranges are looked at. */
cl_int fake_check(cl_command_queue queue, unsigned count, const cl_mem *memories, cl_uint waits, const cl_event *list);
cl_mem fake_new_memory(cl_context context, cl_mem_flags flags, size_t size, cl_mem parent, cl_int *errcode);
cl_mem fake_root(cl_mem memory);
/* For commands that drivers are known to get wrong on sub-buffers. */
void fake_not_fragile(cl_mem memory);
/* The bytes of memory from offset on; NULL when there are too many to keep. */
unsigned char *fake_bytes(cl_mem memory, size_t offset);
void fake_act(const struct fake_command *c);
cl_context fake_new_context(cl_int *errcode);
cl_event fake_new_event(void);
/* The event has ended: calls back, once the driver's lock is free. */
void fake_event_ended(cl_event event);
void fake_event_ends(cl_event event);
/* Runs function once the driver's lock is free, on this thread. */
void fake_defer(void (*function)(void));
/* What was put off; ran after the lock has been let go. */
struct fake_deferred *fake_take_deferred(void);
void fake_run_deferred(struct fake_deferred *list);
/* Ends all commands of a context's queues. */
void fake_fail_context(cl_context context, cl_int status);
bool fake_run(struct fake_command *c);
void fake_complete_with(struct fake_command *c, cl_int status);
/* What queued commands and other objects count for where the driver says so. */
cl_uint fake_references(const struct fake_object *object, bool holds);
void fake_queue_ends(cl_command_queue queue);
void fake_memory_ends(cl_mem memory);
/* Whether a create is to fail, with which error. */
bool fake_out_of_luck(cl_int *error);
/* A command with these addresses is enqueued; it ends, and may have run. */
void fake_hold_pointers(const struct fake_action *action);
void fake_act_on_pointers(const struct fake_command *c, bool runs);
void *fake_unified(const char *name);
void *fake_extension(const char *name);

#endif
