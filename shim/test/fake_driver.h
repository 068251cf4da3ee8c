/*
 * fake_driver.h: an OpenCL library without a device, for the tests of the shim.
 *
 * Commands complete only when the program waits for them or a test says so. Objects are counted as the specification
 * wants, freed handles are poisoned and handed out again at once, last in first out, and whatever a correct shim
 * never does (releasing twice, using a dead handle) aborts the process. Tests set the knobs and read the counters.
 */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include "../base/core.h"
#include "../registry/memory.h"

/* Kinds of commands. */
enum fake_wrong { FAKE_READS = 1, FAKE_WRITES = 2, FAKE_FILLS = 4, FAKE_COPIES_FROM = 8, FAKE_COPIES_TO = 16, FAKE_MAPS = 32 };

struct fake {
	/* Knobs. Sizes in bytes; 0 switches one off, except largest. */
	_Atomic uint64_t largest;          /* CL_DEVICE_MAX_MEM_ALLOC_SIZE; larger buffers: CL_INVALID_BUFFER_SIZE */
	_Atomic uint64_t cap;              /* live bytes above which a create fails for lack of memory */
	_Atomic uint64_t lazycap;          /* live bytes above which an enqueue fails for lack of memory */
	_Atomic uint32_t failcreates;      /* how many of the next creates fail */
	_Atomic int32_t createerror;       /* with this error */
	_Atomic uint32_t failenqueues;     /* the same for commands on memory */
	_Atomic int32_t enqueueerror;
	_Atomic uint32_t failmarkers;      /* 1: markers cannot be enqueued */
	_Atomic uint32_t quietfailures;    /* 1: nothing is called back when a command fails */
	_Atomic uint32_t countobjects;     /* 1: objects count in the references of their context */
	_Atomic uint32_t countcommands;    /* 1: queued commands count in the references of what they use */
	_Atomic uint32_t keepsqueues;      /* 1: memory keeps the queue of its last command, and counts there */
	_Atomic uint32_t anycontext;       /* 1: commands may use memory of any context */
	_Atomic uint32_t forgiving;        /* 1: dead handles are an error, as if each had been looked up */
	_Atomic uint32_t callbackthread;   /* 1: callbacks of events run on a thread of the driver's own */
	_Atomic uint32_t hasty;            /* 1: clFinish returns at once */
	_Atomic uint32_t rusticl;          /* 1: it waits only for the last command that it submits itself, and earlier ones say later that they have run */
	_Atomic uint32_t eager;            /* 1: asking about an event, markers and flushes complete what can be */
	_Atomic uint32_t lazyprofile;      /* 1: times of pending commands are 0, not an error */
	_Atomic uint32_t keepsarguments;   /* 1: kernels keep what is in their arguments, and it counts in its references */
	_Atomic uint32_t arginfo;          /* 1: arguments of kernels are described, as follows */
	_Atomic uint32_t argaddress[4], argtype[4], argaccess[4];
	_Atomic uint32_t clean;            /* 1: new memory is zero */
	_Atomic uint64_t constant;         /* CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE */
	_Atomic uint32_t alignbits;        /* CL_DEVICE_MEM_BASE_ADDR_ALIGN */
	_Atomic uint32_t nofinegrain;      /* 1: no shared virtual memory with fine grains */
	_Atomic uint32_t uuid;             /* 1: the device has a UUID and a PCI address */
	_Atomic uint32_t nofreequery;      /* 1: CL_DEVICE_GLOBAL_FREE_MEMORY_AMD is unknown */
	_Atomic uint32_t devices;          /* of each context */
	_Atomic uint32_t imagesofwholes;   /* 1: no images of sub-buffers; 2: such show the start of the whole */
	_Atomic uint32_t processor;        /* 1: a CPU, whose buffers lie in the host's memory that they are given; 2: in a copy of it */
	_Atomic uint32_t wrongparts;       /* enum fake_wrong: commands that take the start of the whole for that of a sub-buffer */
	_Atomic uint32_t copiesbeyond;     /* 1: copies from and to images may lie outside of a buffer */
	_Atomic uint32_t fragile;          /* 1: rectangles, copies to and from images and native kernels on sub-buffers abort */
	_Atomic uint32_t givesaccess;      /* 1: flags 0 are CL_MEM_READ_WRITE, and sub-buffers and images inherit it, as in PoCL 3.1 */
	_Atomic uint32_t countparts;       /* 1: sub-buffers and mappings count in the references of their buffer, mappings only there */
	_Atomic uint32_t earlyends;        /* 1: destructors are called when memory is released, though commands use it */
	_Atomic uint32_t runnative;        /* 1: native kernels run, when they are enqueued */
	_Atomic uint32_t failparts;        /* how many of the next sub-buffers fail */
	_Atomic(const char *) version;     /* CL_DEVICE_VERSION; NULL: 3.0 */
	_Atomic(const char *) driver;      /* CL_DRIVER_VERSION; NULL: 1.0 */
	_Atomic(void (*)(cl_mem)) beforerelease; /* called, without the lock, for each clReleaseMemObject */
	_Atomic(void (*)(void)) beforesetarg;    /* the same for each clSetKernelArg */
	_Atomic(void (*)(size_t)) aftercreate;   /* the same for each attempt to create a buffer, with its size when it failed, else 0 */
	_Atomic(void (*)(void *)) beforeread; /* called with the address for each clEnqueueReadBuffer */
	_Atomic(void (*)(void)) aftersubmit; /* called once: the next command is queued, its enqueue has not returned */
	/* Counters. */
	_Atomic uint64_t creates;          /* memory objects that the driver made, parts of others included */
	_Atomic uint64_t copies;           /* buffers made of the program's bytes */
	_Atomic uint64_t failed;           /* creates refused */
	_Atomic uint64_t releases;         /* clReleaseMemObject calls */
	_Atomic uint64_t livememory, livebytes, livecontexts, livequeues, liveevents, livekernels, livepointers;
	_Atomic uint64_t contexts;         /* made so far */
	_Atomic uint64_t commands;         /* enqueued, ours included */
	_Atomic uint64_t pending;          /* not yet complete */
	_Atomic uint64_t batch;            /* what the next command is submitted with */
	_Atomic uint64_t shown;             /* all commands of earlier ones say that they have run */
	_Atomic uint64_t finishes, flushes, waits, markers, barriers;
	_Atomic uint64_t setargs;          /* clSetKernelArg calls */
	_Atomic uint64_t arginfos;         /* clGetKernelArgInfo calls */
	_Atomic uint64_t queries;          /* clGetMemObjectInfo and clRetainMemObject calls */
	_Atomic uint64_t hazards;          /* commands that may run beside an earlier owner's on the same memory */
};
extern GMT_HOOK struct fake fake;

