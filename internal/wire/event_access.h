/*
 * event_access.h: the fields of events by their names in the tables of event.h, for C.
 *
 * GMT_EVENT_CREATE(.time = now, .object = 1, ...) makes an event, gmtcreate_object(&event) reads a field of one.
 *
 * Generated from event.h by internal/wire/gen; do not edit.
 */
#ifndef GMT_EVENT_ACCESS_H
#define GMT_EVENT_ACCESS_H

#include <stdbool.h>
#include <string.h>

#include "event.h"

static inline uint64_t gmt_bits_of(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	return bits;
}

static inline double gmt_double_of(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

/* PROCESS: a process joined the session. */
struct gmtprocessfields {
	uint64_t time;
	uint64_t pid; /* of the process */
	uint64_t parent; /* of its parent */
	uint64_t rank_number; /* 1 + its rank in its job; 0: unknown */
};

static inline struct gmtevent gmtprocess_event(struct gmtprocessfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_PROCESS,
		.object = f.pid,
		.link = f.parent,
		.granted = f.rank_number,
	};
}
#define GMT_EVENT_PROCESS(...) gmtprocess_event((struct gmtprocessfields){__VA_ARGS__})
static inline uint64_t gmtprocess_pid(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtprocess_parent(const struct gmtevent *e) { return e->link; }
static inline uint64_t gmtprocess_rank_number(const struct gmtevent *e) { return e->granted; }

/* THREAD: another thread writes this ring from here on. */
struct gmtthreadfields {
	uint64_t time;
	uint64_t tid; /* of the thread that writes this ring from here on */
};

static inline struct gmtevent gmtthread_event(struct gmtthreadfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_THREAD,
		.object = f.tid,
	};
}
#define GMT_EVENT_THREAD(...) gmtthread_event((struct gmtthreadfields){__VA_ARGS__})
static inline uint64_t gmtthread_tid(const struct gmtevent *e) { return e->object; }

/* MODULE: a file that the process runs code of. */
struct gmtmodulefields {
	uint64_t time;
	uint64_t module; /* of the module, from 1 */
	bool script; /* it is a function of Python: offsets in it are lines; not recorded, its name goes into the SITE */
};

static inline struct gmtevent gmtmodule_event(struct gmtmodulefields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_MODULE,
		.object = f.module,
		.flags = (uint8_t)((f.script ? GMT_FLAG_SCRIPT : 0u)),
	};
}
#define GMT_EVENT_MODULE(...) gmtmodule_event((struct gmtmodulefields){__VA_ARGS__})
static inline uint64_t gmtmodule_module(const struct gmtevent *e) { return e->object; }
static inline bool gmtmodule_script(const struct gmtevent *e) { return e->flags & GMT_FLAG_SCRIPT; }

/* TAG: defines a tag. */
struct gmttagfields {
	uint64_t time;
	enum gmttagmode mode; /* what the tag is made of */
	uint32_t tag; /* that this event defines */
	uint64_t value; /* the size class or thread, where the tag is made of that */
};

static inline struct gmtevent gmttag_event(struct gmttagfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_TAG,
		.op = (uint8_t)f.mode,
		.tag = f.tag,
		.link = f.value,
	};
}
#define GMT_EVENT_TAG(...) gmttag_event((struct gmttagfields){__VA_ARGS__})
static inline enum gmttagmode gmttag_mode(const struct gmtevent *e) { return (enum gmttagmode)e->op; }
static inline uint32_t gmttag_tag(const struct gmtevent *e) { return e->tag; }
static inline uint64_t gmttag_value(const struct gmtevent *e) { return e->link; }

/* SITE: the call site that a tag stands for, with names; written by the session. */
struct gmtsitefields {
	uint64_t time;
	uint32_t tag; /* that this event names */
};

static inline struct gmtevent gmtsite_event(struct gmtsitefields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_SITE,
		.tag = f.tag,
	};
}
#define GMT_EVENT_SITE(...) gmtsite_event((struct gmtsitefields){__VA_ARGS__})
static inline uint32_t gmtsite_tag(const struct gmtevent *e) { return e->tag; }

/* DEVICE: a device of a context. */
struct gmtdevicefields {
	uint64_t time;
	bool unified; /* its memory is the host's; of several devices: that of each is */
	uint16_t devices; /* how many devices the context has; 0: unknown */
	uint64_t device; /* the device */
	uint64_t memory; /* bytes of global memory */
	uint64_t largest_alloc; /* bytes of one allocation at most */
	uint32_t align; /* bytes alignment of sub-buffers */
	uint64_t constant; /* bytes of one __constant argument at most; 0: unknown */
};

