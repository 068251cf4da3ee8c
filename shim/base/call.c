/* call.c: the clock and the guard. */
#define _GNU_SOURCE
#include "call.h"

#include <time.h>

__thread int gmt_inside __attribute__((tls_model("initial-exec")));
__thread int gmt_in_callback __attribute__((tls_model("initial-exec")));

uint64_t gmt_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
