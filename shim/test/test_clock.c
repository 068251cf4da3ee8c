/* test_clock.c: the clock beside the system's, on this machine. CLOCK_SECONDS says for how long; by default for an instant. */
#define _GNU_SOURCE
#include "harness.h"

#include "../base/clock.c"

#include <pthread.h>
#include <unistd.h>

#define THREADS 4
#define SLACK 1000 /* ns */
#define ORDER 10   /* ns, between threads: less than one takes to see what another does, and a call to begin */

static uint64_t until(double seconds)
{
	const char *wanted = getenv("CLOCK_SECONDS");
	if (wanted)
		alarm(0); /* the harness's, for a test that hangs */
	return system_now() + (uint64_t)((wanted ? atof(wanted) : seconds) * 1e9);
}

static uint64_t latest_seen;

static void *read_in_turns(void *end)
{
	for (uint64_t now = 0; now < *(uint64_t *)end;) {
		uint64_t seen = __atomic_load_n(&latest_seen, __ATOMIC_ACQUIRE);
		now = gmt_now();
		CHECK(now + ORDER >= seen);
		__atomic_compare_exchange_n(&latest_seen, &seen, now, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
	return NULL;
}

TEST(threads_see_time_pass)
{
	gmt_clock_start();
	uint64_t end = until(0.2);
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, read_in_turns, &end) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

TEST(the_clock_is_the_systems)
{
	gmt_clock_start();
	uint64_t end = until(0.2);
	for (uint64_t after = 0, i = 0; after < end; i++) {
		uint64_t before = system_now(), now = gmt_now(), about = gmt_about_now();
		after = system_now();
		CHECK(now + SLACK >= before && now <= after + SLACK);
		CHECK(about + SLACK >= before && about <= after + SLACK);
		if (i % 100 == 0)
			nanosleep(&(struct timespec){.tv_nsec = 1000 * (long)(i % 5000)}, NULL);
	}
}

TEST(a_duration_is_not_negative)
{
	EQUAL(gmt_took(5, 9), 4);
	EQUAL(gmt_took(9, 5), 0);
	EQUAL(gmt_took(0, 1ull << 40), UINT32_MAX);
}
