/* created.h: a create call that has returned: its entry in the registry and its CREATE event. */
#ifndef GMT_CREATED_H
#define GMT_CREATED_H

#include "../base/call.h"
#include "../../internal/wire/event.h"
#include "memory.h"

/* How the pool or the driver served the request. */
struct gmt_served {
	cl_mem handle;
	uint64_t block, granted, offset;
	struct gmt_memory *slab; /* of a sub-allocation, which holds a pin of it; else NULL */
	enum gmtoutcome outcome;
	uint8_t reason, route; /* enum gmtmiss, enum gmtroute */
	int16_t shape; /* of its class, see event.h */
	bool written; /* the contents are what the program asked for */
	bool hosted;  /* see struct gmt_memory */
	bool virtual; /* its memory comes and goes behind it, and counts against the budget there */
	bool alone;   /* no sub-allocation could have served the request */
	bool again;   /* a sub-allocation that was parked, and has its entry */
};

struct gmt_created {
	cl_mem handle; /* NULL: it failed. Shared memory: the pointer */
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

/* Registers it; NULL if it failed or memory is short. */
struct gmt_memory *gmt_created_enter(const struct gmt_created *created);
/* Writes the CREATE event; memory: what gmt_created_enter returned. */
void gmt_created_write(const struct gmt_call *call, const struct gmt_created *created, const struct gmt_memory *memory, cl_int status);
/* Both, for memory that is no sub-allocation. */
void gmt_created_report(const struct gmt_call *call, const struct gmt_created *created, cl_int status);

#endif
