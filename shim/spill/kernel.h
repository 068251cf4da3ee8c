/* kernel.h: kernels: their arguments that are virtual objects, and the commands that run them. */
#ifndef GMT_SPILL_KERNEL_H
#define GMT_SPILL_KERNEL_H

#include "context.h"

void gmt_spill_override_kernels(struct gmt_functions *over);

#endif
