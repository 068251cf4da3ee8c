/* figures.c: see figures.h. */
#define _GNU_SOURCE
#include "figures.h"

struct gmt_spill_figures gmt_spill_figures;
