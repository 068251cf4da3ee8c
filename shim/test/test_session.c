/* test_session.c: with a session and without, forks, the end of the process. */
#define _GNU_SOURCE
#include "harness.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

/* OpenCL works as if we were not there. */
static void transparent(void)
{
	world.context = new_context();
	world.queue = new_queue(world.context, 0);
	for (int i = 0; i < 3; i++) {
		cl_mem buffer = new_buffer(1000);
		EQUAL(fake_size(buffer), 1000);
		use(world.queue, buffer);
		OK(clReleaseMemObject(buffer));
	}
	OK(clFinish(world.queue));
	EQUAL(fake.creates, 3);
	EQUAL(fake.releases, 3);
	EQUAL(fake.markers, 0);
	end_clean();
	CHECK(!session_read());
}

static char core[128], part[136];

static void hide_core(void)
{
	session_open((struct options){0});
	snprintf(core, sizeof core, "%s/%s", getenv(GMT_SESSION_ENV), GMT_CORE_NAME);
	snprintf(part, sizeof part, "%s.part", core);
	EQUAL(rename(core, part), 0);
}

static void *show_core(void *unused)
{
	usleep(30000);
	EQUAL(rename(part, core), 0);
	return unused;
}

TEST(it_waits_for_a_core_that_is_being_written)
{
	pthread_t writer;
	hide_core();
	EQUAL(pthread_create(&writer, NULL, show_core, NULL), 0);
	world.context = new_context();
	world.queue = new_queue(world.context, 0);
	EQUAL(pthread_join(writer, NULL), 0);
	for (int i = 0; i < 2; i++)
		OK(clReleaseMemObject(new_buffer(1000)));
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 1);
	EQUAL(diags(GMT_DIAG_TRANSPARENT), 0);
	end_clean();
}

TEST(without_a_core_it_only_watches)
{
	hide_core();
	world.context = new_context();
	world.queue = new_queue(world.context, 0);
	for (int i = 0; i < 2; i++)
		OK(clReleaseMemObject(new_buffer(1000)));
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 0);
	EQUAL(events(GMT_KIND_CREATE), 2);
	EQUAL(diags(GMT_DIAG_TRANSPARENT), 1);
	EQUAL(rename(part, core), 0);
	end_clean();
}

/* In a process with threads a larger table of descriptors costs milliseconds. */
TEST(it_needs_no_larger_table_of_descriptors)
{
	bool before[256];
	for (int fd = 64; fd < 256; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	begin((struct options){0});
	OK(clReleaseMemObject(new_buffer(4096)));
	for (int fd = 64; fd < 256; fd++)
		EQUAL(fcntl(fd, F_GETFD) >= 0, before[fd]);
	end_clean();
}

TEST(without_the_variable_it_is_transparent)
{
	session_open((struct options){0});
	unsetenv(GMT_SESSION_ENV);
	transparent();
}

TEST(with_an_empty_variable_it_is_transparent)
{
	session_open((struct options){0});
	setenv(GMT_SESSION_ENV, "", 1);
	transparent();
}

TEST(without_the_folder_it_is_transparent)
{
	session_open((struct options){0});
	setenv(GMT_SESSION_ENV, "/nonexistent/gmt", 1);
	transparent();
}

TEST(with_a_folder_name_too_long_it_is_transparent)
{
	static char name[5000];
	session_open((struct options){0});
	memset(name, 'x', sizeof name - 1);
	setenv(GMT_SESSION_ENV, name, 1);
	transparent();
}

TEST(with_another_version_it_is_transparent)
{
	session_open((struct options){.otherversion = true});
	transparent();
}

TEST(without_a_socket_it_is_transparent)
{
	session_open((struct options){.nosocket = true});
	transparent();
}

static void in_child(void (*run)(void))
{
	fflush(NULL);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		run();
		_exit(0);
	}
	int status = -1;
	CHECK(waitpid(child, &status, 0) == child);
	EQUAL(status, 0);
}

static cl_mem inherited;

static void use_after_fork(void)
{
	uint64_t creates = fake.creates;
	for (int i = 0; i < 2; i++) {
		cl_mem buffer = new_buffer(3000);
		EQUAL(fake_size(buffer), 3000);
		use(world.queue, buffer);
		OK(clReleaseMemObject(buffer));
	}
	EQUAL(fake.creates, creates + 2);
	OK(clReleaseMemObject(inherited));
	OK(clFinish(world.queue));
	CHECK(clCreateUserEvent(world.context, NULL));
}

