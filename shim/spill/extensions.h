/* extensions.h: extensions whose functions --spill does not serve, and the lists that must not have them. */
#ifndef GMT_SPILL_EXTENSIONS_H
#define GMT_SPILL_EXTENSIONS_H

#include "context.h"

/* Functions that name extensions, and queries that list them. */
void gmt_spill_override_extensions(struct gmt_functions *over);

#endif
