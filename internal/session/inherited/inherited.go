// Package inherited knows which signals this process ignored and blocked when it was started. The Go runtime installs
// handlers of its own before any Go code runs, and a program that is started gets defaults in their place. The package also
// ends a process that may have too few threads, because the runtime would end it later, with the program running.
package inherited

/*
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS 10 // 9 were the most seen while a run was recorded

static void *wait_for(void *gate)
{
	pthread_mutex_lock(gate);
	pthread_mutex_unlock(gate);
	return NULL;
}

static void need_threads(void)
{
	static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
	pthread_t threads[THREADS];
	int made = 0;
	pthread_attr_t small; // every page of a stack and every change of protection costs microseconds
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
	pthread_attr_setguardsize(&small, 0);
	pthread_mutex_lock(&gate);
	while (made < THREADS && !pthread_create(&threads[made], &small, wait_for, &gate))
		made++;
	pthread_mutex_unlock(&gate);
	for (int i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	if (made < THREADS) {
		fprintf(stderr, "gpumemtop: it needs %d threads and may have %d: raise ulimit -u or pids.max of the control group\n",
			THREADS, made);
		_exit(125);
	}
}

static uint64_t ignored, blocked; // a bit for each signal, of number 1 the lowest

// Constructors run before the Go runtime starts.
__attribute__((constructor)) static void look(void)
{
	need_threads();
	sigset_t mask;
	int known = !pthread_sigmask(SIG_BLOCK, 0, &mask);
	for (int number = 1; number <= 64; number++) {
		struct sigaction action;
		if (!sigaction(number, 0, &action) && action.sa_handler == SIG_IGN)
			ignored |= (uint64_t)1 << (number - 1);
		if (known && sigismember(&mask, number) == 1)
			blocked |= (uint64_t)1 << (number - 1);
	}
}

// Programs that are linked on glibc 2.34 or later leave it to glibc to run constructors, which older ones leave to the program.
// The linker puts this in place of __libc_start_main where asked to (Makefile), so that the program starts with both.
typedef void initializer(int, char **, char **);
extern initializer *__init_array_start[] __attribute__((visibility("hidden"))), *__init_array_end[] __attribute__((visibility("hidden")));

static void initialize(int count, char **arguments, char **environment)
{
	for (initializer **each = __init_array_start; each < __init_array_end; each++)
		(*each)(count, arguments, environment);
}

typedef int start(int (*)(int, char **, char **), int, char **, initializer *, void (*)(void), void (*)(void), void *);
start __real___libc_start_main __attribute__((weak)), __wrap___libc_start_main;

int __wrap___libc_start_main(int (*run)(int, char **, char **), int count, char **arguments, initializer *theirs,
			     void (*finish)(void), void (*unload)(void), void *stack)
{
	return __real___libc_start_main(run, count, arguments, theirs ? theirs : initialize, finish, unload, stack);
}

static uint64_t ignored_signals(void) { return ignored; }
static uint64_t blocked_signals(void) { return blocked; }
*/
import "C"

import (
	"fmt"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// needed are the signals that the Go runtime needs: for faults, for its profiler and scheduler, and to wait for programs.
var needed = []syscall.Signal{
	unix.SIGILL, unix.SIGTRAP, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGPROF, unix.SIGURG, unix.SIGCHLD,
}

// Keep ignores again what was ignored, except the signals that the Go runtime needs: os/signal.Ignored reports them, and
// programs that are started ignore them, too. Call it before anything asks for signals.
func Keep() {
	for number := syscall.Signal(1); number <= 64; number++ {
		if C.ignored_signals()>>(number-1)&1 != 0 && !slices.Contains(needed, number) {
			signal.Ignore(number)
		}
	}
}

// Masked calls start, which starts a program, with the signals blocked that were blocked for this process.
func Masked(start func() error) error {
	mask := unix.Sigset_t{Val: [16]uint64{uint64(C.blocked_signals())}}
	if mask.Val[0] == 0 {
		return start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &mask, &before); err != nil {
		return fmt.Errorf("block signals: %w", err)
	}
	err := start()
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) // it was the mask
	return err
}
