/*
 * process.bpf.c: reports forks, execs and exits, and moves the verdicts along with them. Each program is loaded
 * separately, and only if the kernel describes its types (BTF); otherwise the Go side scans /proc.
 */
#include "shared.h"

GMT_LICENSE;

const volatile bool follow; /* watch the children of watched processes */

#define SIGNAL_GROUP_EXIT 4u /* include/linux/sched/signal.h */

static __noinline int report(uint32_t sight, const struct thread *thread, uint64_t result)
{
	struct gmtcall *event = bpf_ringbuf_reserve(&ring, sizeof *event, 0);
	if (!event)
		return count_lost(thread->pid, false), -1;
	__builtin_memset(event, 0, sizeof *event);
	event->time = event->entered = bpf_ktime_get_ns();
	event->pid = thread->pid;
	event->tid = thread->tid;
	event->sight = (uint16_t)sight;
	event->result = result;
	if (sight == GMT_SIGHT_EXEC)
		bpf_get_current_comm(event->argument, GMT_COMM);
	bpf_ringbuf_submit(event, 0);
	return 0;
}

/*
 * Runs before the child does, so that the child has its verdict before its first call. If there is no room for the
 * verdict we do not report the fork, since we could not report the exit either.
 */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	struct thread thread;
	uint32_t watch = VERDICT_WATCH;
	if (child->pid != child->tgid) /* a thread */
		return 0;
	if (!current(&thread) || verdict(thread.pid) != VERDICT_WATCH)
		return 0;
	uint32_t pid = number_of(child);
	if ((follow || watchall) && bpf_map_update_elem(&verdicts, &pid, &watch, BPF_ANY))
		return 0;
	report(GMT_SIGHT_FORK, &thread, pid);
	return 0;
}

/*
 * With watchall, a verdict on one program does not hold for the next, which may be over before Go can read its name.
 */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed, struct task_struct *task, int old_pid)
{
	struct thread thread;
	if (!current(&thread))
		return 0;
	uint32_t found = verdict(thread.pid);
	if (watchall && found)
		bpf_map_delete_elem(&verdicts, &thread.pid);
	if (watchall || found == VERDICT_WATCH)
		report(GMT_SIGHT_EXEC, &thread, old_pid != task->pid);
	return 0;
}

/*
 * Only for the last thread. Two that end together may both see that no other is left: the one that deletes the verdict
 * reports. A process without a verdict may be about to get one, because of a call. The status is that of the kernel's
 * wait_task_zombie.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(exited, struct task_struct *task)
{
	struct thread thread;
	if (task->signal->live.counter != 0 || !current(&thread))
		return 0;
	uint32_t found = verdict(thread.pid);
	if (found && (bpf_map_delete_elem(&verdicts, &thread.pid) || found != VERDICT_WATCH))
		return 0;
	if (!found && !watchall)
		return 0;
	int status = task->group_leader->exit_code;
	if (task->signal->flags & SIGNAL_GROUP_EXIT)
		status = task->signal->group_exit_code;
	report(GMT_SIGHT_EXIT, &thread, (uint32_t)status);
	return 0;
}
