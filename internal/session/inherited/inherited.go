// Package inherited knows which signals this process ignored and blocked when it was started, and which standard streams were
// closed. The Go runtime installs handlers of its own and opens /dev/null before any Go code runs, and a program that is started
// would get defaults and /dev/null in their place. The package also makes the threads that the runtime will want, and ends a process that may have too few, or too few descriptors: the runtime
// would end it later, with the program running.
package inherited

/*
#cgo LDFLAGS: -Wl,--wrap=pthread_create
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 10 // 9 were the most seen while a run was recorded

static struct thread {
	pthread_t id;
	sem_t wake;
	void *(*run)(void *);
	void *argument;
} threads[THREADS];

static _Atomic int given; // to the Go runtime

static void *wait_for(void *of)
{
	struct thread *t = of;
	while (sem_wait(&t->wake))
		;
	return t->run(t->argument);
}

typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
create __real_pthread_create, __wrap_pthread_create;

// They are as the Go runtime makes its own: with all signals blocked, and a stack of the usual size.
static void need_threads(void)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int made = 0;
	while (made < THREADS && !sem_init(&threads[made].wake, 0, 0) &&
	       !__real_pthread_create(&threads[made].id, NULL, wait_for, &threads[made]))
		made++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (made < THREADS) {
		fprintf(stderr, "gpumemtop: it needs %d threads and may have %d: raise ulimit -u or pids.max of the control group\n",
			THREADS, made);
		_exit(125);
	}
}

// The linker puts this in place of pthread_create, which only the Go runtime calls.
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	int i = given < THREADS ? given++ : THREADS;
	if (i >= THREADS)
		return __real_pthread_create(id, attributes, run, argument);
	threads[i].run = run;
	threads[i].argument = argument;
	*id = threads[i].id;
	sem_post(&threads[i].wake);
	return 0;
}

static pthread_mutex_t tried = PTHREAD_MUTEX_INITIALIZER; // held while threads are on trial

static void *stay(void *number)
{
	*(pid_t *)number = (pid_t)syscall(SYS_gettid);
	pthread_mutex_lock(&tried);
	pthread_mutex_unlock(&tried);
	return NULL;
}

#define TRIED 128

// How many of count threads there can be beside those that are there. When it returns the kernel counts none of them.
static int try_threads(int count)
{
	pthread_t ids[TRIED];
	pid_t numbers[TRIED];
	pthread_attr_t attributes;
	int made = 0;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	pthread_mutex_lock(&tried);
	while (made < count && made < TRIED && !__real_pthread_create(&ids[made], &attributes, stay, &numbers[made]))
		made++;
	pthread_mutex_unlock(&tried);
	for (int i = 0; i < made; i++)
		pthread_join(ids[i], NULL);
	for (int i = 0; i < made; i++)
		while (!syscall(SYS_tgkill, getpid(), numbers[i], 0))
			sched_yield();
	return made;
}

#define DESCRIPTORS 5 // the runtime ends a process without two of them; with fewer than these no command can work

static void need_descriptors(void)
{
	int opened[DESCRIPTORS], count = 0, err = 0;
	while (count < DESCRIPTORS && (opened[count] = open("/", O_PATH | O_CLOEXEC)) >= 0)
		count++;
	if (count < DESCRIPTORS)
		err = errno;
	for (int i = 0; i < count; i++)
		close(opened[i]);
	if (err == EMFILE || err == ENFILE) {
		fprintf(stderr, "gpumemtop: it needs to open %d files and may open %d: raise ulimit -n\n", DESCRIPTORS, count);
		_exit(125);
	}
}

static uint64_t ignored, blocked; // a bit for each signal, of number 1 the lowest
static int closed;                // a bit for each of the first three descriptors

// The kernel spares the first process of a PID namespace what a signal does by default. Where nothing in Go has asked for a signal, the
// runtime calls the handler that was there first, and ends with status 2 if none was.
static void end(int signal)
{
	_exit(128 + signal);
}

// Constructors run before the Go runtime starts.
__attribute__((constructor)) static void look(void)
{
	for (int fd = 0; fd < 3; fd++)
		closed |= (fcntl(fd, F_GETFD) < 0) << fd;
	need_descriptors();
	need_threads();
	sigset_t mask;
	int known = !pthread_sigmask(SIG_BLOCK, 0, &mask);
	for (int number = 1; number <= 64; number++) {
		struct sigaction action;
		if (!sigaction(number, 0, &action) && action.sa_handler == SIG_IGN)
			ignored |= (uint64_t)1 << (number - 1);
		else if (getpid() == 1 && (number == SIGHUP || number == SIGINT || number == SIGTERM))
			signal(number, end);
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
static int closed_descriptors(void) { return closed; }
*/
import "C"

import (
	"fmt"
	"os"
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

// IgnoreSignalsAgain ignores again what was ignored, except the signals that the Go runtime needs: os/signal.Ignored reports them, and
// programs that are started ignore them, too. It leaves what the runtime opened in place of closed streams to no program. Call it before
// anything asks for signals.
func IgnoreSignalsAgain() {
	for fd := range 3 {
		if C.closed_descriptors()>>fd&1 != 0 {
			unix.CloseOnExec(fd)
		}
	}
	for number := syscall.Signal(1); number <= 64; number++ {
		if C.ignored_signals()>>(number-1)&1 != 0 && !slices.Contains(needed, number) {
			signal.Ignore(number)
		}
	}
}

// StreamUnlessClosed returns a standard stream for a program that is started; nil, which leaves it closed, if it was closed at the start.
func StreamUnlessClosed(file *os.File) *os.File {
	if C.closed_descriptors()>>file.Fd()&1 != 0 {
		return nil
	}
	return file
}

// CountPossibleThreads makes count threads, 128 at most, to see how many there can be, and ends them.
func CountPossibleThreads(count int) int { return int(C.try_threads(C.int(count))) }

// StartWithBlockedSignals calls start, which starts a program, with the signals blocked that were blocked for this process.
func StartWithBlockedSignals(start func() error) error {
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
