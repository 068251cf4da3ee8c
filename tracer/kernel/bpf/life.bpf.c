/*
 * life.bpf.c: tells of forks, execs and exits, and keeps the verdicts with the processes they are about. Each program
 * is loaded for itself, and only where the kernel describes its types (BTF): without, the Go side looks at /proc instead.
 */
#include "tell.h"

GMT_LICENSE;

/* Of the kernel's structures only what is read here; the loader finds where it lies in the running kernel. */
#define KERNEL __attribute__((preserve_access_index))

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
	struct signal_struct *signal;
	struct task_struct *group_leader;
} KERNEL;

const volatile bool follow; /* children of watched processes are watched */

#define SIGNAL_GROUP_EXIT 4u /* include/linux/sched/signal.h */

static __noinline int tell(uint32_t sight, const struct who *who, uint64_t result)
{
	struct gmtcall *event = bpf_ringbuf_reserve(&ring, sizeof *event, 0);
	if (!event)
		return lose(who->pid, false), -1;
	__builtin_memset(event, 0, sizeof *event);
	event->time = event->entered = bpf_ktime_get_ns();
	event->pid = who->pid;
	event->tid = who->tid;
	event->sight = (uint16_t)sight;
	event->result = result;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

/*
 * Before the child runs: it is judged in time for its first call, and told of when it executes another program. One for
 * whom there is no room is not told of, for neither would its end be.
 */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	struct who who;
	uint32_t pid = (uint32_t)child->tgid, watch = VERDICT_WATCH;
	if (child->pid != child->tgid) /* a thread */
		return 0;
	if (!current(&who) || verdict(who.pid) != VERDICT_WATCH)
		return 0;
	if ((follow || everyone) && bpf_map_update_elem(&verdicts, &pid, &watch, BPF_ANY))
		return 0;
	tell(GMT_SIGHT_FORK, &who, pid);
	return 0;
}

/* Where everybody is of interest, what was decided about a command does not hold for the next one. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed, struct task_struct *task, int thread)
{
	struct who who;
	if (!current(&who))
		return 0;
	uint32_t judged = verdict(who.pid);
	if (everyone && judged)
		bpf_map_delete_elem(&verdicts, &who.pid);
	if (judged == VERDICT_WATCH)
		tell(GMT_SIGHT_EXEC, &who, (uint32_t)thread);
	return 0;
}

/*
 * For the last thread alone. Two that end together may both find that nobody else is left: the one that takes the
 * verdict away is the one that tells. One that was not judged may be about to be, because of what it called. The status is
 * found as wait_task_zombie of the kernel does.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(exited, struct task_struct *task)
{
	struct who who;
	if (task->signal->live.counter != 0 || !current(&who))
		return 0;
	uint32_t judged = verdict(who.pid);
	if (judged && (bpf_map_delete_elem(&verdicts, &who.pid) || judged != VERDICT_WATCH))
		return 0;
	if (!judged && !everyone)
		return 0;
	int status = task->group_leader->exit_code;
	if (task->signal->flags & SIGNAL_GROUP_EXIT)
		status = task->signal->group_exit_code;
	tell(GMT_SIGHT_EXIT, &who, (uint32_t)status);
	return 0;
}
