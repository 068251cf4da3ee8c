/* command.h: commands that read, write, fill and copy buffers. */
#ifndef GMT_SPILL_COMMAND_H
#define GMT_SPILL_COMMAND_H

#include "../base/dispatch.h"

void gmt_spill_override_buffer_commands(struct gmt_functions *over);

#endif
