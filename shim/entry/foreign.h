/* foreign.h: programs that cannot load our library. */
#ifndef GMT_FOREIGN_H
#define GMT_FOREIGN_H

#include <stdbool.h>

/* Whether a program, or what runs it if it is a script, is for another machine or C library than ours; false if that is not known. */
bool gmt_is_foreign(const char *program);

#endif
