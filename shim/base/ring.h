/*
 * ring.h: writes events into the rings that this process shares with the session. Any thread may write. An event without
 * room is dropped and counted.
 */
#ifndef GMT_RING_H
#define GMT_RING_H

#include "../../internal/wire/event_access.h"
#include "opencl.h"

/* Writes an event. The caller fills in time and duration. */
void gmt_ring_write(const struct gmtevent *event);
/* The same for two events: the session gets both at once, or none. */
void gmt_ring_write_pair(const struct gmtevent *first, const struct gmtevent *second);
/* Writes an event with a payload, which is cut at GMT_PAYLOAD_MAX, and sets the event's size to its length. */
void gmt_ring_write_payload(struct gmtevent *event, const void *payload, size_t length);
/* Fetches the cache lines of the next write before the driver is called: the session's processor has them. */
void gmt_ring_prepare(void);
/* Has the session read the rings, and the region's head, now. */
void gmt_ring_wake_session(void);
/* Called in the child of a fork, which has no ring. */
void gmt_ring_forget(void);

void gmt_diag(enum gmtdiag code, const char *text);

/* This thread's latest decision, see enum gmtorder; 0: none. */
extern __thread uint64_t gmt_decision __attribute__((tls_model("initial-exec")));
/* Writes the ORDER event of a decision that no other event records; fills in previous. */
void gmt_decision_write(struct gmtorderfields decision);
/*
 * Notes a decision that the next event records: writes its number unless it follows the thread's latest one. False: the core has
 * failed.
 */
static inline bool gmt_decision_note(int64_t number, uint64_t time)
{
	if (gmt_unlikely(number <= 0))
		return number == 0;
	if (gmt_likely((uint64_t)number == gmt_decision + 1))
		gmt_decision++;
	else
		gmt_decision_write((struct gmtorderfields){.order = GMT_ORDER_NEXT, .number = (uint64_t)number, .time = time});
	return true;
}

static inline uint32_t gmt_clamp32(uint64_t ns)
{
	return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static inline int16_t gmt_clamp16(int32_t status)
{
	return status < INT16_MIN ? INT16_MIN : status > INT16_MAX ? INT16_MAX : (int16_t)status;
}

#endif
