/* sentence.h: what --spill has to say. */
#ifndef GMT_SPILL_SENTENCE_H
#define GMT_SPILL_SENTENCE_H

#include "choose.h"
#include "request.h"

/* The objects of one command, NULL: of a create, do not fit beside what cannot go. */
void gmt_spill_say_short(const struct gmt_spill_command *command, const struct gmt_spill_account *account);

#endif