static inline struct gmtevent gmtdevice_event(struct gmtdevicefields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_DEVICE,
		.flags = (uint8_t)((f.unified ? GMT_FLAG_UNIFIED : 0u)),
		.scope = f.devices,
		.object = f.device,
		.granted = f.memory,
		.link = f.largest_alloc,
		.tag = f.align,
		.duration = (uint32_t)(f.constant >> 32),
		.cost = (uint32_t)f.constant,
	};
}
#define GMT_EVENT_DEVICE(...) gmtdevice_event((struct gmtdevicefields){__VA_ARGS__})
static inline bool gmtdevice_unified(const struct gmtevent *e) { return e->flags & GMT_FLAG_UNIFIED; }
static inline uint16_t gmtdevice_devices(const struct gmtevent *e) { return e->scope; }
static inline uint64_t gmtdevice_device(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtdevice_memory(const struct gmtevent *e) { return e->granted; }
static inline uint64_t gmtdevice_largest_alloc(const struct gmtevent *e) { return e->link; }
static inline uint32_t gmtdevice_align(const struct gmtevent *e) { return e->tag; }
static inline uint64_t gmtdevice_constant(const struct gmtevent *e) { return (uint64_t)e->duration << 32 | e->cost; }

/* CONTEXT: a context was created, retained or released. */
struct gmtcontextfields {
	uint64_t time;
	enum gmtlife life; /* what happened */
	bool carried_over; /* it was there before the recording began */
	uint16_t scope; /* of the context */
	uint64_t context; /* the context */
	uint64_t device; /* its first device */
};

static inline struct gmtevent gmtcontext_event(struct gmtcontextfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_CONTEXT,
		.op = (uint8_t)f.life,
		.flags = (uint8_t)((f.carried_over ? GMT_FLAG_CARRIED : 0u)),
		.scope = f.scope,
		.object = f.context,
		.link = f.device,
	};
}
#define GMT_EVENT_CONTEXT(...) gmtcontext_event((struct gmtcontextfields){__VA_ARGS__})
static inline enum gmtlife gmtcontext_life(const struct gmtevent *e) { return (enum gmtlife)e->op; }
static inline bool gmtcontext_carried_over(const struct gmtevent *e) { return e->flags & GMT_FLAG_CARRIED; }
static inline uint16_t gmtcontext_scope(const struct gmtevent *e) { return e->scope; }
static inline uint64_t gmtcontext_context(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtcontext_device(const struct gmtevent *e) { return e->link; }

/* QUEUE: a command queue was created, retained or released. */
struct gmtqueuefields {
	uint64_t time;
	enum gmtlife life; /* what happened */
	bool out_of_order; /* its commands may run in any order */
	bool carried_over; /* it was there before the recording began */
	uint16_t scope; /* of its context */
	uint64_t queue; /* the queue */
	uint64_t device; /* 1 + the place of its device in its context; a part of a device counts as the device; 0: unknown */
};

static inline struct gmtevent gmtqueue_event(struct gmtqueuefields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_QUEUE,
		.op = (uint8_t)f.life,
		.flags = (uint8_t)((f.out_of_order ? GMT_FLAG_OUT_OF_ORDER : 0u) | (f.carried_over ? GMT_FLAG_CARRIED : 0u)),
		.scope = f.scope,
		.object = f.queue,
		.link = f.device,
	};
}
#define GMT_EVENT_QUEUE(...) gmtqueue_event((struct gmtqueuefields){__VA_ARGS__})
static inline enum gmtlife gmtqueue_life(const struct gmtevent *e) { return (enum gmtlife)e->op; }
static inline bool gmtqueue_out_of_order(const struct gmtevent *e) { return e->flags & GMT_FLAG_OUT_OF_ORDER; }
static inline bool gmtqueue_carried_over(const struct gmtevent *e) { return e->flags & GMT_FLAG_CARRIED; }
static inline uint16_t gmtqueue_scope(const struct gmtevent *e) { return e->scope; }
static inline uint64_t gmtqueue_queue(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtqueue_device(const struct gmtevent *e) { return e->link; }

/* KERNEL: a kernel was created. */
struct gmtkernelfields {
	uint64_t time;
	bool carried_over; /* it was there before the recording began */
	uint64_t kernel; /* the kernel */
};

static inline struct gmtevent gmtkernel_event(struct gmtkernelfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_KERNEL,
		.flags = (uint8_t)((f.carried_over ? GMT_FLAG_CARRIED : 0u)),
		.object = f.kernel,
	};
}
#define GMT_EVENT_KERNEL(...) gmtkernel_event((struct gmtkernelfields){__VA_ARGS__})
static inline bool gmtkernel_carried_over(const struct gmtevent *e) { return e->flags & GMT_FLAG_CARRIED; }
static inline uint64_t gmtkernel_kernel(const struct gmtevent *e) { return e->object; }

/* CREATE: the program asked for memory. */
struct gmtcreatefields {
	uint64_t time;
	uint32_t duration; /* ns of the whole call, saturating; 0: not measured */
	uint32_t cost; /* ns of these inside the driver */
	enum gmtmemory memory; /* what the call made */
	enum gmtoutcome outcome; /* how it was served */
	enum gmtmiss reason; /* why a poolable request missed */
	bool needs_block; /* no sub-allocation could have served it, whatever the policy */
	bool sub_allocation; /* the block is a piece of a slab, and ends with its buffer */
	bool carried_over; /* it was there before the recording began; nothing happened now */
	enum gmtroute route; /* whether a plan served it */
	bool off_page; /* it is a buffer in memory of the program that begins at no multiple of GMT_PAGE */
	bool arm; /* the alternative of an experiment decided, and not the present configuration */
	uint16_t scope; /* of its context; with Access and Shape it makes the class */
	uint16_t access; /* the lowest 16 bits of its cl_mem_flags */
	int16_t status; /* what the call returned, saturating */
	int16_t shape; /* what else makes the class, in each context: images from 1 up, SVM and USM from -1 down; 0: a buffer */
	uint32_t tag; /* its call site; 0: none */
	uint64_t object; /* the new object; 0: none */
	uint64_t requested; /* bytes that the program asked for */
	uint64_t granted; /* bytes of the memory that serves it; 0: unknown */
	uint64_t origin_number; /* 1 + its offset in the parent in bytes; 0 or carried over: unknown */
	uint64_t block; /* the block that serves it */
	uint64_t parent; /* of a sub-buffer, or an image of a buffer; 0: none */
};

