/* preload.h: see preload.c. */
#ifndef GMT_PRELOAD_H
#define GMT_PRELOAD_H

/* At the end of the process: reports libraries whose calls we could not see. */
void gmt_preload_report_at_end(void);

#endif
