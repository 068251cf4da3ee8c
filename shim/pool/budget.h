/*
 * budget.h: how much memory there is. --device-memory is a smaller device: creates fail once the process holds as
 * much memory of the driver as the session allows, and device queries report that size. Memory counts from its create until its
 * release reaches the driver.
 *
 * Where devices use the memory of the host, no create fails: the kernel kills the process when it uses memory that there is not.
 * So before the driver makes more memory, the pool gives back what exceeds the room of the machine and the control groups.
 */
#ifndef GMT_BUDGET_H
#define GMT_BUDGET_H

#include "../base/opencl.h"

/* Takes bytes from the budget. It moves other buffers to the host with --spill if need be. False: bytes do not fit. */
bool gmt_budget_take(uint64_t bytes);
/* The same, but moves no buffer to the host. */
bool gmt_budget_take_now(uint64_t bytes);
/* Gives memory of the device back, at least one object; false: there was none. NULL without --spill. */
extern bool (*gmt_budget_spill)(void);
/* Whether a buffer is virtual (--spill): its bytes count while it has memory of the driver, not while the program holds it. */
bool gmt_budget_is_virtual(cl_mem_flags flags, const void *properties);
/* The bytes that were taken and not given back. */
uint64_t gmt_budget_taken(void);
void gmt_budget_give_back(uint64_t bytes);
/* How many bytes must go back before bytes more fit; 0 if they fit, or without a budget. */
uint64_t gmt_budget_missing_bytes(uint64_t bytes);
/*
 * Whether bytes would fit if the driver held none of the excess that the pool has, and the device had what is hosted. memory:
 * bytes of the device, 0: unknown.
 */
bool gmt_budget_fits_without(uint64_t excess, uint64_t bytes, uint64_t memory);
/* Whether a device has memory of its own. */
bool gmt_budget_is_discrete(cl_device_id device);
/* A device uses the memory of the host. */
void gmt_budget_note_host_memory(void);
/*
 * A thread that reads how much memory is left when a create asks it to. It has a descriptor table of its own, because the program
 * may close all of its descriptors at any time. Before Linux 5.9 there is none: the thread ends, and the pool keeps all blocks.
 */
void *gmt_budget_run_looker(void *unused);
/* How many bytes should go back before the driver makes bytes more, as the host has no room for both. */
uint64_t gmt_budget_crowded_bytes(uint64_t bytes);
/* bytes, but no more than the budget. */
cl_ulong gmt_budget_cap(cl_ulong bytes);
/* The bytes of a device with global bytes, or of the budget if that is smaller, that the process has left free. Only with answerfree. */
cl_ulong gmt_budget_free_bytes(cl_ulong global);
/* bytes, but no more than what is left of the budget. */
cl_ulong gmt_budget_left_bytes(cl_ulong bytes);

#endif
