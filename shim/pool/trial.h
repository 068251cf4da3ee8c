/* trial.h: whether sub-allocations may serve a context, found out by trying what its driver does with sub-buffers. */
#ifndef GMT_TRIAL_H
#define GMT_TRIAL_H

#include "../registry/objects.h"

/*
 * False if commands on sub-buffers reach other memory than theirs, or if the program can create images and the driver cannot create
 * images of sub-allocations. Sets the fields of context that hold the outcome.
 */
bool gmt_trial(struct gmt_context *context);

#endif
