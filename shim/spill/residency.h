/*
 * residency.h: which objects have a real one. A call of the program pins what it uses until its command is enqueued; from
 * then on the command counts as a use, and the object stays until the command has completed.
 *
 * One lock guards all that makes or takes away real objects. It is held while contents move, but not while a call waits
 * for others, and never waited for by a release or for long by a callback.
 */
#ifndef GMT_SPILL_RESIDENCY_H
#define GMT_SPILL_RESIDENCY_H

#include "request.h"

/* Gives the objects real ones and pins them. The uses stay valid until the end. */
cl_int gmt_spill_begin(struct gmt_spill_command *command);
/* The same; where they do not fit, it returns refused instead, unless that is CL_SUCCESS. */
cl_int gmt_spill_begin_or(struct gmt_spill_command *command, cl_int refused);
/* The call has returned. */
void gmt_spill_end(struct gmt_spill_command *command, cl_int status);
/* Says why a command found no room, where begin did not. */
void gmt_spill_explain(const struct gmt_spill_command *command);
/* Whether a call that failed with status is worth another try: something has made room for it. */
bool gmt_spill_relieve(cl_int status);

/* The same for a call that is no command. */
cl_int gmt_spill_pin(struct gmt_spill_object *object, const char *name);
/* Only if it has a real one now. */
bool gmt_spill_pin_now(struct gmt_spill_object *object, bool writes);
void gmt_spill_unpin(struct gmt_spill_object *object);
/* The contents of an object that has no real one, from the host's copy; false: it has one, or there are none. */
bool gmt_spill_host_bytes(struct gmt_spill_object *object, size_t offset, size_t size, void *to);
/* It stays where it is from now on. */
void gmt_spill_fix(struct gmt_spill_object *object);

/* One hold less. With the last one the object ends: its callbacks run, its memory goes. */
void gmt_spill_let_go(struct gmt_spill_object *object);
/* A sub-buffer joins its root. */
bool gmt_spill_join(struct gmt_spill_object *child);

/* Puts the dummy of the object's context there; NULL if there is none. */
cl_mem gmt_spill_dummy(const struct gmt_spill_object *object);

/* For budget.h. */
bool gmt_spill_one(void);

#define GMT_SPILL_TRY(err, call)                                                                                       \
	do {                                                                                                           \
		(err) = (call);                                                                                        \
	} while (gmt_unlikely((err) != CL_SUCCESS) && gmt_spill_relieve(err))

#endif
