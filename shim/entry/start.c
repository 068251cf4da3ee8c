/*
 * start.c: the first OpenCL call of a process connects it to gpumemtop's session, maps its rings and, for pooling
 * policies, loads the Go core. Before that call only the results of clGetDeviceIDs are reported. Without a session nothing
 * happens, unless the environment asks for a flight log.
 */
#define _GNU_SOURCE
#include "start.h"

#include "../base/dispatch.h"
#include "../base/flight.h"
#include "../base/flight_ends.h"
#include "../base/idle.h"
#include "../base/link.h"
#include "../base/ring.h"
#include "../base/signals.h"
#include "../base/usdt.h"
#include "../pool/budget.h"
#include "../pool/evict.h"
#include "../pool/frag_stats.h"
#include "../registry/held.h"
#include "../registry/memory.h"
#include "../registry/objects.h"
#include "../spill/spill.h"
#include "preload.h"
#include "room.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REGION_SIZE (GMT_RINGS_OFFSET + (size_t)GMT_RINGS * sizeof(struct gmtring))
#define CORE_WAIT 500	    /* ms to wait for the core's file on a busy machine; not at all once the session is gone */
/*
 * A descriptor above those that programs expect, but below 64: beyond it Linux enlarges the table of descriptors, and in a
 * process with threads waits for all processors first, 5 to 15 ms.
 */
#define HIGH_DESCRIPTOR 56

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int begun; /* 1: a thread of this process, or of one that it was forked from, has begun to start */
static _Atomic int watched; /* pid of the process with a session and a context: this one or an ancestor by fork; 0: none */

static bool path_in(char *out, size_t size, const char *dir, const char *name)
{
	int n = snprintf(out, size, "%s/%s", dir, name);
	return n > 0 && (size_t)n < size;
}

static bool read_config(const char *dir)
{
	char path[4096];
	struct gmtconfig *config = &gmt_session.config;
	if (!path_in(path, sizeof path, dir, GMT_CONFIG_NAME))
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, config, sizeof *config);
	void *bell = mmap(NULL, sizeof(uint32_t), PROT_READ, MAP_SHARED, fd, 0);
	gmt_session.bell = bell == MAP_FAILED ? NULL : bell;
	close(fd);
	if (n != (ssize_t)sizeof *config || config->magic != GMT_MAGIC || config->version != GMT_VERSION)
		return false;
	if (config->stackdepth < 1 || config->stackdepth > GMT_STACK_MAX)
		config->stackdepth = GMT_STACK_MAX;
	return true;
}

/* Connects without waiting: a session that does not accept at once is gone or overwhelmed. */
static int connect_to(const char *dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (!path_in(address.sun_path, sizeof address.sun_path, dir, GMT_SOCKET_NAME))
		return -1;
	int low = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (low < 0)
		return -1;
	int fd = fcntl(low, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
	if (fd < 0)
		fd = low;
	else
		close(low);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
		return fd;
	close(fd);
	return -1;
}

static int make_region(void)
{
	struct rlimit most;
	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < REGION_SIZE) /* growing the file would send the program a signal */
		return -1;
	int fd = memfd_create("gpumemtop", MFD_CLOEXEC);
	if (fd < 0)
		return -1;
	struct gmtregion *region = MAP_FAILED;
	if (ftruncate(fd, (off_t)REGION_SIZE) == 0)
		region = mmap(NULL, REGION_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (region == MAP_FAILED) {
		close(fd);
		return -1;
	}
	madvise(region, REGION_SIZE, MADV_DONTFORK);
	*region = (struct gmtregion){
		.magic = GMT_MAGIC,
		.version = GMT_VERSION,
		.rings = GMT_RINGS,
		.ringevents = GMT_RING_EVENTS,
		.pid = (uint32_t)getpid(),
		.started = gmt_now(),
		.realtime = gmt_system_clock(CLOCK_REALTIME),
	};
	gmt_session.region = region;
	return fd;
}

static void read_command_line(struct gmthello *hello)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t n = read(fd, hello->text, sizeof hello->text);
	close(fd);
	if (n > 0)
		hello->arguments = (uint32_t)n;
}

