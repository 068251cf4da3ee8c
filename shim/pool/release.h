/* release.h: releases memory, and contexts, whose last reference the program has given up. */
#ifndef GMT_RELEASE_H
#define GMT_RELEASE_H

#include "../../internal/wire/event_access.h"
#include "../base/call.h"
#include "../registry/memory.h"

/* Releases memory that nothing pins, and writes the RELEASE event. */
cl_int gmt_release_memory(struct gmt_call *call, struct gmt_memory *memory);
/* The fields of a RELEASE event. memory: NULL if unknown. Call it while the entry is certain to exist. */
struct gmtreleasefields gmt_release_fields(const struct gmt_call *call, const struct gmt_memory *memory);
/* Writes the event. now: ns. */
void gmt_release_write_event(struct gmtreleasefields *release, cl_int status, uint64_t now);
/* The context goes to sleep, or was terminated: each pooled block would keep it alive in the driver. */
void gmt_release_context(struct gmt_context *context);

#endif
