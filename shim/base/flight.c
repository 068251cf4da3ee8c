/* flight.c: who this process is, and its record as a file. */
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

#define STACK_DEPTH 16 /* of call sites: the walk is what an event costs most */

static void take_variable(uint8_t *to, size_t room, const char *const *names)
{
	for (const char *value = NULL; *names && !value; names++) {
		value = secure_getenv(*names);
		if (value)
			strncpy((char *)to, value, room - 1);
	}
}
#define TAKE(field, ...) take_variable(record->field, sizeof record->field, (const char *const[]){__VA_ARGS__, NULL})

static void describe(struct gmtflight *record)
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
	/* As wire.Place has it. */
	TAKE(job, "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PMIX_NAMESPACE", "PMI_JOBID");
	TAKE(step, "SLURM_STEP_ID", "PBS_ARRAY_INDEX", "LSB_JOBINDEX");
	TAKE(rank, "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX");
	TAKE(labels, GMT_LABEL_ENV);
}

/* The program may change its working folder later. */
static bool name_files(struct gmt_flight *flight, const char *folder)
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
	describe(&flight->record);
	if (!name_files(flight, folder) || madvise(flight, sizeof *flight, MADV_WIPEONFORK) != 0) {
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

/* A file larger than the process may write would end it with a signal. */
static void write_file(const struct gmt_flight *flight)
{
	struct rlimit limit;
	if (gmt_session_filtered() || getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < sizeof flight->record)
		return;
	int fd = open(flight->path[1], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	bool whole = write_all(fd, (const char *)&flight->record, sizeof flight->record);
	if ((close(fd) != 0) | !whole || rename(flight->path[1], flight->path[0]) != 0)
		unlink(flight->path[1]);
}

/* The pid: a child of vfork() has our memory. */
static bool ours(const struct gmt_flight *flight)
{
	return flight && flight->pid && flight->pid == (uint32_t)getpid();
}

/* The second record of a process, with what changed since, replaces the first. */
void gmt_flight_write(int status, int signal)
{
	struct gmt_flight *flight = gmt_flight;
	int saved = errno;
	if (!ours(flight))
		return;
	sigset_t all, mask;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	int tries = 10;
	while (atomic_exchange(&flight->busy, 1) && --tries > 0)
		gmt_pause(100000); /* another thread writes it */
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
