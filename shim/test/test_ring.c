/* test_ring.c: no event is lost silently, whatever the session and the threads do. */
#include "harness.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic bool came_back;

/* One USE event. The queue never grows long. */
static void one_use(cl_mem buffer)
{
	use(world.queue, buffer);
	fake_complete(world.queue, 1);
}

static cl_mem observed(struct options options)
{
	options.observe = true;
	begin(options);
	return new_buffer(100);
}

TEST(uses_are_dropped_first)
{
	cl_mem buffer = observed((struct options){0});
	struct ring_totals before = session_totals();
	for (int i = 0; i < GMT_RING_EVENTS; i++)
		one_use(buffer);
	struct ring_totals full = session_totals();
	EQUAL(full.events, GMT_RING_EVENTS - GMT_RING_EVENTS / 4);
	EQUAL(full.lostuses, before.events + GMT_RING_EVENTS - full.events);
	EQUAL(full.lost, full.lostuses);
	OK(clReleaseMemObject(buffer)); /* there is room for what matters more */
	for (int i = 0; i < 100; i++)
		OK(clReleaseMemObject(new_buffer(100)));
	struct ring_totals after = session_totals();
	EQUAL(after.events, full.events + 201);
	EQUAL(after.lost, full.lost);
	EQUAL(after.waits, 0);
	EQUAL(events(GMT_KIND_RELEASE), 101);
	end_clean();
}

TEST(a_full_ring_drops_and_counts)
{
	cl_mem buffer = observed((struct options){.nouses = true});
	uint64_t before = session_totals().events;
	for (int i = 0; i < GMT_RING_EVENTS; i++)
		OK(clReleaseMemObject(new_buffer(100)));
	struct ring_totals totals = session_totals();
	EQUAL(totals.events, GMT_RING_EVENTS);
	EQUAL(totals.lost, before + 2 * GMT_RING_EVENTS - totals.events);
	EQUAL(totals.lostuses, 0);
	CHECK(session_read()); /* and goes on when there is room again */
	OK(clReleaseMemObject(buffer));
	EQUAL(session_totals().events, totals.events + 1);
	end_clean();
}

static void fill_by(unsigned events)
{
	for (unsigned i = 0; i < events / 2; i++)
		OK(clReleaseMemObject(new_buffer(100)));
}

static const uint32_t *bell; /* what the session waits for */
static _Atomic int rung;
static _Atomic pid_t listener;

static void *listen_to_bell(void *unused)
{
	(void)unused;
	atomic_store(&listener, (pid_t)syscall(SYS_gettid));
	for (;;)
		if (syscall(SYS_futex, bell, FUTEX_WAIT, *bell, NULL, NULL, 0) == 0)
			atomic_fetch_add(&rung, 1);
	return NULL;
}

/* Until the listener is at the bell: before that it would miss a ring. */
static void await_listener(void)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	while (!sleeps(atomic_load(&listener)))
		nanosleep(&moment, NULL);
}

static int rung_after(unsigned milliseconds)
{
	const struct timespec moment = {.tv_nsec = (long)milliseconds * 1000000};
	nanosleep(&moment, NULL);
	return atomic_load(&rung);
}

