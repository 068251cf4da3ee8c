/* session.c: the state of the session. */
#define _GNU_SOURCE
#include "session.h"

struct gmt_session gmt_session;

void gmt_session_quiet(void)
{
	atomic_store(&gmt_session.quiet, 1);
	atomic_store(&gmt_session.pooling, 0);
}

bool gmt_session_is_quiet(void)
{
	return atomic_load(&gmt_session.quiet);
}
