/* harness.c: the session's side, and the runner. */
#define _GNU_SOURCE
#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TESTS_MAX 1024
#define REGION_SIZE (GMT_RINGS_OFFSET + (size_t)GMT_RINGS * sizeof(struct gmtring))

static struct {
	const char *name;
	void (*run)(void);
} tests[TESTS_MAX];
static unsigned test_count;
static char directory[64];

static struct {
	int listener, connection;
	struct gmtregion *region;
	pthread_mutex_t mutex;
	pthread_t reader;
	_Atomic bool stop;
	struct gmtevent *event; /* payload slots included, so that texts follow their event */
	bool *payload;
	size_t count, room;
} session = {.listener = -1, .mutex = PTHREAD_MUTEX_INITIALIZER};

void test_add(const char *name, void (*run)(void))
{
	if (test_count == TESTS_MAX)
		abort();
	tests[test_count].name = name;
	tests[test_count++].run = run;
}

void test_fail(const char *file, int line, const char *what, long long got, long long want)
{
	const char *slash = strrchr(file, '/');
	fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", slash ? slash + 1 : file, line, what, got, want);
	_exit(1);
}

static void path_to(char *out, size_t size, const char *name)
{
	if (snprintf(out, size, "%s/%s", directory, name) >= (int)size)
		abort();
}

static void write_config(struct options options)
{
	struct gmtconfig config = {
		.magic = GMT_MAGIC,
		.version = options.otherversion ? GMT_VERSION + 1 : GMT_VERSION,
		.tagmode = options.tagmode,
		.stackdepth = 16,
		.waitms = options.waitms,
		.uses = options.asked ? GMT_USES_ASKED : options.nouses ? GMT_USES_NEVER : GMT_USES_ALWAYS,
		.pooling = !options.observe && !options.spill,
		.spill = options.spill,
		.ungated = options.ungated,
		.scrub = options.scrub,
		.eager = options.eager,
		.neighbours = options.neighbours,
		.devicememory = options.devicememory,
		.answerfree = options.answerfree,
		.transfers = options.transfers,
		.policy = "fake",
	};
	char path[128];
	path_to(path, sizeof path, GMT_CONFIG_NAME);
	FILE *file = fopen(path, "w");
	CHECK(file && fwrite(&config, sizeof config, 1, file) == 1);
	CHECK(fclose(file) == 0);
}

const char *path_beside(const char *name)
{
	static char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
	CHECK(n > 0);
	path[n] = 0;
	strcpy(strrchr(path, '/') + 1, name);
	return path;
}

static void link_core(void)
{
	char path[128];
	path_to(path, sizeof path, GMT_CORE_NAME);
	CHECK(symlink(path_beside(GMT_CORE_NAME), path) == 0);
}

void session_ask_uses(uint32_t wanted)
{
	CHECK(session_read());
	__atomic_store_n(&session.region->uses, wanted, __ATOMIC_RELAXED);
}

struct gmtregion *session_region(void)
{
	CHECK(session_read());
	return session.region;
}

void session_open(struct options options)
{
	write_config(options);
	link_core();
	CHECK(setenv(GMT_SESSION_ENV, directory, 1) == 0);
	if (options.nosocket)
		return;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	path_to(address.sun_path, sizeof address.sun_path, GMT_SOCKET_NAME);
	session.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK(session.listener >= 0);
	CHECK(bind(session.listener, (struct sockaddr *)&address, sizeof address) == 0);
	CHECK(listen(session.listener, 8) == 0);
}

static int receive_region(int fd)
{
	struct gmthello hello;
	struct iovec data = {&hello, sizeof hello};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	CHECK(recvmsg(fd, &message, MSG_CMSG_CLOEXEC) == (ssize_t)sizeof hello);
	CHECK(hello.magic == GMT_MAGIC && hello.version == GMT_VERSION && hello.pid != 0);
	CHECK(hello.arguments > 0 && hello.arguments <= sizeof hello.text);
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	CHECK(rights && rights->cmsg_type == SCM_RIGHTS);
	int region;
	memcpy(&region, CMSG_DATA(rights), sizeof region);
	return region;
}

