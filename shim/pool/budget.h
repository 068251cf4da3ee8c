/*
 * budget.h: --device-memory, a smaller device. Creates fail once the process holds as much memory of the driver as the
 * session allows, and device queries report that size. Memory counts from its create until its release reaches the driver.
 */
#ifndef GMT_BUDGET_H
#define GMT_BUDGET_H

#include "../base/opencl.h"

/* False if bytes do not fit any more. */
bool gmt_budget_take(uint64_t bytes);
void gmt_budget_give(uint64_t bytes);
/* How many bytes must go back before bytes more fit; 0 if they fit, or without a budget. */
uint64_t gmt_budget_lacks(uint64_t bytes);
/* bytes, but no more than the budget. */
cl_ulong gmt_budget_cap(cl_ulong bytes);

#endif
