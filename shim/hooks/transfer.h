/* transfer.h: what is noted about the program's side of commands that move memory. */
#ifndef GMT_TRANSFER_H
#define GMT_TRANSFER_H

#include "../../internal/wire/event.h"
#include "../base/opencl.h"

struct gmt_transfer {
	const void *host; /* the program's side of a read or write */
	uint64_t bytes;   /* how many lie there in one piece, 0: unknown */
	uint64_t hash, hashed; /* see TRANSFER in event.h; and so are the next three */
	uint32_t pages, cold;
	uint8_t side; /* GMT_FLAG_PINNED, GMT_FLAG_PAGEABLE, 0 */
};

/* Before the driver is called. time: of the command; written: the command writes to the host. */
void gmt_transfer_look(struct gmt_transfer *t, uint64_t time, bool written, const void *host, uint64_t bytes);
/* After the driver has carried out a write that blocks: the host's side still has what was written. */
void gmt_transfer_hash(struct gmt_transfer *t);
/* Writes the TRANSFER event, and the command's first USE behind it. */
void gmt_transfer_write(const struct gmt_transfer *t, uint32_t site, const struct gmtevent *use);

#endif