static bool connected(void)
{
	if (session.region)
		return true;
	int fd = session.listener < 0 ? -1 : accept4(session.listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return false;
	session.connection = fd;
	int memory = receive_region(fd);
	session.region = mmap(NULL, REGION_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	CHECK(session.region != MAP_FAILED);
	CHECK(session.region->magic == GMT_MAGIC && session.region->rings == GMT_RINGS);
	close(memory);
	return true;
}

static struct gmtring *ring_at(unsigned i)
{
	return (struct gmtring *)(void *)((char *)session.region + GMT_RINGS_OFFSET + i * sizeof(struct gmtring));
}

static void keep(const struct gmtevent *event, bool payload)
{
	if (session.count == session.room) {
		session.room = session.room ? 2 * session.room : 4096;
		session.event = realloc(session.event, session.room * sizeof *session.event);
		session.payload = realloc(session.payload, session.room * sizeof *session.payload);
		CHECK(session.event && session.payload);
	}
	session.event[session.count] = *event;
	session.payload[session.count++] = payload;
}

static bool has_payload(uint16_t kind)
{
	return (kind >= GMT_KIND_PROCESS && kind <= GMT_KIND_DEVICE && kind != GMT_KIND_THREAD) || kind == GMT_KIND_KERNEL ||
	       kind == GMT_KIND_LIMIT || kind == GMT_KIND_DIAG;
}

static void read_ring(struct gmtring *ring)
{
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), at = ring->tail;
	CHECK(head - at <= GMT_RING_EVENTS);
	while (at < head) {
		struct gmtevent event = ring->events[at++ % GMT_RING_EVENTS];
		CHECK(event.kind > GMT_KIND_NONE && event.kind <= GMT_KIND_SPILL);
		keep(&event, false);
		uint64_t slots = has_payload(event.kind) ? (event.size + sizeof event - 1) / sizeof event : 0;
		CHECK(at + slots <= head);
		while (slots-- > 0)
			keep(&ring->events[at++ % GMT_RING_EVENTS], true);
	}
	__atomic_store_n(&ring->tail, at, __ATOMIC_RELEASE);
}

bool session_read(void)
{
	pthread_mutex_lock(&session.mutex);
	bool there = connected();
	for (unsigned i = 0; there && i < __atomic_load_n(&session.region->used, __ATOMIC_ACQUIRE); i++)
		read_ring(ring_at(i));
	pthread_mutex_unlock(&session.mutex);
	return there;
}

static void *reading(void *unused)
{
	(void)unused;
	const struct timespec pause = {.tv_nsec = 200000};
	while (!atomic_load(&session.stop)) {
		session_read();
		nanosleep(&pause, NULL);
	}
	return NULL;
}

void session_die(void)
{
	session_read();
	CHECK(close(session.connection) == 0);
}

void session_start(void)
{
	CHECK(pthread_create(&session.reader, NULL, reading, NULL) == 0);
}

void session_stop(void)
{
	atomic_store(&session.stop, true);
	pthread_join(session.reader, NULL);
	session_read();
}

struct ring_totals session_totals(void)
{
	struct ring_totals totals = {0};
	pthread_mutex_lock(&session.mutex);
	CHECK(connected());
	for (unsigned i = 0; i < GMT_RINGS; i++) {
		struct gmtring *ring = ring_at(i);
		totals.events += __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
		totals.lost += __atomic_load_n(&ring->lost, __ATOMIC_RELAXED);
		totals.lostuses += __atomic_load_n(&ring->lostuses, __ATOMIC_RELAXED);
		totals.waits += __atomic_load_n(&ring->waits, __ATOMIC_RELAXED);
		totals.used += ring->head > 0;
	}
	totals.announced = session.region->used;
	pthread_mutex_unlock(&session.mutex);
	return totals;
}

bool sleeps(pid_t thread)
{
	char path[64], state = 0;
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
	FILE *file = fopen(path, "r");
	if (!file)
		return false;
	CHECK(fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
	CHECK(fclose(file) == 0);
	return state == 'S';
}

size_t events(enum gmtkind kind)
{
	size_t count = 0;
	session_read();
	for (size_t i = 0; i < session.count; i++)
		count += !session.payload[i] && session.event[i].kind == kind;
	return count;
}

static bool is_failed_call(const struct gmtevent *event)
{
	return event->kind == GMT_KIND_DIAG && event->op == GMT_DIAG_CALL_FAILED;
}

static const struct gmtevent *find_last(enum gmtkind kind)
{
	session_read();
	for (size_t i = session.count; i-- > 0;)
		if (!session.payload[i] && session.event[i].kind == kind && !is_failed_call(&session.event[i]))
			return &session.event[i];
	return NULL;
}

struct gmtevent last_event(enum gmtkind kind)
{
	const struct gmtevent *event = find_last(kind);
	return event ? *event : (struct gmtevent){0};
}

struct gmtevent event_before(size_t behind)
{
	session_read();
	for (size_t i = session.count; i-- > 0;)
		if (!session.payload[i] && behind-- == 0)
			return session.event[i];
	return (struct gmtevent){0};
}

static const char *text_of(const struct gmtevent *event)
{
	static char text[GMT_PAYLOAD_MAX + 1];
	size_t length = event && event->size <= GMT_PAYLOAD_MAX ? event->size : 0;
	if (length)
		memcpy(text, event + 1, length);
	text[length] = 0;
	return text;
}

const char *last_text(enum gmtkind kind)
{
	return text_of(find_last(kind));
}

void last_call_failed(const char *function, cl_int status)
{
	session_read();
	size_t i = session.count;
	while (i > 0 && (session.payload[i - 1] || !is_failed_call(&session.event[i - 1])))
		i--;
	CHECK(i > 0);
	CHECK(strcmp(text_of(&session.event[i - 1]), function) == 0);
	EQUAL(session.event[i - 1].status, status);
	CHECK(session.event[i - 1].tag);
}

const char *first_text(enum gmtkind kind)
{
	session_read();
	for (size_t i = 0; i < session.count; i++)
		if (!session.payload[i] && session.event[i].kind == kind)
			return text_of(&session.event[i]);
	return "";
}

/* Whether another event says more of the same call site: those of several threads come in any order. */
static bool is_outdated(size_t i)
{
	const struct gmtevent *event = &session.event[i];
	uint64_t changes = event->object + event->size;
	for (size_t j = 0; j < session.count; j++) {
		const struct gmtevent *other = &session.event[j];
		if (session.payload[j] || other->kind != GMT_KIND_OBJECT || other->op != event->op || other->tag != event->tag)
			continue;
		uint64_t there = other->object + other->size;
		if (there > changes || (there == changes && j > i))
			return true;
	}
	return false;
}

struct held held_now(enum gmtheld type)
{
	struct held sum = {0};
	session_read();
	for (size_t i = 0; i < session.count; i++) {
		const struct gmtevent *event = &session.event[i];
		if (session.payload[i] || event->kind != GMT_KIND_OBJECT || event->op != type)
			continue;
		sum.most = event->granted > sum.most ? event->granted : sum.most;
		if (is_outdated(i))
			continue;
		sum.created += event->object;
		sum.released += event->size;
		sum.untracked += event->link;
		sum.sites++;
	}
	return sum;
}

static size_t count_by(enum gmtkind kind, int op, int outcome)
{
	size_t count = 0;
	session_read();
	for (size_t i = 0; i < session.count; i++) {
		const struct gmtevent *e = &session.event[i];
		count += !session.payload[i] && e->kind == kind && (op < 0 || e->op == op) && (outcome < 0 || e->outcome == outcome);
	}
	return count;
}

size_t diags(enum gmtdiag code)
{
	return count_by(GMT_KIND_DIAG, (int)code, -1);
}

size_t outcomes(enum gmtkind kind, enum gmtoutcome outcome)
{
	return count_by(kind, -1, (int)outcome);
}

static void remove_directory(void)
{
	static const char *const names[] = {GMT_CONFIG_NAME, GMT_SOCKET_NAME, GMT_CORE_NAME};
	char path[128];
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		path_to(path, sizeof path, names[i]);
		unlink(path);
	}
	rmdir(directory);
}

static atomic_bool *threaded; /* shared with the test's process; NULL if no list is wanted */

#ifdef GMT_NOTES_THREADS
/* Stands in front of libc's. The threads that the shim makes for its core sleep in every test, so they do not count. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	union {
		void *found;
		int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	} next = {dlsym(RTLD_NEXT, "pthread_create")};
	union {
		void *(*run)(void *);
		void *at;
	} code = {run};
	Dl_info in;
	if (threaded && dladdr(code.at, &in) && !strstr(in.dli_fname, "libgpumemtop.so"))
		atomic_store(threaded, true);
	return next.create(thread, attributes, run, argument);
}
#endif

/* With THREADED=FILE, the tests that start threads are listed there: the others show the thread sanitizer nothing. */
static void watch_threads(void)
{
	if (!getenv("THREADED"))
		return;
	threaded = mmap(NULL, sizeof *threaded, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (threaded == MAP_FAILED)
		abort();
}

static void note_threads(const char *test)
{
	if (!threaded || !atomic_exchange(threaded, false))
		return;
	FILE *list = fopen(getenv("THREADED"), "a");
	if (!list || fprintf(list, "%s\n", test) < 0 || fclose(list) != 0)
		abort();
}

static bool run_test(unsigned i)
{
	snprintf(directory, sizeof directory, "/tmp/gmt-shim-test.XXXXXX");
	if (!mkdtemp(directory))
		abort();
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		alarm(120);
		tests[i].run();
		exit(0);
	}
	int status = -1;
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	remove_directory();
	note_threads(tests[i].name);
	if (child > 0 && status == 0) {
		printf("ok    %s\n", tests[i].name);
		return true;
	}
	if (WIFSIGNALED(status))
		printf("FAIL  %s: signal %d\n", tests[i].name, WTERMSIG(status));
	else
		printf("FAIL  %s: status %d\n", tests[i].name, WEXITSTATUS(status));
	return false;
}

/* Runs the tests that an argument names in part, or all; the exit status shows whether one failed. */
int main(int argc, char **argv)
{
	unsigned passed = 0, failed = 0;
	watch_threads();
	for (unsigned i = 0; i < test_count; i++) {
		bool wanted = argc < 2;
		for (int a = 1; a < argc; a++)
			wanted |= strstr(tests[i].name, argv[a]) != NULL;
		if (wanted)
			*(run_test(i) ? &passed : &failed) += 1;
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed > 0;
}