/* Without a region (-1) the session reports that this process has none. */
static bool send_hello(int socket, int region)
{
	struct gmthello hello = {.magic = GMT_MAGIC, .version = GMT_VERSION, .pid = (uint32_t)getpid(), .ppid = (uint32_t)getppid()};
	read_command_line(&hello);
	struct iovec data = {&hello, sizeof hello};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof region);
	memcpy(CMSG_DATA(rights), &region, sizeof region);
	if (region < 0)
		message.msg_controllen = 0;
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof hello;
}

static void write_limit_event(const struct gmt_obeyed *o)
{
	gmt_decision_note(o->number, o->time);
	struct gmtevent event = GMT_EVENT_LIMIT(.time = o->time, .sequence = o->sequence, .status = gmt_clamp16(o->status));
	gmt_ring_write_payload(&event, o->text, o->length);
}

static uint32_t begin_core_idle(void)
{
	return gmt_idle_begin();
}

static void write_expire_decision(uint64_t time, int64_t number)
{
	gmt_decision_write((struct gmtorderfields){.order = GMT_ORDER_EXPIRE, .number = (uint64_t)number, .time = time});
}

/* Called on the core's own thread, at any time. Once the session is quiet, the driver frees the remaining blocks. */
static void evict_for_core(struct gmt_evictions *evictions)
{
	if (gmt_session_is_quiet())
		return;
	gmt_evict_begun(0, evictions);
	gmt_evict_all(evictions);
}

