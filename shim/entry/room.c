/* room.c: see room.h. */
#define _GNU_SOURCE
#include "room.h"

#include "../base/core.h"
#include "../base/groups.h"
#include "../base/opencl.h"

#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The runtime runs Go on GMT_CORE_PROCESSORS threads (intercept/export.go), watches them with one, starts threads with one,
 * starts itself on one, and one sleeps on the mailbox. It asks for more only while threads change from one of these tasks to
 * another: at most 14 were seen, with hundreds of the program's threads at the gate (base/gate.h). One thread is the shim's
 * own (pool/budget.h).
 */
#define THREADS (GMT_CORE_PROCESSORS + 16)
/* Threads that must be left to the program when a limit is near, besides one for each processor, which CPU drivers start. */
#define SPARE 48
#define PROCESSORS_MOST 256
#define FAR 4096u
/* Memory that must be free: the core writes to 4 MiB, the rest is for the program and its driver. */
#define MEMORY ((uint64_t)16 << 20)
#define SPARE_STACK ((size_t)256 << 10)
#define GUARD ((size_t)64 << 10)
_Static_assert(THREADS == 24 && SPARE == 48, "as the user reads below");

/* Address space that must be free to reserve and to map: about three times what the runtime takes, so that the program has some left. */
#define RESERVED ((size_t)4 << 30)
#define WRITABLE ((size_t)512 << 20)

static struct thread {
	pthread_t id;
	sem_t wake; /* no futex: a program's thread sanitizer understands the order that a semaphore makes */
	pid_t number;
	void *stack;
	size_t size;
	void *(*run)(void *);
	void *argument;
} threads[THREADS + SPARE + PROCESSORS_MOST];

static _Atomic uint32_t given = THREADS; /* threads that the core has got; THREADS before all are made */

static void *wait_and_run_task(void *of)
{
	struct thread *t = of;
	t->number = (pid_t)syscall(SYS_gettid);
	while (sem_wait(&t->wake) != 0)
		;
	return t->run ? t->run(t->argument) : NULL;
}

/* Waits until the kernel no longer counts a thread: before, the program might be refused one in its place. */
static void wait_thread_gone(const struct thread *t)
{
	pthread_join(t->id, NULL);
	while (syscall(SYS_tgkill, getpid(), t->number, 0) == 0)
		sched_yield();
}

/* Whether the program could reach a limit of its user. Only then spare threads are made to try it, as each takes 50 us. */
static bool limit_is_near(void)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur < FAR && geteuid() != 0;
}

/*
 * Gives a thread a stack that we allocate. In a forked child the C library unmaps the stacks that it allocated itself if they
 * take more than 40 MiB together, and a driver whose exit handler joins its thread there would fault. Ours do not count.
 */
static bool give_stack(struct thread *t, pthread_attr_t *attributes, size_t size)
{
	void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return false;
	t->stack = stack;
	t->size = size;
	return mprotect(stack, GUARD, PROT_NONE) == 0 && pthread_attr_setstack(attributes, stack, size) == 0;
}

static int start_threads(int count)
{
	int made = 0;
	size_t size = 0; /* the default, which Go assumes for its threads */
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_getstacksize(&attributes, &size);
	for (; made < count; made++) {
		if (made < THREADS && !give_stack(&threads[made], &attributes, size + GUARD))
			break;
		if (made == THREADS) {
			pthread_attr_destroy(&attributes);
			pthread_attr_init(&attributes);
			pthread_attr_setstacksize(&attributes, SPARE_STACK);
		}
		sem_init(&threads[made].wake, 0, 0);
		if (pthread_create(&threads[made].id, &attributes, wait_and_run_task, &threads[made]) != 0)
			break;
	}
	pthread_attr_destroy(&attributes);
	return made;
}

static int count_spare_threads(void)
{
	cpu_set_t allowed;
	int processors = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : PROCESSORS_MOST;
	return THREADS + SPARE + (processors < PROCESSORS_MOST ? processors : PROCESSORS_MOST);
}

static bool make_threads(int most)
{
	int count = limit_is_near() ? most : THREADS;
	int made = start_threads(count);
	bool all = made == count;
	int kept = all ? THREADS : 0;
	for (int i = 0; i < kept; i++)
		pthread_detach(threads[i].id);
	for (int i = kept; i < made; i++)
		sem_post(&threads[i].wake);
	for (int i = kept; i < made; i++)
		wait_thread_gone(&threads[i]);
	for (int i = kept; i < THREADS; i++)
		if (threads[i].stack)
			munmap(threads[i].stack, threads[i].size);
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
	if (gmt_groups_leave_memory() < MEMORY)
		return "the allocator takes 4 MiB of memory and leaves 12 to the program: the control group has less left";
	int most = count_spare_threads();
	if (gmt_groups_leave_threads() < (uint64_t)most || !make_threads(most))
		return "the allocator takes 24 threads and leaves 48 and one for each processor to the program: ulimit -u, the control group or "
		       "seccomp allows fewer";
	return NULL;
}

int gmt_room_give_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	uint32_t i = atomic_load(&given);
	while (i < THREADS && !atomic_compare_exchange_weak(&given, &i, i + 1))
		;
	if (i == THREADS)
		return pthread_create(thread, attributes, run, argument);
	*thread = threads[i].id;
	threads[i].run = run;
	threads[i].argument = argument;
	sem_post(&threads[i].wake);
	return 0;
}
