/* flight_counts.h: what is counted for the flight log, and the record that is made of it. */
#ifndef GMT_FLIGHT_COUNTS_H
#define GMT_FLIGHT_COUNTS_H

#include "../../internal/wire/flight.h"
#include "opencl.h"

#define GMT_FLIGHT_TAGS 4096u /* call sites that are counted apart */
#define GMT_FLIGHT_LOADED 1024u

/* Of a call site. The numbers of struct gmtflightcounts. */
struct gmt_flight_site {
	_Atomic uint64_t creates, failed, releases, bytes, inuse, peak;
	_Atomic uint32_t depth; /* its frames are there when it is not 0 */
	struct gmtframe frames[GMT_STACK_MAX];
};

/* Pages of it are there once they are used; in a forked child they are empty. */
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
	_Atomic uint32_t device; /* 1: a thread writes it; 2: it is there */
	struct gmt_flight_site total;
	uint64_t began;          /* CLOCK_MONOTONIC ns of started */
	uint64_t written;        /* changes in the latest record */
	char path[2][4096];      /* of the record, and of what becomes it */
	struct gmtflight record; /* who this process is; the rest is made at the end */
	struct gmtflightmodule modules[GMT_FLIGHT_LOADED]; /* by number - 1 */
	struct gmt_flight_site sites[GMT_FLIGHT_TAGS]; /* by tag */
};
extern struct gmt_flight *gmt_flight;

/* Counts an event, in bounded time and memory. Any thread may call it. Nothing in a process without a flight log. */
void gmt_flight_event(const struct gmtevent *event, const void *payload, size_t length);
/* Fills in the counts of the record. */
void gmt_flight_sum_up(struct gmt_flight *flight);

#endif
