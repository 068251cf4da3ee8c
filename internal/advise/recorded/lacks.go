package recorded

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
)

// gaps count what the records of a process do not show.
type gaps struct {
	dropped              int  // records after the last step that is kept
	endless              bool // the recording ends before the process
	parts                int  // sub-buffers whose offset in their parent is unknown
	callers              int  // threads that enqueued commands
	unknownCommands      int  // commands that use unknown memory
	unknownUses          int  // uses of memory whose create was not seen, or by unknown commands
	queueless            int  // commands on unknown queues
	waits                int  // waits for unknown events
	arguments, qualified int  // arguments of kernels; qualified: those known to be read or written
	places, placeless    int  // uses by commands that touch certain bytes; placeless: those of unknown offset
	unreadUnknownQueue   bool // a read on an unknown queue may have results that the host has not got yet
}

// missingSentences describes what a recording does not show, one sentence each.
func (p *process) missingSentences(lost uint64, most int) []string {
	var out []string
	say := func(when bool, format string, words ...any) {
		if when {
			out = append(out, fmt.Sprintf(format, words...))
		}
	}
	unnamed, earlier, uses, copies := p.countUnknown()
	say(lost > 0, "%d events were lost, so none of the advice is safe: what is missing may speak against it", lost)
	say(p.dropped > 0, "only the first %d steps were looked at, of all processes; what lived then counts as used later", most)
	say(p.endless, "the recording ends before the program: what lived then counts as used later")
	say(uses == 0, "no command is recorded, so it is unknown when memory was in use: memory counts as in use from create to release")
	say(unnamed > 0, "%d creates have no call site: they count as one", unnamed)
	say(earlier > 0, "%d objects are from before the recording: they are left as they are", earlier)
	say(p.callers > 1, "%d threads enqueue commands, and why one came before the other is not recorded: what more than one of them uses is never called safe", p.callers)
	say(p.unknownCommands > 0, "%d commands use unknown memory, for example replays of command buffers, which may contradict any advice, so none is safe", p.unknownCommands)
	say(p.unknownUses > 0, "%d uses are of memory that was not seen created", p.unknownUses)
	say(p.arguments > 0 && p.qualified == 0, "no kernel argument is known to be read only: none is const, or the driver does not report it (PoCL does with -cl-kernel-arg-info); each counts as read and written")
	say(p.placeless > 0 && p.placeless == p.places, "the recording lacks which bytes commands touch: each counts as touching any")
	say(p.parts > 0, "the recording lacks where %d sub-buffers and images begin in their buffers: they count as anywhere", p.parts)
	say(p.queueless > 0, "%d commands are on queues that were not seen made: they count as unordered", p.queueless)
	say(p.waits > 0 && !p.usesOneQueue(), "%d waits do not tell for which events: what they wait for counts as at work until a finish or blocking command of its queue", p.waits)
	say(copies > 0 && p.program.Align == 0, "the alignment of sub-buffers is not known: see CL_DEVICE_MEM_BASE_ADDR_ALIGN")
	return out
}

// countUnknown counts buffers without a call site, buffers from before the recording, uses, and copies.
func (p *process) countUnknown() (unnamed, earlier, uses, copies int) {
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

// usesOneQueue reports whether all commands are on one queue, whose order is that of the calls.
func (p *process) usesOneQueue() bool { return p.onlyQueueNumber() <= p.numbers }
