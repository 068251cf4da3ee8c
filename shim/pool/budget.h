/*
 * budget.h: how much memory there is. --device-memory is a smaller device: creates fail once the process holds as
 * much memory of the driver as the session allows, and device queries report that size. Memory counts from its create until its
 * release reaches the driver.
 *
 * Where devices use the memory of the host, no create fails: the kernel kills the process when it uses that memory. So the pool
 * gives back what the machine and the control groups have no room for before the driver makes more.
 */
#ifndef GMT_BUDGET_H
#define GMT_BUDGET_H

#include "../base/opencl.h"

/* False if bytes no longer fit, whatever goes to host memory for them. */
bool gmt_budget_take(uint64_t bytes);
/* The same as it is now. */
bool gmt_budget_take_now(uint64_t bytes);
/* Gives memory of the device back, at least one object; false: there was none. NULL without --spill. */
extern bool (*gmt_budget_spill)(void);
/* Whether a buffer is virtual: what it holds counts where the driver makes and releases it, not when the program does. */
bool gmt_budget_is_virtual(cl_mem_flags flags, const void *properties);
/* All that was taken and not given back. */
uint64_t gmt_budget_taken(void);
void gmt_budget_give(uint64_t bytes);
/* How many bytes must go back before bytes more fit; 0 if they fit, or without a budget. */
uint64_t gmt_budget_lacks(uint64_t bytes);
/*
 * Whether bytes would fit if the driver held none of the excess that the pool has, and the device had what is hosted. memory:
 * bytes of the device, 0: unknown.
 */
bool gmt_budget_fits_without(uint64_t excess, uint64_t bytes, uint64_t memory);
/* Whether a device has memory of its own. */
bool gmt_budget_is_discrete(cl_device_id device);
/* A device uses the memory of the host. */
void gmt_budget_is_host(void);
/*
 * A thread that looks, when a create asks it to, how much memory is left. It has descriptors of its own: the program may close
 * all of its threads' at any time. It ends where the kernel cannot give it any (before Linux 5.9): then the pool keeps all.
 */
void *gmt_budget_looks(void *unused);
/* How many bytes should go back before the driver makes bytes more, as the host has no room for both. */
uint64_t gmt_budget_crowded(uint64_t bytes);
/* bytes, but no more than the budget. */
cl_ulong gmt_budget_cap(cl_ulong bytes);
/* What the process leaves of a device with global bytes, or of the budget if that is less. Counts only if asked to answer. */
cl_ulong gmt_budget_free(cl_ulong global);
/* bytes, but no more than what is left of the budget. */
cl_ulong gmt_budget_left(cl_ulong bytes);

#endif
