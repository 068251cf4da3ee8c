/* oom.h: retries calls of the program that run out of device memory. */
#ifndef GMT_OOM_H
#define GMT_OOM_H

#include "evict.h"

/* One call of the program, from before its first attempt on. */
struct gmt_shortage {
	uint64_t seen;   /* gmt_given_back before the latest attempt */
	uint64_t given;  /* bytes given back for this call */
	uint32_t others; /* how often it tried again because of what other threads did */
	uint32_t asked;  /* how often other programs were asked */
};

static inline struct gmt_shortage gmt_shortage(void)
{
	return (struct gmt_shortage){.seen = atomic_load_explicit(&gmt_given_back, memory_order_relaxed)};
}

/* Whether a call that failed may have found no memory. */
bool gmt_out_of_memory(cl_int error);
/* Before the driver makes need bytes of host memory: the pool gives back as much as the host has too little room. */
void gmt_oom_forestall(uint64_t need);

/* The attempt failed; need: bytes that it asked for, 0 if unknown. True: there may be room now. */
bool gmt_oom_drain(struct gmt_shortage *shortage, cl_int error, uint64_t need);

#endif
