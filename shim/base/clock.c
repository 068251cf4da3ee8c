/* clock.c: the processor's counter as CLOCK_MONOTONIC, on amd64. */
#define _GNU_SOURCE
#include "clock.h"

#include "opencl.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic bool refused; /* a thread may not read the counter, not even through clock_gettime(), which reads it in the vdso */
static _Atomic(_Atomic uintptr_t *) core_word;

uint64_t gmt_system_clock(clockid_t clock)
{
	struct timespec t = {0};
	if (gmt_unlikely(atomic_load_explicit(&refused, memory_order_relaxed)))
		(void)syscall(SYS_clock_gettime, clock, &t);
	else
		clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t system_now(void)
{
	return gmt_system_clock(CLOCK_MONOTONIC);
}

bool gmt_clock_permitted(void)
{
	int permitted = PR_TSC_ENABLE;
	if (prctl(PR_GET_TSC, &permitted) == 0 && permitted != PR_TSC_ENABLE)
		atomic_store(&refused, true);
	return permitted == PR_TSC_ENABLE;
}

static void tell_core_of_refusal(void)
{
	_Atomic uintptr_t *word = atomic_load(&core_word);
	if (word && atomic_load(&refused))
		atomic_store(word, 0);
}

void gmt_clock_share_with_core(int64_t address)
{
	atomic_store(&core_word, (_Atomic uintptr_t *)(uintptr_t)address);
	tell_core_of_refusal();
}

#ifdef __x86_64__

#include <cpuid.h>
#include <fcntl.h>
#include <string.h>
#include <ucontext.h>
#include <x86intrin.h>

/* In counts of the counter, which makes 1 to 5 per ns. */
#define CALIBRATED (1u << 22) /* until the first line is made */
#define LINE (1u << 23)       /* length of a line */
#define STRETCHED (1u << 26)  /* how long a line serves if the next one cannot be made; after that the time is unknown */
#define EXACT 1000u           /* most between two readings of the counter around one of the clock */
#define REACHED (4ll * LINE)  /* where a line meets the clock; if it met it sooner, it would follow disturbed readings */
#define BASELINE (1u << 28)   /* the rate is measured over this many to twice as many */
#define SLEWED 1000           /* ns: a line that is farther off shows that the rate of the clock has changed */
#define JUMPED 200            /* ns that a line may be ahead besides, if it ends because the counter jumps */
#define ASTRAY 1000000        /* ns: a line that is farther off shows that counter and clock are unrelated */

/*
 * A straight line that maps the counter to the clock. It serves for some milliseconds, so that a disturbance of either, such as
 * a machine that sleeps or a clock that is slewed, does no harm for longer. The next line begins where this one ends and leads
 * to where the clock will be, so that time never goes back.
 */
struct line {
	uint64_t counter, ns, rate; /* rate: ns per count, times 2^32 */
};

/* Lines are reused in turn. Readers take no lock: a line stays readable until LINES / 2 more have been made, long after it was read. */
#define LINES 16
static struct {
	_Atomic uint64_t counter, ns, rate;
} lines[LINES];
static _Atomic uint32_t newest; /* number of a line, 0: there is none */

static _Atomic bool off = true;
static _Atomic uint64_t reached; /* the time that the last line had reached; the system's clock may be earlier */
static atomic_flag making = ATOMIC_FLAG_INIT; /* set while a thread makes a line */

struct reading {
	uint64_t counter, ns;
};
/* Used by the thread that makes a line: the rate, over how many counts it was measured, since which reading, and since which next. */
static uint64_t rate, measured, lead; /* lead: ns from the clock to the newest line's beginning, which was ahead */
static struct reading base, next_base, latest;

static inline uint64_t read_counter(void)
{
	unsigned processor;
	return __rdtscp(&processor);
}

/*
 * Reads the counter and then the system's clock, so that a line that begins there is not earlier than a time that another thread
 * has just read. False if each try was interrupted between the two.
 */
static bool read_clock_pair(struct reading *r)
{
	for (int i = 0; i < 4; i++) {
		*r = (struct reading){.counter = read_counter()};
		r->ns = system_now() + 2; /* the clock rounds down, and so does a line */
		if (read_counter() - r->counter < EXACT)
			return true;
	}
	return false;
}

/* Reads a line. False: it has been overwritten. */
static inline bool line_read(uint32_t number, struct line *line)
{
	line->counter = atomic_load_explicit(&lines[number % LINES].counter, memory_order_acquire);
	line->ns = atomic_load_explicit(&lines[number % LINES].ns, memory_order_acquire);
	line->rate = atomic_load_explicit(&lines[number % LINES].rate, memory_order_acquire);
	return atomic_load_explicit(&newest, memory_order_relaxed) - number < LINES / 2;
}

/* Stores a line and returns its number. Readers use the line once newest has that number. */
static uint32_t line_write(const struct line *line)
{
	uint32_t number = atomic_load(&newest) + 1;
	number += number == 0;
	atomic_store(&lines[number % LINES].counter, line->counter);
	atomic_store(&lines[number % LINES].ns, line->ns);
	atomic_store(&lines[number % LINES].rate, line->rate);
	return number;
}

static uint64_t line_at(const struct line *line, uint64_t at)
{
	return line->ns + ((at - line->counter) * line->rate >> 32);
}

/* Measures the rate since a base, which moves on. After the clock was slewed, only the latest stretch counts. */
static void measure_rate(const struct reading *now, bool slewed)
{
	if (slewed)
		base = next_base = latest;
	uint64_t counts = now->counter - base.counter;
	if (slewed || counts >= measured) {
		rate = ((now->ns - base.ns) << 32) / counts; /* fits: less than a second */
		measured = counts < BASELINE ? counts : BASELINE;
	}
	if (now->counter - next_base.counter > BASELINE) {
		base = next_base;
		next_base = *now;
	}
}

/* Makes the line after the newest one. False: counter and clock are unrelated. */
static bool compute_next_line(const struct line *line, const struct reading *now)
{
	if (now->counter - line->counter >= STRETCHED) { /* no time was read for a while, or the counter has jumped */
		bool jumped = now->ns < line_at(line, line->counter + LINE);
		base = next_base = *now;
		atomic_store(&newest, line_write(&(struct line){now->counter, now->ns + (jumped ? lead + JUMPED : 0), rate}));
		lead = 0;
		return true;
	}
	int64_t ahead = (int64_t)(line_at(line, now->counter) - now->ns);
	if (ahead > ASTRAY || ahead < -ASTRAY)
		return false;
	lead = ahead > 0 ? (uint64_t)ahead : 0;
	measure_rate(now, ahead > SLEWED || ahead < -SLEWED);
	int64_t correction = ahead * (1ll << 32) / REACHED, most = (int64_t)(rate / 16);
	correction = correction > most ? most : correction < -most ? -most : correction;
	struct line next = {.rate = rate - (uint64_t)correction};
	uint32_t number;
	do { /* others use the former line until they see this one, which therefore must not begin long before now */
		next.counter = read_counter();
		next.ns = line_at(line, next.counter);
		number = line_write(&next);
	} while (read_counter() - next.counter > EXACT);
	atomic_store(&newest, number);
	return true;
}

static void make_line(void)
{
	uint32_t number = atomic_load(&newest);
	struct line line;
	struct reading now;
	if (!read_clock_pair(&now))
		return;
	if (number) {
		line_read(number, &line);
		if (now.counter - line.counter < LINE) /* another thread has just made the next line */
			return;
		if (!compute_next_line(&line, &now)) {
			uint64_t counts = now.counter - line.counter;
			atomic_store(&reached, line_at(&line, line.counter + (counts < LINE ? counts : LINE)));
			gmt_clock_stop();
		}
	} else if (now.counter - base.counter >= BASELINE) {
		base = now;
	} else if (now.counter - base.counter >= CALIBRATED) {
		next_base = now;
		measured = 0;
		measure_rate(&now, false);
		atomic_store(&newest, line_write(&(struct line){now.counter, now.ns, rate}));
	}
	latest = now;
}

static void try_make_line(void)
{
	if (atomic_flag_test_and_set(&making))
		return;
	make_line();
	atomic_flag_clear(&making);
}

/* The system's clock, but at least the time that lines have reached. */
static uint64_t system_time_after_lines(void)
{
	uint64_t now = system_now(), least = atomic_load_explicit(&reached, memory_order_relaxed);
	return now > least ? now : least;
}

/* The time while there is no line, or there will be none. */
__attribute__((noinline, cold)) static uint64_t time_without_line(void)
{
	if (!atomic_load(&off))
		try_make_line();
	return atomic_load(&newest) ? gmt_now() : system_time_after_lines();
}

/*
 * The time if the newest line has ended, or began after the counter was read: earlier times were computed with earlier lines.
 */
__attribute__((noinline, cold)) static uint64_t time_beyond_line(void)
{
	struct line line;
	uint32_t number = atomic_load(&newest);
	if (number && line_read(number, &line) && read_counter() - line.counter >= LINE)
		try_make_line();
	number = atomic_load(&newest);
	bool whole = number && line_read(number, &line);
	uint64_t at = read_counter();
	return whole && at - line.counter < STRETCHED ? line_at(&line, at) : system_time_after_lines();
}

static inline uint64_t time_at(uint64_t at)
{
	struct line line;
	bool whole = line_read(atomic_load_explicit(&newest, memory_order_acquire), &line);
	uint64_t counts = at - line.counter;
	if (gmt_likely(whole && counts < LINE))
		return line.ns + (counts * line.rate >> 32);
	return time_beyond_line();
}

uint64_t gmt_now(void)
{
	if (gmt_unlikely(!atomic_load_explicit(&newest, memory_order_relaxed)))
		return time_without_line();
	return time_at(read_counter());
}

uint64_t gmt_about_now(void)
{
	if (gmt_unlikely(!atomic_load_explicit(&newest, memory_order_relaxed)))
		return time_without_line();
	return time_at(__rdtsc());
}

/* The processor may be an emulator's, which reports what it lacks. */
static bool counter_readable(void)
{
	const unsigned extended = 0x80000001, rdtscp = 1u << 27;
	unsigned a, b, c, d;
	return __get_cpuid(extended, &a, &b, &c, &d) && d & rdtscp && gmt_clock_permitted() && !atomic_load(&refused);
}

/* Whether the kernel trusts the counter to be the same on all processors, and at all times. */
static bool counter_trusted(void)
{
	char name[8] = "";
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool ours = read(fd, name, sizeof name - 1) == 4 && strcmp(name, "tsc\n") == 0;
	close(fd);
	return ours;
}

void gmt_clock_start(void)
{
	if (counter_readable() && counter_trusted() && read_clock_pair(&base))
		atomic_store(&off, false);
}

void gmt_clock_stop(void)
{
	atomic_store(&off, true);
	atomic_store(&newest, 0);
}

/* Has no further line made: the flag stays set. In a forked child, a thread that is gone may have set it. */
void gmt_clock_note_refusal(void)
{
	atomic_store(&refused, true);
	for (int i = 0; i < 10000 && atomic_flag_test_and_set(&making); i++)
		sched_yield();
	gmt_clock_stop();
	tell_core_of_refusal();
}

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/*
 * Whether an address is in the kernel's vdso, whose clock takes a counter of 0 for one that is a tick behind, if it reads the
 * counter at all.
 */
static bool is_in_vdso(uintptr_t at)
{
	const uintptr_t most = 16384;
	return at - getauxval(AT_SYSINFO_EHDR) < most && counter_trusted();
}

bool gmt_clock_handle_trap(void *context, bool inside)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t at = (uintptr_t)registers[REG_RIP];
	if (!(at >= (uintptr_t)__ehdr_start && at < (uintptr_t)_end) && !(inside && is_in_vdso(at)))
		return false;
	const char *code = (const char *)at;
	int length = memcmp(code, "\x0f\x31", 2) == 0 ? 2 : memcmp(code, "\x0f\x01\xf9", 3) == 0 ? 3 : 0; /* rdtsc, rdtscp */
	if (!length)
		return false;
	if (atomic_load(&refused))
		gmt_clock_stop(); /* in case the thread was making a line */
	else
		gmt_clock_note_refusal();
	registers[REG_RAX] = registers[REG_RDX] = 0;
	registers[REG_RIP] += length;
	return true;
}

#else

bool gmt_clock_handle_trap(void *context, bool inside)
{
	(void)context, (void)inside;
	return false;
}

void gmt_clock_start(void)
{
}

void gmt_clock_stop(void)
{
}

void gmt_clock_note_refusal(void)
{
	atomic_store(&refused, true);
	tell_core_of_refusal();
}

uint64_t gmt_now(void)
{
	return system_now();
}

uint64_t gmt_about_now(void)
{
	return system_now();
}

#endif
