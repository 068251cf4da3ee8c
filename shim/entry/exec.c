/*
 * exec.c: a process that can no longer open our library, as after chroot, a mount over its folder or landlock, starts programs
 * without it: their dynamic linker would complain that it cannot load it. So would the linker of a program for another machine,
 * such as one of 32 bits, and musl's would end the program. The process reports to the session that they are not watched.
 *
 * All of it may run in a child of vfork: on the stack, without locks. Only system(), popen() and wordexp() may not.
 */
#define _GNU_SOURCE
#include "../base/dispatch.h"
#include "../base/link.h"
#include "../base/session.h"
#include "exec.h"
#include "foreign.h"

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wordexp.h>

#define VARIABLE "LD_PRELOAD="
#define VARIABLES_MAX 8192 /* most of an environment that we copy: each takes a pointer on the stack */

/* Our library in the list of LD_PRELOAD, where the user's may precede it. NULL: it is not there. */
static const char *find_our_library(const char *list)
{
	static const char name[] = "/" GMT_SHIM_NAME;
	for (const char *at = list; (at = strstr(at, name)); at++) {
		size_t from = (size_t)(at - list), end = from + strlen(name);
		while (from > 0 && !strchr(": ", list[from - 1]))
			from--;
		if (!list[end] || strchr(": ", list[end]))
			return list + from;
	}
	return NULL;
}

/* Whether a program's linker cannot load our library, which is in the list. Reports such a program to the session. */
static bool cannot_load_ours(const char *list, const char *program)
{
	char path[PATH_MAX], report[GMT_OUTSIDER_MAX] = {GMT_OUTSIDER_FOREIGN};
	const char *ours = find_our_library(list);
	size_t length = ours ? strcspn(ours, ": ") : sizeof path, name = strlen("/" GMT_SHIM_NAME);
	if (length >= sizeof path)
		return false;
	memcpy(path, ours, length);
	path[length] = '\0';
	int fd = open(path, O_RDONLY | O_CLOEXEC), why = errno;
	if (fd >= 0)
		close(fd);
	if (fd >= 0 ? !gmt_is_foreign(program) : why != ENOENT && why != ENOTDIR && why != EACCES && why != EPERM)
		return false;
	path[length - name] = '\0';
	if (fd >= 0)
		program = strncpy(report + 1, program, sizeof report - 2) - 1;
	if (!gmt_session_seccomp_installed())
		gmt_link_knock(path, program);
	return true;
}

/* The bytes that a copy of the environment without our library takes; 0: the program gets the environment as it is. */
static size_t size_without_us(char *const *environment, const char *program)
{
	int before = errno;
	const char *list = NULL;
	size_t count = 0;
	for (; environment && environment[count]; count++)
		if (!list && strncmp(environment[count], VARIABLE, strlen(VARIABLE)) == 0)
			list = environment[count] + strlen(VARIABLE);
	size_t room = 0;
	if (list && count <= VARIABLES_MAX && cannot_load_ours(list, program))
		room = (count + 1) * sizeof *environment + strlen(VARIABLE) + strlen(list) + 1;
	errno = before;
	return room;
}

static void copy_without_us(char *to, const char *list)
{
	const char *ours = find_our_library(list), *rest = ours + strcspn(ours, ": ");
	size_t before = (size_t)(ours - list);
	if (!*rest && before)
		before--; /* the separator before our library */
	memcpy(to, list, before);
	strcpy(to + before, rest + (*rest != 0));
}

static char *const *copy_environment_without_us(char *const *environment, void *room)
{
	char **copy = room;
	size_t count = 0, kept = 0;
	while (environment[count])
		count++;
	char *variable = (char *)(copy + count + 1);
	for (size_t i = 0; i < count; i++) {
		if (strncmp(environment[i], VARIABLE, strlen(VARIABLE)) != 0 || variable == NULL) {
			copy[kept++] = environment[i];
			continue;
		}
		copy_without_us(stpcpy(variable, VARIABLE), environment[i] + strlen(VARIABLE));
		if (variable[strlen(VARIABLE)])
			copy[kept++] = variable;
		variable = NULL;
	}
	copy[kept] = NULL;
	return copy;
}

/* The environment to give to a program. A copy lies in the frame of the caller. */
#define REACHABLE(environment, program)                                                                                \
	__extension__({                                                                                                \
		size_t gmt_room = size_without_us(environment, program);                                               \
		gmt_room ? copy_environment_without_us(environment, alloca(gmt_room)) : (environment);                                  \
	})

