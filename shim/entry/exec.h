/* exec.h: see exec.c. */
#ifndef GMT_EXEC_H
#define GMT_EXEC_H

/* Our hook for a function that starts programs, given that of the C library; NULL for any other. */
void *gmt_exec_named(const char *name, void *real);

#endif