static inline struct gmtevent gmtcreate_event(struct gmtcreatefields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_CREATE,
		.duration = f.duration,
		.cost = f.cost,
		.op = (uint8_t)f.memory,
		.outcome = (uint8_t)f.outcome,
		.reason = (uint8_t)f.reason,
		.flags = (uint8_t)((f.needs_block ? GMT_FLAG_WHOLE : 0u) | (f.sub_allocation ? GMT_FLAG_SUBALLOC : 0u) | (f.carried_over ? GMT_FLAG_CARRIED : 0u) | (f.route * (GMT_FLAG_ROUTE & -GMT_FLAG_ROUTE) & GMT_FLAG_ROUTE) | (f.off_page ? GMT_FLAG_OFF_PAGE : 0u) | (f.arm ? GMT_FLAG_ARM : 0u)),
		.scope = f.scope,
		.access = f.access,
		.status = (int16_t)(f.status | f.shape),
		.tag = f.tag,
		.object = f.object,
		.size = f.requested,
		.granted = f.granted | f.origin_number,
		.link = f.block | f.parent,
	};
}
#define GMT_EVENT_CREATE(...) gmtcreate_event((struct gmtcreatefields){__VA_ARGS__})
static inline uint32_t gmtcreate_duration(const struct gmtevent *e) { return e->duration; }
static inline uint32_t gmtcreate_cost(const struct gmtevent *e) { return e->cost; }
static inline enum gmtmemory gmtcreate_memory(const struct gmtevent *e) { return (enum gmtmemory)e->op; }
static inline enum gmtoutcome gmtcreate_outcome(const struct gmtevent *e) { return (enum gmtoutcome)e->outcome; }
static inline enum gmtmiss gmtcreate_reason(const struct gmtevent *e) { return (enum gmtmiss)e->reason; }
static inline bool gmtcreate_needs_block(const struct gmtevent *e) { return e->flags & GMT_FLAG_WHOLE; }
static inline bool gmtcreate_sub_allocation(const struct gmtevent *e) { return e->flags & GMT_FLAG_SUBALLOC; }
static inline bool gmtcreate_carried_over(const struct gmtevent *e) { return e->flags & GMT_FLAG_CARRIED; }
static inline enum gmtroute gmtcreate_route(const struct gmtevent *e) { return (enum gmtroute)((e->flags & GMT_FLAG_ROUTE) / (GMT_FLAG_ROUTE & -GMT_FLAG_ROUTE)); }
static inline bool gmtcreate_off_page(const struct gmtevent *e) { return (e->outcome != GMT_OUTCOME_HIT && e->outcome != GMT_OUTCOME_MISS) ? e->flags & GMT_FLAG_OFF_PAGE : 0; }
static inline bool gmtcreate_arm(const struct gmtevent *e) { return (e->outcome == GMT_OUTCOME_HIT || e->outcome == GMT_OUTCOME_MISS) ? e->flags & GMT_FLAG_ARM : 0; }
static inline uint16_t gmtcreate_scope(const struct gmtevent *e) { return e->scope; }
static inline uint16_t gmtcreate_access(const struct gmtevent *e) { return e->access; }
static inline int16_t gmtcreate_status(const struct gmtevent *e) { return (e->outcome != GMT_OUTCOME_HIT && e->outcome != GMT_OUTCOME_MISS) ? e->status : 0; }
static inline int16_t gmtcreate_shape(const struct gmtevent *e) { return (e->outcome == GMT_OUTCOME_HIT || e->outcome == GMT_OUTCOME_MISS) ? e->status : 0; }
static inline uint32_t gmtcreate_tag(const struct gmtevent *e) { return e->tag; }
static inline uint64_t gmtcreate_object(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtcreate_requested(const struct gmtevent *e) { return e->size; }
static inline uint64_t gmtcreate_granted(const struct gmtevent *e) { return e->op != GMT_MEMORY_SUBBUFFER ? e->granted : 0; }
static inline uint64_t gmtcreate_origin_number(const struct gmtevent *e) { return e->op == GMT_MEMORY_SUBBUFFER ? e->granted : 0; }
static inline uint64_t gmtcreate_block(const struct gmtevent *e) { return (e->outcome == GMT_OUTCOME_HIT || e->outcome == GMT_OUTCOME_MISS) ? e->link : 0; }
static inline uint64_t gmtcreate_parent(const struct gmtevent *e) { return (e->outcome != GMT_OUTCOME_HIT && e->outcome != GMT_OUTCOME_MISS) ? e->link : 0; }

/* RETAIN: the program took another reference to memory. */
struct gmtretainfields {
	uint64_t time;
	uint32_t duration; /* ns of the whole call, saturating */
	uint32_t site; /* call site of the retain; 0: unknown */
	enum gmtmemory memory; /* what the object is */
	uint16_t scope; /* of its context */
	int16_t status; /* what the call returned */
	uint32_t tag; /* the call site of its create */
	uint64_t object; /* the object; 0: unknown */
	uint64_t requested; /* bytes of the object */
	uint64_t references; /* count that the program holds afterwards */
	uint64_t block; /* that serves it */
};

static inline struct gmtevent gmtretain_event(struct gmtretainfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_RETAIN,
		.duration = f.duration,
		.cost = f.site,
		.op = (uint8_t)f.memory,
		.scope = f.scope,
		.status = f.status,
		.tag = f.tag,
		.object = f.object,
		.size = f.requested,
		.granted = f.references,
		.link = f.block,
	};
}
#define GMT_EVENT_RETAIN(...) gmtretain_event((struct gmtretainfields){__VA_ARGS__})
static inline uint32_t gmtretain_duration(const struct gmtevent *e) { return e->duration; }
static inline uint32_t gmtretain_site(const struct gmtevent *e) { return e->cost; }
static inline enum gmtmemory gmtretain_memory(const struct gmtevent *e) { return (enum gmtmemory)e->op; }
static inline uint16_t gmtretain_scope(const struct gmtevent *e) { return e->scope; }
static inline int16_t gmtretain_status(const struct gmtevent *e) { return e->status; }
static inline uint32_t gmtretain_tag(const struct gmtevent *e) { return e->tag; }
static inline uint64_t gmtretain_object(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtretain_requested(const struct gmtevent *e) { return e->size; }
static inline uint64_t gmtretain_references(const struct gmtevent *e) { return e->granted; }
static inline uint64_t gmtretain_block(const struct gmtevent *e) { return e->link; }

/* RELEASE: the program gave up a reference to memory. */
struct gmtreleasefields {
	uint64_t time;
	uint32_t duration; /* ns of the whole call, saturating; 0: not measured */
	uint32_t cost; /* ns of these inside the driver */
	enum gmtmemory memory; /* what the object is */
	enum gmtoutcome outcome; /* what became of the memory; valid with References 0 */
	bool would_race; /* an ungated pool could have handed the block out while it was in use */
	bool ordered; /* still in use, but every later use is ordered behind it */
	bool sub_allocation; /* the block is a piece of a slab, and ends now */
	bool carried_over; /* it was released before the recording began; nothing happened now */
	enum gmtexposed exposed; /* whether a kernel may have read what the block's earlier owner left */
	uint16_t scope; /* of its context */
	int16_t status; /* what the call returned */
	uint32_t tag; /* the call site of its create */
	uint64_t object; /* the object; 0: unknown */
	uint64_t requested; /* bytes of the object */
	uint64_t references; /* count that the program still holds */
	uint64_t block; /* that served it; 0: none */
};

static inline struct gmtevent gmtrelease_event(struct gmtreleasefields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_RELEASE,
		.duration = f.duration,
		.cost = f.cost,
		.op = (uint8_t)f.memory,
		.outcome = (uint8_t)f.outcome,
		.flags = (uint8_t)((f.would_race ? GMT_FLAG_WOULD_RACE : 0u) | (f.ordered ? GMT_FLAG_ORDERED : 0u) | (f.sub_allocation ? GMT_FLAG_SUBALLOC : 0u) | (f.carried_over ? GMT_FLAG_CARRIED : 0u) | (f.exposed * (GMT_FLAG_EXPOSED & -GMT_FLAG_EXPOSED) & GMT_FLAG_EXPOSED)),
		.scope = f.scope,
		.status = f.status,
		.tag = f.tag,
		.object = f.object,
		.size = f.requested,
		.granted = f.references,
		.link = f.block,
	};
}
#define GMT_EVENT_RELEASE(...) gmtrelease_event((struct gmtreleasefields){__VA_ARGS__})
static inline uint32_t gmtrelease_duration(const struct gmtevent *e) { return e->duration; }
static inline uint32_t gmtrelease_cost(const struct gmtevent *e) { return e->cost; }
static inline enum gmtmemory gmtrelease_memory(const struct gmtevent *e) { return (enum gmtmemory)e->op; }
static inline enum gmtoutcome gmtrelease_outcome(const struct gmtevent *e) { return (enum gmtoutcome)e->outcome; }
static inline bool gmtrelease_would_race(const struct gmtevent *e) { return e->flags & GMT_FLAG_WOULD_RACE; }
static inline bool gmtrelease_ordered(const struct gmtevent *e) { return e->flags & GMT_FLAG_ORDERED; }
static inline bool gmtrelease_sub_allocation(const struct gmtevent *e) { return e->flags & GMT_FLAG_SUBALLOC; }
static inline bool gmtrelease_carried_over(const struct gmtevent *e) { return e->flags & GMT_FLAG_CARRIED; }
static inline enum gmtexposed gmtrelease_exposed(const struct gmtevent *e) { return (enum gmtexposed)((e->flags & GMT_FLAG_EXPOSED) / (GMT_FLAG_EXPOSED & -GMT_FLAG_EXPOSED)); }
static inline uint16_t gmtrelease_scope(const struct gmtevent *e) { return e->scope; }
static inline int16_t gmtrelease_status(const struct gmtevent *e) { return e->status; }
static inline uint32_t gmtrelease_tag(const struct gmtevent *e) { return e->tag; }
static inline uint64_t gmtrelease_object(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtrelease_requested(const struct gmtevent *e) { return e->size; }
static inline uint64_t gmtrelease_references(const struct gmtevent *e) { return e->granted; }
static inline uint64_t gmtrelease_block(const struct gmtevent *e) { return e->link; }

/* USE: a command uses memory. */
struct gmtusefields {
	uint64_t time;
	uint32_t argument_number; /* 1 + the index of the kernel argument that is the memory; 0: none */
	uint32_t duration; /* ns of the call of a blocking command, saturating; 0: not measured, or it does not block */
	enum gmtcommand command; /* what uses the memory */
	bool reads; /* it reads the object */
	bool writes; /* it writes the object; neither flag: unknown */
	bool scattered; /* the bytes do not lie in one piece, or Offset is 0 because it is unknown */
	uint16_t scope; /* of its context */
	uint32_t tag; /* of a COPY its own call site, of others that of the memory's create */
	uint64_t object; /* the memory; 0: memory that we cannot know */
	uint64_t bytes; /* bytes touched; 0: unknown */
	uint64_t kernel; /* the kernel */
	uint64_t offset; /* bytes of the first byte touched within the object */
	uint64_t queue; /* the queue */
};

static inline struct gmtevent gmtuse_event(struct gmtusefields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_USE,
		.duration = f.argument_number,
		.cost = f.duration,
		.op = (uint8_t)f.command,
		.flags = (uint8_t)((f.reads ? GMT_FLAG_READS : 0u) | (f.writes ? GMT_FLAG_WRITES : 0u) | (f.scattered ? GMT_FLAG_SCATTERED : 0u)),
		.scope = f.scope,
		.tag = f.tag,
		.object = f.object,
		.size = f.bytes,
		.granted = f.kernel | f.offset,
		.link = f.queue,
	};
}
#define GMT_EVENT_USE(...) gmtuse_event((struct gmtusefields){__VA_ARGS__})
static inline uint32_t gmtuse_argument_number(const struct gmtevent *e) { return e->duration; }
static inline uint32_t gmtuse_duration(const struct gmtevent *e) { return e->cost; }
static inline enum gmtcommand gmtuse_command(const struct gmtevent *e) { return (enum gmtcommand)e->op; }
static inline bool gmtuse_reads(const struct gmtevent *e) { return e->flags & GMT_FLAG_READS; }
static inline bool gmtuse_writes(const struct gmtevent *e) { return e->flags & GMT_FLAG_WRITES; }
static inline bool gmtuse_scattered(const struct gmtevent *e) { return e->flags & GMT_FLAG_SCATTERED; }
static inline uint16_t gmtuse_scope(const struct gmtevent *e) { return e->scope; }
static inline uint32_t gmtuse_tag(const struct gmtevent *e) { return e->tag; }
static inline uint64_t gmtuse_object(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtuse_bytes(const struct gmtevent *e) { return e->size; }
static inline uint64_t gmtuse_kernel(const struct gmtevent *e) { return e->op == GMT_COMMAND_KERNEL ? e->granted : 0; }
static inline uint64_t gmtuse_offset(const struct gmtevent *e) { return (e->op != GMT_COMMAND_KERNEL && e->op != GMT_COMMAND_NATIVE) ? e->granted : 0; }
static inline uint64_t gmtuse_queue(const struct gmtevent *e) { return e->link; }

/* SYNC: a synchronisation point. */
struct gmtsyncfields {
	uint64_t time;
	uint32_t duration; /* ns of the whole call, saturating */
	enum gmtsync sync; /* how the thread synchronised */
	uint16_t scope; /* of the queue's context */
	uint64_t queue; /* the queue; 0: several */
};

static inline struct gmtevent gmtsync_event(struct gmtsyncfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_SYNC,
		.duration = f.duration,
		.op = (uint8_t)f.sync,
		.scope = f.scope,
		.link = f.queue,
	};
}
#define GMT_EVENT_SYNC(...) gmtsync_event((struct gmtsyncfields){__VA_ARGS__})
static inline uint32_t gmtsync_duration(const struct gmtevent *e) { return e->duration; }
static inline enum gmtsync gmtsync_sync(const struct gmtevent *e) { return (enum gmtsync)e->op; }
static inline uint16_t gmtsync_scope(const struct gmtevent *e) { return e->scope; }
static inline uint64_t gmtsync_queue(const struct gmtevent *e) { return e->link; }

