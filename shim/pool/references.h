/*
 * references.h: when memory ends: with the program's last reference, or with the last sub-buffer or mapping that keeps it
 * after that.
 */
#ifndef GMT_REFERENCES_H
#define GMT_REFERENCES_H

#include "../base/call.h"
#include "../registry/memory.h"

/* The program's last reference has gone. */
cl_int gmt_references_end(struct gmt_call *call, struct gmt_memory *memory);
/* Drops a pin: of a sub-buffer, or of a mapping of a sub-allocation. */
void gmt_references_unpin(struct gmt_call *call, struct gmt_memory *memory);

#endif
