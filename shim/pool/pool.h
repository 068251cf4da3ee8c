/* pool.h: serves creates. */
#ifndef GMT_POOL_H
#define GMT_POOL_H

#include "../registry/created.h"
#include "driver_create.h"

/* Serves an eligible request (gmt_plan_eligible) from the pool or the driver. The caller sets served to the values of a failure. */
void gmt_pool_create(struct gmt_call *call, const struct gmt_request_for *r, struct gmt_served *served, cl_int *error);

#endif
