package main

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/convert"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/dashboard"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
)

// Groups of settings, in the order that help shows them.
const (
	groupPrograms   = "Programs"
	groupSearch     = "Search"
	groupPlacement  = "Placement"
	groupAdvice     = "Advice"
	groupMeasuring  = "Measuring"
	groupPart       = "Part of the recording"
	groupChrome     = "Chrome trace"
	groupAllocator  = "Allocator"
	groupSites      = "Call sites"
	groupOutput     = "Output"
	groupDashboard  = "Dashboard"
	groupMonitoring = "Monitoring"
	groupSettings   = "Settings"
)

var groups = []string{
	groupPrograms, groupSearch, groupPlacement, groupAdvice, groupMeasuring, groupPart, groupChrome, groupAllocator, groupSites,
	groupOutput, groupMonitoring, groupDashboard, groupSettings,
}

// setting is one thing that can be set. Flags, environment variables, settings files and help come from the table of settings.
type setting struct {
	name    string // of the flag
	variant string // tells settings of one name apart, which are for different commands
	short   string // one letter, or empty
	value   string // what help calls the value; empty for switches
	group   string
	env     bool // GPUMEMTOP_NAME sets it, too, and a settings file unless it is config
	help    string
}

const wrapperHelp = "functions that only pass requests on, such as the program's own my_alloc: call sites are named after their callers; it is matched with functions, and with names as tables show them"