/* COOLED: a cooling block became free. */
struct gmtcooledfields {
	uint64_t time;
	bool sub_allocation; /* the block is a piece of a slab, and ends now */
	uint32_t tag; /* the call site that had it last */
	uint64_t bytes; /* bytes of the block */
	uint64_t block; /* the block */
};

static inline struct gmtevent gmtcooled_event(struct gmtcooledfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_COOLED,
		.flags = (uint8_t)((f.sub_allocation ? GMT_FLAG_SUBALLOC : 0u)),
		.tag = f.tag,
		.granted = f.bytes,
		.link = f.block,
	};
}
#define GMT_EVENT_COOLED(...) gmtcooled_event((struct gmtcooledfields){__VA_ARGS__})
static inline bool gmtcooled_sub_allocation(const struct gmtevent *e) { return e->flags & GMT_FLAG_SUBALLOC; }
static inline uint32_t gmtcooled_tag(const struct gmtevent *e) { return e->tag; }
static inline uint64_t gmtcooled_bytes(const struct gmtevent *e) { return e->granted; }
static inline uint64_t gmtcooled_block(const struct gmtevent *e) { return e->link; }

/* EVICT: a pooled block went back to the driver. */
struct gmtevictfields {
	uint64_t time;
	uint32_t duration; /* ns of the driver's call, saturating */
	uint32_t cost; /* ns of the driver's call */
	enum gmtevict reason; /* why */
	bool sub_allocation; /* the block is a piece of a slab: the driver gets nothing */
	int16_t status; /* what the driver returned */
	uint32_t tag; /* the call site that had it last */
	uint64_t bytes; /* bytes of the block */
	uint64_t block; /* the block */
};

