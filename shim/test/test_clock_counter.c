/* test_clock_counter.c: the clock on a machine whose counter and clock do what the tests say. */
#define _GNU_SOURCE
#include "harness.h"

#ifdef __x86_64__

#include <sys/prctl.h>
#include <time.h>
#include <x86intrin.h>

#define SECOND 1000000000ull

/* ns of real time, what a reading takes of it, and how far clock and counter have come. */
static struct {
	double real, reading, clock, counter;
	double clock_rate, counter_rate; /* per ns */
	bool interrupted;                /* whenever the system's clock is read */
} machine;

static void pass(double ns)
{
	machine.real += ns;
	machine.clock += ns * machine.clock_rate;
	machine.counter += ns * machine.counter_rate;
}

static uint64_t fake_counter(void)
{
	pass(machine.reading);
	return (uint64_t)machine.counter;
}

static int fake_clock(struct timespec *t)
{
	pass(machine.interrupted ? 50000 : machine.reading);
	uint64_t ns = (uint64_t)machine.clock;
	*t = (struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
	return 0;
}

#define __rdtscp(processor) ((void)(processor), fake_counter())
#define __rdtsc() fake_counter()
#define clock_gettime(id, t) fake_clock(t)
#define gmt_now now_of_fake
#define gmt_about_now about_now_of_fake
#define gmt_clock_start start_fake
#define gmt_clock_stop stop_fake
#define gmt_clock_note_refusal refused_fake
#define gmt_clock_permitted permitted_fake
#define gmt_clock_share_with_core of_core_fake
#define gmt_clock_handle_trap trapped_fake
#define gmt_system_clock system_clock_fake
#include "../base/clock.c"

static uint64_t before; /* the latest time that the tests have seen */

static int64_t ahead(void)
{
	uint64_t now = gmt_now();
	CHECK(now >= before);
	before = now;
	return (int64_t)now - (int64_t)machine.clock;
}

/* Reads the clock every so often for a while. It must not be further off than that at any time, or at the end. */
static void run(double ns, double pause, int64_t most, int64_t at_end)
{
	int64_t off_by = 0;
	for (double end = machine.real + ns; machine.real < end; pass(pause)) {
		off_by = llabs(ahead());
		if (off_by > most)
			EQUAL(off_by, most);
	}
	if (off_by > at_end)
		EQUAL(off_by, at_end);
}

static void start_at(double counter_rate)
{
	machine.real = 0;
	machine.reading = 12;
	machine.clock = 7e9;
	machine.counter = 1e9;
	machine.clock_rate = 1;
	machine.counter_rate = counter_rate;
	before = 0;
	CHECK(read_clock_pair(&base));
	atomic_store(&off, false);
}

/* Readings of the system's clock and the counter lie 12 ns apart. */
TEST(a_line_keeps_to_the_clock)
{
	for (double counts = 1; counts < 5; counts += 0.7) {
		gmt_clock_stop();
		start_at(counts);
		run(3e9, 700, 100, 50);
		CHECK(newest != 0);
	}
}

TEST(a_clock_that_is_read_seldom)
{
	start_at(2.4);
	run(60e9, 40e6, 100, 100);
	run(60e9, 9e6, 300, 100);
	run(3e9, 3e3, 300, 50);
}

TEST(a_clock_that_is_slewed)
{
	start_at(2.4);
	run(1e9, 700, 100, 50);
	machine.clock_rate = 1 + 500e-6; /* as the kernel's own loop does it */
	run(2e9, 700, 4000, 100);
	machine.clock_rate = 1 - 0.083; /* as chrony does it at most */
	run(2e9, 700, 600000, 100);
	machine.clock_rate = 1;
	run(2e9, 700, 600000, 100);
	CHECK(newest != 0);
}

TEST(a_machine_that_sleeps)
{
	start_at(2.4);
	run(1e9, 700, 100, 50);
	machine.counter += 2.4 * 3600e9; /* the counter goes on, the clock does not */
	run(1e9, 700, 300, 50);
	machine.counter = 5; /* it restarts */
	run(1e9, 700, 300, 50);
	machine.clock += 3600e9; /* CLOCK_MONOTONIC does not do that */
	machine.counter += 2.4 * 100e6;
	run(1e9, 700, 100, 50);
	CHECK(newest != 0);
}

TEST(a_counter_that_is_no_clock)
{
	start_at(2.4);
	run(1e9, 700, 100, 50);
	machine.counter_rate = 1.2; /* where the kernel would not have trusted it */
	run(20e6, 700, 4000000, 4000000);
	CHECK(newest == 0);
	run(1e9, 700, 13, 13);
	CHECK(newest == 0);
}

/* Goes on from where a line begins, by that many ns of it. */
static void run_into_line(double ns)
{
	uint32_t number = newest;
	while (newest == number)
		run(1000, 300, 1000000, 1000000);
	run(ns, 700, 1000000, 1000000);
}

/*
 * The program was moved to another machine, or woke up: by any distance, at any place of a line, time does not go back, and is
 * right after a line, or from the system. Only within a line can a counter that goes back take time with it, as it does the kernel's.
 */
TEST(a_counter_that_jumps)
{
	static const double jumps[] = {100, 2e3, 400e3, 1.5e6, 3e6, 20e6, 40e6, 5e9, 86400e9, -4e6, -20e6, -5e9};
	for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
		for (double place = 10e3; place < 1.6e6; place += 500e3) {
			gmt_clock_stop();
			reached = 0;
			start_at(2.4);
			machine.counter = 1e13;
			CHECK(read_clock_pair(&base));
			run(1e9, 700, 100, 50);
			run_into_line(place);
			machine.counter += jumps[i] * 2.4;
			run(20e6, 700, 4000000, 4000000);
			run(2e9, 700, 1100000, 100);
		}
	}
}

