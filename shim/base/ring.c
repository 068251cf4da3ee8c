/*
 * ring.c: writes events into the shared rings. A thread owns one ring from its first event until it ends. Only the thread
 * writes head, only the session writes tail. When all rings are taken, further threads share the last one under a lock.
 */
#define _GNU_SOURCE
#include "ring.h"

#include "call.h"
#include "flight_counts.h"
#include "link.h"
#include "lock.h"
#include "session.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHARED_RING (GMT_RINGS - 1)
/*
 * All waits together take at most this part of the time since the first event. A recording has a longer limit for one wait; for
 * its sake, a program may take twice as long.
 */
#define WAIT_SHARE 4
#define WAIT_SHARE_RECORDED 2
#define WAIT_RECORDED 2000000000u /* ns: a limit of one wait that is longer shows that the session records */

struct writer {
	struct gmtring *ring;
	uint64_t head;
	uint64_t tail;   /* as last seen */
	uint64_t until;  /* head at which tail is read again */
	uint64_t nudged; /* 1 + tail when the bell was rung last; 0: never */
	bool shared;
};
static __thread struct writer writer __attribute__((tls_model("initial-exec")));

static _Atomic uint32_t next_ring;
static _Atomic uint32_t shared_lock;
static _Atomic uint32_t shared_thread;
static uint64_t shared_nudged; /* under shared_lock */
static _Atomic bool stalled;     /* a wait for the session timed out, and it has not read since */
static _Atomic uint64_t began;   /* when the process wrote its first event, ns */
static _Atomic uint64_t waited;  /* ns during which some thread waited for the session */
static _Atomic uint64_t counted; /* time up to which waited is complete */
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static struct gmtring *ring_at(uint32_t i)
{
	char *base = (char *)gmt_session.region + GMT_RINGS_OFFSET;
	return (struct gmtring *)(void *)(base + (size_t)i * sizeof(struct gmtring));
}

