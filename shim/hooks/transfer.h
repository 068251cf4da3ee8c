/* transfer.h: notes about the host's side of commands that move memory between host and device. */
#ifndef GMT_TRANSFER_H
#define GMT_TRANSFER_H

#include "../../internal/wire/event.h"
#include "../base/opencl.h"

struct gmt_transfer {
	const void *host; /* the program's side of a read or write */
	uint64_t bytes;   /* how many are contiguous there, 0: unknown */
	uint64_t hash, hashed; /* see TRANSFER in event.h; and so are the next three */
	uint32_t pages, cold;
	uint8_t side; /* GMT_FLAG_PINNED, GMT_FLAG_PAGEABLE, 0 */
};

/* Called before the driver. time: of the command; written: the command writes to the host. */
void gmt_transfer_look(struct gmt_transfer *t, uint64_t time, bool written, const void *host, uint64_t bytes);
/* Called after the driver has returned from a blocking write, while the host's memory still has what was written. */
void gmt_transfer_hash(struct gmt_transfer *t);
/* Writes the TRANSFER event, and after it the command's first USE. */
void gmt_transfer_write(const struct gmt_transfer *t, uint32_t site, const struct gmtevent *use);

#endif
