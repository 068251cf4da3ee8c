/* room.c: see room.h. A call that waits for others gives up its pins and the lock for a moment, so that they go on. */
#define _GNU_SOURCE
#include "room.h"

#include "../base/call.h"
#include "../base/lock.h"
#include "../pool/oom.h"
#include "figures.h"
#include "hold.h"
#include "pin.h"
#include "sentence.h"
#include "short.h"

#define MOMENT 20000u /* ns */

/* False: the lock is lost. */
static bool wait_a_moment(const struct gmt_spill_patience *patience)
{
	if (!patience->alone)
		gmt_spill_unlock();
	gmt_pause(MOMENT);
	return patience->alone || gmt_spill_lock();
}

cl_int gmt_spill_begin_slowly(struct gmt_spill_command *command)
{
	uint64_t start = gmt_now();
	struct gmt_spill_patience patience = {.command = command, .outcome = GMT_SPILL_GONE};
	struct gmt_spill_account account;
	if (!gmt_spill_lock())
		return CL_OUT_OF_RESOURCES;
	cl_int err = gmt_spill_pin_all(command, &patience);
	while (err != CL_SUCCESS && patience.outcome == GMT_SPILL_LATER) {
		if (!wait_a_moment(&patience))
			return CL_OUT_OF_RESOURCES;
		patience.outcome = GMT_SPILL_GONE;
		err = gmt_spill_pin_all(command, &patience);
	}
	if (err != CL_SUCCESS)
		gmt_spill_account(&account);
	gmt_spill_unlock();
	if (gmt_spill_is_short())
		gmt_spill_record_stall(command, start);
	if (err != CL_SUCCESS && !command->may_split)
		gmt_spill_say_short(command, &account);
	return err;
}

bool gmt_spill_relieve(cl_int status)
{
	if (!gmt_out_of_memory(status))
		return false;
	return gmt_spill_evict_any();
}

bool gmt_spill_evict_any(void)
{
	uint64_t start = gmt_now();
	if (!gmt_spill_lock())
		return false;
	struct gmt_spill_patience patience = {.start = 0};
	struct gmt_spill_account account;
	bool locked = true;
	while (locked && gmt_spill_evict_one(&patience) == GMT_SPILL_LATER)
		locked = wait_a_moment(&patience);
	gmt_spill_end_wait(&patience);
	if (!locked)
		return false;
	bool gone = patience.outcome == GMT_SPILL_GONE;
	if (!gone)
		gmt_spill_account(&account);
	gmt_spill_unlock();
	if (gone)
		gmt_spill_record_stall(NULL, start);
	else
		gmt_spill_say_short(NULL, &account);
	return gone;
}

void gmt_spill_explain_shortage(const struct gmt_spill_command *command)
{
	struct gmt_spill_account account;
	if (!gmt_spill_lock())
		return;
	gmt_spill_account(&account);
	gmt_spill_unlock();
	gmt_spill_say_short(command, &account);
}
