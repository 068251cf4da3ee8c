package archtest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// room is a row of the table in docs/ARCHITECTURE.md: a folder of Places, with those below it that have no row.
type room struct{ folder, owns string }

// rooms lists the rows from the bottom up. The third column comes from Places.
var rooms = []room{
	{"internal/wire", "the event: one C header; generated Go types, views and payload codecs; rings, messages"},
	{"internal/units", "how sizes, times, counts and tables are written"},
	{"internal/budget", "how much memory the input of others may take"},
	{"internal/document", "TOML that people write, within bounds"},
	{"internal/untrusted", "files that others chose or wrote, opened"},
	{"allocator", "policies, limits, statistics; no clock, I/O, lock or device"},
	{"allocator/carve", "sub-allocations: their places in slabs; slab sizes"},
	{"allocator/treap", "a treap keyed by size"},
	{"allocator/concurrent", "seed 001: bulk semaphores, TBuddy, UAlloc, RCU, collective mutex. `carve` uses TBuddy and UAlloc from one thread"},
	{"intercept", "the Go core in the target: converts calls; `broker` numbers what a pool decides"},
	{"internal/recording/foreign", "what a file is that is no recording"},
	{"internal/recording", "the recording file"},
	{"internal/recording/extract", "a time range of a recording, with what is carried over"},
	{"internal/recording/edit", "trim and merge"},
	{"internal/recording/ndjson", "recordings as lines of JSON, both ways"},
	{"internal/recording/importer", "logs of other tools as records"},
	{"internal/callsite", "names of call sites and kernels"},
	{"internal/heap", "the one fold: records in, changes of memory out to observers"},
	{"internal/measure", "experiments in a program: when which configuration serves it, and what a block of it took"},
	{"internal/stats", "counters, sites and history; immutable snapshots"},
	{"internal/view", "types that the dashboard shows and others produce"},
	{"internal/timeline", "the snapshot of a recording at any time"},
	{"internal/cost", "the cost model: what driver calls take by size"},
	{"internal/period", "the iterations of a sequence of creates"},
	{"internal/experiment", "two configurations of a running program compared: order, blocks, statistics"},
	{"internal/learn", "a layout of a period's buffers"},
	{"internal/replay", "recordings played through policies"},
	{"internal/whatif", "beside a run: ghosts, the hit-rate curve, auto"},
	{"internal/portable", "would a recording run on a device that is not here"},
	{"internal/spill", "what `--spill` would move for a recording"},
	{"internal/setting", "policies and limits as people write them"},
	{"internal/tune", "search for policy and limits"},
	{"internal/planfile", "layouts of a program's memory as files that people read"},
	{"internal/arena", "buffers with known lifetimes placed in one arena"},
	{"internal/advise", "buffers that could share memory, copies that could go"},
	{"internal/analysis", "what a recording shows: peak, leaks, phases, costs, findings"},
	{"internal/figures", "the table of figures: their names in each output, meanings, and how they are read"},
	{"internal/check", "rules for CI, against an analysis"},
	{"internal/diff", "two analyses compared"},
	{"internal/report", "summary and analysis as text, JSON, Markdown, HTML"},
	{"internal/export", "other tools' formats"},
	{"internal/symbol", "addresses to names"},
	{"internal/disk", "files that are written beside the program: a disk that hangs"},
	{"internal/tempfile", "unfinished files, removed on signals"},
	{"tracer", "attach: which processes, their probes, their calls as events"},
	{"tracer/kernel", "eBPF programs, links, ring"},
	{"tracer/target", "processes and libraries through /proc"},
	{"tracer/calls", "what a call means: the state of a process"},
	{"tracer/stack", "call stacks from copied stack memory"},
	{"tracer/rights", "what the kernel permits"},
	{"internal/session/inherited", "which signals were ignored and blocked at the start"},
	{"internal/session/machine", "what the machine reports of a process's memory"},
	{"internal/session", "target, sockets, rings, terminals, shutdown"},
	{"internal/remote", "a session's dashboard on other terminals"},
	{"internal/flight", "flight logs of many processes, reduced"},
	{"internal/monitor", "a run's figures for Prometheus, pprof and scripts"},
	{"internal/devicebench", "what buffers cost on this machine's devices"},
	{"internal/doctor", "whether this machine can run gpumemtop"},
	{"ui", "the dashboard over snapshots"},
	{"internal/app", "what each command does, behind plain options: `watch` (run, attach, view), `read`, `study`, `convert`"},
	{"cmd/gpumemtop", "flags, help, exit status"},
	{"fleet", "`gpumemtop-fleet`: many recordings, on Apache Beam"},
	{"internal/testkit", "what tests share"},
	{"internal/archtest", "these rules, the shim's, and the words that stay out"},
	{"bench", "program-level benchmarks"},
	{"test/e2e", "tests of the whole, with `test/programs`"},
}

// RoomsTable returns the table of docs/ARCHITECTURE.md.
func RoomsTable() string {
	var b strings.Builder
	b.WriteString("| folder | owns | imports |\n|---|---|---|\n")
	for _, r := range rooms {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.folder, r.owns, strings.Join(allowedImports(r.folder), " "))
	}
	return b.String()
}

// allowedImports returns the rooms that a room and those below it may import, by their last names.
func allowedImports(folder string) []string {
	rows := map[string]bool{}
	for name, place := range Places {
		if roomOfPlace(name) != folder {
			continue
		}
		for _, target := range place.May {
			if row := roomOfPlace(target); row != folder {
				rows[path.Base(row)] = true
			}
		}
	}
	if len(rows) > 12 {
		return []string{"most"}
	}
	return slices.Sorted(maps.Keys(rows))
}

// roomOfPlace returns the row that a place belongs to, "" when it has none.
func roomOfPlace(name string) string {
	for ; name != "."; name = path.Dir(name) {
		if slices.ContainsFunc(rooms, func(r room) bool { return r.folder == name }) {
			return name
		}
	}
	return ""
}
