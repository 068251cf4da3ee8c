/* test_flight.c: the flight log of a process without a session. */
#include "../../internal/wire/flight.h"
#include "harness.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/gpumemtop-flight-XXXXXX";
static struct gmtflight record;

/* Before the first OpenCL call. */
static void logs(void)
{
	CHECK(mkdtemp(folder));
	unsetenv(GMT_SESSION_ENV);
	setenv(GMT_LOG_ENV, folder, 1);
	setenv("SLURM_PROCID", "17", 1);
}

/* Takes the only record, and removes the folder. Returns how many files there were. */
static int files(void)
{
	DIR *dir = opendir(folder);
	CHECK(dir);
	int count = 0;
	for (struct dirent *entry; (entry = readdir(dir));) {
		char path[sizeof folder + 300];
		struct stat info;
		if (entry->d_name[0] == '.' && (!entry->d_name[1] || entry->d_name[1] == '.'))
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		count++;
		CHECK(stat(path, &info) == 0);
		EQUAL(info.st_mode & 0777, 0600);
		EQUAL(info.st_size, sizeof record);
		FILE *file = fopen(path, "rb");
		CHECK(file && fread(&record, sizeof record, 1, file) == 1);
		fclose(file);
		unlink(path);
	}
	closedir(dir);
	rmdir(folder);
	return count;
}

/* How a child ends that has run. */
static int ended(void (*run)(void))
{
	fflush(NULL);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		run();
		_exit(99);
	}
	int status = -1;
	CHECK(waitpid(child, &status, 0) == child);
	return status;
}

static void work(void)
{
	world.context = new_context();
	cl_mem kept = new_buffer(1000), large = new_buffer(5000), last = NULL;
	OK(clReleaseMemObject(large));
	OK(clRetainMemObject(kept));
	OK(clReleaseMemObject(kept));
	for (int i = 0; i < 3; i++)
		last = new_buffer(300);
	OK(clReleaseMemObject(last));
}

static void check_record(int status, int signal)
{
	EQUAL(files(), 1);
	EQUAL(record.magic, GMT_FLIGHT_MAGIC);
	EQUAL(record.status, status);
	EQUAL(record.signal, signal);
	EQUAL(record.total.creates, 5);
	EQUAL(record.total.releases, 2);
	EQUAL(record.total.bytes, 6900);
	EQUAL(record.total.inuse, 1600);
	EQUAL(record.total.peak, 6000);
	EQUAL(record.sizes[9], 1);  /* 512 to 1023 */
	EQUAL(record.sizes[12], 1); /* 4096 to 8191 */
	EQUAL(record.sizes[8], 3);
	CHECK(strcmp((const char *)record.rank, "17") == 0);
	EQUAL(record.sites[0].counts.peak, 5000);
	CHECK(record.sites[0].depth > 0 && record.sites[0].frames[0].module == 1);
	CHECK(strstr((const char *)record.modules[0].path, "/tests"));
	CHECK(record.ended >= record.started);
}

static void returns(void)
{
	work();
	exit(6);
}

TEST(a_flight_log_has_one_record_of_an_exit)
{
	logs();
	EQUAL(ended(returns), 6 << 8);
	check_record(6, 0);
}

static void by_signal(void)
{
	work();
	raise(SIGTERM);
}

TEST(a_flight_log_has_a_record_of_a_signal)
{
	logs();
	EQUAL(ended(by_signal), SIGTERM);
	check_record(-1, SIGTERM);
}

#ifndef GMT_NO_DLSYM /* sanitizers have these to themselves */

static volatile uintptr_t nowhere = 8;

static void faults(void)
{
	work();
	*(volatile int *)nowhere = 0;
}

TEST(a_flight_log_has_a_record_of_a_fault)
{
	logs();
	EQUAL(ended(faults) & 0x7f, SIGSEGV);
	check_record(-1, SIGSEGV);
}

#ifdef __x86_64__

/* By an instruction of our own, which no hook sees. */
static void give_up_the_counter(void)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "0"((long)SYS_prctl), "D"((long)PR_SET_TSC), "S"((long)PR_TSC_SIGSEGV) : "rcx", "r11", "memory");
	EQUAL(result, 0);
}

static void creates_without_counter(void)
{
	struct timespec pause = {.tv_nsec = 5000000};
	world.context = new_context();
	OK(clReleaseMemObject(new_buffer(64)));
	nanosleep(&pause, NULL); /* the clock finds its rate */
	OK(clReleaseMemObject(new_buffer(64)));
	give_up_the_counter();
	for (int i = 0; i < 1000; i++)
		OK(clReleaseMemObject(new_buffer(64)));
}

static void returns_without_counter(void)
{
	creates_without_counter();
	exit(8);
}

TEST(a_flight_log_needs_no_counter)
{
	logs();
	EQUAL(ended(returns_without_counter), 8 << 8);
	EQUAL(files(), 1);
	EQUAL(record.total.creates, 1002);
	EQUAL(record.status, 8);
}

