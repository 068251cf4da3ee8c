/* room.c: see room.h. */
#define _GNU_SOURCE
#include "room.h"

#include "../base/opencl.h"
#include "../base/core.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The runtime runs Go on GMT_CORE_PROCESSORS threads (intercept/export.go), watches them with one, starts threads with one,
 * starts itself on one, and one sleeps on the mailbox. It asks for more only while threads are on their way from one of
 * these to another: 14 were the most seen, with hundreds of the program's threads at the gate (base/gate.h).
 */
#define THREADS (GMT_CORE_PROCESSORS + 16)
_Static_assert(THREADS == 24, "as the user reads below");

/* What the runtime reserves and maps is about a third of each: the program keeps room of its own. */
#define RESERVED ((size_t)4 << 30)
#define WRITABLE ((size_t)512 << 20)

enum state { WAITS, RUNS, LEAVES };

static struct thread {
	pthread_t id;
	_Atomic uint32_t state;
	void *(*run)(void *);
	void *argument;
} threads[THREADS];

static _Atomic uint32_t given = THREADS; /* none before all are made */

static void *waits(void *of)
{
	struct thread *t = of;
	uint32_t state;
	while ((state = atomic_load_explicit(&t->state, memory_order_acquire)) == WAITS)
		(void)syscall(SYS_futex, &t->state, FUTEX_WAIT_PRIVATE, WAITS, NULL, NULL, 0);
	return state == RUNS ? t->run(t->argument) : NULL;
}

static void send(struct thread *t, enum state state)
{
	atomic_store_explicit(&t->state, (uint32_t)state, memory_order_release);
	(void)syscall(SYS_futex, &t->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static bool make_threads(void)
{
	int made = 0;
	while (made < THREADS && pthread_create(&threads[made].id, NULL, waits, &threads[made]) == 0)
		made++;
	bool all = made == THREADS;
	for (int i = 0; i < made; i++) {
		if (!all)
			send(&threads[i], LEAVES);
		(void)(all ? pthread_detach(threads[i].id) : pthread_join(threads[i].id, NULL));
	}
	if (all)
		atomic_store(&given, 0);
	return all;
}

static bool can_map(size_t size, int protection)
{
	void *at = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at != MAP_FAILED && munmap(at, size) == 0;
}

const char *gmt_room_make(void)
{
	if (!can_map(RESERVED, PROT_NONE))
		return "the allocator needs 4 GiB of address space free: ulimit -v allows less";
	if (!can_map(WRITABLE, PROT_READ | PROT_WRITE))
		return "the allocator needs 512 MiB of memory to map: ulimit -d or vm.overcommit_memory allows less";
	if (!make_threads())
		return "the allocator needs 24 threads: ulimit -u, the control group or seccomp allows fewer";
	return NULL;
}

int gmt_room_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	uint32_t i = atomic_load(&given);
	while (i < THREADS && !atomic_compare_exchange_weak(&given, &i, i + 1))
		;
	if (i == THREADS)
		return pthread_create(thread, attributes, run, argument);
	*thread = threads[i].id;
	threads[i].run = run;
	threads[i].argument = argument;
	send(&threads[i], RUNS);
	return 0;
}