static inline struct gmtevent gmtevict_event(struct gmtevictfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_EVICT,
		.duration = f.duration,
		.cost = f.cost,
		.reason = (uint8_t)f.reason,
		.flags = (uint8_t)((f.sub_allocation ? GMT_FLAG_SUBALLOC : 0u)),
		.status = f.status,
		.tag = f.tag,
		.granted = f.bytes,
		.link = f.block,
	};
}
#define GMT_EVENT_EVICT(...) gmtevict_event((struct gmtevictfields){__VA_ARGS__})
static inline uint32_t gmtevict_duration(const struct gmtevent *e) { return e->duration; }
static inline uint32_t gmtevict_cost(const struct gmtevent *e) { return e->cost; }
static inline enum gmtevict gmtevict_reason(const struct gmtevent *e) { return (enum gmtevict)e->reason; }
static inline bool gmtevict_sub_allocation(const struct gmtevent *e) { return e->flags & GMT_FLAG_SUBALLOC; }
static inline int16_t gmtevict_status(const struct gmtevent *e) { return e->status; }
static inline uint32_t gmtevict_tag(const struct gmtevent *e) { return e->tag; }
static inline uint64_t gmtevict_bytes(const struct gmtevent *e) { return e->granted; }
static inline uint64_t gmtevict_block(const struct gmtevent *e) { return e->link; }

/* LIMIT: the process answers a control message. */
struct gmtlimitfields {
	uint64_t time;
	int16_t status; /* 0: the change holds; -1: refused */
	uint64_t sequence; /* of the control message */
};

