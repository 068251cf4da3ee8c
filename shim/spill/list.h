/* list.h: commands with lists of memory objects. */
#ifndef GMT_SPILL_LIST_H
#define GMT_SPILL_LIST_H

#include "context.h"

void gmt_spill_override_list_commands(struct gmt_functions *over);

#endif
