/* foreign.h: programs that cannot load our library. */
#ifndef GMT_FOREIGN_H
#define GMT_FOREIGN_H

#include <stdbool.h>

/* Whether a program, or a script's interpreter, is for another machine or C library than ours; false if unknown. */
bool gmt_is_foreign(const char *program);

#endif
