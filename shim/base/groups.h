/* groups.h: what the machine, the control groups of this process and those above them still allow. */
#ifndef GMT_GROUPS_H
#define GMT_GROUPS_H

#include <stdint.h>

#define GMT_NO_LIMIT UINT64_MAX

/* The least that a limit leaves, or GMT_NO_LIMIT. What a group is above its limit counts as 0. */
uint64_t gmt_groups_leave_threads(void);
/* In bytes. Cached files count as free. */
uint64_t gmt_groups_leave_memory(void);
/* The same of the whole machine. */
uint64_t gmt_groups_machine_leaves(void);

#endif