TEST(a_forked_child_is_transparent)
{
	begin((struct options){0});
	inherited = new_buffer(100);
	size_t creates = events(GMT_KIND_CREATE);
	in_child(use_after_fork);
	EQUAL(events(GMT_KIND_CREATE), creates);
	EQUAL(diags(GMT_DIAG_FORKED), 1);
	EQUAL(events(GMT_KIND_EXIT), 0);
	OK(clReleaseMemObject(inherited));
	EQUAL(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_CACHED), 1);
	end_clean();
}

static char *shared, *pooled;

static void use_shared_after_fork(void)
{
	uint64_t live = fake.livepointers;
	char *own = clSVMAlloc(world.context, 0, 3000, 0);
	CHECK(own && own != pooled);
	EQUAL(fake.livepointers, live + 1);
	OK(clEnqueueSVMMemFill(world.queue, shared + 8, "z", 1, 8, 0, NULL, NULL));
	OK(clFinish(world.queue));
	EQUAL(shared[8], 'z');
	clSVMFree(world.context, own);
	clSVMFree(world.context, shared);
	EQUAL(fake.livepointers, live - 1);
	CHECK(fake_is_freed(shared));
}

/* The child has a copy of what the parent has in use and in the pool, and nothing that it does shows here. */
TEST(a_forked_child_has_the_shared_memory_of_its_parent)
{
	begin((struct options){0});
	shared = clSVMAlloc(world.context, 0, 3000, 0);
	pooled = clSVMAlloc(world.context, 0, 3000, 0);
	clSVMFree(world.context, pooled);
	in_child(use_shared_after_fork);
	EQUAL(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_CACHED), 1);
	CHECK(clSVMAlloc(world.context, 0, 3000, 0) == pooled);
	clSVMFree(world.context, shared);
	clSVMFree(world.context, pooled);
	EQUAL(outcomes(GMT_KIND_RELEASE, GMT_OUTCOME_CACHED), 3);
	end_clean();
}

static void be_a_target(void)
{
	world.context = new_context();
	uint64_t creates = fake.creates;
	OK(clReleaseMemObject(new_buffer(100)));
	CHECK(new_buffer(100));
	EQUAL(fake.creates, creates + 1);
	exit(0);
}

TEST(a_child_forked_before_is_a_process_like_any_other)
{
	session_open((struct options){0});
	in_child(be_a_target);
	EQUAL(outcomes(GMT_KIND_CREATE, GMT_OUTCOME_HIT), 1);
	EQUAL(diags(GMT_DIAG_FORKED), 0);
}

TEST(the_end_of_the_process_is_told)
{
	session_open((struct options){0});
	in_child(be_a_target);
	EQUAL(events(GMT_KIND_EXIT), 1);
	EQUAL(last_event(GMT_KIND_EXIT).status, 0);
}

static void hold_events(void)
{
	world.context = new_context();
	for (int i = 0; i < 10; i++)
		CHECK(clCreateUserEvent(world.context, NULL));
	exit(0);
}

TEST(what_is_held_at_the_end_of_the_process_is_told)
{
	session_open((struct options){0});
	in_child(hold_events);
	EQUAL(held_now(GMT_HELD_EVENT).created, 10);
}

static void die_at_once(void)
{
	world.context = new_context();
	CHECK(new_buffer(100));
	_exit(0);
}

TEST(events_outlive_a_process_that_calls_exit_at_once)
{
	session_open((struct options){0});
	in_child(die_at_once);
	EQUAL(events(GMT_KIND_CREATE), 1);
	EQUAL(events(GMT_KIND_EXIT), 0);
}

static void by_caller(uint32_t mode, size_t first, size_t second)
{
	begin((struct options){.tagmode = mode});
	size_t before = events(GMT_KIND_TAG); /* of context and queue */
	uint32_t tags[4];
	for (int i = 0; i < 4; i++) {
		cl_mem buffer = i % 2 ? clCreateBuffer(world.context, 0, first, NULL, NULL)
				      : clCreateBuffer(world.context, 0, second, NULL, NULL);
		OK(clReleaseMemObject(buffer));
		tags[i] = last_event(GMT_KIND_CREATE).tag;
		EQUAL(last_event(GMT_KIND_RELEASE).tag, tags[i]);
	}
	CHECK(tags[0] != 0 && tags[1] != 0 && tags[0] != tags[1]);
	EQUAL(tags[0], tags[2]);
	EQUAL(tags[1], tags[3]);
	EQUAL(events(GMT_KIND_TAG) - before, 2);
	EQUAL(last_event(GMT_KIND_TAG).op, mode);
	end_clean();
}

