/* room.h: a call waits for room, and says why it found none. */
#ifndef GMT_SPILL_ROOM_H
#define GMT_SPILL_ROOM_H

#include "request.h"

/* Pins what a command uses, though others must go first. */
cl_int gmt_spill_begin_slowly(struct gmt_spill_command *command);
/* Whether a call that failed with status is worth another try: something has made room for it. */
bool gmt_spill_relieve(cl_int status);
/* Says why a command found no room, where begin did not. */
void gmt_spill_explain_shortage(const struct gmt_spill_command *command);
/* For budget.h: one object goes to the host. False: none can. */
bool gmt_spill_evict_any(void);

#define GMT_SPILL_TRY(err, call)                                                                                       \
	do {                                                                                                           \
		(err) = (call);                                                                                        \
	} while (gmt_unlikely((err) != CL_SUCCESS) && gmt_spill_relieve(err))

#endif