// settings is the table.
var settings = []setting{
	{"policy", "", "", "NAME", groupAllocator, true, "how buffers are served: " + strings.Join(allocator.Names(), ", ") + ", or " + allocator.Auto + ", which switches between them; 'gpumemtop policies' describes them"},
	{"policy", "fixed", "", "NAME", groupAllocator, true, "how buffers are served: " + strings.Join(allocator.Names(), ", ") + "; 'gpumemtop policies' describes them"},
	{"set", "", "", "LIMIT=VALUE", groupAllocator, true, "set a limit of the policy, for example max_cached_bytes=512MiB, max_age=30s or drain_order=all; may be given several times, each limit once"},
	{"max-cached", "", "", "SIZE", groupAllocator, true, "short for --set max_cached_bytes=SIZE, for example 512MiB"},
	{"plan", "", "", "FILE", groupAllocator, true, "where the program's buffers go, as 'gpumemtop advise --write' wrote it; the policy is arena"},
	{"unsafe-no-gating", "", "", "", groupAllocator, false, "reuse blocks while queued commands still use them, which CORRUPTS results: shows what pools without gating risk"},
	{"scrub", "", "", "KIND", groupAllocator, true, "fill recycled blocks before the program gets them: none, zero or poison (bytes of 0xa5)"},
	{"device-memory", "", "", "SIZE", groupAllocator, true, "make allocations fail as on a device with this much memory; each process has a device of its own"},
	{"spill", "", "", "", groupAllocator, true, "let the program hold more memory than the device has: buffers that no command uses go to host memory and come back; without a pool"},
	{"answer-free-memory", "", "", "", groupAllocator, true, "answer the query for free memory (CL_DEVICE_GLOBAL_FREE_MEMORY_AMD) where the driver does not know it: a change that the program can see"},
	{"hash-writes", "", "", "", groupAllocator, true, "hash all bytes that the program writes to the device, not samples of large writes: certain about bytes that are written again; costs about 0.1 ms per MiB"},
	{"ghosts", "", "", "LIST", groupAllocator, true, "policies to simulate beside the run: " + watch.GhostsUsual + ", " + watch.GhostsOff + ", or names with commas between; by default " + watch.GhostsUsual + " with a dashboard"},
	{"capacity", "", "", "SIZE", groupAllocator, false, "device memory for each process; by default unlimited"},
	{"device-cost", "", "", "FILE", groupAllocator, false, "the driver's costs, as 'gpumemtop probe --format json' measured them; by default those of the recording"},
	{"device-cost", "touch", "", "FILE", groupAllocator, false, "what first touches take, as 'gpumemtop probe --format json' measured it, where the recording has no times of its own"},
	{"device", "cost", "", "DEVICE", groupAllocator, false, "which device in that file, by number or by part of its name in any case"},
	{"capacity", "plan", "", "SIZE", groupPlacement, false, "size of the arena: the first placement that fits will do; by default the smallest arena"},
	{"alignment", "", "", "SIZE", groupPlacement, false, "align offsets to this where the file names no alignment: the device's base address alignment"},
	{"timeout", "plan", "", "TIME", groupPlacement, false, "how long to search; 0s: no limit"},
	{"form", "", "", "NAME", groupAdvice, false, "when memory counts as in use: api, from creation to release; uses, from first to last use in call order; completion, from first use until the last has completed"},
	{"sizes", "", "", "NAME", groupAdvice, false, "which buffers may share a block: equal, those of equal size; any, all, in a block as large as the largest"},
	{"steps", "", "", "N", groupAdvice, false, "allocations, releases, commands and waits to read from the start of each recording"},
	{"on", "", "", "DEVICE", groupSearch, false, "hold recordings against this device instead of running a program: a name that 'fit --on list' shows, or a file in TOML"},
	{"spill", "fit", "", "", groupSearch, false, "say how little memory is enough with --spill, and estimate what that costs, from recordings"},
	{"bandwidth", "", "", "SIZE", groupSearch, false, "bytes per second to the device and back for --spill; by default the best that the recording shows"},
	{"resolution", "", "", "SIZE", groupSearch, false, "how precise the result is; by default 1 % of the program's peak, at least 64KiB"},
	{"timeout", "fit", "", "TIME", groupSearch, false, "a run that takes longer does not survive; 0s: no limit"},
	{"budget", "tune", "", "TIME", groupSearch, false, "how long to search at most, 100ms to 24h, besides reading recordings and running a program"},
	{"configurations", "", "", "N", groupSearch, false, "how many configurations to try at most; each policy is always tried with its defaults"},
	{"max-memory", "", "", "SIZE", groupSearch, false, "the most memory that the pool may reserve; by default unlimited"},
	{"device", "probe", "", "DEVICE", groupMeasuring, false, "devices to measure: one by its number from 0, or those with this in their name, in any case; by default all"},
	{"platform", "", "", "NAME", groupMeasuring, false, "only platforms with this in their name, in any case"},
	{"max", "probe", "", "SIZE", groupMeasuring, false, "the largest buffer; never more than a quarter of the device's maximum"},
	{"budget", "probe", "", "TIME", groupMeasuring, false, "how long to measure all devices together, 100ms to 1h, besides loading drivers"},
	{"runs", "", "", "N", groupMeasuring, false, "pairs of runs, 1 to 1000; fewer than 6 give an interval of less than 95 %"},
	{"budget", "compare", "", "TIME", groupMeasuring, false, "begin no pair of runs after this time; 0s: no limit"},
	{"since", "", "", "TIME", groupPart, false, "from this time after the start, for example 2.5s or 1m; earlier state is carried over"},
	{"until", "", "", "TIME", groupPart, false, "up to this time after the start; 0s: to the end"},
	{"process", "", "", "PID", groupPart, false, "one process: its process id, its number in the recording after a #, or all processes of the program of this name"},
	{"tag", "", "", "REGEXP", groupPart, false, "only call sites whose name matches"},
	{"at", "export", "", "MOMENT", groupPart, false, "when to count memory in use: peak, end, or a time after the start, for example 2.5s (pprof)"},
	{"max-events", "", "", "N", groupPart, false, "chrome: no call or lifetime begins after this many lines, and counters thin out to match; memviz: the last events; 0: no bound, or as many as the viewer draws"},
	{"curve", "", "", "", groupOutput, false, "the hit-rate curve, too: replays the whole recording at other limits of cached bytes"},
	{"top", "", "", "N", groupPart, false, "rows in each table; 0: all"},
	{"min-size", "", "", "SIZE", groupChrome, false, "leave out calls on, and lifetimes of, smaller memory; counters stay complete"},
	{"counters-every", "", "", "TIME", groupChrome, false, "at most one value of each counter in this time"},
	{"lifetimes", "", "", "N", groupChrome, false, "lifetimes only of the N call sites with the most bytes; 0: all"},
	{"no-lifetimes", "", "", "", groupChrome, false, "no lifetimes: only calls and counters"},
	{"flows", "", "", "", groupChrome, false, "arrows from each allocation to its lifetime and its release"},
	{"tags", "", "", "KIND", groupSites, true, "how to group allocations: by stack, caller, size, thread or none"},
	{"stack-depth", "", "", "N", groupSites, true, "frames of a call stack to keep, 1 to 32"},
	{"wrapper", "", "", "REGEXP", groupSites, true, wrapperHelp},
	{"wrapper", "read", "", "REGEXP", groupSites, false, wrapperHelp},
	{"json", "", "", "FILE", groupOutput, true, "write a Chrome trace while the program runs, alone or beside -o; % as for -o"},
	{"output", "record", "o", "FILE", groupOutput, true, "record into a file; in its name %n is the program, %s the process id of this gpumemtop, %h the host, %t the time; with %p, the process id, each process gets a file"},
	{"output", "export", "o", "FILE", groupOutput, false, "file or folder to write; - is standard output"},
	{"output", "plan", "o", "FILE", groupOutput, false, "file to write: the CSV with a column offset; - is standard output"},
	{"output", "recording", "o", "FILE", groupOutput, false, "recording to write"},
	{"write", "", "", "FILE", groupOutput, false, "write the recommendation as a settings file, in TOML"},
	{"write", "plan", "", "FILE", groupOutput, false, "write a plan of the program's memory, in TOML, for --plan"},
	{"write", "probe", "", "FILE", groupOutput, false, "write the limits of the measured device as a profile in TOML, for fit --on"},
	{"label", "", "", "NAME=VALUE", groupOutput, true, "keep this with what is recorded, exported and monitored, for example team=vision; may be given several times, or with commas between, up to 16"},
	{"summary", "", "", "FILE", groupOutput, true, "write the final figures as JSON, in place of earlier ones"},
	{"format", "export", "", "NAME", groupOutput, false, "what to write: " + convert.ExportHelp()},
	{"lake", "", "", "", groupOutput, false, "parquet: a few rows of each recording, in folders by program, job and day that many writers share; always so with several recordings"},
	{"table", "", "", "NAME", groupOutput, false, "the table that csv writes: " + strings.Join(convert.Tables, ", ") + "; by default " + convert.Tables[0]},
	{"format", "import", "", "NAME", groupOutput, false, "what to read: " + convert.ImportHelp() + "; by default detected"},
	{"output", "text", "o", "FILE", groupOutput, false, "file to write instead of standard output"},
	{"force", "", "f", "", groupOutput, false, "overwrite files that exist"},
	{"format", "report", "", "NAME", groupOutput, false, "text, json, md (Markdown) or html (one file for a browser)"},
	{"rules", "", "", "FILE", groupOutput, false, "the rules, in TOML"},
	{"format", "", "", "NAME", groupOutput, false, "text or json"},
	{"max", "advise", "", "N", groupOutput, false, "pieces of advice in the text for each program; 0: all, and all runs"},
	{"headless", "", "", "", groupDashboard, true, "no dashboard: only the figures at the end"},
	{"exit-with-app", "", "", "", groupDashboard, true, "close the dashboard when the program ends"},
	{"no-replay", "", "", "", groupDashboard, true, "do not repeat the program's output after the dashboard closes"},
	{"read-only", "", "", "", groupDashboard, true, "show limits and the policy without letting them be changed"},
	{"at", "view", "", "TIME", groupDashboard, false, "open at this time after the start, for example 2.5s or 1m; by default at the end"},
	{"film", "", "", "FILE", groupOutput, false, "write twenty seconds of the dashboard as a moving picture (SVG), from --at or the start on, and show nothing; - is standard output"},
	{"refresh", "", "", "TIME", groupDashboard, true, "time between two frames, 20ms to 10s; over SSH 500ms unless set"},
	{"ascii", "", "", "", groupDashboard, true, "draw with ASCII characters only, as in locales without UTF-8"},
	{"theme", "", "", "NAME", groupDashboard, true, "colours: " + strings.Join(dashboard.Themes, ", ") + "; auto goes by COLORFGBG, else dark"},
	{"mouse", "", "", "", groupDashboard, true, "the wheel moves, a click chooses a row, sorts by a column or shows a time; the terminal selects text with shift then"},
	{"no-color", "", "", "", groupDashboard, true, "no colours; NO_COLOR does the same"},
	{"listen", "", "", "ADDR", groupMonitoring, true, "answer Prometheus (/metrics), pprof (/debug/pprof/opencl) and scripts (/summary.json) while the program runs: PORT or HOST:PORT, by default on the loopback interface, or unix:PATH; nothing can be changed over it"},
	{"textfile", "", "", "DIR", groupMonitoring, true, "at the end, write the metrics into a folder of Prometheus' node_exporter"},
	{"push", "", "", "URL", groupMonitoring, true, "at the end, send the metrics to Prometheus' Pushgateway"},
	{"otlp", "", "", "URL", groupMonitoring, true, "send the metrics to an OpenTelemetry collector over HTTP, each minute and at the end, for example http://127.0.0.1:4318; env: where OTEL_EXPORTER_OTLP_ENDPOINT says; headers, interval and attributes are those of the OTEL_ variables"},
	{"config", "", "", "FILE", groupSettings, true, "read settings that neither a flag nor a variable sets from a file in TOML; its keys are the names of flags that have a variable; by default ~/.config/gpumemtop/config.toml, '' is none"},
	{"print-config", "", "", "", groupSettings, false, "write the settings in effect and where each comes from, in a form that --config reads, and do nothing else"},
	{"output", "reduce", "o", "FILE", groupOutput, false, "write the table as Parquet, too; - is standard output"},
	{"output", "library", "o", "FILE", groupOutput, false, "library to write, on a disk that all nodes read"},
	{"json", "reduce", "", "", groupOutput, false, "write JSON instead of text"},
	{"json", "version", "", "", groupOutput, false, "write it as JSON"},
	{"edit", "", "", "", groupSettings, false, "edit the settings file"},
	{"pid", "", "p", "PID", groupPrograms, false, "a running process; may be given several times, or with commas between"},
	{"session", "", "", "NAME", groupPrograms, false, "show the dashboard of a session that runs elsewhere, by the name of its program or a process id; without a name, the only one. Several may look at one, and tune it unless it is --read-only"},
	{"comm", "", "", "NAME", groupPrograms, false, "every process of this name, as ps -o comm shows it, now and later; may be given several times"},
	{"cgroup", "", "", "PATH", groupPrograms, false, "every process in this control group and those below it, such as a service's or a container's, now and later; may be given several times"},
	{"all", "", "", "", groupPrograms, false, "every process that uses OpenCL, now and later"},
	{"follow", "", "", "", groupPrograms, false, "the children of watched processes, too"},
	{"duration", "", "", "TIME", groupPrograms, false, "detach after this time, for example 30s or 10m; 0s: on request, or when nothing is left to watch"},
}

