/* finding.h: mistakes of the program, each written as a DIAG event. function: the OpenCL function that it called. */
#ifndef GMT_FINDING_H
#define GMT_FINDING_H

#include "../../internal/wire/event.h"
#include "memory.h"

void gmt_finding(enum gmtdiag code, const char *function, const struct gmt_memory *memory, cl_int status);
void gmt_finding_kernel(enum gmtdiag code, const char *function, const struct gmt_memory *memory, uint64_t kernel);
/* For a handle without an entry: true, and a finding, if it was freed recently. */
bool gmt_finding_freed_handle(enum gmtdiag code, const char *function, const void *handle);
/* The handle is not a recently freed one either, and the call failed. */
void gmt_finding_unknown(const char *function, cl_int status);
/* A command failed. Written if the status may mean that memory ran out. memory: NULL, kernel: 0 where there is none. */
void gmt_finding_out_of_memory(const char *function, const struct gmt_memory *memory, uint64_t kernel, cl_int status);
/* A call failed that makes no memory. tag: of its call site, 0: unknown. */
void gmt_finding_call_failed(const char *function, uint32_t tag, cl_int status);
/* True, and a finding, if the program has released memory and the pool has it: the call must fail. */
bool gmt_finding_released(const struct gmt_memory *memory, const char *function);

#endif
