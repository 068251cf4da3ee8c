/* flight.c: see flight.h. Describes the process and writes its record as a file. */
#define _GNU_SOURCE
#include "flight.h"

#include "call.h"
#include "flight_counts.h"
#include "lock.h"
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define STACK_DEPTH 16 /* of call sites: walking the stack is most of an event's cost */

static void copy_variable(uint8_t *to, size_t room, const char *const *names)
{
	for (const char *value = NULL; *names && !value; names++) {
		value = secure_getenv(*names);
		if (value)
			strncpy((char *)to, value, room - 1);
	}
}
#define TAKE(field, ...) copy_variable(record->field, sizeof record->field, (const char *const[]){__VA_ARGS__, NULL})

static void describe_process(struct gmtflight *record)
{
	*record = (struct gmtflight){
		.magic = GMT_FLIGHT_MAGIC, .version = GMT_FLIGHT_VERSION, .size = sizeof *record, .pid = (uint32_t)getpid(),
		.uid = (uint32_t)getuid(), .started = gmt_system_clock(CLOCK_REALTIME), .policy = "none",
	};
	if (gethostname((char *)record->host, sizeof record->host - 1) != 0)
		strcpy((char *)record->host, "unknown");
	for (char *slash; (slash = strchr((char *)record->host, '/'));)
		*slash = '_';
	if (readlink("/proc/self/exe", (char *)record->program, sizeof record->program - 1) < 0)
		record->program[0] = 0;
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, record->arguments, sizeof record->arguments - 1) < 0)
		record->arguments[0] = 0;
	if (fd >= 0)
		close(fd);
	/* wire.Place reads these fields. */
	TAKE(job, "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PMIX_NAMESPACE", "PMI_JOBID");
	TAKE(step, "SLURM_STEP_ID", "PBS_ARRAY_INDEX", "LSB_JOBINDEX");
	TAKE(rank, "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX");
	TAKE(labels, GMT_LABEL_ENV);
}

/* Makes the paths absolute: the program may change its working folder later. */
static bool name_flight_files(struct gmt_flight *flight, const char *folder)
{
	char absolute[PATH_MAX];
	const struct gmtflight *r = &flight->record;
	if (!realpath(folder, absolute))
		return false;
	for (int i = 0; i < 2; i++) {
		int n = snprintf(flight->path[i], sizeof flight->path[i], "%s/%s%s-%u-%llu%s", absolute, i ? "." : "", (const char *)r->host,
				 r->pid, (unsigned long long)r->started, i ? ".tmp" : GMT_FLIGHT_SUFFIX);
		if (n < 0 || (size_t)n >= sizeof flight->path[i])
			return false;
	}
	return true;
}

bool gmt_flight_begin(const char *folder)
{
	if (!folder || !*folder)
		return false;
	struct gmt_flight *flight = mmap(NULL, sizeof *flight, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (flight == MAP_FAILED)
		return false;
	describe_process(&flight->record);
	if (!name_flight_files(flight, folder) || madvise(flight, sizeof *flight, MADV_WIPEONFORK) != 0) {
		munmap(flight, sizeof *flight);
		return false;
	}
	flight->began = gmt_now();
	flight->pid = flight->record.pid;
	gmt_session.config = (struct gmtconfig){.tagmode = GMT_TAGS_STACK, .stackdepth = STACK_DEPTH, .policy = "none"};
	gmt_flight = flight;
	return true;
}

static bool write_all(int fd, const char *from, size_t left)
{
	while (left > 0) {
		ssize_t n = write(fd, from, left);
		if (n < 0 && errno != EINTR)
			return false;
		from += n > 0 ? n : 0;
		left -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Writes no file that is larger than the process may write: a signal would end it. */
static void write_file(const struct gmt_flight *flight)
{
	struct rlimit limit;
	if (gmt_session_seccomp_installed() || getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < sizeof flight->record)
		return;
	int fd = open(flight->path[1], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	bool whole = write_all(fd, (const char *)&flight->record, sizeof flight->record);
	if ((close(fd) != 0) | !whole || rename(flight->path[1], flight->path[0]) != 0)
		unlink(flight->path[1]);
}

/* Whether the record is this process's: a child of vfork() has its parent's memory, but another pid. */
static bool is_own_record(const struct gmt_flight *flight)
{
	return flight && flight->pid && flight->pid == (uint32_t)getpid();
}

/* A process may write its record again, which replaces the first one. */
void gmt_flight_write(int status, int signal)
{
	struct gmt_flight *flight = gmt_flight;
	int saved = errno;
	if (!is_own_record(flight))
		return;
	sigset_t all, mask;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	int tries = 10;
	while (atomic_exchange(&flight->busy, 1) && --tries > 0)
		gmt_pause(100000); /* while another thread writes it */
	uint64_t changes = atomic_load(&flight->changes);
	if (tries > 0 && (changes != flight->written || status != flight->record.status || signal)) {
		flight->written = changes;
		flight->record.status = status;
		flight->record.signal = (uint32_t)signal;
		flight->record.ended = gmt_system_clock(CLOCK_REALTIME);
		gmt_flight_sum_up(flight);
		write_file(flight);
	}
	if (tries > 0)
		atomic_store(&flight->busy, 0);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	errno = saved;
}

void gmt_flight_write_again(void)
{
	if (gmt_flight)
		gmt_flight_write(gmt_flight->record.status, 0);
}
