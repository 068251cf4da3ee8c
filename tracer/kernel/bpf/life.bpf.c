/*
 * life.bpf.c: tells of forks, execs, exits and newly mapped code, and keeps the verdicts with the processes they are
 * about. Each program is loaded for itself, and only where the kernel describes its types (BTF): without, the Go side
 * looks at /proc instead.
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
	uint64_t self_exec_id;
	uint64_t start_time;
	struct signal_struct *signal;
	struct task_struct *group_leader;
} KERNEL;

struct super_block {
	uint32_t s_dev;
} KERNEL;

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
} KERNEL;

struct file {
	struct inode *f_inode;
} KERNEL;

struct vm_area_struct {
	unsigned long vm_flags;
	struct file *vm_file;
} KERNEL;

const volatile bool follow; /* children of watched processes are watched */

#define SIGNAL_GROUP_EXIT 4u /* include/linux/sched/signal.h */
#define VM_EXEC 4u           /* include/linux/mm.h */

/* Files whose code was told of. */
struct mapping {
	uint64_t inode;
	uint64_t started; /* with exec: the program that maps it; 0 where one telling does for everybody */
	uint32_t device;
	uint32_t exec;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct mapping);
	__type(value, uint8_t);
} mappings SEC(".maps");

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

/* Before the child runs: it is judged in time for its first call. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	struct who who;
	uint32_t pid = (uint32_t)child->tgid, watch = VERDICT_WATCH;
	if (child->pid != child->tgid) /* a thread */
		return 0;
	if (!current(&who) || verdict(who.pid) != VERDICT_WATCH)
		return 0;
	if (follow)
		bpf_map_update_elem(&verdicts, &pid, &watch, BPF_ANY);
	tell(GMT_SIGHT_FORK, &who, pid);
	return 0;
}

/* Where everybody is of interest, what was decided about a command does not hold for the next one. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed, struct task_struct *task)
{
	struct who who;
	if (!current(&who))
		return 0;
	uint32_t judged = verdict(who.pid);
	if (everyone && judged)
		bpf_map_delete_elem(&verdicts, &who.pid);
	if (judged == VERDICT_WATCH)
		tell(GMT_SIGHT_EXEC, &who, 0);
	return 0;
}

/*
 * For the last thread alone. Two that end together may both find that nobody else is left: the one that takes the
 * verdict away is the one that tells. The status is found as wait_task_zombie of the kernel does.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(exited, struct task_struct *task)
{
	struct who who;
	if (task->signal->live.counter != 0 || !current(&who))
		return 0;
	uint32_t judged = verdict(who.pid);
	if (!judged || bpf_map_delete_elem(&verdicts, &who.pid) || judged != VERDICT_WATCH)
		return 0;
	int status = task->group_leader->exit_code;
	if (task->signal->flags & SIGNAL_GROUP_EXIT)
		status = task->signal->group_exit_code;
	tell(GMT_SIGHT_EXIT, &who, (uint32_t)status);
	return 0;
}

/*
 * The kernel calls this when a mapping is in place, or has become executable, and before the program can run what is in
 * it; the hooks of security modules come too early, when /proc does not show the mapping yet. A watched process is told
 * of once for each file and program it runs; for the rest once for each file is enough, for then the file is probed.
 */
SEC("fentry/perf_event_mmap")
int BPF_PROG(mapped, struct vm_area_struct *vma)
{
	struct who who;
	uint8_t told = 1;
	if (!(vma->vm_flags & VM_EXEC) || !vma->vm_file || !current(&who))
		return 0;
	uint32_t judged = verdict(who.pid);
	if (judged != VERDICT_WATCH && (judged || !everyone))
		return 0;
	struct inode *inode = vma->vm_file->f_inode;
	struct mapping mapping = {.inode = inode->i_ino, .device = inode->i_sb->s_dev};
	if (judged) {
		struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
		mapping.started = task->group_leader->start_time;
		mapping.exec = (uint32_t)task->group_leader->self_exec_id;
	}
	if (bpf_map_lookup_elem(&mappings, &mapping))
		return 0;
	bpf_map_update_elem(&mappings, &mapping, &told, BPF_ANY);
	if (tell(GMT_SIGHT_MAP, &who, inode->i_ino))
		bpf_map_delete_elem(&mappings, &mapping);
	return 0;
}
