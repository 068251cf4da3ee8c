/* test_room.c: processes that the core does not fit into. */
#define _GNU_SOURCE
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void refuse_threads(void)
{
	struct sock_filter filter[] = { /* the flags of clone3 are out of reach: the C library then calls clone */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
	EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	EQUAL(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* Of another user than root, who has no limit. */
static void allow_forty_threads(void)
{
	if (geteuid() == 0) {
		const char *directory = getenv(GMT_SESSION_ENV), *names[] = {".", GMT_CONFIG_NAME, GMT_SOCKET_NAME};
		for (int i = 0; i < 3; i++) {
			char path[4096];
			(void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
			EQUAL(chmod(path, 0777), 0);
		}
		EQUAL(setresuid(54321, 54321, 54321), 0);
	}
	EQUAL(setrlimit(RLIMIT_NPROC, &(struct rlimit){40, 40}), 0);
}

/* Leaves a limit of address space or of data that is above what is used by that many MiB. */
static void leave(const char *field, int limit, unsigned long long mebibytes)
{
	char line[256];
	unsigned long long kibibytes = 0;
	FILE *status = fopen("/proc/self/status", "re");
	CHECK(status);
	while (fgets(line, sizeof line, status))
		if (strncmp(line, field, strlen(field)) == 0)
			kibibytes = strtoull(line + strlen(field), NULL, 10);
	fclose(status);
	CHECK(kibibytes > 0);
	rlim_t most = (kibibytes << 10) + (mebibytes << 20);
	EQUAL(setrlimit((__rlimit_resource_t)limit, &(struct rlimit){most, most}), 0);
}

static void refuse_address_space(void)
{
	leave("VmSize:", RLIMIT_AS, 2048);
}

static void refuse_data(void)
{
	leave("VmData:", RLIMIT_DATA, 256);
}

static void only_watched(void (*refuse)(void), const char *why)
{
	session_open((struct options){0});
	refuse();
	world.context = new_context();
	fake.creates = fake.releases = 0; /* without what images were tried with */
	for (int i = 0; i < 3; i++)
		OK(clReleaseMemObject(new_buffer(1000)));
	EQUAL(fake.creates, 3);
	EQUAL(fake.releases, 3);
	EQUAL(events(GMT_KIND_CREATE), 3);
	EQUAL(diags(GMT_DIAG_TRANSPARENT), 1);
	CHECK(strstr(first_text(GMT_KIND_DIAG), why));
	OK(clReleaseContext(world.context));
}

/* It could kill the program for what we do at the start. */
TEST(behind_a_filter_it_does_not_begin)
{
	session_open((struct options){0});
	refuse_threads();
	world.context = new_context();
	OK(clReleaseMemObject(new_buffer(1000)));
	EQUAL(events(GMT_KIND_CREATE), 0);
	OK(clReleaseContext(world.context));
}

TEST(with_few_threads_left_it_only_watches)
{
	only_watched(allow_forty_threads, "leaves 48");
}

TEST(without_address_space_it_only_watches)
{
	only_watched(refuse_address_space, "address space");
}

/* Whether a thread has descriptors of its own, and none so far. */
static bool has_no_descriptors(const char *thread)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/task/%.20s/fd", thread);
	DIR *folder = opendir(path);
	int entries = 0;
	while (folder && readdir(folder))
		entries++;
	if (folder)
		closedir(folder);
	return entries == 2; /* . and .. */
}

static int threads_without_descriptors(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int without = 0;
	CHECK(tasks);
	for (struct dirent *entry; (entry = readdir(tasks));)
		without += entry->d_name[0] != '.' && has_no_descriptors(entry->d_name);
	closedir(tasks);
	return without;
}

TEST(looks_at_the_memory_left_take_no_descriptor_of_the_program)
{
	begin((struct options){0});
	for (int i = 0; i < 5000 && threads_without_descriptors() == 0; i++)
		usleep(1000); /* until it has started */
	EQUAL(threads_without_descriptors(), 1);
	end_clean();
}

TEST(without_data_it_only_watches)
{
	only_watched(refuse_data, "memory to map");
}

#if !defined(GMT_NO_DLSYM) && (defined(__x86_64__) || defined(__aarch64__))

static struct rlimit limit_of_kernel(void)
{
	struct rlimit limit = {0, 0};
	CHECK(syscall(SYS_prlimit64, 0, RLIMIT_NPROC, NULL, &limit) == 0);
	return limit;
}

/* This process is gpumemtop: one thread, and eight that may come. */
TEST(a_limit_of_threads_leaves_gpumemtop_room)
{
	char folder[64];
	struct rlimit limit = {50, 60}, before = {0, 0};
	snprintf(folder, sizeof folder, "/run/gpumemtop-%d-0a", (int)getpid());
	setenv(GMT_SESSION_ENV, folder, 1);
	if (geteuid() == 0)
		CHECK(setgid(61234) == 0 && setuid(61234) == 0);
	CHECK(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0); /* else root owns what /proc has of it */
	CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0);
	CHECK(limit_of_kernel().rlim_cur == 59 && limit_of_kernel().rlim_max == 69);
	CHECK(getrlimit(RLIMIT_NPROC, &before) == 0 && before.rlim_cur == 50 && before.rlim_max == 60);
	limit.rlim_cur = 60;
	CHECK(prlimit(0, RLIMIT_NPROC, &limit, &before) == 0 && before.rlim_cur == 50 && before.rlim_max == 60);
	CHECK(limit_of_kernel().rlim_cur == 69 && limit_of_kernel().rlim_max == 69);
	limit.rlim_max = 61;
	CHECK(setrlimit(RLIMIT_NPROC, &limit) == -1 && errno == EPERM);
	limit.rlim_cur = 62;
	CHECK(setrlimit(RLIMIT_NPROC, &limit) == -1 && errno == EINVAL);
	CHECK(getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur == 60 && limit.rlim_max == 60);
}

/* Root has none that binds, and without a session there is no gpumemtop. */
TEST(a_limit_of_threads_is_as_it_is_set)
{
	struct rlimit limit = {50, 5000};
	setenv(GMT_SESSION_ENV, "/run/gpumemtop-x", 1);
	CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0);
	CHECK(limit_of_kernel().rlim_cur == 50 && limit_of_kernel().rlim_max == 5000);
}

#endif
