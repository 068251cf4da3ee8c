/* spill.h: --spill, memory objects that are larger together than the device. Its functions lie between hooks and driver. */
#ifndef GMT_SPILL_H
#define GMT_SPILL_H

#include "../base/opencl.h"

/* Puts the functions over the driver's, if the session wants it. Before the first hook goes on. */
void gmt_spill_start(void);

#endif