TEST(a_ring_that_is_half_full_rings_once_until_the_session_reads)
{
	char path[512];
	pthread_t thread;
	cl_mem buffer = observed((struct options){.nouses = true});
	snprintf(path, sizeof path, "%s/%s", getenv(GMT_SESSION_ENV), GMT_CONFIG_NAME);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bell = mmap(NULL, sizeof *bell, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(bell != MAP_FAILED && close(fd) == 0);
	CHECK(pthread_create(&thread, NULL, listen_to_bell, NULL) == 0);
	for (int round = 0; round < 3; round++) {
		session_read();
		fill_by(GMT_RING_EVENTS / 2 - 16);
		EQUAL(rung_after(20), round);
		await_listener();
		fill_by(32);
		while (rung_after(1) <= round) {
		}
		await_listener();
		fill_by(GMT_RING_EVENTS); /* the last ones are dropped */
		EQUAL(rung_after(20), round + 1);
	}
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(a_producer_may_wait_for_the_session)
{
	cl_mem buffer = observed((struct options){.waitms = 10000});
	session_start();
	for (int i = 0; i < 8 * GMT_RING_EVENTS; i++)
		one_use(buffer);
	session_stop();
	EQUAL(events(GMT_KIND_USE), 8 * GMT_RING_EVENTS);
	EQUAL(session_totals().lost, 0);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(a_session_that_stays_away_is_waited_for_once)
{
	cl_mem buffer = observed((struct options){.waitms = 30});
	for (int i = 0; i < 2 * GMT_RING_EVENTS; i++)
		one_use(buffer);
	struct ring_totals totals = session_totals();
	EQUAL(totals.waits, 1);
	CHECK(totals.lost > GMT_RING_EVENTS / 2);
	session_read();
	for (int i = 0; i < 2 * GMT_RING_EVENTS; i++)
		one_use(buffer);
	EQUAL(session_totals().waits, 2);
	OK(clReleaseMemObject(buffer));
	end_clean();
}

TEST(a_session_that_died_is_not_waited_for)
{
	cl_mem buffer = observed((struct options){.waitms = 3600000});
	session_die();
	for (int i = 0; i < 2 * GMT_RING_EVENTS; i++)
		one_use(buffer);
	EQUAL(session_totals().waits, 1);
}

enum { ROUNDS = 20 };

/* Some time after the program has begun to wait, each time. */
static void *read_late(void *unused)
{
	(void)unused;
	const struct timespec moment = {.tv_nsec = 1000000}, late = {.tv_nsec = 300000000};
	for (uint64_t seen = 0; !atomic_load(&came_back);) {
		uint64_t waits = session_totals().waits;
		nanosleep(waits == seen ? &moment : &late, NULL);
		if (waits != seen)
			session_read();
		seen = waits;
	}
	return NULL;
}

TEST(a_session_that_is_slow_throughout_is_not_waited_for_each_time)
{
	cl_mem buffer = observed((struct options){.waitms = 1000});
	pthread_t reader;
	CHECK(pthread_create(&reader, NULL, read_late, NULL) == 0);
	for (int i = 0; i < ROUNDS * GMT_RING_EVENTS; i++)
		OK(clRetainMemObject(buffer));
	atomic_store(&came_back, true);
	pthread_join(reader, NULL);
	CHECK(session_totals().waits > 2);
	CHECK(session_totals().lost > GMT_RING_EVENTS);
}

static void *more_than_fits(void *buffer)
{
	for (int i = 0; i < 2 * GMT_RING_EVENTS; i++)
		OK(clRetainMemObject(buffer));
	atomic_store(&came_back, true);
	pthread_testcancel();
	return NULL;
}

TEST(a_thread_that_waits_is_not_cancelled)
{
	cl_mem buffer = observed((struct options){.waitms = 3600000});
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, more_than_fits, buffer) == 0);
	while (session_totals().waits == 0)
		CHECK(sched_yield() == 0);
	CHECK(pthread_cancel(thread) == 0);
	session_start();
	pthread_join(thread, NULL);
	session_stop();
	CHECK(atomic_load(&came_back));
}

static pthread_barrier_t together;

/* One extra event for each thread, so that their rings do not stand at the same place. */
static void *fill_ring(void *arg)
{
	cl_mem buffer = arg;
	static _Atomic int numbers;
	for (int extra = atomic_fetch_add(&numbers, 1); extra > 0; extra--)
		OK(clRetainMemObject(buffer));
	session_read();
	pthread_barrier_wait(&together);
	for (int i = 0; i < GMT_RING_EVENTS; i++)
		OK(clRetainMemObject(buffer));
	for (int i = 0; i < 10; i++) { /* in turns, so that each has every chance to forget that it gave up */
		pthread_barrier_wait(&together);
		OK(clRetainMemObject(buffer));
	}
	return NULL;
}

TEST(several_threads_give_up_together)
{
	enum { THREADS = 3 };
	cl_mem buffer = observed((struct options){.waitms = 30});
	pthread_t threads[THREADS];
	pthread_barrier_init(&together, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, fill_ring, buffer) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* Each thread may find once that the session had read after all, and make the others wait again; not each time. */
	CHECK(session_totals().waits <= THREADS * THREADS);
}

enum { CROWD = 300, EACH = 200 };

static void *one_of_many(void *arg)
{
	cl_mem buffer = arg;
	pthread_barrier_wait(&together); /* all are alive at once */
	for (int i = 0; i < EACH; i++)
		OK(clRetainMemObject(buffer));
	pthread_barrier_wait(&together);
	return NULL;
}

TEST(more_threads_than_rings)
{
	static pthread_t threads[CROWD];
	cl_mem buffer = observed((struct options){0});
	session_start();
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	pthread_barrier_init(&together, NULL, CROWD);
	for (int i = 0; i < CROWD; i++)
		CHECK(pthread_create(&threads[i], &attributes, one_of_many, buffer) == 0);
	for (int i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	session_stop();
	struct ring_totals totals = session_totals();
	EQUAL(totals.used, GMT_RINGS);
	EQUAL(totals.announced, GMT_RINGS);
	EQUAL(events(GMT_KIND_RETAIN) + totals.lost, CROWD * EACH);
	CHECK(events(GMT_KIND_THREAD) >= CROWD);
	EQUAL(last_event(GMT_KIND_RETAIN).object, 1);
}

static void *come_and_go(void *arg)
{
	OK(clRetainMemObject(arg));
	return NULL;
}

TEST(threads_that_come_and_go_reuse_rings)
{
	enum { COMERS = 2000 };
	cl_mem buffer = observed((struct options){0});
	for (int i = 0; i < COMERS; i++) {
		pthread_t threads[2];
		for (int t = 0; t < 2; t++)
			CHECK(pthread_create(&threads[t], NULL, come_and_go, buffer) == 0);
		for (int t = 0; t < 2; t++)
			pthread_join(threads[t], NULL);
	}
	EQUAL(events(GMT_KIND_RETAIN), 2 * COMERS);
	EQUAL(events(GMT_KIND_THREAD), 2 * COMERS + 1);
	EQUAL(session_totals().lost, 0);
	EQUAL(session_totals().announced, session_totals().used);
}
