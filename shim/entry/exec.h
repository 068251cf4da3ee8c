/* exec.h: see exec.c. */
#ifndef GMT_EXEC_H
#define GMT_EXEC_H

/* Our hook for a function of the C library that starts programs; NULL for any other function. */
void *gmt_exec_hook_named(const char *name, void *real);

#endif
