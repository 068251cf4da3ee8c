/* groups.h: how much the machine and the limits of this process's control groups, and of those above them, leave. */
#ifndef GMT_GROUPS_H
#define GMT_GROUPS_H

#include <stdint.h>

#define GMT_NO_LIMIT UINT64_MAX

/* The least number of threads that a limit leaves, or GMT_NO_LIMIT. A group above its limit leaves 0. */
uint64_t gmt_groups_leave_threads(void);
/* The same for bytes of memory. Cached files count as free. */
uint64_t gmt_groups_leave_memory(void);
/* The same for the whole machine's memory. */
uint64_t gmt_groups_machine_leaves(void);

#endif