TEST(tags_by_caller)
{
	by_caller(GMT_TAGS_CALLER, 10, 10);
	EQUAL(events(GMT_KIND_MODULE), 1);
	EQUAL(last_event(GMT_KIND_TAG).size, sizeof(struct gmtframe));
	CHECK(strstr(last_text(GMT_KIND_MODULE), "/tests"));
}

TEST(tags_by_stack)
{
	by_caller(GMT_TAGS_STACK, 10, 10);
	CHECK(last_event(GMT_KIND_TAG).size >= 3 * sizeof(struct gmtframe));
	struct gmtframe innermost;
	memcpy(&innermost, last_text(GMT_KIND_TAG), sizeof innermost); /* ours are left out */
	EQUAL(innermost.module, 1);
}

TEST(tags_by_size)
{
	by_caller(GMT_TAGS_SIZE, 1000, 3000);
	CHECK(last_event(GMT_KIND_TAG).link == 1024 || last_event(GMT_KIND_TAG).link == 4096);
}

TEST(no_tags)
{
	begin((struct options){0});
	OK(clReleaseMemObject(new_buffer(10)));
	EQUAL(last_event(GMT_KIND_CREATE).tag, 0);
	EQUAL(events(GMT_KIND_TAG), 0);
	end_clean();
}

extern char **environ;
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden"))); /* of the test, from the static linker */

/* What starts another program: all of the C library's functions that do. */
static const char *const ways[] = {
	"execv",       "execve",       "execvp",  "execvpe",  "execl",  "execle", "execlp",
	"posix_spawn", "posix_spawnp", "fexecve", "execveat", "system", "popen",  "wordexp",
	"pidfd_spawn", "pidfd_spawnp",
#ifndef GMT_NO_DLSYM /* sanitizers have hooks of their own */
	"dlsym",
#if defined(__x86_64__) || defined(__aarch64__)
	"syscall", "syscall at",
#endif
#endif
};
static const char *way;

#define SCRIPT "test \"$LD_PRELOAD-$KEPT\" = libm.so.6-1 && exit 3"
#define SHELL "/bin/sh", "sh", "-c", SCRIPT, NULL

/* Those that start a shell by themselves. Returns its status. */
static int shell(void)
{
	if (strcmp(way, "system") == 0)
		return system(SCRIPT);
	if (strcmp(way, "popen") == 0)
		return pclose(popen(SCRIPT, "r"));
	wordexp_t words = {0};
	CHECK(wordexp("$(" SCRIPT "; echo $?)", &words, 0) == 0);
	return words.we_wordc == 0 ? 3 << 8 : 0; /* the script has ended before its echo */
}

/* By a function that the program looks up in the C library itself. */
static void exec_of_libc(char **program)
{
	int (*function)(const char *, char *const *, char *const *);
	void *found = dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "execve");
	memcpy(&function, &found, sizeof found);
	function(program[0], program + 1, environ);
}

/* The process that a descriptor stands for. */
static pid_t pid_of(int fd)
{
	char name[64], text[512] = "";
	snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
	int file = open(name, O_RDONLY | O_CLOEXEC);
	CHECK(read(file, text, sizeof text - 1) > 0 && strstr(text, "Pid:"));
	close(file);
	return (pid_t)strtol(strstr(text, "Pid:") + strlen("Pid:"), NULL, 10);
}

/* By pidfd_spawn or pidfd_spawnp; without the latter's search where the C library, before 2.39, has neither. */
static pid_t pidfd_child(char **program)
{
	int (*function)(int *, const char *, const void *, const void *, char *const *, char *const *);
	void *ours = dlsym(RTLD_DEFAULT, way), *theirs = dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), way);
	pid_t child = 0;
	int fd = -1;
	memcpy(&function, &ours, sizeof ours);
	int status = function(&fd, program[strcmp(way, "pidfd_spawnp") == 0], NULL, NULL, program + 1, environ);
	EQUAL(status, theirs ? 0 : ENOSYS);
	if (!theirs)
		EQUAL(posix_spawn(&child, program[0], NULL, NULL, program + 1, environ), 0);
	else
		child = pid_of(fd);
	return child;
}