static inline struct gmtevent gmtlimit_event(struct gmtlimitfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_LIMIT,
		.status = f.status,
		.object = f.sequence,
	};
}
#define GMT_EVENT_LIMIT(...) gmtlimit_event((struct gmtlimitfields){__VA_ARGS__})
static inline int16_t gmtlimit_status(const struct gmtevent *e) { return e->status; }
static inline uint64_t gmtlimit_sequence(const struct gmtevent *e) { return e->object; }

/* DIAG: a diagnostic of the shim, or a mistake of the program. */
struct gmtdiagfields {
	uint64_t time;
	enum gmtdiag diag; /* what the shim noticed */
	uint16_t scope; /* of the memory's context */
	int16_t status; /* what the call returned */
	uint32_t tag; /* the call site that created the memory, or of the call; 0: unknown */
	uint64_t object; /* the memory; 0: unknown */
	uint64_t bytes; /* bytes of the memory; 0: unknown */
	uint64_t kernel; /* where a kernel is concerned */
};

static inline struct gmtevent gmtdiag_event(struct gmtdiagfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_DIAG,
		.op = (uint8_t)f.diag,
		.scope = f.scope,
		.status = f.status,
		.tag = f.tag,
		.object = f.object,
		.granted = f.bytes,
		.link = f.kernel,
	};
}
#define GMT_EVENT_DIAG(...) gmtdiag_event((struct gmtdiagfields){__VA_ARGS__})
static inline enum gmtdiag gmtdiag_diag(const struct gmtevent *e) { return (enum gmtdiag)e->op; }
static inline uint16_t gmtdiag_scope(const struct gmtevent *e) { return e->scope; }
static inline int16_t gmtdiag_status(const struct gmtevent *e) { return e->status; }
static inline uint32_t gmtdiag_tag(const struct gmtevent *e) { return e->tag; }
static inline uint64_t gmtdiag_object(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtdiag_bytes(const struct gmtevent *e) { return e->granted; }
static inline uint64_t gmtdiag_kernel(const struct gmtevent *e) { return e->link; }

/* EXIT: the process runs its exit handlers, or is gone. */
struct gmtexitfields {
	uint64_t time;
	int16_t status; /* exit status; -1: unknown. From the process itself: what it called exit() with */
	uint64_t signal; /* that ended it; 0: none, or unknown */
	uint64_t oomkills_number; /* 1 + the processes of its control group that the kernel ended for lack of memory while it ran; 0: unknown */
};

static inline struct gmtevent gmtexit_event(struct gmtexitfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_EXIT,
		.status = f.status,
		.object = f.signal,
		.size = f.oomkills_number,
	};
}
#define GMT_EVENT_EXIT(...) gmtexit_event((struct gmtexitfields){__VA_ARGS__})
static inline int16_t gmtexit_status(const struct gmtevent *e) { return e->status; }
static inline uint64_t gmtexit_signal(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtexit_oomkills_number(const struct gmtevent *e) { return e->size; }

/* LOST: events were lost; written by the session. */
struct gmtlostfields {
	uint64_t time;
	uint64_t events; /* count lost since the last such event */
	uint64_t uses; /* count of these, USE events */
};

static inline struct gmtevent gmtlost_event(struct gmtlostfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_LOST,
		.size = f.events,
		.granted = f.uses,
	};
}
#define GMT_EVENT_LOST(...) gmtlost_event((struct gmtlostfields){__VA_ARGS__})
static inline uint64_t gmtlost_events(const struct gmtevent *e) { return e->size; }
static inline uint64_t gmtlost_uses(const struct gmtevent *e) { return e->granted; }

/* SLAB: the driver created a slab, or refused to. */
struct gmtslabfields {
	uint64_t time;
	uint32_t duration; /* ns of the driver's call, saturating */
	uint32_t cost; /* ns of the driver's call */
	bool carried_over; /* it was there before the recording began; nothing happened now */
	uint16_t scope; /* of its context; with Access it makes the class */
	uint16_t access; /* the lowest 16 bits of its cl_mem_flags */
	int16_t status; /* what the driver returned; other than 0: there is no slab */
	uint32_t tag; /* the call site of the request that needed it */
	uint64_t bytes; /* bytes of the slab */
	uint64_t block; /* the slab */
};

static inline struct gmtevent gmtslab_event(struct gmtslabfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_SLAB,
		.duration = f.duration,
		.cost = f.cost,
		.flags = (uint8_t)((f.carried_over ? GMT_FLAG_CARRIED : 0u)),
		.scope = f.scope,
		.access = f.access,
		.status = f.status,
		.tag = f.tag,
		.granted = f.bytes,
		.link = f.block,
	};
}
#define GMT_EVENT_SLAB(...) gmtslab_event((struct gmtslabfields){__VA_ARGS__})
static inline uint32_t gmtslab_duration(const struct gmtevent *e) { return e->duration; }
static inline uint32_t gmtslab_cost(const struct gmtevent *e) { return e->cost; }
static inline bool gmtslab_carried_over(const struct gmtevent *e) { return e->flags & GMT_FLAG_CARRIED; }
static inline uint16_t gmtslab_scope(const struct gmtevent *e) { return e->scope; }
static inline uint16_t gmtslab_access(const struct gmtevent *e) { return e->access; }
static inline int16_t gmtslab_status(const struct gmtevent *e) { return e->status; }
static inline uint32_t gmtslab_tag(const struct gmtevent *e) { return e->tag; }
static inline uint64_t gmtslab_bytes(const struct gmtevent *e) { return e->granted; }
static inline uint64_t gmtslab_block(const struct gmtevent *e) { return e->link; }

