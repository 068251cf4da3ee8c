/* spill.c: see spill.h. */
#define _GNU_SOURCE
#include "spill.h"

#include "../base/dispatch.h"
#include "../base/ring.h"
#include "../base/session.h"
#include "../pool/budget.h"
#include "command.h"
#include "create.h"
#include "extensions.h"
#include "gate.h"
#include "image.h"
#include "info.h"
#include "kernel.h"
#include "list.h"
#include "map.h"
#include "rect.h"
#include "residency.h"
#include "user_event.h"

static void override_functions(struct gmt_functions *over)
{
	gmt_spill_override_contexts(over);
	gmt_spill_override_queues(over);
	gmt_spill_override_user_events(over);
	gmt_spill_override_gates(over);
	gmt_spill_override_creates(over);
	gmt_spill_override_info(over);
	gmt_spill_override_kernels(over);
	gmt_spill_override_buffer_commands(over);
	gmt_spill_override_rect_commands(over);
	gmt_spill_override_map_commands(over);
	gmt_spill_override_images(over);
	gmt_spill_override_list_commands(over);
	gmt_spill_override_extensions(over);
}

void gmt_spill_start(void)
{
	if (!gmt_session.config.spill)
		return;
	if (!gmt_spill_objects_begin()) {
		gmt_diag(GMT_DIAG_SPILL, "no room for the addresses of virtual objects");
		return;
	}
	gmt_budget_spill = gmt_spill_evict_any;
	gmt_dispatch_override(override_functions);
}