/* Starts a shell, which ends with 3 if our library is not in its environment, and all else is. */
static void start_another(void)
{
	char *program[] = {SHELL};
	pid_t child = 0;
	int status = 0, ended = 0;
	static const char *const lists[] = {"/nonexistent/" GMT_SHIM_NAME ":libm.so.6", "libm.so.6:/nonexistent/" GMT_SHIM_NAME};
	setenv("LD_PRELOAD", lists[strlen(way) % 2], 1);
	setenv("KEPT", "1", 1);
	if (strcmp(way, "execv") == 0)
		execv(program[0], program + 1);
	else if (strcmp(way, "execve") == 0)
		execve(program[0], program + 1, environ);
	else if (strcmp(way, "execvp") == 0)
		execvp(program[1], program + 1);
	else if (strcmp(way, "execvpe") == 0)
		execvpe(program[1], program + 1, environ);
	else if (strcmp(way, "execl") == 0)
		execl(SHELL);
	else if (strcmp(way, "execle") == 0)
		execle(SHELL, environ);
	else if (strcmp(way, "execlp") == 0)
		execlp(SHELL);
	else if (strcmp(way, "fexecve") == 0)
		fexecve(open(program[0], O_RDONLY | O_CLOEXEC), program + 1, environ);
	else if (strcmp(way, "execveat") == 0)
		execveat(AT_FDCWD, program[0], program + 1, environ, 0);
	else if (strcmp(way, "syscall") == 0)
		syscall(SYS_execve, program[0], program + 1, environ);
	else if (strcmp(way, "syscall at") == 0)
		syscall(SYS_execveat, AT_FDCWD, program[0], program + 1, environ, 0);
	else if (strcmp(way, "dlsym") == 0)
		exec_of_libc(program);
	else if (way[0] == 's' || strcmp(way, "popen") == 0 || way[0] == 'w')
		_exit(WEXITSTATUS(shell()));
	else if (strcmp(way, "posix_spawn") == 0)
		status = posix_spawn(&child, program[0], NULL, NULL, program + 1, environ);
	else if (strncmp(way, "pidfd", 5) == 0)
		child = pidfd_child(program);
	else
		status = posix_spawnp(&child, program[1], NULL, NULL, program + 1, environ);
	CHECK(status == 0 && child > 0 && waitpid(child, &ended, 0) == child);
	_exit(WEXITSTATUS(ended));
}

/* A socket that a session has in no folder: where a process reports, whatever files it sees. */
static int ear_of(const char *folder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s/" GMT_OUTSIDERS_NAME, folder);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0);
	return fd;
}

static int ear(void)
{
	return ear_of("/nonexistent");
}

TEST(out_of_reach_of_our_library_programs_start_without_it)
{
	char text[GMT_OUTSIDER_MAX];
	int reports = ear();
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		way = ways[i];
		pid_t child = fork();
		if (child == 0)
			start_another();
		int status;
		EQUAL(waitpid(child, &status, 0), child);
		CHECK(WIFEXITED(status));
		if (WEXITSTATUS(status) != 3)
			test_fail(__FILE__, __LINE__, way, WEXITSTATUS(status), 3);
		ssize_t length = recv(reports, text, sizeof text, 0);
		CHECK(length > 2 && memcmp(text + length - 3, "sh", 3) == 0);
	}
	close(reports);
}

