package recorded

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/merging"
)

// gaps count what the records of a process did not tell.
type gaps struct {
	dropped              int  // records behind the most steps
	endless              bool // the recording ends before the process
	parts                int  // whose place in their parents is not known
	callers              int  // threads that enqueued commands
	untold               int  // commands that use memory nobody can name
	strangers            int  // uses of memory whose create was not seen, or by unknown commands
	queueless            int  // commands on queues that were not seen made
	waits                int  // for events
	arguments, qualified int  // of kernels; those that tell whether they are read or written
	places, placeless    int  // uses by commands that touch certain bytes; those that do not tell which
	unread               bool // a read on an unknown queue
}

// lacks says what a recording does not tell.
func (p *process) lacks(lost uint64, most int) []string {
	var out []string
	say := func(when bool, format string, words ...any) {
		if when {
			out = append(out, fmt.Sprintf(format, words...))
		}
	}
	unnamed, earlier, uses, copies := p.census()
	say(lost > 0, "%d events were lost, so none of the advice is safe: what is missing may speak against it", lost)
	say(p.dropped > 0, "only the first %d steps were looked at, of all processes; what lived then counts as used later", most)
	say(p.endless, "the recording ends before the program: what lived then counts as used later")
	say(uses == 0, "no command is recorded, so that nobody knows when memory was in use: what was created and not released counts as in use")
	say(unnamed > 0, "%d creates have no call site: they count as one", unnamed)
	say(earlier > 0, "%d objects are from before the recording: they are left as they are", earlier)
	say(p.callers > 1, "%d threads enqueue commands, and why one came before the other is not recorded: what more than one of them uses is never called safe", p.callers)
	say(p.untold > 0, "%d commands use memory that cannot be told, such as replays of command buffers: what they use may speak against all advice, so none is safe", p.untold)
	say(p.strangers > 0, "%d uses are of memory that was not seen created", p.strangers)
	say(p.arguments > 0 && p.qualified == 0, "no kernel argument tells that it is only read: none is const, or the driver does not tell (PoCL does with -cl-kernel-arg-info); each counts as read and written")
	say(p.placeless > 0 && p.placeless == p.places, "commands do not tell which bytes they touch: each counts as touching any")
	say(p.parts > 0, "%d sub-buffers and images do not tell where in their buffers they begin: they count as anywhere", p.parts)
	say(p.queueless > 0, "%d commands are on queues that were not seen made: they count as unordered", p.queueless)
	say(p.waits > 0 && !p.alone(), "%d waits do not tell for which events: what they wait for counts as at work until a finish or blocking command of its queue", p.waits)
	say(copies > 0 && p.program.Align == 0, "the alignment of sub-buffers is not known: see CL_DEVICE_MEM_BASE_ADDR_ALIGN")
	return out
}

// census counts memory whose call site is not known, memory from before the recording, uses, and copies.
func (p *process) census() (unnamed, earlier, uses, copies int) {
	for i := range p.program.Buffers {
		if p.program.Buffers[i].Site == 0 {
			unnamed++
		}
		if p.program.Buffers[i].Pinned == merging.Earlier {
			earlier++
		}
	}
	for i := range p.program.Steps {
		s := &p.program.Steps[i]
		if s.Kind != merging.KindCreate {
			uses += len(s.Uses)
		}
		if s.Kind == merging.KindCopy {
			copies++
		}
	}
	return unnamed, earlier, uses, copies
}

// alone reports whether all commands are on one queue, whose order is that of the calls.
func (p *process) alone() bool { return p.onlyQueue() <= p.numbers }