static void faults_without_counter(void)
{
	creates_without_counter();
	struct sigaction before;
	CHECK(sigaction(SIGSEGV, NULL, &before) == 0 && before.sa_handler == SIG_DFL);
	*(volatile int *)nowhere = 0;
}

static void times_pass(void)
{
	uint64_t latest = 0, count = events(GMT_KIND_CREATE);
	EQUAL(count, 1002);
	for (size_t i = 0; i < 500; i++) {
		struct gmtevent event = event_before(500 - i);
		CHECK(event.time >= latest);
		latest = event.time;
	}
}

TEST(a_session_needs_no_counter)
{
	session_open((struct options){.observe = true});
	creates_without_counter();
	times_pass();
}

TEST(a_pool_needs_no_counter)
{
	session_open((struct options){0});
	creates_without_counter();
	times_pass();
}

TEST(another_fault_ends_a_watched_program)
{
	session_open((struct options){.observe = true});
	EQUAL(ended(faults_without_counter) & 0x7f, SIGSEGV);
}

/* The fault itself ends a program, not a signal in its place: a debugger sees where it was, and what was read. */
TEST(a_fault_keeps_its_address)
{
	session_open((struct options){.observe = true});
	pid_t child = fork();
	if (child == 0) {
		CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
		faults();
	}
	siginfo_t last = {0};
	for (int status; waitpid(child, &status, 0) == child && WIFSTOPPED(status);) {
		CHECK(ptrace(PTRACE_GETSIGINFO, child, NULL, &last) == 0);
		ptrace(PTRACE_CONT, child, NULL, WSTOPSIG(status));
	}
	EQUAL(last.si_signo, SIGSEGV);
	EQUAL(last.si_code, SEGV_MAPERR);
	EQUAL((uintptr_t)last.si_addr, nowhere);
}

static void gets_a_signal(void)
{
	world.context = new_context();
	kill(getpid(), SIGSEGV);
}

TEST(a_signal_of_a_fault_ends_a_watched_program)
{
	session_open((struct options){.observe = true});
	EQUAL(ended(gets_a_signal) & 0x7f, SIGSEGV);
}

#endif

static void at_once(void)
{
	work();
	_exit(7);
}

TEST(a_flight_log_has_a_record_of_exit_at_once)
{
	logs();
	EQUAL(ended(at_once), 7 << 8);
	check_record(7, 0);
}

static void aborts(void)
{
	work();
	abort();
}

TEST(a_flight_log_has_a_record_of_abort)
{
	logs();
	EQUAL(ended(aborts), SIGABRT);
	check_record(-1, SIGABRT);
}

static void on_signal(int number)
{
	_exit(number == SIGTERM ? 12 : 13);
}

static void handles(void)
{
	work();
	struct sigaction before;
	CHECK(sigaction(SIGTERM, NULL, &before) == 0 && before.sa_handler == SIG_DFL);
	CHECK(signal(SIGTERM, on_signal) == SIG_DFL);
	CHECK(signal(SIGTERM, SIG_DFL) == on_signal);
	CHECK(signal(SIGTERM, on_signal) == SIG_DFL);
	raise(SIGTERM);
}

TEST(a_flight_log_leaves_handlers_to_the_program)
{
	logs();
	EQUAL(ended(handles), 12 << 8);
	check_record(12, 0);
}

#endif

static void forks(void)
{
	work();
	EQUAL(ended(by_signal), SIGTERM);
	exit(0);
}

TEST(a_flight_log_is_of_one_process)
{
	logs();
	EQUAL(ended(forks), 0);
	check_record(0, 0);
}

static void too_large(void)
{
	struct rlimit small = {4096, 4096};
	work();
	CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
	exit(3);
}

TEST(a_flight_log_is_not_worth_a_signal)
{
	logs();
	EQUAL(ended(too_large), 3 << 8);
	EQUAL(files(), 0);
}

static void thousands(void)
{
	world.context = new_context();
	for (int i = 0; i < 20000; i++) {
		cl_mem buffer = new_buffer(64);
		OK(clReleaseMemObject(buffer));
	}
	exit(0);
}

TEST(a_flight_log_counts_thousands)
{
	logs();
	EQUAL(ended(thousands), 0);
	EQUAL(files(), 1);
	EQUAL(record.total.creates, 20000);
	EQUAL(record.total.peak, 64);
}

static void leaves_nothing(void)
{
	world.context = new_context();
	OK(clReleaseMemObject(new_buffer(1000)));
	OK(clReleaseContext(world.context));
	exit(6);
}

TEST(without_its_folder_there_is_no_flight_log)
{
	logs();
	rmdir(folder);
	EQUAL(ended(leaves_nothing), 6 << 8);
	CHECK(access(folder, F_OK) != 0);
}
