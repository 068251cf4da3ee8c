/* info.h: queries of memory. */
#ifndef GMT_SPILL_INFO_H
#define GMT_SPILL_INFO_H

#include "context.h"

void gmt_spill_override_info(struct gmt_functions *over);

#endif
