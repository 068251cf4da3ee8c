/*
 * simulate.c: runs simulations, each in a process of its own, and shrinks the first that fails.
 *
 *   simulate SEEDS [FIRST [STEPS]]   of that many seeds
 *   simulate -twice SEEDS [FIRST]    each twice: their logs must be equal byte for byte
 *   simulate -found SEEDS [FIRST]    does not shrink
 *   simulate FILE                    the program in a file
 */
#define _GNU_SOURCE
#include "simulate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct report *report;
static struct program program, smaller;
static bool quiet;

/* Whether a program passes. */
static bool passes(const struct program *p)
{
	fflush(NULL);
	report->kind = 0;
	pid_t child = fork();
	if (child == 0 && quiet && !freopen("/dev/null", "w", stderr))
		abort();
	if (child == 0)
		run(p, report);
	int status = 0;
	if (child < 0 || waitpid(child, &status, 0) != child)
		abort();
	if (status != 0 && !report->kind)
		snprintf(report->why, sizeof report->why, "wait status %d", (int)(report->kind = (uintptr_t)status));
	return status == 0;
}

static bool still_fails(void)
{
	uintptr_t kind = report->kind;
	if (passes(&smaller) || report->kind != kind) {
		report->kind = kind;
		return false;
	}
	program = smaller;
	return true;
}

/* Leaves steps out, first many at a time; true if some could be. */
static bool remove_steps(void)
{
	bool some = false;
	for (unsigned length = program.count / 2; length > 0; length /= 2) {
		for (unsigned from = 0; from + length <= program.count;) {
			smaller = program;
			memmove(&smaller.step[from], &smaller.step[from + length], (program.count - from - length) * sizeof *smaller.step);
			smaller.count -= length;
			if (still_fails())
				some = true;
			else
				from += length;
		}
	}
	return some;
}

/* Makes arguments 0, or smaller. */
static bool lower_arguments(void)
{
	bool some = false;
	for (unsigned i = 0; i < program.count; i++) {
		for (unsigned a = 0; a < ARGUMENTS; a++) {
			for (uint32_t by = program.step[i].argument[a]; by > 0; by /= 2) {
				smaller = program;
				smaller.step[i].argument[a] -= by;
				if (still_fails()) {
					some = true;
					break;
				}
			}
		}
	}
	return some;
}

static void shrink(void)
{
	quiet = true;
	for (int turn = 0; turn < 8 && (remove_steps() || lower_arguments()); turn++) {
	}
	quiet = false;
	passes(&program);
}

static int tell(const char *title, bool shrinks)
{
	printf("%s: %s, at step %u of %u\n", title, report->why, report->step + 1, program.count);
	if (!shrinks)
		return 1;
	shrink();
	printf("# %s, at step %u. Run these lines again with: simulate FILE\n", report->why, report->step + 1);
	program_print(&program, stdout);
	return 1;
}

static int run_file(const char *path)
{
	FILE *in = fopen(path, "r");
	if (!in || !program_parse(&program, in)) {
		printf("%s is no program\n", path);
		return 2;
	}
	fclose(in);
	bool passed = passes(&program);
	printf(passed ? "it passes\n" : "%s, at step %u\n", report->why, report->step + 1);
	return !passed;
}

int main(int argc, char **argv)
{
	report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	static struct report before;
	const char *option = argc > 1 && *argv[1] == '-' ? argv[1] : "";
	bool twice = strcmp(option, "-twice") == 0;
	if (*option)
		argc--, argv++;
	if (argc > 1 && strtoull(argv[1], NULL, 10) == 0)
		return run_file(argv[1]);
	uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000, first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, calls = 0;
	unsigned steps = argc > 3 ? (unsigned)atoi(argv[3]) : 900;
	struct timespec begin, end;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (uint64_t seed = first; seed < first + seeds; seed++) {
		char title[64];
		snprintf(title, sizeof title, "seed %llu", (unsigned long long)seed);
		program_random(&program, seed, steps < STEPS_MOST ? steps : STEPS_MOST);
		if (!passes(&program))
			return tell(title, !*option);
		calls += report->calls;
		if (!twice)
			continue;
		before = *report;
		if (!passes(&program) || memcmp(&before, report, sizeof before) != 0) {
			unsigned i = 0;
			while (i < STEPS_MOST && memcmp(&before.seen[i], &report->seen[i], sizeof *before.seen) == 0)
				i++;
			printf("%s runs differently when it runs again, from step %u on\n", title, i + 1);
			return 1;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	double took = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	printf("%llu seeds, %llu calls, %.0f calls a second\n", (unsigned long long)seeds, (unsigned long long)calls, (double)calls / took);
	return 0;
}
