/* pin.h: making real objects, and pins, which keep them. */
#ifndef GMT_SPILL_PIN_H
#define GMT_SPILL_PIN_H

#include "evict.h"

/* Only if it has a real one now. */
bool gmt_spill_pin_now(struct gmt_spill_object *object, bool writes);
void gmt_spill_unpin(struct gmt_spill_object *object);
/* All that a command uses or nothing, under the residency lock; patience says how it ended. */
cl_int gmt_spill_pin_all(struct gmt_spill_command *command, struct gmt_spill_patience *patience);
/* The first count of them. */
void gmt_spill_unpin_all(const struct gmt_spill_command *command, uint32_t count);

#endif
