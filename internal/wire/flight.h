/*
 * flight.h: the flight log, which a process leaves behind that ran without a session: one struct gmtflight is the whole file.
 * Its size is constant. Texts end with NUL. Names have no underscores, as in event.h.
 */
#ifndef GMT_FLIGHT_H
#define GMT_FLIGHT_H

#include "event.h"

#define GMT_FLIGHT_MAGIC 0x31474f4c544d4747ull
#define GMT_FLIGHT_VERSION 1
#define GMT_FLIGHT_SITES 32
#define GMT_FLIGHT_MODULES 64
#define GMT_FLIGHT_FAILURES 16
#define GMT_FLIGHT_SIZES 64
#define GMT_FLIGHT_FINDINGS 32
#define GMT_FLIGHT_PATH 256
#define GMT_FLIGHT_BUILD 20 /* bytes of a build id */
#define GMT_LOG_ENV "GPUMEMTOP_LOG"     /* the folder, which must be there */
#define GMT_LABEL_ENV "GPUMEMTOP_LABEL" /* NAME=VALUE,... for the record */
#define GMT_FLIGHT_SUFFIX ".flight"

/* Counts of a call site, or of the process. Bytes are those that the program asked for, as there is no pool. */
struct gmtflightcounts {
	uint64_t creates;  /* that succeeded */
	uint64_t failed;   /* creates that did not */
	uint64_t releases; /* last ones */
	uint64_t bytes;    /* of all creates */
	uint64_t inuse;    /* bytes at the end */
	uint64_t peak;     /* bytes in use, the most */
};

struct gmtflightsite {
	struct gmtflightcounts counts;
	uint32_t depth;
	uint32_t pad;
	struct gmtframe frames[GMT_STACK_MAX]; /* innermost first; module: 1 + index in modules, 0: unknown, or no more room */
};

struct gmtflightmodule {
	uint8_t script; /* 1: a function of Python, path is file NUL name, and offsets are lines */
	uint8_t path[GMT_FLIGHT_PATH - 1]; /* the last GMT_FLIGHT_BUILD bytes are the build id, where the text does not reach them */
};

struct gmtflightfailure {
	int32_t status; /* cl_int */
	uint32_t pad;
	uint64_t count; /* creates that failed with it; 0: no more entries */
};

struct gmtflight {
	uint64_t magic;
	uint32_t version;
	uint32_t size;    /* bytes of the file */
	uint32_t pid;
	uint32_t uid;
	int32_t status;   /* of the exit; -1: unknown, or ended by a signal */
	uint32_t signal;  /* that ended it; 0: none */
	uint64_t started; /* CLOCK_REALTIME ns of the first OpenCL call */
	uint64_t ended;   /* ... of this record */
	uint64_t peaktime; /* ns since started */
	uint64_t distinct; /* call sites */
	struct gmtflightcounts total;
	struct gmtflightcounts others; /* creates without a call site, or beyond the sites that are counted apart */
	uint64_t findings[GMT_FLIGHT_FINDINGS]; /* by enum gmtdiag */
	uint64_t sizes[GMT_FLIGHT_SIZES];       /* creates by size: [i] those of less than 2^(i+1) bytes, and not in [i-1] */
	struct gmtflightfailure failures[GMT_FLIGHT_FAILURES];
	uint8_t host[64];
	uint8_t program[GMT_FLIGHT_PATH];
	uint8_t arguments[1024]; /* words, each ended by NUL; cut */
	uint8_t device[128];     /* the first */
	uint8_t driver[128];
	uint8_t policy[64];
	uint8_t limits[256];
	uint8_t job[64];
	uint8_t step[64];
	uint8_t rank[32];
	uint8_t labels[512];
	struct gmtflightsite sites[GMT_FLIGHT_SITES]; /* by peak, the largest first; creates and failed 0: no more */
	struct gmtflightmodule modules[GMT_FLIGHT_MODULES];
	uint64_t sum; /* of all before it: gmt_flight_sum_up */
};

_Static_assert(sizeof(struct gmtflight) <= 64 << 10, "a record has at most 64 KiB");
_Static_assert(sizeof(struct gmtflight) % 8 == 0, "the sum covers whole words");

#endif
