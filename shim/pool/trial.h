/* trial.h: whether sub-allocations may serve a context, found out by trying what its driver does with sub-buffers. */
#ifndef GMT_TRIAL_H
#define GMT_TRIAL_H

#include "../registry/objects.h"

/* False if images of sub-buffers fail, and the program can create images. */
bool gmt_trial_images(struct gmt_context *context);
/* False if commands on sub-buffers reach other memory than theirs. */
bool gmt_trial_parts(struct gmt_context *context);

#endif
