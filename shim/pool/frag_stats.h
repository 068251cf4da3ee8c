/* frag_stats.h: how free memory lies in slabs, as the policy sees it. */
#ifndef GMT_FRAG_STATS_H
#define GMT_FRAG_STATS_H

#include "../base/opencl.h"

/* Writes a GAUGE event; without now, only if the latest one is older than a millisecond. time: ns */
void gmt_frag_stats_write(uint64_t time, bool now);
/* The process ends. */
void gmt_frag_stats_end(void);

#endif
