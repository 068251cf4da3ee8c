/*
 * tell.h: what both BPF programs share: the maps, whose calls are wanted, and the counting of what could not be told.
 * No helper here is younger than Linux 5.15.
 *
 * The maps are declared in both objects; the Go side gives the second one those of the first.
 */
#ifndef GMT_TELL_H
#define GMT_TELL_H

#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <stdbool.h>

#include "event.h"

/*
 * The licence of the object in the kernel, not of this file: the kernel lets only programs that say GPL read user
 * memory, the clock of the calls, and kernel structures.
 */
#define GMT_LICENSE char gmt_license[] SEC("license") = "GPL"

/* Set before the programs are loaded, so that the verifier drops what they rule out. */
const volatile bool everyone; /* processes that were not judged are told of */
const volatile uint64_t namespacedev; /* our pid namespace, both 0 when it is the initial one */
const volatile uint64_t namespaceino;

enum verdict {
	VERDICT_WATCH = 1,
	VERDICT_IGNORE = 2,
};

struct loss {
	uint64_t calls;
	uint64_t uses; /* of these */
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, uint32_t);
	__type(value, uint32_t);
} verdicts SEC(".maps");

/* By process; what finds no place there is in the total all the same. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, uint32_t);
	__type(value, struct loss);
} losses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct loss);
} allloss SEC(".maps");

struct who {
	uint32_t pid;
	uint32_t tid;
};

/* Fails for a process of another pid namespace, for which we have no number. */
static __always_inline bool current(struct who *who)
{
	if (namespaceino) {
		struct bpf_pidns_info here = {0};
		if (bpf_get_ns_current_pid_tgid(namespacedev, namespaceino, &here, sizeof here))
			return false;
		who->pid = here.tgid;
		who->tid = here.pid;
		return true;
	}
	uint64_t id = bpf_get_current_pid_tgid();
	who->pid = (uint32_t)(id >> 32);
	who->tid = (uint32_t)id;
	return true;
}

static __always_inline uint32_t verdict(uint32_t pid)
{
	uint32_t *found = bpf_map_lookup_elem(&verdicts, &pid);
	return found ? *found : 0;
}

static __always_inline void count(struct loss *loss, bool use)
{
	__sync_fetch_and_add(&loss->calls, 1);
	if (use)
		__sync_fetch_and_add(&loss->uses, 1);
}

static __noinline int lose(uint32_t pid, bool use)
{
	uint32_t zero = 0;
	struct loss none = {0};
	struct loss *loss = bpf_map_lookup_elem(&allloss, &zero);
	if (loss)
		count(loss, use);
	loss = bpf_map_lookup_elem(&losses, &pid);
	if (!loss) {
		bpf_map_update_elem(&losses, &pid, &none, BPF_NOEXIST);
		loss = bpf_map_lookup_elem(&losses, &pid);
	}
	if (loss)
		count(loss, use);
	return 0;
}

#endif