static bool find_core_functions(void *library)
{
	struct gmt_core *core = &gmt_session.core;
	bool all = true;
	void *symbol;
#define GMT_CORE_FUNCTION(name)                                                                                        \
	symbol = gmt_real_dlsym()(library, "gmt_core_" #name);                                                           \
	memcpy(&core->name, &symbol, sizeof symbol);                                                                   \
	all = all && symbol;
	GMT_CORE_FUNCTIONS(GMT_CORE_FUNCTION)
#undef GMT_CORE_FUNCTION
	return all;
}

/*
 * Opens the core's library. The session writes it while the program starts and renames it when it is complete, usually long
 * before the program calls OpenCL.
 */
static void *open_core(const char *dir)
{
	char path[4096];
	if (!path_in(path, sizeof path, dir, GMT_CORE_NAME))
		return NULL;
	for (int i = 0; i < CORE_WAIT && access(path, F_OK) && errno == ENOENT && !gmt_link_lost(1000000); i++) {
	}
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/*
 * Loads the Go runtime into the process. Its threads inherit the signal mask of this thread, so all signals are blocked
 * meanwhile: the program's signals keep going to the program's own threads.
 */
static void load_core(const char *dir)
{
	static const struct gmt_callbacks callbacks = {begin_core_idle,   gmt_idle_end, gmt_gate_enter, gmt_gate_leave,
							evict_for_core, write_expire_decision, write_limit_event};
	sigset_t mask;
	struct gmt_dispositions handlers;
	gmt_signals_block(&mask);
	gmt_signals_save(&handlers);
	const char *why = gmt_clock_permitted() ? gmt_room_make() : "the allocator needs the time stamp counter, which the program has given up";
	pthread_t thread;
	if (!why) {
		/*
		 * glibc opens a file to count processors when 8 threads use malloc: have it do so now, before the program
		 * installs a filter.
		 */
		mallopt(M_ARENA_TEST, 1);
		gmt_room_give_thread(&thread, NULL, gmt_budget_run_looker, NULL);
	}
	void *library = why ? NULL : open_core(dir);
	bool ok = library && find_core_functions(library) &&
		  gmt_session.core.start(&gmt_session.config, &callbacks, gmt_session.region, &gmt_ledger) == 0;
	void *inside = NULL;
	memcpy(&inside, &gmt_session.core.start, sizeof inside);
	gmt_signals_restore(&handlers, inside);
	gmt_signals_unblock(&mask);
	if (ok) {
		gmt_clock_share_with_core(gmt_session.core.clock());
		atomic_store(&gmt_session.pooling, 1);
		return;
	}
	if (!why)
		why = library ? "the allocator did not start" : dlerror();
	gmt_diag(GMT_DIAG_TRANSPARENT, why ? why : "the allocator could not be loaded");
}

static void after_fork_in_parent(void)
{
	gmt_idle_go();
	if (atomic_load(&gmt_session.state) == GMT_STATE_ON)
		gmt_diag(GMT_DIAG_FORKED, "forked after its first OpenCL call; the child is not watched unless it executes a program");
}

/*
 * In a forked child hooks only call the driver: the region is not mapped, other threads' locks stay taken, and the Go runtime
 * would hang.
 */
static void after_fork_in_child(void)
{
	gmt_idle_forget();
	if (atomic_load(&gmt_session.state) == GMT_STATE_NEW && !atomic_load(&begun))
		return;
	atomic_store(&gmt_session.state, atomic_load(&watched) ? GMT_STATE_FORKED : GMT_STATE_OFF);
	atomic_store(&gmt_session.pooling, 0);
	gmt_session.region = NULL;
	gmt_ring_forget();
	gmt_clock_stop();
	gmt_inside = 0;
	gmt_link_close();
}

static void end_session_at_exit(int status, void *nothing)
{
	(void)nothing;
	if (atomic_load(&gmt_session.state) != GMT_STATE_ON)
		return;
	gmt_frag_stats_end();
	gmt_idle_stop(); /* for good */
	gmt_session_make_quiet();
	gmt_preload_report_at_end();
	gmt_held_write_rest();
	struct gmtevent event = GMT_EVENT_EXIT(.time = gmt_now(), .status = (int16_t)(status & 0xff));
	gmt_ring_write(&event);
}

static bool start_session(const char *dir)
{
	if (!dir || !*dir)
		return false;
	if (!read_config(dir)) {
		if (errno == EACCES) /* the process has changed its user, or given up rights */
			gmt_link_knock(dir, "");
		return false;
	}
	int socket = connect_to(dir);
	if (socket < 0)
		return false;
	gmt_clock_start();
	int region = make_region();
	bool sent = send_hello(socket, region) && region >= 0;
	if (region >= 0)
		close(region);
	if (!sent) {
		close(socket);
		return false;
	}
	gmt_events_begin();
	gmt_memory_begin();
	gmt_spill_start();
	gmt_link_open(socket);
	on_exit(end_session_at_exit, NULL);
	return true;
}

/*
 * Whether this process is a child whose fork ran no handlers, as _Fork() and clone() do: its pages of the session are empty,
 * but begun is set.
 */
static bool forked_quietly(void)
{
	if (atomic_load(&begun))
		return !atomic_load(&gmt_session.begun);
	atomic_store(&gmt_session.begun, 1);
	if (!atomic_exchange(&begun, 1)) {
		madvise(&gmt_session, sizeof gmt_session, MADV_WIPEONFORK);
		pthread_atfork(gmt_idle_stop, after_fork_in_parent, after_fork_in_child);
	}
	return false;
}

/* Connects to the session, on the first thread only. Without a session there may be a flight log, or tools that listen to probes. */
static bool connect_once(const char *dir, const char *log, const char *probes)
{
	bool first = false;
	pthread_mutex_lock(&starting);
	if (atomic_load(&gmt_session.state) == GMT_STATE_NEW) {
		first = start_session(dir);
		bool logs = !first && gmt_flight_begin(log), probed = gmt_usdt_begin(probes);
		if (logs)
			gmt_flight_catch_ends();
		if (first || logs || probed)
			gmt_flight_catch_faults();
		atomic_store_explicit(&gmt_session.state, first || logs || probed ? GMT_STATE_ON : GMT_STATE_OFF, memory_order_release);
	}
	pthread_mutex_unlock(&starting);
	return first;
}

void gmt_session_note_context(void)
{
	if (gmt_session.region && !atomic_load(&watched))
		atomic_store(&watched, getpid());
}

/* Whether a call uses OpenCL, so that it may hang in a child without the driver's threads. Releases and queries do not count. */
static bool is_opencl_use(const char *function)
{
	static const char *const harmless[] = {"clRelease", "clRetain", "clGet", "clSVMFree", "clMemFree", "clFinish", "clFlush"};
	for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
		if (strncmp(function, harmless[i], strlen(harmless[i])) == 0)
			return false;
	return strncmp(function, "cl", 2) == 0;
}

/* In a forked child: reports its first use of OpenCL, before the call reaches the driver. */
static void report_use(const char *function)
{
	if (!is_opencl_use(function))
		return;
	atomic_store(&gmt_session.state, GMT_STATE_OFF);
	int saved = errno;
	const char *dir = gmt_session_seccomp_installed() ? NULL : secure_getenv(GMT_SESSION_ENV);
	char text[GMT_OUTSIDER_MAX];
	snprintf(text, sizeof text, "%c%d %s", GMT_OUTSIDER_FORKED, atomic_load(&watched), function);
	if (dir && *dir)
		gmt_link_knock(dir, text);
	errno = saved;
}

/*
 * While other threads wait, this loads no library and looks up no symbol: one of them may be in a library's constructor and
 * hold the linker's lock. Until the core is loaded, the other threads' buffers come from the driver.
 */
bool gmt_session_start(const char *function)
{
	int saved = errno, cancel;
	if (forked_quietly())
		after_fork_in_child();
	if (atomic_load(&gmt_session.state) == GMT_STATE_FORKED) {
		report_use(function);
		return false;
	}
	if (atomic_load(&gmt_session.state) == GMT_STATE_OFF)
		return false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	gmt_inside = 1;
	bool may = gmt_dispatch_ready() && !gmt_session_seccomp_installed();
	const char *dir = may ? secure_getenv(GMT_SESSION_ENV) : NULL, *log = may ? secure_getenv(GMT_LOG_ENV) : NULL;
	gmt_clock_permitted();
	if (connect_once(dir, log, may ? secure_getenv(GMT_USDT_ENV) : NULL) && gmt_session.config.pooling)
		load_core(dir);
	gmt_inside = 0;
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return atomic_load(&gmt_session.state) == GMT_STATE_ON;
}

#define ANSWERS 8

/* Whether the program has not got this answer before. */
static bool is_first_answer(uint64_t key)
{
	static _Atomic uint64_t known[ANSWERS];
	for (unsigned i = 0; i < ANSWERS; i++) {
		uint64_t there = 0;
		if (atomic_compare_exchange_strong(&known[i], &there, key))
			return true;
		if (there == key)
			return false;
	}
	return false;
}

void gmt_session_note_device_query(cl_device_type type, cl_int status, cl_uint found)
{
	if (atomic_load_explicit(&gmt_session.state, memory_order_acquire) != GMT_STATE_NEW || gmt_session_seccomp_installed())
		return;
	const char *dir = secure_getenv(GMT_SESSION_ENV);
	if (!dir || !*dir || !is_first_answer(type << 16 | (uint16_t)status | 1ull << 63))
		return;
	char report[GMT_OUTSIDER_MAX];
	int saved = errno, cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	snprintf(report, sizeof report, "%c%llx %d %u", GMT_OUTSIDER_ASKED, (unsigned long long)type, status, found);
	gmt_link_knock(dir, report);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}