typedef int exec_fn(const char *program, char *const *words, char *const *environment);
typedef int exec_here_fn(const char *program, char *const *words); /* with the caller's own environment */
typedef int spawn_fn(pid_t *pid, const char *program, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
		     char *const *words, char *const *environment);

/* Since glibc 2.39. */
spawn_fn pidfd_spawn, pidfd_spawnp;

static struct {
	exec_fn *execve, *execvpe;
	exec_here_fn *execv, *execvp;
	spawn_fn *spawn, *spawnp, *pidfd_spawn, *pidfd_spawnp;
	int (*fexecve)(int file, char *const *words, char *const *environment);
	int (*execveat)(int folder, const char *program, char *const *words, char *const *environment, int flags);
	int (*system)(const char *command);
	FILE *(*popen)(const char *command, const char *mode);
	int (*wordexp)(const char *text, wordexp_t *words, int flags);
} libc;

static void find_next_function(const char *name, void *function)
{
	void *found = gmt_real_dlsym()(RTLD_NEXT, name);
	memcpy(function, &found, sizeof found);
}

/* At the start, because dlsym takes locks, which a child of vfork must not. */
__attribute__((constructor)) static void find_libc_functions(void)
{
	find_next_function("execve", &libc.execve);
	find_next_function("execvpe", &libc.execvpe);
	find_next_function("execv", &libc.execv);
	find_next_function("execvp", &libc.execvp);
	find_next_function("posix_spawn", &libc.spawn);
	find_next_function("posix_spawnp", &libc.spawnp);
	find_next_function("pidfd_spawn", &libc.pidfd_spawn);
	find_next_function("pidfd_spawnp", &libc.pidfd_spawnp);
	find_next_function("fexecve", &libc.fexecve);
	find_next_function("execveat", &libc.execveat);
	find_next_function("system", &libc.system);
	find_next_function("popen", &libc.popen);
	find_next_function("wordexp", &libc.wordexp);
}

/* Another library's constructor may start programs before ours has run. */
static void ensure_libc_found(void)
{
	if (gmt_unlikely(!libc.wordexp))
		find_libc_functions();
}

GMT_HOOK int execve(const char *program, char *const *words, char *const *environment)
{
	ensure_libc_found();
	char *const *reachable = REACHABLE(environment, program);
	return libc.execve(program, words, reachable);
}

GMT_HOOK int execvpe(const char *program, char *const *words, char *const *environment)
{
	ensure_libc_found();
	char *const *reachable = REACHABLE(environment, program);
	return libc.execvpe(program, words, reachable);
}

/* execv and execvp call the next function of their name, not execve: another preloaded library may have hooked only them. */
GMT_HOOK int execv(const char *program, char *const *words)
{
	ensure_libc_found();
	char *const *reachable = REACHABLE(environ, program);
	return reachable == environ ? libc.execv(program, words) : libc.execve(program, words, reachable);
}

GMT_HOOK int execvp(const char *program, char *const *words)
{
	ensure_libc_found();
	char *const *reachable = REACHABLE(environ, program);
	return reachable == environ ? libc.execvp(program, words) : libc.execvpe(program, words, reachable);
}

GMT_HOOK int posix_spawn(pid_t *pid, const char *program, const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attributes, char *const *words, char *const *environment)
{
	ensure_libc_found();
	char *const *reachable = REACHABLE(environment, program);
	return libc.spawn(pid, program, actions, attributes, words, reachable);
}

GMT_HOOK int posix_spawnp(pid_t *pid, const char *program, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attributes, char *const *words, char *const *environment)
{
	ensure_libc_found();
	char *const *reachable = REACHABLE(environment, program);
	return libc.spawnp(pid, program, actions, attributes, words, reachable);
}

GMT_HOOK int pidfd_spawn(int *pidfd, const char *program, const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attributes, char *const *words, char *const *environment)
{
	ensure_libc_found();
	char *const *reachable = REACHABLE(environment, program);
	return libc.pidfd_spawn ? libc.pidfd_spawn(pidfd, program, actions, attributes, words, reachable) : ENOSYS;
}

GMT_HOOK int pidfd_spawnp(int *pidfd, const char *program, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attributes, char *const *words, char *const *environment)
{
	ensure_libc_found();
	char *const *reachable = REACHABLE(environment, program);
	return libc.pidfd_spawnp ? libc.pidfd_spawnp(pidfd, program, actions, attributes, words, reachable) : ENOSYS;
}

