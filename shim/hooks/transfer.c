/*
 * transfer.c: see transfer.h. Looking at the host's memory may cost a hundredth of the transfer's time, so small transfers are
 * skipped. A hash covers samples of the bytes; with GMT_TRANSFERS_HASHED it covers all.
 */
#define _GNU_SOURCE
#include "transfer.h"

#include "../base/ring.h"
#include "../base/session.h"
#include "../registry/host_range.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define KIB 1024u
#define PAGE 4096u
#define PAGES_FROM (256 * KIB)
#define PAGES_EVERY (4096 * KIB) /* bytes that a thread reads between two looks: a look takes 1 to 2 us, 4 MiB take 160 us */
#define PAGES 16u                /* adjacent ones in one look, which takes one system call; the place varies */
#define HASH_FROM (64 * KIB) /* smallest write that is hashed: 4 samples take 0.05 us, moving 64 KiB at least 6 us */
#define SAMPLE 64u           /* bytes: a cache line */
#define SAMPLE_EVERY (16 * KIB)
#define SAMPLES_MAX 16u /* take 2 % of a write of 1 MiB at the speed of memcpy; 64 take 4 % */

static uint64_t mix_hash(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ (h >> 32);
}

/* Four lanes, because each step waits for the multiplication before it. */
static uint64_t hash_bytes(uint64_t h, const unsigned char *p, size_t bytes)
{
	uint64_t lane[4] = {h, h + 1, h + 2, h + 3}, word[4] = {0};
	for (; bytes >= sizeof word; p += sizeof word, bytes -= sizeof word) {
		memcpy(word, p, sizeof word);
		for (unsigned i = 0; i < 4; i++)
			lane[i] = mix_hash(lane[i], word[i]);
	}
	memset(word, 0, sizeof word);
	memcpy(word, p, bytes);
	for (unsigned i = 0; i < 4; i++)
		h = mix_hash(mix_hash(h, lane[i]), word[i]);
	return h;
}

/* No step waits for the one before it, so that the processor fetches several samples at once. */
static uint64_t sum_of_sample(const unsigned char *p)
{
	uint64_t word[SAMPLE / 8], sum = 0;
	memcpy(word, p, sizeof word);
	for (unsigned i = 0; i < SAMPLE / 8; i++)
		sum += word[i] * (0x9e3779b97f4a7c15u + 2 * i);
	return sum;
}

/* Hashes one sample in each of equal parts, at varying places, so that a regular layout cannot hide between samples. */
static void hash_samples(struct gmt_transfer *t, const unsigned char *p, uint64_t bytes)
{
	uint64_t count = bytes / SAMPLE_EVERY, h = bytes;
	if (count > SAMPLES_MAX)
		count = SAMPLES_MAX;
	uint64_t part = bytes / count;
	for (uint64_t i = 0; i < count; i++)
		h = (h + sum_of_sample(p + i * part + (i * 7919 * 8) % (part - SAMPLE))) * 0x9e3779b97f4a7c15u;
	t->hash = h;
	t->hashed = count * SAMPLE;
}

/* Only for commands that block: otherwise an earlier command may still write there. */
void gmt_transfer_hash(struct gmt_transfer *t)
{
	if (!t->bytes)
		return;
	if (gmt_session.config.transfers == GMT_TRANSFERS_HASHED) {
		t->hash = hash_bytes(t->bytes, t->host, t->bytes);
		t->hashed = t->bytes;
	} else if (gmt_unlikely(t->bytes >= HASH_FROM)) {
		hash_samples(t, t->host, t->bytes);
	}
}

static __thread uint64_t unseen __attribute__((tls_model("initial-exec"))) = PAGES_EVERY; /* bytes read since the last look */

/* Looks for pages that were never touched (mincore(2)): the driver's first write to each makes the kernel clear one. */
static void look_at_pages(struct gmt_transfer *t, uint64_t time, const void *host, uint64_t bytes)
{
	unseen += bytes;
	if (unseen < PAGES_EVERY)
		return;
	unseen = 0;
	if (gmt_session_seccomp_installed())
		return;
	int saved = errno;
	unsigned char present[PAGES];
	uintptr_t first = ((uintptr_t)host + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	uint64_t places = ((uintptr_t)host + bytes - first) / PAGE - PAGES + 1;
	if (mincore((void *)(first + mix_hash(time, bytes) % places * PAGE), (size_t)PAGES * PAGE, present) == 0) {
		t->pages = PAGES;
		for (unsigned i = 0; i < PAGES; i++)
			t->cold += !(present[i] & 1);
	}
	errno = saved;
}

void gmt_transfer_look(struct gmt_transfer *t, uint64_t time, bool written, const void *host, uint64_t bytes)
{
	t->side = gmt_host_range_holds(host) ? GMT_FLAG_PINNED : GMT_FLAG_PAGEABLE;
	t->host = host;
	t->bytes = bytes;
	if (written && gmt_unlikely(bytes >= PAGES_FROM))
		look_at_pages(t, time, host, bytes);
}

void gmt_transfer_write(const struct gmt_transfer *t, uint32_t site, const struct gmtevent *use)
{
	struct gmtevent event = GMT_EVENT_TRANSFER(.time = use->time, .pages = t->pages, .cold = t->cold, .pinned = t->side & GMT_FLAG_PINNED,
						   .pageable = t->side & GMT_FLAG_PAGEABLE, .site = site, .hashed = t->hashed,
						   .hash = t->hash);
	gmt_ring_write_pair(&event, use);
}
