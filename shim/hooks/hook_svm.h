/* hook_svm.h: what shared virtual memory and unified shared memory have in common. */
#ifndef GMT_HOOK_SVM_H
#define GMT_HOOK_SVM_H

#include "../../internal/wire/event.h"
#include "../base/call.h"

/* Registers and reports an allocation; pointer: NULL if it failed. */
void gmt_pointer_allocated(struct gmt_call *call, const struct gmt_caller *caller, enum gmtmemory kind, cl_context context, size_t size,
			   void *pointer, cl_int error);
/* To be called before the driver can hand out the pointer again. */
void gmt_pointer_freed(const struct gmt_call *call, void *pointer);

#endif
