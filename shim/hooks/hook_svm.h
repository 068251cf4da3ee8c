/* hook_svm.h: what hooks of shared virtual memory and unified shared memory share. */
#ifndef GMT_HOOK_SVM_H
#define GMT_HOOK_SVM_H

#include "../pool/driver_create.h"
#include "command.h"

/* Serves, registers and reports an allocation of size bytes, and leaves the hook; NULL if it failed. */
void *gmt_pointer_create(struct gmt_call *call, const struct gmt_caller *caller, struct gmt_pointer_call *p, size_t size, cl_int *error);
/*
 * Handles the program's call of function that frees an address; waits: the function waits for commands that use it. False:
 * the caller must have the driver free it, which may reuse the address from then on.
 */
bool gmt_pointer_free(struct gmt_call *call, void *pointer, const char *function, bool waits);
/*
 * Notes that a buffer or image gets its bytes at host. If that is shared memory, the driver may remember the buffer, so the
 * block is not reused. False: size exceeds what the program has allocated there, which the driver cannot know.
 */
bool gmt_pointer_is_host(const void *host, size_t size);
/*
 * The size to give to the driver for a command that does not write: a range that ends beyond the program's allocation must end
 * beyond the driver's, too. Commands that write keep their size, since a larger one would write into the rest of the block.
 */
size_t gmt_pointer_bytes(const struct gmt_memory *memory, const void *pointer, size_t size);

#endif
