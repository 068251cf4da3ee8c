/* session.c: the state of the session. */
#define _GNU_SOURCE
#include "session.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>

struct gmt_session gmt_session;

static int filters = SECCOMP_MODE_DISABLED; /* mode when we were loaded */

__attribute__((constructor)) static void note_seccomp_filters(void)
{
	filters = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
}

bool gmt_session_seccomp_installed(void)
{
	return filters == SECCOMP_MODE_DISABLED && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
}

void gmt_session_make_quiet(void)
{
	atomic_store(&gmt_session.quiet, 1);
	atomic_store(&gmt_session.pooling, 0);
}

bool gmt_session_is_quiet(void)
{
	return atomic_load(&gmt_session.quiet);
}
