/* created.h: what follows a create call: the entry of its memory and its CREATE event. */
#ifndef GMT_CREATED_H
#define GMT_CREATED_H

#include "../base/call.h"
#include "../../internal/wire/event.h"
#include "memory.h"

/* How the pool or the driver served the request. */
struct gmt_served {
	cl_mem handle;
	uint64_t block, granted, offset;
	struct gmt_memory *slab; /* of a sub-allocation, which pins it; else NULL */
	enum gmtoutcome outcome;
	uint8_t reason, route; /* enum gmtmiss, enum gmtroute */
	int16_t shape; /* of the request's class, see event.h */
	bool written; /* the block has the contents that the program asked for */
	bool hosted;  /* see struct gmt_memory */
	bool virtual; /* a handle of ours (--spill): the buffers that hold its bytes count in the budget instead */
	bool alone;   /* no sub-allocation could have served the request */
	bool again;   /* a sub-allocation that was parked and kept its entry */
};

struct gmt_created {
	cl_mem handle; /* NULL: the call failed. Shared memory: its address */
	enum gmtmemory kind;
	struct gmt_context *context;
	uint64_t size;
	cl_mem_flags flags;
	size_t element; /* bytes of one element of an image, 0 if unknown */
	uint32_t tag;
	struct gmt_memory *parent;
	bool off_page; /* see event.h */
	struct gmt_served served;
};

/* Adds or renews the entry; NULL if the call failed or memory is short. */
struct gmt_memory *gmt_created_register(const struct gmt_created *created);
/* Writes the CREATE event; memory: what gmt_created_register returned. */
void gmt_created_write_event(const struct gmt_call *call, const struct gmt_created *created, const struct gmt_memory *memory, cl_int status);
/* Does both, for memory that is no sub-allocation. */
void gmt_created_register_and_write(const struct gmt_call *call, const struct gmt_created *created, cl_int status);

#endif
