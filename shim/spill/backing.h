/* backing.h: memory on the host for the contents of what left the device. */
#ifndef GMT_SPILL_BACKING_H
#define GMT_SPILL_BACKING_H

#include "object.h"

/* Room for size bytes, for free(); NULL: there is none. */
void *gmt_spill_backing_new(size_t size);
/* Room for all that root holds, in root->host. False: there is none. Under the residency lock. */
bool gmt_spill_backing_take(struct gmt_spill_object *root);

#endif