TEST(a_counter_that_goes_back_within_a_line)
{
	static const double jumps[] = {100, 50e3, 900e3};
	for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
		gmt_clock_stop();
		reached = 0;
		start_at(2.4);
		run(1e9, 700, 100, 50);
		run_into_line(1e6);
		machine.counter -= jumps[i] * 2.4;
		uint64_t seen = before;
		before = 0;
		CHECK(ahead() > -(int64_t)jumps[i] - 2000 && before + (uint64_t)jumps[i] + 2000 > seen);
		run(20e6, 700, 1000000, 1000000);
		run(2e9, 700, 1100000, 100);
	}
}

/* As long as the machine stands still, and when it goes on. */
TEST(a_counter_that_stops)
{
	gmt_clock_stop();
	reached = 0;
	start_at(2.4);
	run(1e9, 700, 100, 50);
	machine.counter_rate = 0;
	run(10e6, 700, 10000000, 10000000);
	machine.counter_rate = 2.4;
	run(20e6, 700, 11000000, 11000000);
	run(1e9, 700, 100, 50);
}

/* A line reaches further than it should, then there is none. */
TEST(a_clock_whose_readings_are_interrupted)
{
	start_at(2.4);
	run(1e9, 700, 100, 50);
	machine.interrupted = true;
	run(20e6, 700, 100, 100);
	run(1e9, 700, 200000, 200000);
	machine.interrupted = false;
	before = 0;
	run(1e9, 700, 100, 50);
	CHECK(newest != 0);
}

/* Nothing of ours reads the counter from here on, and no thread brings it back. */
TEST(a_counter_that_is_given_up)
{
	gmt_clock_stop();
	reached = 0;
	_Atomic uintptr_t word = 1;
	start_at(2.4);
	run(1e9, 700, 100, 50);
	CHECK(newest != 0);
	gmt_clock_share_with_core((int64_t)(uintptr_t)&word);
	CHECK(word == 1);
	gmt_clock_note_refusal();
	CHECK(word == 0 && newest == 0);
	double counter = machine.counter;
	gmt_clock_start();
	for (int i = 0; i < 1000; i++)
		CHECK(gmt_now() > 0 && gmt_about_now() > 0);
	CHECK(machine.counter <= counter && machine.counter >= counter);
	atomic_store(&refused, false);
	atomic_flag_clear(&making);
	atomic_store(&core_word, NULL);
	word = 1;
	gmt_clock_note_refusal(); /* before the core is there */
	gmt_clock_share_with_core((int64_t)(uintptr_t)&word);
	CHECK(word == 0);
	atomic_store(&refused, false);
	atomic_flag_clear(&making);
}

TEST(a_clock_that_is_stopped)
{
	start_at(2.4);
	run(1e9, 700, 100, 50);
	gmt_clock_stop();
	run(1e9, 700, 100, 100);
	CHECK(newest == 0);
}

#endif