GMT_HOOK int fexecve(int file, char *const *words, char *const *environment)
{
	ensure_libc_found();
	char *const *reachable = REACHABLE(environment, words[0] ? words[0] : "");
	return libc.fexecve(file, words, reachable);
}

GMT_HOOK int execveat(int folder, const char *program, char *const *words, char *const *environment, int flags)
{
	ensure_libc_found();
	char *const *reachable = REACHABLE(environment, program);
	if (libc.execveat)
		return libc.execveat(folder, program, words, reachable, flags);
	errno = ENOSYS; /* glibc before 2.34 */
	return -1;
}

/*
 * Removes our library from the process's own environment, for good: the C library passes that to the shells that it starts.
 * A variable that becomes empty stays: removing it would move others while another thread may search them.
 */
static void remove_us_from_environment(void)
{
	int before = errno;
	ensure_libc_found();
	const char *list = getenv("LD_PRELOAD");
	if (list && cannot_load_ours(list, "sh")) {
		char *rest = alloca(strlen(list) + 1);
		copy_without_us(rest, list);
		setenv("LD_PRELOAD", rest, 1);
	}
	errno = before;
}

GMT_HOOK int system(const char *command)
{
	remove_us_from_environment();
	return libc.system(command);
}

GMT_HOOK FILE *popen(const char *command, const char *mode)
{
	remove_us_from_environment();
	return libc.popen(command, mode);
}

GMT_HOOK int wordexp(const char *text, wordexp_t *words, int flags)
{
	remove_us_from_environment();
	return libc.wordexp(text, words, flags);
}

/* Stores the words after the first, up to NULL, in words, unless that is NULL. Returns how many there are. */
static size_t gather_words(va_list *arguments, const char *first, char **words)
{
	size_t count = 0;
	for (const char *word = first; word; word = va_arg(*arguments, const char *)) {
		if (words)
			words[count] = (char *)(uintptr_t)word;
		count++;
	}
	if (words)
		words[count] = NULL;
	return count;
}

/* Collects the words of a variadic function in its frame. The next argument is then the one after the words. */
#define WORDS(arguments, first)                                                                                        \
	__extension__({                                                                                                \
		va_start(arguments, first);                                                                            \
		char **gmt_words = alloca((gather_words(&(arguments), first, NULL) + 1) * sizeof *gmt_words);                \
		va_end(arguments);                                                                                     \
		va_start(arguments, first);                                                                            \
		gather_words(&(arguments), first, gmt_words);                                                                \
		gmt_words;                                                                                             \
	})

GMT_HOOK int execl(const char *program, const char *first, ...)
{
	va_list arguments;
	char **words = WORDS(arguments, first);
	va_end(arguments);
	return execv(program, words);
}

GMT_HOOK int execlp(const char *program, const char *first, ...)
{
	va_list arguments;
	char **words = WORDS(arguments, first);
	va_end(arguments);
	return execvp(program, words);
}

GMT_HOOK int execle(const char *program, const char *first, ...)
{
	va_list arguments;
	char **words = WORDS(arguments, first);
	char *const *environment = va_arg(arguments, char *const *);
	va_end(arguments);
	return execve(program, words, environment);
}

#ifndef GMT_NO_DLSYM

typedef void any_fn(void);

#define NAMED(function) {#function, (any_fn *)(function)}

static const struct {
	const char *name;
	any_fn *hook;
} named[] = {
	NAMED(execve), NAMED(execvpe), NAMED(execv), NAMED(execvp), NAMED(execl), NAMED(execlp), NAMED(execle),
	NAMED(fexecve), NAMED(execveat), NAMED(posix_spawn), NAMED(posix_spawnp), NAMED(pidfd_spawn), NAMED(pidfd_spawnp),
	NAMED(system), NAMED(popen), NAMED(wordexp),
};

void *gmt_exec_hook_named(const char *name, void *real)
{
	void *hook = NULL;
	for (size_t i = 0; i < sizeof named / sizeof *named; i++)
		if (strcmp(name, named[i].name) == 0)
			memcpy(&hook, &named[i].hook, sizeof hook);
	return hook && real && real == gmt_real_dlsym()(RTLD_NEXT, name) ? hook : NULL;
}

#endif
