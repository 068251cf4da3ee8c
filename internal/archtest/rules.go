package archtest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Place is where a package stands. A folder without a place of its own belongs to that of the nearest folder above.
type Place struct {
	// May lists the places of ours that it imports. It may always import within itself.
	May []string
	// Never lists packages of the standard library that it must not import outside of tests, with the reason.
	Never map[string]string
	// Timeless packages take the time from events and read no clock.
	Timeless bool
	// Idle packages know files and signals as values and do nothing with them: of package os they use a few types.
	Idle bool
	// Cgo allows import "C".
	Cgo bool
	// Unsafe allows package unsafe in files of any name; elsewhere their names end in _unsafe.go.
	Unsafe bool
}

var (
	pure = map[string]string{
		"time":         "time is in the request",
		"os":           "a policy does no I/O",
		"net":          "a policy does no I/O",
		"io":           "a policy does no I/O",
		"sync":         "the caller serialises the calls",
		"math/rand":    "the same requests must give the same answers",
		"math/rand/v2": "the same requests must give the same answers",
		"unsafe":       "a policy sees no memory",
	}
	shared  = copyWithoutPackage(pure, "sync")
	noFiles = map[string]string{
		"os":      "no I/O here",
		"os/exec": "no I/O here",
		"net":     "no I/O here",
	}
	noProcesses = map[string]string{
		"os/exec": "no I/O here",
		"net":     "no I/O here",
	}
	everything = []string{
		"allocator", "internal/analysis", "internal/check", "internal/devicebench/cl", "internal/diff", "internal/recording/extract",
		"internal/doctor", "internal/export", "internal/recording/importer", "internal/replay", "internal/cost",
		"internal/whatif/auto", "internal/whatif/curve", "internal/whatif/ghost", "internal/whatif/live", "internal/arena", "internal/disk",
		"internal/tune", "internal/figures", "internal/heap", "internal/callsite", "internal/setting",
		"internal/devicebench", "internal/monitor", "internal/advise/merging", "internal/advise", "internal/stats",
		"internal/recording/ndjson", "internal/session/payload", "internal/doctor/probe", "internal/report",
		"internal/session", "internal/session/inherited", "internal/session/machine", "internal/units", "internal/recording/edit", "internal/symbol", "internal/recording",
		"internal/tempfile", "internal/timeline", "internal/view", "internal/wire", "tracer", "tracer/rights", "tracer/target", "ui",
	}
)

// clockNames are the functions of package time that read or wait for a clock; idleNames is what an idle package may
// use of package os.
var (
	clockNames = []string{
		"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc", "time.Tick",
		"time.NewTicker", "time.NewTimer",
	}
	idleNames = []string{"os.File", "os.Signal", "os.Interrupt", "os.Kill"}
)

