/* finding.h: mistakes of the program, each written as a DIAG event. function: the OpenCL function that it called. */
#ifndef GMT_FINDING_H
#define GMT_FINDING_H

#include "../../internal/wire/event.h"
#include "memory.h"

void gmt_finding(enum gmtdiag code, const char *function, const struct gmt_memory *memory, cl_int status);
void gmt_finding_kernel(enum gmtdiag code, const char *function, const struct gmt_memory *memory, uint64_t kernel);
/* Whether a handle without an entry was freed recently; writes the finding. */
bool gmt_finding_freed_handle(enum gmtdiag code, const char *function, const void *handle);
/* Writes that a call with an unknown handle, which was not freed recently, failed. */
void gmt_finding_unknown_memory(const char *function, cl_int status);
/* Writes that a command failed, if its status may mean that memory ran out. memory: NULL, kernel: 0 where there is none. */
void gmt_finding_out_of_memory(const char *function, const struct gmt_memory *memory, uint64_t kernel, cl_int status);
/* Writes that a call that creates no memory failed. tag: of its call site, 0: unknown. */
void gmt_finding_call_failed(const char *function, uint32_t tag, cl_int status);
/* Whether the program has released memory and the pool has it, so that the call must fail; writes the finding. */
bool gmt_finding_released(const struct gmt_memory *memory, const char *function);

#endif
