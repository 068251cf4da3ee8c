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
	shared  = without(pure, "sync")
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
		"allocator", "internal/analysis", "internal/check", "internal/cl", "internal/compare", "internal/cut",
		"internal/doctor", "internal/export", "internal/importer", "internal/lab", "internal/lab/cost",
		"internal/lab/auto", "internal/lab/curve", "internal/lab/ghost", "internal/lab/live", "internal/lab/plan",
		"internal/lab/tune", "internal/life",
		"internal/measure", "internal/merging", "internal/merging/advice", "internal/model",
		"internal/ndjson", "internal/payload", "internal/plain", "internal/probe", "internal/progress", "internal/report",
		"internal/session", "internal/size", "internal/splice", "internal/symbol", "internal/trace",
		"internal/unfinished", "internal/viewer", "internal/wire", "tracer", "tracer/rights", "tracer/target", "ui",
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
	"internal/wire": {Timeless: true, Unsafe: true, Never: noFiles},
	"internal/size": {Timeless: true, Never: noFiles},
	// The generators run at build time and belong to what they generate.
	"internal/wire/gen": {Unsafe: true},

	// What many threads may call at once locks for itself; otherwise it is as pure as the policies.
	"allocator/semaphore":  {Timeless: true, Never: shared},
	"allocator/twostage":   {May: []string{"allocator/semaphore"}, Timeless: true, Never: shared},
	"allocator/tbuddy":     {May: []string{"allocator/semaphore"}, Timeless: true, Never: shared},
	"allocator/rcu":        {Timeless: true, Never: shared},
	"allocator/collective": {Timeless: true, Never: shared},
	"allocator/ualloc": {
		May:      []string{"allocator/collective", "allocator/rcu", "allocator/semaphore"},
		Timeless: true,
		Never:    shared,
	},
	"allocator/treap": {Timeless: true, Never: pure},
	"allocator/carve": {
		May:      []string{"allocator/tbuddy", "allocator/treap", "allocator/ualloc"},
		Timeless: true,
		Never:    pure,
	},
	"allocator": {May: []string{"allocator/carve", "internal/wire"}, Timeless: true, Never: pure},

	"internal/trace":  {May: []string{"internal/wire"}, Timeless: true},
	"internal/model":  {May: []string{"internal/wire"}, Timeless: true, Never: noFiles},
	"internal/life":   {May: []string{"internal/model", "internal/trace", "internal/wire"}, Timeless: true, Never: noFiles},
	"internal/cut":    {May: []string{"internal/life", "internal/trace", "internal/wire"}, Timeless: true, Never: noFiles},
	"internal/splice": {May: []string{"internal/cut", "internal/trace", "internal/wire"}, Timeless: true, Never: noFiles},
	"internal/ndjson": {May: []string{"internal/trace", "internal/wire"}, Timeless: true, Never: noFiles},
	// A planner and the CSV that it reads.
	"internal/lab/auto": {May: []string{"internal/lab", "internal/lab/cost", "internal/lab/ghost", "internal/model"}, Timeless: true, Never: noFiles},
	"internal/lab/plan": {Timeless: true, Never: noFiles},
	"internal/importer": {
		May:      []string{"internal/lab/plan", "internal/ndjson", "internal/trace", "internal/wire"},
		Timeless: true, Never: noFiles,
	},
	"internal/symbol": {May: []string{"internal/wire"}, Timeless: true},
	"internal/cl":     {Cgo: true, Unsafe: true},
	"intercept":       {May: []string{"allocator", "internal/wire"}, Cgo: true, Unsafe: true},

	// From the kernel up: what the eBPF program tells, which processes and files it is about, what the calls mean, and
	// all of it together as events.
	"tracer/kernel": {May: []string{"internal/wire"}, Unsafe: true},
	"tracer/rights": {May: []string{"internal/wire"}},
	"tracer/target": {May: []string{"internal/wire"}},
	"tracer/stack":  {May: []string{"internal/wire", "tracer/target"}, Timeless: true},
	"tracer/calls":  {May: []string{"internal/wire"}, Timeless: true, Never: noFiles},
	"tracer": {May: []string{
		"internal/wire", "tracer/calls", "tracer/kernel", "tracer/rights", "tracer/stack", "tracer/target",
	}},

	"internal/unfinished": {},

	// What is written for people, in the same words everywhere.
	"internal/plain": {May: []string{"internal/model", "internal/size", "internal/wire"}, Timeless: true, Never: noFiles},

	"internal/lab/cost": {Timeless: true, Never: noFiles},
	"internal/lab": {
		May: []string{
			"allocator", "internal/lab/cost", "internal/model", "internal/size", "internal/trace", "internal/wire",
		},
		Timeless: true, Never: noFiles,
	},
	"internal/lab/tune": {May: []string{"allocator", "internal/lab", "internal/lab/cost"}, Timeless: true, Never: noFiles},
	// These read the clock: what they cost is measured, and shown.
	"internal/lab/live": {May: []string{"internal/lab", "internal/wire"}, Never: noFiles},
	"internal/lab/ghost": {
		May:   []string{"allocator", "internal/lab", "internal/lab/cost", "internal/lab/live", "internal/model"},
		Never: noFiles,
	},
	"internal/lab/curve": {
		May:      []string{"allocator", "internal/lab", "internal/lab/cost", "internal/lab/live", "internal/trace", "internal/wire"},
		Timeless: true, Never: noFiles,
	},
	"internal/merging": {May: []string{"internal/size"}, Timeless: true, Never: noFiles},
	"internal/merging/recorded": {
		May:      []string{"internal/life", "internal/merging", "internal/trace", "internal/wire"},
		Timeless: true, Never: noFiles,
	},
	"internal/merging/advice": {
		May:      []string{"internal/merging", "internal/merging/recorded", "internal/plain", "internal/size", "internal/trace"},
		Timeless: true, Never: noFiles,
	},
	"internal/analysis": {
		May: []string{
			"allocator", "internal/lab/cost", "internal/life", "internal/model", "internal/plain", "internal/size", "internal/trace",
			"internal/wire",
		},
		Timeless: true, Never: noFiles,
	},
	"internal/check": {May: []string{"internal/analysis", "internal/model", "internal/size"}, Timeless: true, Never: noFiles},
	"internal/compare": {
		May: []string{
			"internal/analysis", "internal/model", "internal/plain", "internal/size", "internal/trace",
			"internal/wire",
		},
		Timeless: true, Never: noFiles,
	},
	"internal/report": {
		May: []string{
			"internal/analysis", "internal/export", "internal/lab/curve", "internal/model", "internal/plain", "internal/size",
			"internal/trace", "internal/wire",
		},
		Timeless: true, Never: noFiles,
	},
	"internal/export": {
		May: []string{
			"internal/lab", "internal/lab/cost", "internal/life", "internal/model", "internal/plain", "internal/size",
			"internal/symbol", "internal/trace", "internal/unfinished", "internal/wire",
		},
		Timeless: true,
	},

	"internal/progress": {May: []string{"internal/size"}, Never: noProcesses},
	// It reads recordings and the clock, by which it tells whether somebody waits.
	"internal/viewer": {May: []string{"internal/model", "internal/trace", "internal/wire"}, Never: noProcesses},

	"internal/payload": {},
	"internal/session": {May: []string{
		"allocator", "internal/model", "internal/payload", "internal/size", "internal/symbol", "internal/trace",
		"internal/wire", "tracer",
	}},
	"internal/probe": {May: []string{"internal/payload", "internal/session", "internal/wire"}},
	// It measures time, and runs drivers in processes of its own.
	"internal/measure": {May: []string{"internal/cl", "internal/lab/cost", "internal/plain", "internal/size"}},
	"internal/doctor": {May: []string{
		"internal/payload", "internal/probe", "internal/session", "internal/size", "internal/wire", "tracer/rights",
	}},
	"ui":            {May: []string{"internal/model", "internal/size", "internal/wire"}, Idle: true, Never: noProcesses},
	"cmd/gpumemtop": {May: everything},

	// Nobody imports these; tools are programs for the people who work on this repository.
	"internal/tools":    {},
	"internal/archtest": {},
	"bench": {May: []string{
		"allocator", "allocator/rcu", "allocator/semaphore", "allocator/tbuddy", "allocator/ualloc", "intercept",
		"internal/lab", "internal/lab/curve", "internal/lab/ghost", "internal/lab/live", "internal/lab/plan",
		"internal/lab/tune", "internal/merging",
		"internal/merging/advice", "internal/model", "internal/trace", "internal/wire", "tracer/calls", "tracer/kernel",
		"tracer/rights", "tracer/target",
	}},
	"e2e": {May: []string{"internal/export"}},
}

