/* budget.c: see budget.h. */
#define _GNU_SOURCE
#include "budget.h"

#include "../base/dispatch.h"
#include "../base/groups.h"
#include "../base/lock.h"
#include "../base/session.h"
#include "../registry/memory.h"

#include <linux/close_range.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_LEAST ((uint64_t)1 << 20)
/*
 * How long a create waits for a look to begin: about 0.1 ms are enough, or 0.1 s where the processors are busy. A create waits
 * longer for a look that has begun: the program may install a seccomp filter next, and be killed for a file that we open.
 */
#define PAUSE 20000 /* ns */
#define PAUSES 5000
#define PAUSES_LOOKING 500000

static _Atomic uint64_t used;

/* How much memory of the driver the host has room for, and how much more the driver may make until we look again; bytes. */
static _Atomic uint64_t host_most = GMT_NO_LIMIT, unlooked;
static _Atomic bool host;

static sem_t asked;
static _Atomic bool can_look;
enum { IDLE, ASKED, LOOKING };
static _Atomic int look_state;

static bool is_counting(void)
{
	return gmt_session.config.devicememory || gmt_session.config.pooling || gmt_session.config.answerfree || gmt_session.config.spill;
}

bool (*gmt_budget_spill)(void);

/* The flags whose meaning we know. Flags of vendors may mean anything. */
#define PLAIN_FLAGS                                                                                                    \
	(CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR |     \
	 CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)

bool gmt_budget_is_virtual(cl_mem_flags flags, const void *properties)
{
	return gmt_unlikely(gmt_budget_spill != NULL) && !(flags & ~(cl_mem_flags)PLAIN_FLAGS) && !properties;
}

bool gmt_budget_take(uint64_t bytes)
{
	while (!gmt_budget_take_now(bytes))
		if (!gmt_budget_spill || bytes > gmt_session.config.devicememory || !gmt_budget_spill())
			return false;
	return true;
}

bool gmt_budget_take_now(uint64_t bytes)
{
	uint64_t most = gmt_session.config.devicememory, now = atomic_load(&used);
	if (gmt_likely(!most)) {
		if (is_counting())
			atomic_fetch_add(&used, bytes);
		return true;
	}
	do
		if (bytes > most || now > most - bytes)
			return false;
	while (!atomic_compare_exchange_weak(&used, &now, now + bytes));
	return true;
}

uint64_t gmt_budget_taken(void)
{
	return atomic_load(&used);
}

void gmt_budget_give_back(uint64_t bytes)
{
	if (is_counting())
		atomic_fetch_sub(&used, bytes);
}

uint64_t gmt_budget_missing_bytes(uint64_t bytes)
{
	uint64_t most = gmt_session.config.devicememory, now = atomic_load(&used);
	return most && now + bytes > most ? now + bytes - most : 0;
}

bool gmt_budget_fits_without(uint64_t excess, uint64_t bytes, uint64_t memory)
{
	uint64_t now = atomic_load(&used), hosted = atomic_load(&gmt_memory_hosted);
	uint64_t most = gmt_session.config.devicememory ? gmt_session.config.devicememory : memory;
	if (hosted >= excess || now < excess)
		return false;
	if (!most || (now > most && !gmt_session.config.devicememory)) /* of several devices */
		return true;
	uint64_t held = now - excess + hosted;
	return bytes <= most && held <= most - bytes;
}

bool gmt_budget_is_discrete(cl_device_id device)
{
	cl_bool unified = CL_FALSE;
	cl_device_type type = 0;
	gmt_bare.clGetDeviceInfo(device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified, NULL);
	gmt_bare.clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
	return !unified && !(type & CL_DEVICE_TYPE_CPU);
}

void gmt_budget_note_host_memory(void)
{
	atomic_store(&host, true);
}

/*
 * We may have the bytes that are left now and those that we have. Memory of ours that was not written yet counts in both, so
 * we take the least sum seen so far, but not less than what is left. An eighth is reserved for the program.
 */
static void read_host_room(void)
{
	uint64_t machine = gmt_groups_machine_leaves(), left = gmt_groups_leave_memory();
	left = machine < left ? machine : left;
	if (left == GMT_NO_LIMIT)
		return;
	left -= left / 8;
	uint64_t now = atomic_load(&used), most = left + now, was = atomic_load(&host_most);
	if (most > was)
		most = was > left ? was : left;
	atomic_store(&host_most, most);
	uint64_t room = most > now ? (most - now) / 4 : 0;
	atomic_store(&unlooked, room > LOOK_LEAST ? room : LOOK_LEAST);
}

static bool move_look_state(int from, int to)
{
	return atomic_compare_exchange_strong(&look_state, &from, to);
}

void *gmt_budget_run_looker(void *unused)
{
	if (syscall(SYS_close_range, 0U, ~0U, CLOSE_RANGE_UNSHARE) != 0)
		return unused;
	sem_init(&asked, 0, 0);
	atomic_store(&can_look, true);
	for (;;) {
		while (sem_wait(&asked) != 0)
			;
		if (!move_look_state(ASKED, LOOKING))
			continue; /* the create no longer waits */
		if (!gmt_session_seccomp_installed())
			read_host_room();
		atomic_store(&look_state, IDLE);
	}
}

static void ask_for_look(void)
{
	if (!atomic_load(&can_look))
		return;
	if (move_look_state(IDLE, ASKED))
		sem_post(&asked);
	for (int i = 0; i < PAUSES && atomic_load(&look_state) != IDLE; i++)
		gmt_pause(PAUSE);
	if (move_look_state(ASKED, IDLE))
		return;
	for (int i = 0; i < PAUSES_LOOKING && atomic_load(&look_state) == LOOKING; i++)
		gmt_pause(PAUSE);
}

uint64_t gmt_budget_crowded_bytes(uint64_t bytes)
{
	if (!atomic_load_explicit(&host, memory_order_relaxed))
		return 0;
	uint64_t left = atomic_load(&unlooked);
	if (left < bytes)
		ask_for_look();
	else
		atomic_compare_exchange_strong(&unlooked, &left, left - bytes); /* if another thread was first, we look a little later, which does no harm */
	uint64_t most = atomic_load(&host_most), now = atomic_load(&used);
	return bytes < most && now + bytes > most ? now + bytes - most : 0;
}

cl_ulong gmt_budget_cap(cl_ulong bytes)
{
	uint64_t most = gmt_session.config.devicememory;
	return most && bytes > most ? most : bytes;
}

cl_ulong gmt_budget_free_bytes(cl_ulong global)
{
	uint64_t most = gmt_budget_cap(global), now = atomic_load(&used);
	return most > now ? most - now : 0;
}

cl_ulong gmt_budget_left_bytes(cl_ulong bytes)
{
	uint64_t most = gmt_session.config.devicememory, now = atomic_load(&used);
	uint64_t left = most > now ? most - now : 0;
	return most && bytes > left ? left : bytes;
}
