/* hook_svm.h: what shared virtual memory and unified shared memory have in common. */
#ifndef GMT_HOOK_SVM_H
#define GMT_HOOK_SVM_H

#include "../pool/driver_create.h"
#include "command.h"

/* Serves, registers and reports an allocation of size bytes, and leaves the hook; NULL if it failed. */
void *gmt_pointer_create(struct gmt_call *call, const struct gmt_caller *caller, struct gmt_pointer_call *p, size_t size, cl_int *error);
/*
 * The program frees an address with function; waits: once no command uses it. False: the driver is to do it, and can
 * hand out the address from then on.
 */
bool gmt_pointer_freed(struct gmt_call *call, void *pointer, const char *function, bool waits);
/*
 * A buffer or image is to have its bytes at host. In shared memory the driver may keep track of that, so its block is not
 * handed out again. False: size is more than the program has allocated there, but the driver could not know.
 */
bool gmt_pointer_is_host(const void *host, size_t size);
/*
 * The size to give to a command that leaves the bytes as they are: what lies beyond the program's allocation must lie beyond
 * the driver's. Commands that write must not write more; beyond the allocation they reach the rest of its block.
 */
size_t gmt_pointer_bytes(const struct gmt_memory *memory, const void *pointer, size_t size);

#endif