/* Writes a program, executes it, which fails in that way, and expects a report that it is not watched. */
static void start_foreign(int reports, const char *name, const void *data, size_t bytes, int why)
{
	char program[PATH_MAX], text[GMT_OUTSIDER_MAX];
	snprintf(program, sizeof program, "%s", path_beside(name));
	int file = open(program, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	EQUAL(write(file, data, bytes), (ssize_t)bytes);
	close(file);
	char *words[] = {program, NULL};
	CHECK(execve(program, words, environ) == -1);
	EQUAL(errno, why);
	EQUAL(recv(reports, text, sizeof text, 0), strlen(program) + 2);
	CHECK(text[0] == GMT_OUTSIDER_FOREIGN && strcmp(text + 1, program) == 0);
}

/* A program of another machine, one of musl's, a script of that, found in PATH: each so little of it that no kernel runs it. */
TEST(programs_for_another_machine_or_libc_start_without_our_library)
{
	char list[PATH_MAX + 8], script[PATH_MAX + 8], text[GMT_OUTSIDER_MAX];
	struct {
		ElfW(Ehdr) header;
		ElfW(Phdr) segment;
		char name[32];
	} musl = {.name = "/nonexistent/ld-musl-x.so.1"}, sparc = {.name = ""};
	musl.header = __ehdr_start;
	musl.header.e_type = ET_EXEC;
	musl.header.e_phoff = offsetof(typeof(musl), segment);
	musl.header.e_phnum = 1;
	musl.segment.p_type = PT_INTERP;
	musl.segment.p_offset = offsetof(typeof(musl), name);
	musl.segment.p_filesz = sizeof musl.name;
	memcpy(sparc.header.e_ident, ELFMAG "\x01\x01\x01", EI_VERSION + 1);
	sparc.header.e_type = ET_EXEC;
	sparc.header.e_machine = EM_SPARC;
	snprintf(list, sizeof list, "%s", path_beside(GMT_SHIM_NAME));
	setenv("LD_PRELOAD", list, 1);
	list[strlen(list) - strlen("/" GMT_SHIM_NAME)] = '\0';
	int reports = ear_of(list);
	start_foreign(reports, "sparc", &sparc, 20, ENOEXEC);
	start_foreign(reports, "musl", &musl, sizeof musl, ENOENT);
	snprintf(script, sizeof script, "#! %s x\n", path_beside("musl"));
	start_foreign(reports, "script", script, strlen(script), ENOENT);
	char *words[] = {"script", NULL};
	setenv("PATH", list, 1);
	CHECK(execvp("script", words) == -1);
	EQUAL(recv(reports, text, sizeof text, 0), strlen("script") + 2);
#ifndef GMT_NO_DLSYM /* sanitizers look at the text */
	char *volatile nowhere = (char *)8;
	CHECK(execve(nowhere, words, environ) == -1 && errno == EFAULT);
#endif
	unlink(path_beside("sparc"));
	unlink(path_beside("musl"));
	unlink(path_beside("script"));
	close(reports);
}

TEST(within_reach_of_our_library_the_environment_stays)
{
	char list[PATH_MAX + 8];
	wordexp_t words = {0};
	snprintf(list, sizeof list, "%s:libm.so.6", path_beside(GMT_SHIM_NAME));
	setenv("LD_PRELOAD", list, 1);
	int reports = ear();
	EQUAL(wordexp("word", &words, WRDE_NOCMD), 0); /* starts no shell */
	wordfree(&words);
	CHECK(strcmp(getenv("LD_PRELOAD"), list) == 0);
	EQUAL(recv(reports, list, sizeof list, 0), -1);
	close(reports);
}

/* Before the first context; once for each answer, and only in a run. */
TEST(which_devices_were_asked_for_is_reported)
{
	char text[GMT_OUTSIDER_MAX];
	cl_device_id device;
	cl_uint count = 7;
	int reports = ear();
	unsetenv(GMT_SESSION_ENV);
	EQUAL(clGetDeviceIDs(NULL, CL_DEVICE_TYPE_CPU, 0, NULL, &count), CL_SUCCESS);
	EQUAL(count, 1);
	CHECK(recv(reports, text, sizeof text, 0) < 0);
	setenv(GMT_SESSION_ENV, "/nonexistent", 1);
	for (int i = 0; i < 2; i++) {
		EQUAL(clGetDeviceIDs(NULL, CL_DEVICE_TYPE_ACCELERATOR, 1, &device, &count), CL_DEVICE_NOT_FOUND);
		EQUAL(clGetDeviceIDs(NULL, CL_DEVICE_TYPE_ALL, 1, &device, NULL), CL_SUCCESS);
	}
	CHECK(recv(reports, text, sizeof text, 0) > 0 && strcmp(text, "\2" "8 -1 0") == 0);
	CHECK(recv(reports, text, sizeof text, 0) > 0 && strcmp(text, "\2" "ffffffff 0 1") == 0);
	CHECK(recv(reports, text, sizeof text, 0) < 0);
	close(reports);
}
