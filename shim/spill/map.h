/* map.h: mappings. */
#ifndef GMT_SPILL_MAP_H
#define GMT_SPILL_MAP_H

#include "context.h"

void gmt_spill_override_map_commands(struct gmt_functions *over);

#endif
