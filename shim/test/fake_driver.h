/*
 * fake_driver.h: an OpenCL library without a device, for the tests of the shim.
 *
 * Commands complete only when the program waits for them or a test says so. Objects are counted as the specification
 * wants, freed handles are poisoned and handed out again at once, last in first out, and whatever a correct shim
 * never does (releasing twice, using a dead handle) aborts the process. Tests set the knobs and read the counters.
 */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include "../shim.h"

struct fake {
	/* Knobs. Sizes in bytes; 0 switches one off, except largest. */
	_Atomic uint64_t largest;          /* CL_DEVICE_MAX_MEM_ALLOC_SIZE; larger buffers: CL_INVALID_BUFFER_SIZE */
	_Atomic uint64_t cap;              /* live bytes above which a create fails for want of memory */
	_Atomic uint64_t lazycap;          /* live bytes above which an enqueue fails for want of memory */
	_Atomic uint32_t failcreates;      /* so many of the next creates fail */
	_Atomic int32_t createerror;       /* with this error */
	_Atomic uint32_t failenqueues;     /* the same for commands on memory */
	_Atomic int32_t enqueueerror;
	_Atomic uint32_t failmarkers;      /* 1: markers cannot be enqueued */
	/* Counters. */
	_Atomic uint64_t creates;          /* memory objects that the driver made, parts of others included */
	_Atomic uint64_t failed;           /* creates refused */
	_Atomic uint64_t releases;         /* clReleaseMemObject calls */
	_Atomic uint64_t livememory, livebytes, livecontexts, livequeues, liveevents, livekernels, livepointers;
	_Atomic uint64_t commands;         /* enqueued, ours included */
	_Atomic uint64_t pending;          /* not yet complete */
	_Atomic uint64_t finishes, flushes, waits, markers, barriers;
	_Atomic uint64_t hazards;          /* commands that may run beside an earlier owner's on the same memory */
};
extern GMT_HOOK struct fake fake;

GMT_HOOK cl_device_id fake_device(void);
GMT_HOOK cl_program fake_program(void);
/* Completes up to count commands of a queue, oldest first; returns how many it could. */
GMT_HOOK unsigned fake_complete(cl_command_queue queue, unsigned count);
/* The same for all queues, also of those that the program has released. */
GMT_HOOK void fake_complete_all(void);
/* The program has just been given memory: uses from here on belong to a new owner. */
GMT_HOOK void fake_hand_out(cl_mem memory);
/* Bytes of the driver's own object. */
GMT_HOOK size_t fake_size(cl_mem memory);

#endif