// key names a setting in the table: "output:record", or its flag if that has no variants.
func (s *setting) key() string {
	if s.variant == "" {
		return s.name
	}
	return s.name + ":" + s.variant
}

// envName is the environment variable of a setting, empty if it has none.
func (s *setting) envName() string {
	if !s.env {
		return ""
	}
	return "GPUMEMTOP_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// inFile reports whether a settings file can have it.
func (s *setting) inFile() bool { return s.env && s.name != "config" }

// fields are the settings of a command: by key, pointers to where the values go, which hold the defaults. They are *string,
// *bool, *int, *time.Duration or *[]string.
type fields map[string]any

// with adds fields.
func (f fields) with(more fields) fields {
	maps.Copy(f, more)
	return f
}

// bind makes the flags of a command. A command with settings that have a variable gets --config and --print-config, too.
func bind(flags *pflag.FlagSet, fields fields) {
	flags.SortFlags = false
	for i := range settings {
		if s := &settings[i]; s.env && fields[s.key()] != nil {
			fields["config"], fields["print-config"] = new(string), new(bool)
			break
		}
	}
	bound := 0
	for i := range settings {
		s := &settings[i]
		if field := fields[s.key()]; field != nil {
			s.bind(flags, field)
			bound++
		}
	}
	if bound != len(fields) {
		panic(fmt.Sprintf("of the settings %v only %d are in the table", fields, bound))
	}
}

// keyAnnotation is the annotation of a flag that holds its setting's key.
const keyAnnotation = "setting"

func (s *setting) bind(flags *pflag.FlagSet, field any) {
	switch field := field.(type) {
	case *string:
		flags.StringVarP(field, s.name, s.short, *field, s.help)
	case *bool:
		flags.BoolVarP(field, s.name, s.short, *field, s.help)
	case *int:
		flags.IntVarP(field, s.name, s.short, *field, s.help)
	case *time.Duration:
		flags.DurationVarP(field, s.name, s.short, *field, s.help)
	case *[]string:
		flags.StringArrayVarP(field, s.name, s.short, *field, s.help)
	}
	_ = flags.SetAnnotation(s.name, keyAnnotation, []string{s.key()}) // fails only for flags that do not exist
}

// settingsOf returns the settings of a command, in the order of the table.
func settingsOf(flags *pflag.FlagSet) []*setting {
	var list []*setting
	for i := range settings {
		s := &settings[i]
		if flag := flags.Lookup(s.name); flag != nil && flag.Annotations[keyAnnotation] != nil && flag.Annotations[keyAnnotation][0] == s.key() {
			list = append(list, s)
		}
	}
	return list
}
