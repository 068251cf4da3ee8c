/* flight_counts.h: the counts of the flight log, and how they become its record. */
#ifndef GMT_FLIGHT_COUNTS_H
#define GMT_FLIGHT_COUNTS_H

#include "../../internal/wire/flight.h"
#include "opencl.h"

#define GMT_FLIGHT_TAGS 4096u /* call sites with counts of their own */
#define GMT_FLIGHT_LOADED 1024u

/* The counts of a call site: see struct gmtflightcounts. */
struct gmt_flight_site {
	_Atomic uint64_t creates, failed, releases, bytes, inuse, peak;
	_Atomic uint32_t depth; /* number of frames; they are complete when it is not 0 */
	struct gmtframe frames[GMT_STACK_MAX];
};

/* Takes memory only for pages that are used. In a forked child all are empty. */
struct gmt_flight {
	uint32_t pid;
	_Atomic uint32_t busy;    /* 1: a thread writes the record */
	_Atomic uint64_t changes; /* events so far */
	_Atomic uint64_t peaktime, tags;
	_Atomic uint64_t findings[GMT_FLIGHT_FINDINGS], sizes[GMT_FLIGHT_SIZES];
	struct {
		_Atomic int32_t status;
		_Atomic uint64_t count;
	} failures[GMT_FLIGHT_FAILURES];
	_Atomic uint32_t device; /* 1: a thread writes the device's name; 2: it is complete */
	struct gmt_flight_site total;
	uint64_t began;          /* CLOCK_MONOTONIC ns of started */
	uint64_t written;        /* changes in the latest record */
	char path[2][4096];      /* of the record, and of the temporary file that becomes it */
	struct gmtflight record; /* describes the process from the start; the counts are filled in when it is written */
	struct gmtflightmodule modules[GMT_FLIGHT_LOADED]; /* by number - 1 */
	struct gmt_flight_site sites[GMT_FLIGHT_TAGS]; /* by tag */
};
extern struct gmt_flight *gmt_flight;

/* Counts an event, in bounded time and memory. Any thread may call it. Does nothing in a process without a flight log. */
void gmt_flight_count_event(const struct gmtevent *event, const void *payload, size_t length);
/* Fills in the counts of the record. */
void gmt_flight_sum_up(struct gmt_flight *flight);

#endif
