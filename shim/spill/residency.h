/*
 * residency.h: which objects have a real one. A call of the program pins what it uses until its command is enqueued; from
 * then on the command counts as a use, and the object stays until the command has completed.
 */
#ifndef GMT_SPILL_RESIDENCY_H
#define GMT_SPILL_RESIDENCY_H

#include "hold.h"
#include "pin.h"
#include "room.h"

/* Gives the objects real ones and pins them. The uses stay valid until the end. */
cl_int gmt_spill_begin_command(struct gmt_spill_command *command);
/* The same; where they do not fit, it returns refused instead, unless that is CL_SUCCESS. */
cl_int gmt_spill_begin_or_refuse(struct gmt_spill_command *command, cl_int refused);
/* The call has returned. */
void gmt_spill_end_command(struct gmt_spill_command *command, cl_int status);

/* The same for a call that is no command. */
cl_int gmt_spill_pin(struct gmt_spill_object *object, const char *name);
/* The contents of an object that has no real one, from the host's copy; false: it has one, or there are none. */
bool gmt_spill_host_bytes(struct gmt_spill_object *object, size_t offset, size_t size, void *to);
/* It stays where it is from now on. */
void gmt_spill_fix_on_device(struct gmt_spill_object *object);

/* Puts the dummy of the object's context there; NULL if there is none. */
cl_mem gmt_spill_dummy(const struct gmt_spill_object *object);

#endif