static uint64_t load_acquire(uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void release_thread_ring(void *ring)
{
	writer = (struct writer){0};
	if (gmt_session.region)
		__atomic_store_n(&((struct gmtring *)ring)->owner, 0, __ATOMIC_RELEASE);
}

static void make_thread_key(void)
{
	pthread_key_create(&key, release_thread_ring);
}

/* Copies an event and its payload into free slots and publishes them at once. */
static void publish_event(struct writer *w, const struct gmtevent *event, const void *payload, size_t length)
{
	struct gmtring *ring = w->ring;
	ring->events[w->head++ % GMT_RING_EVENTS] = *event;
	for (const char *p = payload; length > 0;) {
		size_t part = length < sizeof *event ? length : sizeof *event;
		memcpy(&ring->events[w->head++ % GMT_RING_EVENTS], p, part);
		p += part;
		length -= part;
	}
	__atomic_store_n(&ring->head, w->head, __ATOMIC_RELEASE);
}

static bool has_room(struct writer *w, uint64_t slots)
{
	return w->head - w->tail + slots <= GMT_RING_EVENTS;
}

/* Wakes the session with a futex, a system call that every filter must permit programs with threads. */
void gmt_ring_wake_session(void)
{
	int saved = errno;
	if (gmt_session.bell)
		syscall(SYS_futex, gmt_session.bell, FUTEX_WAKE, 1, NULL, NULL, 0);
	errno = saved;
}

/* Reads how far the session has read. The session polls slow rings rarely, so a ring that is half full wakes it, once until it reads. */
static void read_tail(struct writer *w)
{
	uint64_t tail = load_acquire(&w->ring->tail);
	if (tail != w->tail)
		atomic_store_explicit(&stalled, false, memory_order_relaxed);
	w->tail = tail;
	bool half = w->head - tail >= GMT_RING_EVENTS / 2;
	w->until = tail + (half ? GMT_RING_EVENTS : GMT_RING_EVENTS / 2);
	if (half && w->nudged != tail + 1) {
		w->nudged = tail + 1;
		gmt_ring_wake_session();
	}
}

/* Adds the time between two readings of a thread that waits, unless another one has counted it. */
static void count_wait(uint64_t from, uint64_t now)
{
	uint64_t until = atomic_load(&counted);
	while (until < now && !atomic_compare_exchange_weak(&counted, &until, now)) {
	}
	if (until < now)
		atomic_fetch_add(&waited, now - (until > from ? until : from));
}

/* Whether a thread may still wait: all waits together are bounded, so that a slow session does not slow the program for long. */
static bool may_wait(uint64_t limit, uint64_t now)
{
	uint64_t share = limit > WAIT_RECORDED ? WAIT_SHARE_RECORDED : WAIT_SHARE;
	return atomic_load(&waited) < limit + (now - atomic_load(&began)) / share;
}

/* Waits a bounded time for the session to read. If it does not, or is gone, no thread waits again until it reads. */
static bool wait_for_room(struct writer *w, uint64_t slots)
{
	uint64_t limit = (uint64_t)gmt_session.config.waitms * 1000000u;
	if (limit == 0 || atomic_load_explicit(&stalled, memory_order_relaxed))
		return false;
	uint64_t start = gmt_now();
	if (!may_wait(limit, start))
		return false;
	int saved = errno;
	w->ring->waits++;
	bool found = false, alone = false;
	for (uint64_t now = start, before = now; !found && !alone && now - start < limit && may_wait(limit, now); before = now) {
		alone = gmt_link_lost(50000);
		w->tail = load_acquire(&w->ring->tail);
		found = has_room(w, slots);
		now = gmt_now();
		count_wait(before, now);
	}
	atomic_store_explicit(&stalled, !found, memory_order_relaxed);
	errno = saved;
	return found;
}

/*
 * Whether slots are free. USE events, alone or with a TRANSFER, leave a quarter of the ring to events that matter more, unless
 * their threads may wait.
 */
static bool reserve_slots(struct writer *w, const struct gmtevent *event, uint64_t slots)
{
	bool use = event->kind == GMT_KIND_USE || event->kind == GMT_KIND_TRANSFER;
	uint64_t spare = use && gmt_session.config.waitms == 0 ? GMT_RING_EVENTS / 4 : 0;
	if (gmt_likely(w->head + slots + spare <= w->until))
		return true;
	read_tail(w);
	if (has_room(w, slots + spare) || (spare == 0 && wait_for_room(w, slots)))
		return true;
	uint64_t lost = event->kind == GMT_KIND_TRANSFER ? slots : 1;
	__atomic_fetch_add(&w->ring->lost, lost, __ATOMIC_RELAXED);
	if (use)
		__atomic_fetch_add(&w->ring->lostuses, lost, __ATOMIC_RELAXED);
	return false;
}

static void announce_thread(struct writer *w, uint32_t tid)
{
	struct gmtevent event = GMT_EVENT_THREAD(.time = gmt_now(), .tid = tid);
	if (reserve_slots(w, &event, 1))
		publish_event(w, &event, NULL, 0);
}

/* Raises the number of rings that the session reads. */
static void raise_used_rings(uint32_t count)
{
	uint32_t *used = &gmt_session.region->used, before = __atomic_load_n(used, __ATOMIC_RELAXED);
	while (before < count && !__atomic_compare_exchange_n(used, &before, count, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
	}
}

static void claim_ring(void)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	pthread_once(&key_once, make_thread_key);
	uint64_t none_yet = 0;
	atomic_compare_exchange_strong(&began, &none_yet, gmt_now());
	uint32_t first = atomic_fetch_add(&next_ring, 1);
	for (uint32_t i = 0; i < SHARED_RING; i++) {
		uint32_t at = (first + i) % SHARED_RING;
		struct gmtring *ring = ring_at(at);
		uint32_t none = 0;
		if (!__atomic_compare_exchange_n(&ring->owner, &none, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		raise_used_rings(at + 1);
		writer = (struct writer){.ring = ring, .head = ring->head, .tail = load_acquire(&ring->tail)};
		pthread_setspecific(key, ring);
		announce_thread(&writer, tid);
		return;
	}
	raise_used_rings(GMT_RINGS);
	writer = (struct writer){.ring = ring_at(SHARED_RING), .shared = true};
}

static void write_to_shared_ring(const struct gmtevent *event, const void *payload, size_t length, uint64_t slots)
{
	gmt_lock(&shared_lock);
	struct writer w = {.ring = writer.ring, .head = writer.ring->head, .tail = load_acquire(&writer.ring->tail), .nudged = shared_nudged};
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	if (atomic_exchange_explicit(&shared_thread, tid, memory_order_relaxed) != tid)
		announce_thread(&w, tid);
	if (reserve_slots(&w, event, slots))
		publish_event(&w, event, payload, length);
	shared_nudged = w.nudged;
	gmt_unlock(&shared_lock);
}

static void write_event(const struct gmtevent *event, const void *payload, size_t length)
{
	if (gmt_unlikely(!gmt_session.region)) {
		gmt_flight_count_event(event, payload, length);
		return;
	}
	if (gmt_unlikely(!writer.ring))
		claim_ring();
	uint64_t slots = 1 + (length + sizeof *event - 1) / sizeof *event;
	if (gmt_unlikely(writer.shared))
		write_to_shared_ring(event, payload, length, slots);
	else if (gmt_likely(reserve_slots(&writer, event, slots)))
		publish_event(&writer, event, payload, length);
}

void gmt_ring_prepare(void)
{
	if (gmt_unlikely(!writer.ring || writer.shared))
		return;
	__builtin_prefetch(&writer.ring->events[writer.head % GMT_RING_EVENTS], 1);
	__builtin_prefetch(&writer.ring->head, 1);
}

void gmt_ring_write(const struct gmtevent *event)
{
	write_event(event, NULL, 0);
}

void gmt_ring_write_pair(const struct gmtevent *first, const struct gmtevent *second)
{
	struct writer *w = &writer;
	if (gmt_unlikely(!gmt_session.region || !w->ring || w->shared)) {
		write_event(first, second, sizeof *second);
		return;
	}
	if (gmt_unlikely(!reserve_slots(w, first, 2)))
		return;
	w->ring->events[w->head++ % GMT_RING_EVENTS] = *first;
	w->ring->events[w->head++ % GMT_RING_EVENTS] = *second;
	__atomic_store_n(&w->ring->head, w->head, __ATOMIC_RELEASE);
}

void gmt_ring_write_payload(struct gmtevent *event, const void *payload, size_t length)
{
	if (length > GMT_PAYLOAD_MAX)
		length = GMT_PAYLOAD_MAX;
	event->size = length;
	write_event(event, payload, length);
}

void gmt_ring_forget(void)
{
	writer = (struct writer){0};
}

__thread uint64_t gmt_decision __attribute__((tls_model("initial-exec")));

void gmt_decision_write(struct gmtorderfields decision)
{
	decision.previous = gmt_decision;
	gmt_decision = decision.number;
	struct gmtevent event = gmtorder_event(decision);
	gmt_ring_write(&event);
}

void gmt_diag(enum gmtdiag code, const char *text)
{
	struct gmtevent event = GMT_EVENT_DIAG(.time = gmt_now(), .diag = code);
	gmt_ring_write_payload(&event, text, strlen(text));
}
