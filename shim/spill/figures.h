/* figures.h: what --spill has done so far. */
#ifndef GMT_SPILL_FIGURES_H
#define GMT_SPILL_FIGURES_H

#include "../base/opencl.h"

struct gmt_spill_figures {
	_Atomic uint64_t resident, spilled; /* bytes now: with a real object, and whose contents only the host has */
	_Atomic uint64_t out, in;           /* bytes that went to the host, and came back */
	_Atomic uint64_t clean;             /* bytes whose copy the host still had */
	_Atomic uint64_t stalls, stalled;   /* calls that waited for room or contents, and ns in all */
};
extern struct gmt_spill_figures gmt_spill_figures;

#endif
