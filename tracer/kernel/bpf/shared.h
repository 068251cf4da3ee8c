/*
 * shared.h: the maps, the verdicts on processes and the loss counters that both objects share. It needs no helper that is
 * newer than Linux 5.15.
 *
 * Both objects declare the maps; the Go side gives those of the first to the second.
 */
#ifndef GMT_SHARED_H
#define GMT_SHARED_H

#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <stdbool.h>

#include "event.h"

/*
 * The licence of the object in the kernel, not of this file. The kernel lets only GPL programs read user memory, the
 * monotonic clock and kernel structures.
 */
#define GMT_LICENSE char gmt_license[] SEC("license") = "GPL"

/* Set before the programs are loaded, so that the verifier removes the code that they rule out. */
const volatile bool watchall; /* report processes without a verdict */
const volatile uint64_t namespacedev; /* our pid namespace; both are 0 for the initial one */
const volatile uint64_t namespaceino;
const volatile bool hastypes; /* ours is another than the initial one, and the kernel describes its types (BTF) */

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

/* By pid. When it is full, losses count in the total only. */
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
} totalloss SEC(".maps");

/* Only the fields that are read here; the loader finds their offsets in the running kernel. */
#define KERNEL __attribute__((preserve_access_index))

struct pid_namespace {
	struct {
		unsigned int inum;
	} ns;
} KERNEL;

struct upid {
	int nr;
	struct pid_namespace *ns;
} KERNEL;

struct pid {
	unsigned int level;
	struct upid numbers[1]; /* one for each namespace, from the initial one down to the process's own, at level */
} KERNEL;

typedef struct {
	int counter;
} KERNEL atomic_t;

struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
} KERNEL;

struct task_struct {
	int pid;
	int tgid;
	int exit_code;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct task_struct *group_leader;
} KERNEL;

struct thread {
	uint32_t pid;
	uint32_t tid;
};

#define MAX_PID_NS_LEVEL 32u /* include/linux/pid_namespace.h */

/* The number of a thread in our pid namespace. 0: it has none, as it lives outside. Needs types. */
static __noinline uint32_t number_of(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	unsigned int level = BPF_CORE_READ(pid, level);
	for (unsigned int i = 0; i <= level && i <= MAX_PID_NS_LEVEL; i++) {
		struct upid *number = &pid->numbers[i];
		if (!namespaceino || BPF_CORE_READ(number, ns, ns.inum) == namespaceino)
			return (uint32_t)BPF_CORE_READ(number, nr);
	}
	return 0;
}

/* Fails for a process without a pid in our namespace and, without types, for each process of a namespace below it. */
static __always_inline bool current(struct thread *thread)
{
	if (namespaceino) {
		struct bpf_pidns_info here = {0};
		if (bpf_get_ns_current_pid_tgid(namespacedev, namespaceino, &here, sizeof here)) {
			if (!hastypes)
				return false;
			struct task_struct *task = (void *)bpf_get_current_task();
			here.tgid = number_of(BPF_CORE_READ(task, group_leader));
			here.pid = number_of(task);
		}
		thread->pid = here.tgid;
		thread->tid = here.pid;
		return thread->pid;
	}
	uint64_t id = bpf_get_current_pid_tgid();
	thread->pid = (uint32_t)(id >> 32);
	thread->tid = (uint32_t)id;
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

static __noinline int count_lost(uint32_t pid, bool use)
{
	uint32_t zero = 0;
	struct loss none = {0};
	struct loss *loss = bpf_map_lookup_elem(&totalloss, &zero);
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
