/*
 * syscall.c: hooks of syscall() and prctl(). They see system calls that the program makes by number: handlers that it installs,
 * programs that it starts, and rights that it gives up, which our own calls lack from then on.
 */
#define _GNU_SOURCE
#include "call.h"
#include "dispatch.h"
#include "signals.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(GMT_NO_DLSYM) && (defined(__x86_64__) || defined(__aarch64__)) /* sanitizers define these, too */

static inline __attribute__((always_inline)) long enter_kernel(long number, long a, long b, long c, long d, long e, long f)
{
#ifdef __x86_64__
	register long fourth __asm__("r10") = d;
	register long fifth __asm__("r8") = e;
	register long sixth __asm__("r9") = f;
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
			 : "rcx", "r11", "memory");
	return result;
#else
	register long what __asm__("x8") = number;
	register long first __asm__("x0") = a;
	register long second __asm__("x1") = b;
	register long third __asm__("x2") = c;
	register long fourth __asm__("x3") = d;
	register long fifth __asm__("x4") = e;
	register long sixth __asm__("x5") = f;
	__asm__ volatile("svc #0" : "+r"(first) : "r"(what), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth) : "memory");
	return first;
#endif
}

/* Starts a program through our hook, which leaves our library out of its environment if it cannot be loaded. */
static __attribute__((noinline)) long execve_through_hook(long program, long words, long environment)
{
	const char *path;
	char *const *list, *const *variables;
	memcpy(&path, &program, sizeof path);
	memcpy(&list, &words, sizeof list);
	memcpy(&variables, &environment, sizeof variables);
	return execve(path, list, variables);
}

/* The same for execveat; errno is ENOSYS before glibc 2.34, which introduced that function. */
static __attribute__((noinline)) long execveat_through_hook(long folder, long program, long words, long environment, long flags)
{
	const char *path;
	char *const *list, *const *variables;
	memcpy(&path, &program, sizeof path);
	memcpy(&list, &words, sizeof list);
	memcpy(&variables, &environment, sizeof variables);
	return execveat((int)folder, path, list, variables, (int)flags);
}

/*
 * In strict mode a thread is killed for all system calls except a few such as read() and write(), and for reading the counter.
 * So its hooks only call the driver from here on. The driver then frees the pool's buffers that the thread releases.
 */
static __attribute__((noinline)) void prepare_strict_mode(void)
{
	gmt_clock_note_refusal();
	gmt_inside = 1;
}

/*
 * Handles the loss of a right, before the kernel takes it. A child of vfork() shares the clock with its parent, which then
 * reads it more slowly.
 */
static inline void handle_right_loss(long what, long how)
{
	if (what == PR_SET_TSC && how == PR_TSC_SIGSEGV)
		gmt_clock_note_refusal();
	else if (what == PR_SET_SECCOMP && how == SECCOMP_MODE_STRICT)
		prepare_strict_mode();
}

static inline long errno_result(long result)
{
	if (gmt_likely(result >= 0 || result < -4095))
		return result;
	errno = (int)-result;
	return -1;
}

/*
 * The hook of syscall(), which always passes six arguments. It must do no more than this: an allocator may call it, or a process
 * that shares its stack with its parent.
 */
GMT_HOOK long hook_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");
GMT_HOOK long hook_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (gmt_unlikely(number == SYS_rt_sigaction))
		gmt_signals_note_raw(a, b);
	if (gmt_unlikely(number == SYS_prctl))
		handle_right_loss(a, b);
	if (gmt_unlikely(number == SYS_seccomp && a == SECCOMP_SET_MODE_STRICT))
		prepare_strict_mode();
	if (gmt_unlikely(number == SYS_execve))
		return execve_through_hook(a, b, c);
	if (gmt_unlikely(number == SYS_execveat) && (execveat_through_hook(a, b, c, d, e), errno != ENOSYS))
		return -1;
	return errno_result(enter_kernel(number, a, b, c, d, e, f));
}

/* The C library's prctl is variadic, but its arguments are passed in the same way. */
GMT_HOOK int hook_prctl(int what, unsigned long a, unsigned long b, unsigned long c, unsigned long d) __asm__("prctl");
GMT_HOOK int hook_prctl(int what, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	handle_right_loss(what, (long)a);
	return (int)errno_result(enter_kernel(SYS_prctl, what, (long)a, (long)b, (long)c, (long)d, 0));
}

#endif
