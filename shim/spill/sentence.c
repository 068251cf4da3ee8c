/* sentence.c: see sentence.h. */
#define _GNU_SOURCE
#include "sentence.h"

#include "../base/ring.h"
#include "../base/session.h"
#include "figures.h"

#include <stdio.h>

/* At most a few times: the program may go on without what it did not get. */
void gmt_spill_say_short(const struct gmt_spill_command *command)
{
	static _Atomic uint32_t said;
	uint64_t bytes = gmt_spill_needed(command), card = gmt_session.config.devicememory;
	if (!gmt_session.region || atomic_fetch_add(&said, 1) >= 4)
		return;
	char text[400], kernel[200] = "";
	if (command->kernel)
		gmt_bare.clGetKernelInfo(command->kernel, CL_KERNEL_FUNCTION_NAME, sizeof kernel, kernel, NULL);
	int length = snprintf(text, sizeof text, "%s%s%s needs %.1f MiB at once", command->name, *kernel ? " of " : "", kernel, (double)bytes / 1048576);
	if (card && length > 0 && (size_t)length < sizeof text)
		(void)snprintf(text + length, sizeof text - (size_t)length, "; the card has %.1f MiB, of which %.1f MiB cannot go to the host now",
			       (double)card / 1048576, (double)atomic_load(&gmt_spill_figures.resident) / 1048576);
	gmt_diag(GMT_DIAG_SPILL, text);
}
