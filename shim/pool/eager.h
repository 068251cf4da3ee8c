/* eager.h: --eager: the driver gives memory its room on the devices when the program creates it, not at the first use. */
#ifndef GMT_EAGER_H
#define GMT_EAGER_H

#include "../registry/objects.h"

/*
 * Migrates new memory to each device of its context, and waits. Contents stay. False if a device has no room: *error says
 * so and the driver has released the memory. Without --eager it does nothing.
 */
bool gmt_eager_migrate(struct gmt_context *context, cl_mem handle, cl_int *error);

#endif
