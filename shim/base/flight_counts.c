/* flight_counts.c: see flight_counts.h. Threads only add to atomic counters. */
#define _GNU_SOURCE
#include "flight_counts.h"

#include <string.h>

struct gmt_flight *gmt_flight;

static void add_to_counter(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* True if this is a new peak. */
static bool add_in_use(struct gmt_flight_site *site, uint64_t bytes)
{
	uint64_t now = atomic_fetch_add_explicit(&site->inuse, bytes, memory_order_relaxed) + bytes, peak = read_counter(&site->peak);
	while (now > peak)
		if (atomic_compare_exchange_weak_explicit(&site->peak, &peak, now, memory_order_relaxed, memory_order_relaxed))
			return true;
	return false;
}

static struct gmt_flight_site *site_of(uint32_t tag)
{
	return &gmt_flight->sites[tag < GMT_FLIGHT_TAGS ? tag : 0];
}

static void count_failure(int32_t status)
{
	for (unsigned i = 0; i < GMT_FLIGHT_FAILURES; i++) {
		int32_t there = 0;
		if (atomic_compare_exchange_strong(&gmt_flight->failures[i].status, &there, status) || there == status) {
			add_to_counter(&gmt_flight->failures[i].count, 1);
			return;
		}
	}
}

/* Whether an object has memory of its own: it is no part of a buffer, and no memory of another API. */
static bool owns_memory(const struct gmtevent *event)
{
	return event->op != GMT_MEMORY_SUBBUFFER && event->op != GMT_MEMORY_EXTERNAL;
}

static void count_create(const struct gmtevent *event)
{
	struct gmt_flight_site *site = site_of(event->tag), *total = &gmt_flight->total;
	if (event->outcome == GMT_OUTCOME_FAILED) {
		add_to_counter(&site->failed, 1);
		add_to_counter(&total->failed, 1);
		if (event->status)
			count_failure(event->status);
		return;
	}
	add_to_counter(&site->creates, 1);
	add_to_counter(&total->creates, 1);
	if (!owns_memory(event))
		return;
	add_to_counter(&gmt_flight->sizes[event->size ? 63 - __builtin_clzll(event->size) : 0], 1);
	add_to_counter(&site->bytes, event->size);
	add_to_counter(&total->bytes, event->size);
	add_in_use(site, event->size);
	if (add_in_use(total, event->size))
		atomic_store_explicit(&gmt_flight->peaktime, event->time - gmt_flight->began, memory_order_relaxed);
}

static void count_release(const struct gmtevent *event)
{
	if (!event->object || event->granted /* references */ || event->outcome == GMT_OUTCOME_PINNED)
		return;
	struct gmt_flight_site *site = site_of(event->tag), *total = &gmt_flight->total;
	add_to_counter(&site->releases, 1);
	add_to_counter(&total->releases, 1);
	if (owns_memory(event)) {
		add_to_counter(&site->inuse, -event->size);
		add_to_counter(&total->inuse, -event->size);
	}
}

static void note_tag(const struct gmtevent *event, const void *frames, size_t length)
{
	struct gmt_flight_site *site = site_of(event->tag);
	add_to_counter(&gmt_flight->tags, 1);
	if (site == gmt_flight->sites || length > sizeof site->frames)
		return;
	memcpy(site->frames, frames, length);
	atomic_store_explicit(&site->depth, (uint32_t)(length / sizeof *site->frames), memory_order_release);
}

/* The payload of a module is path NUL build id, or file NUL name. Texts that are too long keep their last bytes, which say most. */
static void note_module(const struct gmtevent *event, const char *text, size_t length)
{
	if (event->object > GMT_FLIGHT_LOADED)
		return;
	struct gmtflightmodule *module = &gmt_flight->modules[event->object - 1];
	module->script = (event->flags & GMT_FLAG_SCRIPT) != 0;
	size_t room = sizeof module->path - 1;
	if (!module->script) {
		size_t path = strnlen(text, length), id = path < length ? length - path - 1 : 0;
		room -= GMT_FLIGHT_BUILD;
		memcpy(module->path + sizeof module->path - GMT_FLIGHT_BUILD, text + length - id, id < GMT_FLIGHT_BUILD ? id : GMT_FLIGHT_BUILD);
		length = path;
	}
	size_t cut = length > room ? length - room : 0;
	memcpy(module->path, text + cut, length - cut);
}

static void copy_text(uint8_t *to, size_t room, const char *from, size_t length)
{
	memcpy(to, from, length < room ? length : room - 1);
}

static void note_device(const char *text, size_t length)
{
	uint32_t none = 0;
	if (!atomic_compare_exchange_strong(&gmt_flight->device, &none, 1))
		return;
	size_t name = strnlen(text, length);
	copy_text(gmt_flight->record.device, sizeof gmt_flight->record.device, text, name);
	if (name < length)
		copy_text(gmt_flight->record.driver, sizeof gmt_flight->record.driver, text + name + 1, length - name - 1);
}

void gmt_flight_count_event(const struct gmtevent *event, const void *payload, size_t length)
{
	if (gmt_unlikely(!gmt_flight || !gmt_flight->pid))
		return;
	add_to_counter(&gmt_flight->changes, 1);
	switch (event->kind) {
	case GMT_KIND_CREATE:
		count_create(event);
		break;
	case GMT_KIND_RELEASE:
		count_release(event);
		break;
	case GMT_KIND_TAG:
		note_tag(event, payload, length);
		break;
	case GMT_KIND_MODULE:
		note_module(event, payload, length);
		break;
	case GMT_KIND_DEVICE:
		note_device(payload, length);
		break;
	case GMT_KIND_DIAG:
		if (event->op < GMT_FLIGHT_FINDINGS)
			add_to_counter(&gmt_flight->findings[event->op], 1);
		break;
	default:
		break;
	}
}

static void read_counts(struct gmtflightcounts *to, const struct gmt_flight_site *from)
{
	*to = (struct gmtflightcounts){
		read_counter(&from->creates), read_counter(&from->failed), read_counter(&from->releases),
		read_counter(&from->bytes), read_counter(&from->inuse), read_counter(&from->peak),
	};
}

static bool has_larger_peak(const struct gmt_flight_site *a, const struct gmt_flight_site *b)
{
	uint64_t one = read_counter(&a->peak), other = read_counter(&b->peak);
	return one != other ? one > other : read_counter(&a->creates) > read_counter(&b->creates);
}

/* The call sites with the largest peaks. Returns how many there are. */
static unsigned largest_sites(const struct gmt_flight *flight, const struct gmt_flight_site **best)
{
	unsigned count = 0;
	uint64_t tags = read_counter(&flight->tags);
	for (uint64_t tag = 1; tag <= tags && tag < GMT_FLIGHT_TAGS; tag++) {
		const struct gmt_flight_site *site = &flight->sites[tag];
		if (!read_counter(&site->creates) && !read_counter(&site->failed))
			continue;
		unsigned at = count < GMT_FLIGHT_SITES ? count++ : GMT_FLIGHT_SITES;
		for (; at > 0 && has_larger_peak(site, best[at - 1]); at--)
			if (at < GMT_FLIGHT_SITES)
				best[at] = best[at - 1];
		if (at < GMT_FLIGHT_SITES)
			best[at] = site;
	}
	return count;
}

/* 1 + the index of a module in the record, which it enters if needed; 0: there is no room. */
static uint64_t index_of_module(struct gmt_flight *flight, uint64_t number, uint64_t *used, unsigned *count)
{
	if (!number || number > GMT_FLIGHT_LOADED)
		return 0;
	for (unsigned i = 0; i < *count; i++)
		if (used[i] == number)
			return i + 1;
	if (*count == GMT_FLIGHT_MODULES)
		return 0;
	used[*count] = number;
	flight->record.modules[*count] = flight->modules[number - 1];
	return ++*count;
}

static void fill_sites(struct gmt_flight *flight)
{
	const struct gmt_flight_site *best[GMT_FLIGHT_SITES];
	uint64_t used[GMT_FLIGHT_MODULES] = {0};
	unsigned modules = 0, count = largest_sites(flight, best);
	for (unsigned i = 0; i < count; i++) {
		struct gmtflightsite *site = &flight->record.sites[i];
		read_counts(&site->counts, best[i]);
		site->depth = atomic_load_explicit(&best[i]->depth, memory_order_acquire);
		for (unsigned f = 0; f < site->depth; f++) {
			site->frames[f] = best[i]->frames[f];
			site->frames[f].module = index_of_module(flight, site->frames[f].module, used, &modules);
		}
	}
}

void gmt_flight_sum_up(struct gmt_flight *flight)
{
	struct gmtflight *record = &flight->record;
	read_counts(&record->total, &flight->total);
	read_counts(&record->others, &flight->sites[0]);
	record->peaktime = read_counter(&flight->peaktime);
	record->distinct = read_counter(&flight->tags);
	for (unsigned i = 0; i < GMT_FLIGHT_FINDINGS; i++)
		record->findings[i] = read_counter(&flight->findings[i]);
	for (unsigned i = 0; i < GMT_FLIGHT_SIZES; i++)
		record->sizes[i] = read_counter(&flight->sizes[i]);
	for (unsigned i = 0; i < GMT_FLIGHT_FAILURES; i++)
		record->failures[i] = (struct gmtflightfailure){.status = flight->failures[i].status, .count = read_counter(&flight->failures[i].count)};
	fill_sites(flight);
	const uint64_t *word = (const void *)record;
	record->sum = 0xcbf29ce484222325u;
	for (size_t i = 0; i < offsetof(struct gmtflight, sum) / sizeof *word; i++)
		record->sum = (record->sum ^ word[i]) * 0x100000001b3u;
}
