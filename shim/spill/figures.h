/* figures.h: what --spill has where now, and the records of its moves. */
#ifndef GMT_SPILL_FIGURES_H
#define GMT_SPILL_FIGURES_H

#include "../../internal/wire/event.h"
#include "request.h"

struct gmt_spill_figures {
	_Atomic uint64_t resident, spilled; /* bytes now: with a real object, and whose contents only the host has */
};
extern struct gmt_spill_figures gmt_spill_figures;

/* Records what has just happened to root, since start. Under the residency lock, so that the figures follow each other. */
void gmt_spill_record(enum gmtspill what, struct gmt_spill_object *root, uint64_t start);
/* Records that a call has waited since start; command: what for, or NULL. */
void gmt_spill_record_stall(const struct gmt_spill_command *command, uint64_t start);
/* Bytes of all that a command uses. */
uint64_t gmt_spill_needed_bytes(const struct gmt_spill_command *command);

#endif
