/* identity.h: what distinguishes a device from others. */
#ifndef GMT_IDENTITY_H
#define GMT_IDENTITY_H

#include "../base/opencl.h"

/* Writes the identity of a device as text, which is the same in all processes unless it begins with "local". Returns its length. */
size_t gmt_identity_of_device(cl_device_id device, char *text, size_t room);

#endif
