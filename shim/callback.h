/*
 * callback.h: functions of the program that the driver calls. One may run inside a call of the program, on its
 * thread: what it calls is the program's, so the guard is lifted meanwhile.
 */
#ifndef GMT_CALLBACK_H
#define GMT_CALLBACK_H

#include "shim.h"

struct gmt_callback {
	int inside, barred;
};

static inline struct gmt_callback gmt_callback_begin(void)
{
	struct gmt_callback before = {gmt_inside, gmt_barred};
	gmt_inside = 0;
	gmt_barred = 1;
	return before;
}

static inline void gmt_callback_end(struct gmt_callback before)
{
	gmt_inside = before.inside;
	gmt_barred = before.barred;
}

#endif
