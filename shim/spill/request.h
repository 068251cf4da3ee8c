/* request.h: a call of the program that enqueues a command on virtual objects. */
#ifndef GMT_SPILL_REQUEST_H
#define GMT_SPILL_REQUEST_H

#include "object.h"
#include "queue.h"

/* What a command does with an object. */
struct gmt_spill_use {
	struct gmt_spill_object *object;
	bool writes;
};

/* A call that enqueues a command. */
struct gmt_spill_command {
	const char *name; /* of the function */
	cl_kernel kernel; /* or NULL */
	struct gmt_spill_queue *queue; /* NULL: unknown */
	cl_command_queue handle;
	bool native;
	bool may_split; /* it has another way if its objects do not fit at once */
	uint32_t count;
	struct gmt_spill_use *uses;
};

#endif
