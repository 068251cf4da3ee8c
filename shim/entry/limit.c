/*
 * limit.c: the limit of threads of its user (RLIMIT_NPROC) that the program sets, as shells do. gpumemtop's threads count for
 * the same user, so the kernel gets a higher limit that leaves them room, and the program reads back the limit that it set.
 */
#define _GNU_SOURCE
#include "../base/opencl.h"
#include "../base/session.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAR 4096u /* threads: with a higher limit gpumemtop's make no difference */
#define GROWS 8   /* threads that gpumemtop may start later: its runtime adds one when another blocks */

#if !defined(GMT_NO_DLSYM) && (defined(__x86_64__) || defined(__aarch64__)) /* our own syscall() sets errno */

static struct rlimit wanted, granted; /* the limit that the program has set, and the one that the kernel got instead */

/*
 * The threads of gpumemtop that count for this user. Its pid is in the name of the session's folder, and /proc/PID/task has a
 * link for each thread. Root has no such limit.
 */
static rlim_t threads_of_gpumemtop(void)
{
	char tasks[64];
	unsigned number = 0;
	struct stat about;
	uid_t user = geteuid();
	const char *folder = secure_getenv(GMT_SESSION_ENV), *name = folder ? strrchr(folder, '/') : NULL;
	if (user == 0 || !name || sscanf(name, "/gpumemtop-%u-", &number) != 1)
		return 0;
	(void)snprintf(tasks, sizeof tasks, "/proc/%u/task", number);
	if (syscall(SYS_newfstatat, AT_FDCWD, tasks, &about, 0) != 0 || about.st_uid != user)
		return 0;
	return (rlim_t)about.st_nlink - 2 + GROWS;
}

static long ask_kernel(pid_t process, int resource, const struct rlimit *limit, struct rlimit *before)
{
	return syscall(SYS_prlimit64, process, resource, limit, before);
}

static bool limits_equal(const struct rlimit *one, const struct rlimit *other)
{
	return one->rlim_cur == other->rlim_cur && one->rlim_max == other->rlim_max;
}

/* Shows the program the limit that it has set, not the one that was granted. */
static void show_wanted_limit(struct rlimit *limit)
{
	if (limits_equal(limit, &granted))
		*limit = wanted;
}

static rlim_t raised_limit(rlim_t limit, rlim_t more, rlim_t most)
{
	if (limit >= FAR)
		return limit;
	return limit + more < most ? limit + more : most;
}

/* Sets the limit, raised by more threads. The call fails if it would fail without us. */
static int limit_threads(pid_t process, const struct rlimit *limit, struct rlimit *before, rlim_t more)
{
	struct rlimit now, shown, wide;
	if (ask_kernel(process, RLIMIT_NPROC, NULL, &now) != 0)
		return -1;
	shown = now;
	show_wanted_limit(&shown);
	wide.rlim_max = raised_limit(limit->rlim_max, more, limit->rlim_max <= shown.rlim_max ? now.rlim_max : RLIM_INFINITY);
	wide.rlim_cur = raised_limit(limit->rlim_cur, more, limit->rlim_cur <= limit->rlim_max ? wide.rlim_max : RLIM_INFINITY);
	if (ask_kernel(process, RLIMIT_NPROC, &wide, NULL) != 0)
		return -1;
	wanted = *limit;
	granted = wide;
	if (before)
		*before = shown;
	return 0;
}

GMT_HOOK int hook_prlimit(pid_t process, int resource, const struct rlimit *limit, struct rlimit *before) __asm__("prlimit");
GMT_HOOK int hook_prlimit(pid_t process, int resource, const struct rlimit *limit, struct rlimit *before)
{
	bool ours = resource == RLIMIT_NPROC && (process == 0 || process == getpid());
	rlim_t more = ours && limit ? threads_of_gpumemtop() : 0;
	if (more)
		return limit_threads(process, limit, before, more);
	int err = (int)ask_kernel(process, resource, limit, before);
	if (ours && before && err == 0)
		show_wanted_limit(before);
	return err;
}

/* setrlimit and setrlimit64 are the same: a limit has 64 bits in both. */
GMT_HOOK int hook_setrlimit(int resource, const struct rlimit *limit) __asm__("setrlimit");
GMT_HOOK int hook_setrlimit(int resource, const struct rlimit *limit)
{
	return hook_prlimit(0, resource, limit, NULL);
}

GMT_HOOK int hook_getrlimit(int resource, struct rlimit *limit) __asm__("getrlimit");
GMT_HOOK int hook_getrlimit(int resource, struct rlimit *limit)
{
	return hook_prlimit(0, resource, NULL, limit);
}

_Static_assert(sizeof(struct rlimit) == sizeof(struct rlimit64), "the same on all machines of ours");
GMT_HOOK int hook_prlimit64(pid_t, int, const struct rlimit *, struct rlimit *) __asm__("prlimit64") __attribute__((alias("prlimit")));
GMT_HOOK int hook_setrlimit64(int, const struct rlimit *) __asm__("setrlimit64") __attribute__((alias("setrlimit")));
GMT_HOOK int hook_getrlimit64(int, struct rlimit *) __asm__("getrlimit64") __attribute__((alias("getrlimit")));

#endif
