/*
 * alias.h: images of sub-allocations on drivers that make none of sub-buffers. A slab lies in a store, memory of the host that
 * is ours, and an image shows an alias: a second buffer over a sub-allocation's bytes. The trial has shown that both show the
 * same at any time (trial.c).
 */
#ifndef GMT_ALIAS_H
#define GMT_ALIAS_H

#include "../registry/memory.h"

/* A store of size bytes. It sets *flags, the program's, to those of buffers over the store, and *host to its address. NULL: memory is short. */
struct gmt_store *gmt_store_new(struct gmt_context *context, size_t size, cl_mem_flags *flags, void **host);
/* slab lies in the store from now on. False: slab is NULL, or the driver cannot report its end; then both have been released. */
bool gmt_store_serves(struct gmt_store *store, cl_mem slab);
/* The alias of a sub-allocation in a store; NULL: the driver made none. */
cl_mem gmt_alias_of(struct gmt_memory *memory);
/* A sub-allocation is about to leave the registry. */
void gmt_alias_end(struct gmt_memory *memory);

#endif
