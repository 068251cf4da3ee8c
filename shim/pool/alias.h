/*
 * alias.h: images of sub-allocations on drivers that make none of sub-buffers. A slab lies in a store, memory of the host that
 * is ours, and an image shows an alias: a second buffer over a sub-allocation's bytes. The trial has shown that both show the
 * same at any time (trial.c).
 */
#ifndef GMT_ALIAS_H
#define GMT_ALIAS_H

#include "../registry/memory.h"

/* A store of size bytes. flags, the program's, become those of buffers over it, and host its address. NULL: memory is short. */
struct gmt_store *gmt_store_new(struct gmt_context *context, size_t size, cl_mem_flags *flags, void **host);
/* slab lies in the store from now on. False: there is none, or its end would not be reported; then neither is left. */
bool gmt_store_serves(struct gmt_store *store, cl_mem slab);
/* The alias of a sub-allocation in a store; NULL: the driver made none. */
cl_mem gmt_alias_of(struct gmt_memory *memory);
/* A sub-allocation is about to leave the registry. */
void gmt_alias_end(struct gmt_memory *memory);

#endif