GMT_HOOK cl_device_id fake_device(void);
GMT_HOOK cl_program fake_program(void);
/* Completes up to count commands of a queue, oldest first; returns how many it could. */
GMT_HOOK unsigned fake_complete(cl_command_queue queue, unsigned count);
/* The same for all queues, also of those that the program has released. */
GMT_HOOK void fake_complete_all(void);
/* Completes the command of an event and what that depends on; false when a user event holds it up. */
GMT_HOOK bool fake_complete_event(cl_event event);
/* Ends a command with an error and without waiting for anything before it. */
GMT_HOOK void fake_fail_event(cl_event event, cl_int status);
/* Has a command fail when it comes to run. */
GMT_HOOK void fake_doom_event(cl_event event, cl_int status);
/* Fails all markers of a queue at once. */
GMT_HOOK unsigned fake_fail_markers(cl_command_queue queue, cl_int status);
/* Calls those back that want to know that a command runs. */
GMT_HOOK void fake_start_event(cl_event event);
/* The last release of an object without a hook. */
GMT_HOOK void fake_forget(void *object);
/* A queue made by a function without a hook. */
GMT_HOOK cl_command_queue fake_unseen_queue(cl_context context);
/* A command buffer uses memory from now on whenever it is enqueued; as with real ones, it does not keep it alive. */
GMT_HOOK void fake_record(cl_command_buffer_khr buffer, cl_mem memory);
/* The contents of the driver's own object. What nothing has been written to is FAKE_FRESH. */
#define FAKE_FRESH 0xcdu
GMT_HOOK const unsigned char *fake_contents(cl_mem memory);
/* The program has just been given memory: uses from here on belong to a new owner. */
GMT_HOOK void fake_hand_out(cl_mem memory);
/* Commands that use the shared memory at an address; whether there is none. */
GMT_HOOK uint32_t fake_pending_at(const void *address);
GMT_HOOK bool fake_is_freed(const void *address);
/* Bytes of the driver's own object. */
GMT_HOOK size_t fake_size(cl_mem memory);
GMT_HOOK cl_mem_flags fake_flags(cl_mem memory);

#endif