/* GAUGE: free memory in slabs, as the policy sees it. */
struct gmtgaugefields {
	uint64_t time;
	uint64_t ranges; /* count free ranges in slabs */
	uint64_t largest; /* bytes of the largest free range */
	uint64_t free; /* bytes of all free ranges */
	double squares; /* the sum of the squares of their sizes */
};

static inline struct gmtevent gmtgauge_event(struct gmtgaugefields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_GAUGE,
		.object = f.ranges,
		.size = f.largest,
		.granted = f.free,
		.link = gmt_bits_of(f.squares),
	};
}
#define GMT_EVENT_GAUGE(...) gmtgauge_event((struct gmtgaugefields){__VA_ARGS__})
static inline uint64_t gmtgauge_ranges(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtgauge_largest(const struct gmtevent *e) { return e->size; }
static inline uint64_t gmtgauge_free(const struct gmtevent *e) { return e->granted; }
static inline double gmtgauge_squares(const struct gmtevent *e) { return gmt_double_of(e->link); }

/* ORDER: where the policy's next decision stands in the order of all. */
struct gmtorderfields {
	uint64_t time;
	enum gmtorder order; /* what happened besides */
	uint16_t scope; /* DROP, ABORT, RETURN: of the class */
	uint16_t access; /* DROP, ABORT, RETURN: of the class */
	int16_t shape; /* DROP, ABORT, RETURN: of the class */
	uint64_t number; /* of the decision */
	uint64_t previous; /* the thread's decision before it; 0: none */
	uint64_t decision; /* the decision that had planned for, or found a block for, the CREATE that follows */
	uint64_t bytes; /* bytes that the policy was asked to make room for */
	uint64_t slab; /* the decision with which its slab was there (ABORT), or it was in use (RETURN); 0: none */
};

static inline struct gmtevent gmtorder_event(struct gmtorderfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_ORDER,
		.op = (uint8_t)f.order,
		.scope = f.scope,
		.access = f.access,
		.status = f.shape,
		.object = f.number,
		.link = f.previous,
		.size = f.decision | f.bytes,
		.granted = f.slab,
	};
}
#define GMT_EVENT_ORDER(...) gmtorder_event((struct gmtorderfields){__VA_ARGS__})
static inline enum gmtorder gmtorder_order(const struct gmtevent *e) { return (enum gmtorder)e->op; }
static inline uint16_t gmtorder_scope(const struct gmtevent *e) { return e->scope; }
static inline uint16_t gmtorder_access(const struct gmtevent *e) { return e->access; }
static inline int16_t gmtorder_shape(const struct gmtevent *e) { return e->status; }
static inline uint64_t gmtorder_number(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtorder_previous(const struct gmtevent *e) { return e->link; }
static inline uint64_t gmtorder_decision(const struct gmtevent *e) { return (e->op == GMT_ORDER_ABORT || e->op == GMT_ORDER_RETURN) ? e->size : 0; }
static inline uint64_t gmtorder_bytes(const struct gmtevent *e) { return e->op == GMT_ORDER_DRAIN ? e->size : 0; }
static inline uint64_t gmtorder_slab(const struct gmtevent *e) { return e->granted; }

/* AWAIT: a command waits for another. */
struct gmtawaitfields {
	uint64_t time;
	enum gmtawait await; /* what has ended when the awaited command has */
	uint16_t scope; /* of the waiting queue's context */
	uint64_t awaited_queue; /* the queue of the awaited command */
	uint64_t awaited_time; /* of the awaited command or marker */
	uint64_t queue; /* of the thread's command or marker with the same time, which waits; 0: the thread itself waits, in the SYNC with the same time */
};

static inline struct gmtevent gmtawait_event(struct gmtawaitfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_AWAIT,
		.op = (uint8_t)f.await,
		.scope = f.scope,
		.object = f.awaited_queue,
		.size = f.awaited_time,
		.link = f.queue,
	};
}
#define GMT_EVENT_AWAIT(...) gmtawait_event((struct gmtawaitfields){__VA_ARGS__})
static inline enum gmtawait gmtawait_await(const struct gmtevent *e) { return (enum gmtawait)e->op; }
static inline uint16_t gmtawait_scope(const struct gmtevent *e) { return e->scope; }
static inline uint64_t gmtawait_awaited_queue(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtawait_awaited_time(const struct gmtevent *e) { return e->size; }
static inline uint64_t gmtawait_queue(const struct gmtevent *e) { return e->link; }

/* OBJECT: how many objects of a type a call site has created, and how many of these were released. */
struct gmtobjectfields {
	uint64_t time;
	enum gmtheld held; /* what is counted */
	bool carried_over; /* the counts are those at the beginning of the recording */
	uint32_t tag; /* the call site */
	uint64_t created; /* count objects that it created */
	uint64_t released; /* count of these, whose last reference the program gave up */
	uint64_t most; /* count the most that it held since the record before, or now */
	uint64_t untracked; /* count objects that it created beyond these, while as many as are tracked were held: more may be */
};

static inline struct gmtevent gmtobject_event(struct gmtobjectfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_OBJECT,
		.op = (uint8_t)f.held,
		.flags = (uint8_t)((f.carried_over ? GMT_FLAG_CARRIED : 0u)),
		.tag = f.tag,
		.object = f.created,
		.size = f.released,
		.granted = f.most,
		.link = f.untracked,
	};
}
#define GMT_EVENT_OBJECT(...) gmtobject_event((struct gmtobjectfields){__VA_ARGS__})
static inline enum gmtheld gmtobject_held(const struct gmtevent *e) { return (enum gmtheld)e->op; }
static inline bool gmtobject_carried_over(const struct gmtevent *e) { return e->flags & GMT_FLAG_CARRIED; }
static inline uint32_t gmtobject_tag(const struct gmtevent *e) { return e->tag; }
static inline uint64_t gmtobject_created(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtobject_released(const struct gmtevent *e) { return e->size; }
static inline uint64_t gmtobject_most(const struct gmtevent *e) { return e->granted; }
static inline uint64_t gmtobject_untracked(const struct gmtevent *e) { return e->link; }

/* TRANSFER: more about a command that moves memory. */
struct gmttransferfields {
	uint64_t time;
	uint32_t pages; /* count pages of the host's side that were looked at before the command; 0: none */
	uint32_t cold; /* count of these, not in memory: the first touch of each takes time */
	bool pinned; /* the host's side is memory of the driver: a mapping, USE_HOST_PTR, or USM of the host */
	bool pageable; /* it is not, as far as we know */
	enum gmtcommand profiled; /* that has completed; OTHER: none */
	uint32_t site; /* call site of the command; 0: unknown */
	uint64_t moved; /* bytes by the completed command */
	uint64_t took; /* ns from its start to its end, as the device's profiling says */
	uint64_t hashed; /* bytes of a write's source that Hash is made of; 0: none, all of them: it is certain */
	uint64_t hash; /* equal for equal bytes */
};

static inline struct gmtevent gmttransfer_event(struct gmttransferfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_TRANSFER,
		.duration = f.pages,
		.cost = f.cold,
		.flags = (uint8_t)((f.pinned ? GMT_FLAG_PINNED : 0u) | (f.pageable ? GMT_FLAG_PAGEABLE : 0u)),
		.op = (uint8_t)f.profiled,
		.tag = f.site,
		.object = f.moved,
		.granted = f.took,
		.size = f.hashed,
		.link = f.hash,
	};
}
#define GMT_EVENT_TRANSFER(...) gmttransfer_event((struct gmttransferfields){__VA_ARGS__})
static inline uint32_t gmttransfer_pages(const struct gmtevent *e) { return e->duration; }
static inline uint32_t gmttransfer_cold(const struct gmtevent *e) { return e->cost; }
static inline bool gmttransfer_pinned(const struct gmtevent *e) { return e->flags & GMT_FLAG_PINNED; }
static inline bool gmttransfer_pageable(const struct gmtevent *e) { return e->flags & GMT_FLAG_PAGEABLE; }
static inline enum gmtcommand gmttransfer_profiled(const struct gmtevent *e) { return (enum gmtcommand)e->op; }
static inline uint32_t gmttransfer_site(const struct gmtevent *e) { return e->tag; }
static inline uint64_t gmttransfer_moved(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmttransfer_took(const struct gmtevent *e) { return e->granted; }
static inline uint64_t gmttransfer_hashed(const struct gmtevent *e) { return e->size; }
static inline uint64_t gmttransfer_hash(const struct gmtevent *e) { return e->link; }

/* MACHINE: what the machine reports of a process's memory; written by the session. */
struct gmtmachinefields {
	uint64_t time;
	enum gmtmachine source; /* where the figure is from */
	int16_t unread; /* the errno with which it could not be read; 0: it was */
	uint64_t device; /* PCI address: domain << 16 | bus << 8 | device << 3 | function; 0: unknown, or the host */
	uint64_t resident; /* bytes in memory; 0 where it could not be read */
};

static inline struct gmtevent gmtmachine_event(struct gmtmachinefields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_MACHINE,
		.op = (uint8_t)f.source,
		.status = f.unread,
		.object = f.device,
		.granted = f.resident,
	};
}
#define GMT_EVENT_MACHINE(...) gmtmachine_event((struct gmtmachinefields){__VA_ARGS__})
static inline enum gmtmachine gmtmachine_source(const struct gmtevent *e) { return (enum gmtmachine)e->op; }
static inline int16_t gmtmachine_unread(const struct gmtevent *e) { return e->status; }
static inline uint64_t gmtmachine_device(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtmachine_resident(const struct gmtevent *e) { return e->granted; }

/* SPILL: --spill gave a buffer memory of the device or took it away, or a call waited for that. */
struct gmtspillfields {
	uint64_t time;
	uint32_t duration; /* ns of the move, or of the wait, saturating */
	enum gmtspill spill; /* what happened */
	uint32_t tag; /* the call site that created the buffer; 0: unknown */
	uint64_t object; /* the buffer; 0: unknown. Of a STALL: the largest that the call needs */
	uint64_t bytes; /* bytes of the buffer. Of a STALL: that the call needs at once */
	uint64_t resident; /* bytes of buffers with memory of the device, in the process, afterwards */
	uint64_t spilled; /* bytes of buffers whose contents only the host has, in the process, afterwards */
};

static inline struct gmtevent gmtspill_event(struct gmtspillfields f)
{
	return (struct gmtevent){
		.time = f.time,
		.kind = GMT_KIND_SPILL,
		.duration = f.duration,
		.op = (uint8_t)f.spill,
		.tag = f.tag,
		.object = f.object,
		.size = f.bytes,
		.granted = f.resident,
		.link = f.spilled,
	};
}
#define GMT_EVENT_SPILL(...) gmtspill_event((struct gmtspillfields){__VA_ARGS__})
static inline uint32_t gmtspill_duration(const struct gmtevent *e) { return e->duration; }
static inline enum gmtspill gmtspill_spill(const struct gmtevent *e) { return (enum gmtspill)e->op; }
static inline uint32_t gmtspill_tag(const struct gmtevent *e) { return e->tag; }
static inline uint64_t gmtspill_object(const struct gmtevent *e) { return e->object; }
static inline uint64_t gmtspill_bytes(const struct gmtevent *e) { return e->size; }
static inline uint64_t gmtspill_resident(const struct gmtevent *e) { return e->granted; }
static inline uint64_t gmtspill_spilled(const struct gmtevent *e) { return e->link; }

#endif