// without returns a copy of a list of forbidden packages that lacks one.
func without(never map[string]string, allowed string) map[string]string {
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

// Check returns what is wrong with a set of files, one sentence each, in a fixed order.
func Check(files []File) []string {
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
			return "cgo belongs in intercept and internal/cl"
		}
	case target == "unsafe" && !place.Unsafe && place.Never["unsafe"] == "":
		if !strings.HasSuffix(file.Path, "_unsafe.go") && !strings.HasSuffix(file.Path, "_unsafe_test.go") {
			return "a file with unsafe is named *_unsafe.go"
		}
	case target == Module || strings.HasPrefix(target, Module+"/"):
		return checkOwn(file, name, strings.TrimPrefix(strings.TrimPrefix(target, Module), "/"))
	case !file.Test && place.Never[target] != "":
		return fmt.Sprintf("must not import %s: %s", target, place.Never[target])
	}
	return ""
}

func checkOwn(file *File, name, folder string) string {
	target, ok := PlaceOf(folder)
	switch {
	case !ok:
		return fmt.Sprintf("imports %s, which has no place", folder)
	case target == name:
		return ""
	case target == "cmd/gpumemtop":
		return "nobody imports the command"
	case !file.Test && !slices.Contains(Places[name].May, target):
		return fmt.Sprintf("%s may not import %s: imports run one way", name, target)
	}
	return ""
}