// Places is the plan: imports run one way, from the bottom of this list to its top. A package that is not here has
// no place and the test fails: decide where it belongs before writing it.
var Places = map[string]Place{
	"internal/wire":  {Timeless: true, Unsafe: true, Never: noFiles},
	"internal/units": {Timeless: true, Never: noFiles},

	// What arrives from others.
	"internal/budget":    {Timeless: true, Never: noFiles},
	"internal/untrusted": {May: []string{"internal/wire"}},
	"internal/document":  {May: []string{"internal/budget", "internal/units"}, Timeless: true, Never: noFiles},
	// The generators run at build time and belong to what they generate.
	"internal/wire/gen": {Unsafe: true},

	// What many threads may call at once locks for itself; otherwise it is as pure as the policies.
	"allocator/concurrent/semaphore":  {Timeless: true, Never: shared},
	"allocator/concurrent/tbuddy":     {May: []string{"allocator/concurrent/semaphore"}, Timeless: true, Never: shared},
	"allocator/concurrent/rcu":        {Timeless: true, Never: shared},
	"allocator/concurrent/collective": {Timeless: true, Never: shared},
	"allocator/concurrent/ualloc": {
		May:      []string{"allocator/concurrent/collective", "allocator/concurrent/rcu", "allocator/concurrent/semaphore"},
		Timeless: true,
		Never:    shared,
	},
	"allocator/treap": {Timeless: true, Never: pure},
	"allocator/carve": {
		May:      []string{"allocator/concurrent/tbuddy", "allocator/treap", "allocator/concurrent/ualloc"},
		Timeless: true,
		Never:    pure,
	},
	"allocator": {May: []string{"allocator/carve", "internal/wire"}, Timeless: true, Never: pure},

	// It waits for disks, with a clock.
	"internal/disk":              {},
	"internal/recording/foreign": {Timeless: true, Never: noFiles},
	"internal/recording":         {May: []string{"internal/disk", "internal/recording/foreign", "internal/untrusted", "internal/wire"}, Timeless: true},
	"internal/callsite":          {May: []string{"internal/recording", "internal/units", "internal/wire"}, Timeless: true, Never: noFiles},
	"internal/heap":              {May: []string{"internal/wire"}, Timeless: true, Never: noFiles},
	"internal/measure":           {May: []string{"internal/callsite", "internal/experiment", "internal/period", "internal/units", "internal/wire"}, Timeless: true, Never: noFiles},
	"internal/stats":             {May: []string{"allocator", "allocator/carve", "internal/callsite", "internal/heap", "internal/measure", "internal/recording", "internal/units", "internal/wire"}, Timeless: true, Never: noFiles},
	// The types that the dashboard displays and other packages produce.
	"internal/view":              {May: []string{"internal/stats"}, Timeless: true, Never: noFiles},
	"internal/recording/extract": {May: []string{"internal/heap", "internal/recording", "internal/wire"}, Timeless: true, Never: noFiles},
	"internal/recording/edit":    {May: []string{"internal/recording/extract", "internal/recording", "internal/wire"}, Timeless: true, Never: noFiles},
	"internal/recording/ndjson":  {May: []string{"internal/recording", "internal/wire"}, Timeless: true, Never: noFiles},
	// A planner and the CSV that it reads.
	"internal/whatif/auto": {May: []string{"internal/replay", "internal/cost", "internal/whatif/ghost", "internal/stats"}, Timeless: true, Never: noFiles},
	"internal/arena":       {Timeless: true, Never: noFiles},
	"internal/period":      {Timeless: true, Never: noFiles},
	"internal/experiment":  {May: []string{"internal/period"}, Timeless: true, Never: noFiles},
	"internal/spill": {
		May:      []string{"internal/callsite", "internal/heap", "internal/recording", "internal/units", "internal/wire"},
		Timeless: true, Never: noFiles,
	},
	"internal/portable": {
		May:      []string{"internal/document", "internal/callsite", "internal/heap", "internal/recording", "internal/replay", "internal/units", "internal/wire"},
		Timeless: true, Never: noFiles,
	},
	"internal/planfile": {
		May: []string{"internal/document",
			"allocator", "internal/callsite", "internal/learn", "internal/recording", "internal/replay", "internal/units", "internal/wire",
		},
		Timeless: true, Never: noFiles,
	},
	"internal/learn": {May: []string{"allocator", "internal/arena", "internal/period"}, Timeless: true, Never: noFiles},
	"internal/recording/importer": {
		May: []string{
			"internal/arena", "internal/budget", "internal/recording", "internal/recording/foreign", "internal/recording/ndjson", "internal/units", "internal/wire",
		},
		Timeless: true, Never: noFiles,
	},
	"internal/symbol":         {May: []string{"internal/budget", "internal/untrusted", "internal/wire"}, Timeless: true},
	"internal/devicebench/cl": {May: []string{"internal/wire"}, Cgo: true, Unsafe: true},
	"intercept":               {May: []string{"allocator", "internal/wire"}, Cgo: true, Unsafe: true},

	// From the kernel up: what the eBPF program reports, which processes and files it is about, what the calls mean, and
	// all of it together as events.
	"tracer/kernel": {May: []string{"internal/wire"}, Unsafe: true},
	"tracer/rights": {May: []string{"internal/wire"}},
	"tracer/target": {May: []string{"internal/untrusted", "internal/wire"}},
	"tracer/stack":  {May: []string{"internal/untrusted", "internal/wire", "tracer/target"}, Timeless: true},
	"tracer/calls":  {May: []string{"internal/wire"}, Timeless: true, Never: noFiles},
	"tracer": {May: []string{
		"internal/wire", "tracer/calls", "tracer/kernel", "tracer/rights", "tracer/stack", "tracer/target",
	}},

	"internal/tempfile": {},

	"internal/cost": {Timeless: true, Never: noFiles},
	"internal/replay": {
		May: []string{
			"allocator", "internal/cost", "internal/learn", "internal/stats", "internal/units", "internal/recording", "internal/wire",
		},
		Timeless: true, Never: noFiles,
	},
	"internal/setting": {May: []string{"allocator", "internal/recording", "internal/replay"}, Timeless: true, Never: noFiles},
	"internal/tune":    {May: []string{"allocator", "internal/replay", "internal/cost", "internal/setting"}, Timeless: true, Never: noFiles},
	// These read the clock: what they cost is measured, and shown.
	"internal/whatif/live": {May: []string{"internal/stats", "internal/cost", "internal/learn", "internal/replay", "internal/wire"}, Never: noFiles},
	"internal/whatif/ghost": {
		May:   []string{"allocator", "internal/replay", "internal/cost", "internal/whatif/live", "internal/stats"},
		Never: noFiles,
	},
	"internal/whatif/trial": {
		May: []string{
			"allocator", "internal/analysis", "internal/recording", "internal/replay", "internal/stats", "internal/whatif/live",
		},
		Timeless: true, Never: noFiles,
	},
	"internal/whatif/curve": {
		May: []string{
			"allocator", "internal/replay", "internal/cost", "internal/whatif/live", "internal/recording", "internal/view", "internal/wire",
		},
		Timeless: true, Never: noFiles,
	},
	"internal/advise/merging": {May: []string{"internal/units"}, Timeless: true, Never: noFiles},
	"internal/advise/recorded": {
		May:      []string{"internal/callsite", "internal/heap", "internal/advise/merging", "internal/recording", "internal/wire"},
		Timeless: true, Never: noFiles,
	},
	"internal/advise": {
		May:      []string{"internal/advise/merging", "internal/advise/recorded", "internal/units", "internal/recording"},
		Timeless: true, Never: noFiles,
	},
	"internal/analysis": {
		May: []string{
			"internal/callsite",
			"allocator", "internal/cost", "internal/heap", "internal/period", "internal/stats", "internal/units", "internal/recording",
			"internal/wire",
		},
		Timeless: true, Never: noFiles,
	},
	// The table of figures: what reads runs and shows figures of them imports it.
	"internal/figures": {May: []string{"internal/analysis", "internal/stats"}, Timeless: true, Never: noFiles},
	"internal/check":   {May: []string{"internal/analysis", "internal/budget", "internal/document", "internal/figures", "internal/stats", "internal/units"}, Timeless: true, Never: noFiles},
	"internal/diff": {
		May: []string{
			"internal/analysis", "internal/figures", "internal/stats", "internal/units", "internal/recording",
			"internal/wire",
		},
		Timeless: true, Never: noFiles,
	},
	"internal/report": {
		May: []string{
			"internal/callsite",
			"internal/analysis", "internal/figures", "internal/cost", "internal/replay", "internal/whatif/curve", "internal/stats", "internal/units",
			"internal/measure", "internal/recording", "internal/wire",
		},
		Timeless: true, Never: noFiles,
	},
	"internal/export": {
		May: []string{
			"internal/analysis", "internal/callsite", "internal/disk", "internal/figures",
			"internal/heap", "internal/stats", "internal/units",
			"internal/symbol", "internal/recording", "internal/tempfile", "internal/wire",
		},
		Timeless: true,
	},

	// It reads recordings, and the clock to see whether a user waits.
	"internal/timeline": {May: []string{"internal/replay", "internal/stats", "internal/recording", "internal/view", "internal/wire"}, Never: noProcesses},

	"internal/session/payload":   {},
	"internal/session/inherited": {Cgo: true, Unsafe: true},
	"internal/session/machine":   {May: []string{"internal/wire"}, Cgo: true, Unsafe: true},
	"internal/session": {May: []string{
		"allocator", "internal/session/inherited", "internal/session/machine", "internal/stats", "internal/session/payload", "internal/units", "internal/untrusted", "internal/symbol",
		"internal/recording", "internal/view", "internal/wire", "tracer",
	}},
	"internal/doctor/probe": {May: []string{"internal/session/payload", "internal/session", "internal/wire"}},
	// It measures time, and runs drivers in processes of its own.
	"internal/flight":      {May: []string{"internal/budget", "internal/callsite", "internal/symbol", "internal/untrusted", "internal/units", "internal/wire"}, Timeless: true},
	"internal/monitor":     {May: []string{"internal/figures", "internal/stats", "internal/units", "internal/wire"}},
	"internal/devicebench": {May: []string{"internal/devicebench/cl", "internal/cost", "internal/units"}},
	"internal/doctor": {May: []string{
		"internal/session/payload", "internal/doctor/probe", "internal/session", "internal/units", "internal/wire", "tracer/rights", "ui",
	}},
	"ui": {May: []string{"internal/analysis", "internal/document", "internal/figures", "internal/stats", "internal/units", "internal/view", "internal/wire"}, Idle: true, Never: noProcesses},
	// What commands do: they come with options that are plain structs, and return results and errors.
	"internal/app/console": {May: []string{"internal/session", "internal/tempfile", "internal/units"}},
	"internal/remote":      {May: []string{"internal/stats", "internal/view"}},
	"internal/app/files": {May: []string{
		"internal/app/console", "internal/callsite", "internal/tempfile", "internal/export", "internal/recording", "internal/recording/edit",
		"internal/recording/extract", "internal/stats", "internal/untrusted", "internal/wire",
	}},
	"internal/app/watch": {May: []string{
		"allocator", "internal/analysis", "internal/app/console", "internal/budget", "internal/app/files", "internal/callsite", "internal/disk", "internal/doctor/probe",
		"internal/export", "internal/learn", "internal/measure", "internal/monitor", "internal/planfile", "internal/recording", "internal/recording/extract",
		"internal/remote", "internal/replay", "internal/report", "internal/session", "internal/session/payload", "internal/setting",
		"internal/stats", "internal/symbol", "internal/timeline", "internal/units", "internal/untrusted", "internal/view", "internal/whatif/auto",
		"internal/whatif/curve", "internal/whatif/ghost", "internal/whatif/live", "internal/whatif/trial", "internal/wire", "tracer", "tracer/target",
		"ui",
	}},
	"internal/app/read": {May: []string{
		"internal/analysis", "internal/app/console", "internal/app/files", "internal/app/watch", "internal/callsite", "internal/check",
		"internal/devicebench", "internal/diff", "internal/recording", "internal/replay", "internal/report", "internal/session",
		"internal/setting", "internal/units", "internal/whatif/trial", "internal/wire",
	}},
	"internal/app/study": {May: []string{
		"internal/analysis", "internal/whatif/trial",
		"internal/advise", "internal/advise/merging", "internal/app/console", "internal/app/files", "internal/app/read",
		"internal/app/watch", "internal/arena", "internal/devicebench", "internal/doctor", "internal/doctor/probe", "internal/experiment",
		"internal/export", "internal/measure", "internal/planfile", "internal/portable", "internal/recording", "internal/replay", "internal/report", "internal/session",
		"internal/session/payload", "internal/setting", "internal/spill", "internal/stats", "internal/tempfile", "internal/tune",
		"internal/units",
	}},
	"internal/app/convert": {May: []string{
		"internal/app/console", "internal/app/files", "internal/app/read", "internal/export", "internal/flight", "internal/recording",
		"internal/recording/edit", "internal/recording/importer", "internal/recording/ndjson", "internal/session/payload",
		"internal/tempfile", "internal/units", "internal/wire",
	}},
	// Flags, help and one call.
	"cmd/gpumemtop": {May: []string{
		"internal/document", "allocator", "internal/app/console", "internal/app/convert", "internal/app/files", "internal/app/read", "internal/app/study",
		"internal/app/watch", "internal/doctor", "internal/recording", "internal/session", "internal/session/inherited",
		"internal/units", "internal/wire", "ui",
	}},

	// A module of its own.
	"fleet": {May: []string{
		"internal/advise", "internal/advise/merging", "internal/analysis", "internal/callsite", "internal/diff", "internal/export", "internal/figures", "internal/recording", "internal/replay", "internal/report",
		"internal/setting", "internal/stats", "internal/tune", "internal/units",
	}},

	// No package imports these.
	"internal/testkit":  {May: everything},
	"internal/archtest": {Timeless: true},
	"bench": {May: []string{
		"allocator", "internal/flight", "internal/heap", "internal/recording", "internal/stats", "internal/wire", "tracer/calls", "tracer/kernel", "tracer/rights",
		"tracer/target",
	}},
	"test/e2e": {May: []string{"internal/export"}},
}

