/* gate.h: commands that use no virtual object. */
#ifndef GMT_SPILL_GATE_H
#define GMT_SPILL_GATE_H

#include "../base/dispatch.h"

void gmt_spill_override_gates(struct gmt_functions *over);

#endif