// copyWithoutPackage returns a copy of a list of forbidden packages that lacks one.
func copyWithoutPackage(never map[string]string, allowed string) map[string]string {
	rest := maps.Clone(never)
	delete(rest, allowed)
	return rest
}

// PlaceOf returns the name of the place that a folder belongs to.
func PlaceOf(folder string) (string, bool) {
	for folder != "." && folder != "/" {
		if _, ok := Places[folder]; ok {
			return folder, true
		}
		folder = path.Dir(folder)
	}
	return "", false
}

// CheckImports returns what is wrong with a set of files, one sentence each, in a fixed order.
func CheckImports(files []File) []string {
	var findings []string
	docs := map[string][]string{}
	for i := range files {
		file := &files[i]
		if file.Ignored {
			continue
		}
		findings = append(findings, checkFile(file)...)
		if file.Test {
			continue
		}
		if _, seen := docs[file.Folder()]; !seen {
			docs[file.Folder()] = nil
		}
		if file.Doc {
			docs[file.Folder()] = append(docs[file.Folder()], file.Path)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(docs)) {
		if len(docs[folder]) != 1 {
			findings = append(findings, fmt.Sprintf("%s: want one package doc comment, have %d %v", folder, len(docs[folder]), docs[folder]))
		}
	}
	slices.Sort(findings)
	return findings
}

func checkFile(file *File) []string {
	name, ok := PlaceOf(file.Folder())
	if !ok {
		return []string{fmt.Sprintf("%s: this folder has no place in archtest's rules", file.Path)}
	}
	place := Places[name]
	var findings []string
	for _, target := range file.Imports {
		if finding := checkImport(file, name, target); finding != "" {
			findings = append(findings, file.Path+": "+finding)
		}
	}
	if file.Test {
		return findings
	}
	for _, use := range file.Uses {
		switch {
		case place.Timeless && slices.Contains(clockNames, use):
			findings = append(findings, fmt.Sprintf("%s: %s: time is in the events here", file.Path, use))
		case place.Idle && strings.HasPrefix(use, "os.") && !slices.Contains(idleNames, use):
			findings = append(findings, fmt.Sprintf("%s: %s: no I/O here", file.Path, use))
		}
	}
	return findings
}

// checkImport says what is wrong with one import, "" when it is right. Tests may import what they like of ours but
// the command, and are free of what is forbidden to the code only because it must be pure.
func checkImport(file *File, name, target string) string {
	place := Places[name]
	switch {
	case target == "C":
		if !place.Cgo {
			return "cgo belongs in intercept, internal/devicebench/cl, internal/session/inherited and internal/session/machine"
		}
	case target == "unsafe" && !place.Unsafe && place.Never["unsafe"] == "":
		if !strings.HasSuffix(file.Path, "_unsafe.go") && !strings.HasSuffix(file.Path, "_unsafe_test.go") {
			return "a file with unsafe is named *_unsafe.go"
		}
	case target == Module || strings.HasPrefix(target, Module+"/"):
		return checkOwnImport(file, name, strings.TrimPrefix(strings.TrimPrefix(target, Module), "/"))
	case !file.Test && place.Never[target] != "":
		return fmt.Sprintf("must not import %s: %s", target, place.Never[target])
	}
	return ""
}

func checkOwnImport(file *File, name, folder string) string {
	target, ok := PlaceOf(folder)
	switch {
	case !ok:
		return fmt.Sprintf("imports %s, which has no place", folder)
	case target == name:
		return ""
	case target == "cmd/gpumemtop":
		return "no package imports the command"
	case !file.Test && !slices.Contains(Places[name].May, target):
		return fmt.Sprintf("%s may not import %s: imports run one way", name, target)
	}
	return ""
}
