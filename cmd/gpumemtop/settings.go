package main

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/convert"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
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

// setting is a row of the table of settings, from which flags, environment variables, settings files and help are made.
type setting struct {
	name    string // of the flag
	variant string // distinguishes settings of one name for different commands
	short   string // one letter, or empty
	value   string // the name of the value in help; empty for switches
	group   string
	env     bool // GPUMEMTOP_NAME sets it, too, and so does a settings file, except for config
	expert  bool // only --help-all shows it
	help    string
}

const wrapperHelp = "functions that only pass requests on, such as the program's own my_alloc: call sites are named after their callers; it is matched with functions, and with names as tables show them"

// settings is the table.
var settings = []setting{
	{name: "policy", value: "NAME", group: groupAllocator, env: true,
		help: "how buffers are served: " + strings.Join(allocator.PolicyNames(), ", ") + ", or " + allocator.Auto +
			", which switches between them; 'gpumemtop policies' describes them"},
	{name: "policy", variant: "fixed", value: "NAME", group: groupAllocator, env: true,
		help: "how buffers are served: " + strings.Join(allocator.PolicyNames(), ", ") + "; 'gpumemtop policies' describes them"},
	{name: "set", value: "LIMIT=VALUE", group: groupAllocator, env: true,
		help: "set a limit of the policy, for example max_cached_bytes=512MiB, max_age=30s or drain_order=all; may be given " +
			"several times, each limit once"},
	{name: "max-cached", value: "SIZE", group: groupAllocator, env: true, help: "short for --set max_cached_bytes=SIZE, for example 512MiB"},
	{name: "plan", value: "FILE", group: groupAllocator, env: true, expert: true,
		help: "where the program's buffers go, as 'gpumemtop advise --write' wrote it; the policy is arena"},
	{name: "unsafe-no-gating", group: groupAllocator, expert: true,
		help: "reuse blocks while queued commands still use them, which CORRUPTS results: shows what pools without gating risk"},
	{name: "scrub", value: "KIND", group: groupAllocator, env: true, expert: true,
		help: "fill recycled blocks before the program gets them: none, zero or poison (bytes of 0xff, which floats read as NaN); auto: " +
			"with zero, on the device, just before a kernel that may read what nothing wrote"},
	{name: "device-memory", value: "SIZE", group: groupAllocator, env: true,
		help: "make allocations fail as on a device with this much memory; each process has a device of its own"},
	{name: "spill", group: groupAllocator, env: true,
		help: "let the program hold more memory than the device has: buffers that no command uses go to host memory and come back; " +
			"without a pool"},
	{name: "eager", group: groupAllocator, env: true, expert: true,
		help: "let the driver give buffers and images their room when they are created, by a migration, so that a lack of memory shows in the " +
			"create and not in a later command; creates take longer"},
	{name: "answer-free-memory", group: groupAllocator, env: true, expert: true,
		help: "answer the query for free memory (CL_DEVICE_GLOBAL_FREE_MEMORY_AMD) where the driver does not know it: a change " +
			"that the program can see"},
	{name: "no-relief", group: groupAllocator, env: true, expert: true,
		help: "keep idle blocks while other programs lack memory, and ask no other pool for what the program lacks"},
	{name: "hash-writes", group: groupAllocator, env: true, expert: true,
		help: "hash all bytes that the program writes to the device, not samples of large writes: certain about bytes that are " +
			"written again; costs about 0.1 ms per MiB"},
	{name: "ghosts", value: "LIST", group: groupAllocator, env: true, expert: true,
		help: "policies to simulate beside the run: " + watch.GhostsUsual + ", " + watch.GhostsOff + ", or names with commas " +
			"between; by default " + watch.GhostsUsual + " with a dashboard"},
	{name: "measure", value: "OTHER", group: groupAllocator, env: true,
		help: "measure in the running program what the pool is worth: parts of the run, in random order, without it (none), or with another POLICY, " +
			"POLICY:LIMIT=VALUE,… or LIMIT=VALUE, or several in turn, with commas; off: nor from the dashboard"},
	{name: "measure-until", value: "PERCENT", group: groupAllocator, env: true, expert: true, help: "the measurement ends when it is as exact as this"},
	{name: "capacity", value: "SIZE", group: groupAllocator, help: "device memory for each process; by default unlimited"},
	{name: "device-cost", value: "FILE", group: groupAllocator, expert: true,
		help: "the driver's costs, as 'gpumemtop probe --format json' measured them; by default those of the recording"},
	{name: "device-cost", variant: "touch", value: "FILE", group: groupAllocator, expert: true,
		help: "what creates, releases and first touches take on its device, by 'gpumemtop probe --format json', where the recording does not show it"},
	{name: "device", variant: "cost", value: "DEVICE", group: groupAllocator, expert: true,
		help: "which device in that file, by number or by part of its name in any case"},
	{name: "capacity", variant: "plan", value: "SIZE", group: groupPlacement,
		help: "size of the arena: the first placement that fits will do; by default the smallest arena"},
	{name: "alignment", value: "SIZE", group: groupPlacement, expert: true,
		help: "align offsets to this where the file names no alignment: the device's base address alignment"},
	{name: "timeout", variant: "plan", value: "TIME", group: groupPlacement, help: "how long to search; 0s: no limit"},
	{name: "form", value: "NAME", group: groupAdvice, expert: true,
		help: "when memory counts as in use: api, from creation to release; uses, from first to last use in call order; " +
			"completion, from first use until the last has completed"},
	{name: "sizes", value: "NAME", group: groupAdvice, expert: true,
		help: "which buffers may share a block: equal, those of equal size; any, all, in a block as large as the largest"},
	{name: "steps", value: "N", group: groupAdvice, expert: true, help: "allocations, releases, commands and waits to read from the start of each recording"},
	{name: "on", value: "DEVICE", group: groupSearch,
		help: "hold recordings against this device instead of running a program: a name that 'fit --on list' shows, or a file in " +
			"TOML"},
	{name: "spill", variant: "fit", group: groupSearch,
		help: "say how little memory is enough with --spill, and estimate what that costs, from recordings"},
	{name: "bandwidth", value: "SIZE", group: groupSearch, expert: true,
		help: "bytes per second to the device and back for --spill; by default the best that the recording shows"},
	{name: "resolution", value: "SIZE", group: groupSearch, expert: true, help: "how precise the result is; by default 1 % of the program's peak, at least 64KiB"},
	{name: "timeout", variant: "fit", value: "TIME", group: groupSearch, help: "a run that takes longer does not survive; 0s: no limit"},
	{name: "budget", variant: "tune", value: "TIME", group: groupSearch, expert: true,
		help: "how long to search at most, 100ms to 24h, besides reading recordings and running a program"},
	{name: "live", group: groupSearch, help: "try candidates in parts of one run of the program, and measure them"},
	{name: "configurations", value: "N", group: groupSearch, expert: true,
		help: "how many configurations to try at most; each policy is always tried with its defaults"},
	{name: "max-memory", value: "SIZE", group: groupSearch, help: "the most memory that the pool may reserve; by default unlimited"},
	{name: "device", variant: "probe", value: "DEVICE", group: groupMeasuring,
		help: "devices to measure: one by its number from 0, or those with this in their name, in any case; by default all"},
	{name: "platform", value: "NAME", group: groupMeasuring, expert: true, help: "only platforms with this in their name, in any case"},
	{name: "max", variant: "probe", value: "SIZE", group: groupMeasuring, expert: true,
		help: "the largest buffer; never more than a quarter of the device's maximum"},
	{name: "budget", variant: "probe", value: "TIME", group: groupMeasuring, expert: true,
		help: "how long to measure all devices together, 100ms to 1h, besides loading drivers"},
	{name: "runs", value: "N", group: groupMeasuring, help: "pairs of runs, 1 to 1000; fewer than 6 give an interval of less than 95 %"},
	{name: "budget", variant: "compare", value: "TIME", group: groupMeasuring, help: "begin no pair of runs after this time; 0s: no limit"},
	{name: "against", value: "OTHER", group: groupMeasuring,
		help: "compare with this configuration, watched as well, and not with the bare program: none, POLICY, POLICY:LIMIT=VALUE,… or LIMIT=VALUE,…"},
	{name: "outputs", group: groupMeasuring,
		help: "compare what the program prints and how it ends, with recycled memory full of 0xff bytes; 2 pairs of runs by default"},
	{name: "since", value: "TIME", group: groupPart, help: "from this time after the start, for example 2.5s or 1m; earlier state is carried over"},
	{name: "until", value: "TIME", group: groupPart, help: "up to this time after the start; 0s: to the end"},
	{name: "process", value: "PID", group: groupPart,
		help: "one process: its process id, its number in the recording after a #, or all processes of the program of this name"},
	{name: "tag", value: "REGEXP", group: groupPart, help: "only call sites whose name matches"},
	{name: "at", variant: "export", value: "MOMENT", group: groupPart, expert: true,
		help: "when to count memory in use: peak, end, or a time after the start, for example 2.5s (pprof)"},
	{name: "max-events", value: "N", group: groupPart, expert: true,
		help: "chrome: no call or lifetime begins after this many lines, and counters thin out to match; memviz: the last events; " +
			"0: no bound, or as many as the viewer draws"},
	{name: "all", variant: "report", group: groupOutput, help: "all sections of a text or Markdown, not only findings, key figures and call sites; json and html have all"},
	{name: "section", value: "NAME[,NAME]", group: groupOutput, help: "only these sections of a text or Markdown: " + strings.Join(read.SectionNames(), ", ")},
	{name: "curve", group: groupOutput, expert: true, help: "the hit-rate curve, too: replays the whole recording at other limits of cached bytes"},
	{name: "top", value: "N", group: groupPart, help: "rows in each table; 0: all"},
	{name: "min-size", value: "SIZE", group: groupChrome, expert: true, help: "leave out calls on, and lifetimes of, smaller memory; counters stay complete"},
	{name: "counters-every", value: "TIME", group: groupChrome, expert: true, help: "at most one value of each counter in this time"},
	{name: "lifetimes", value: "N", group: groupChrome, expert: true, help: "lifetimes only of the N call sites with the most bytes; 0: all"},
	{name: "no-lifetimes", group: groupChrome, expert: true, help: "no lifetimes: only calls and counters"},
	{name: "flows", group: groupChrome, expert: true, help: "arrows from each allocation to its lifetime and its release"},
	{name: "compact", group: groupChrome, expert: true, help: "a third of the size: lifetimes and their bytes, without the calls that begin and end them"},
	{name: "tags", value: "KIND", group: groupSites, env: true, expert: true, help: "how to group allocations: by stack, caller, size, thread or none"},
	{name: "stack-depth", value: "N", group: groupSites, env: true, expert: true, help: "frames of a call stack to keep, 1 to 32; more where all are of libraries, and as many lines of Python"},
	{name: "wrapper", value: "REGEXP", group: groupSites, env: true, help: wrapperHelp},
	{name: "memory-budget", value: "SIZE", group: groupSites, env: true, expert: true,
		help: "how much memory gpumemtop itself may take, half of it for names, half for what the program holds: beyond, call sites are shown by " +
			"addresses, and buffers are only counted; by default 512MiB"},
	{name: "wrapper", variant: "read", value: "REGEXP", group: groupSites, help: wrapperHelp},
	{name: "json", value: "FILE", group: groupOutput, env: true, help: "write a Chrome trace while the program runs, alone or beside -o; % as for -o"},
	{name: "perfetto", value: "FILE", group: groupOutput, env: true, help: "the same in Perfetto's own format, a twentieth of the size"},
	{name: "output", variant: "record", short: "o", value: "FILE", group: groupOutput, env: true,
		help: "record into a file; in its name %n is the program, %s the process id of this gpumemtop, %h the host, %t the time; " +
			"with %p, the process id, each process gets a file"},
	{name: "output", variant: "export", short: "o", value: "FILE", group: groupOutput, help: "file or folder to write; - is standard output"},
	{name: "output", variant: "plan", short: "o", value: "FILE", group: groupOutput,
		help: "file to write: the CSV with a column offset; - is standard output"},
	{name: "output", variant: "recording", short: "o", value: "FILE", group: groupOutput, help: "recording to write"},
	{name: "write", value: "FILE", group: groupOutput, help: "write the recommendation as a settings file, in TOML"},
	{name: "write", variant: "plan", value: "FILE", group: groupOutput, help: "write a plan of the program's memory, in TOML, for --plan"},
	{name: "write", variant: "probe", value: "FILE", group: groupOutput,
		help: "write the limits of the measured device as a profile in TOML, for fit --on"},
	{name: "label", value: "NAME=VALUE", group: groupOutput, env: true,
		help: "keep this with what is recorded, exported and monitored, for example team=vision; may be given several times, or " +
			"with commas between, up to 16"},
	{name: "app", value: "NAME", group: groupOutput, env: true, expert: true,
		help: "name of the program for reports over many runs; by default that of its file, or of the script that an interpreter runs"},
	{name: "summary", value: "FILE", group: groupOutput, env: true, help: "write the final figures as JSON, in place of earlier ones"},
	{name: "format", variant: "export", value: "NAME", group: groupOutput, help: "what to write: " + convert.ExportHelp()},
	{name: "lake", group: groupOutput,
		help: "parquet: a few rows of each recording that is not there yet, in a folder that many writers share; always so with " +
			"several recordings"},
	{name: "table", value: "NAME", group: groupOutput,
		help: "the table that csv writes: " + strings.Join(convert.Tables, ", ") + "; by default " + convert.Tables[0]},
	{name: "format", variant: "import", value: "NAME", group: groupOutput, help: "what to read: " + convert.ImportHelp() + "; by default detected"},
	{name: "output", variant: "text", short: "o", value: "FILE", group: groupOutput, help: "file to write instead of standard output"},
	{name: "force", short: "f", group: groupOutput, help: "overwrite files that exist"},
	{name: "format", variant: "report", value: "NAME", group: groupOutput, help: "text, json, md (Markdown) or html (one file for a browser)"},
	{name: "rules", value: "FILE", group: groupOutput, help: "the rules, in TOML"},
	{name: "format", value: "NAME", group: groupOutput, help: "text or json"},
	{name: "max", variant: "advise", value: "N", group: groupOutput, help: "pieces of advice in the text for each program; 0: all, and all runs"},
	{name: "headless", group: groupDashboard, env: true, help: "no dashboard: only the figures at the end"},
	{name: "dashboard", group: groupDashboard, env: true, help: "the dashboard where standard output is a pipe, too: it hides what the other end prints"},
	{name: "guide", group: groupDashboard, env: true, expert: true, help: "a line in the dashboard says what to press next"},
	{name: "exit-with-app", group: groupDashboard, env: true, help: "close the dashboard when the program ends"},
	{name: "no-replay", group: groupDashboard, env: true, expert: true, help: "do not repeat the program's output after the dashboard closes"},
	{name: "read-only", group: groupDashboard, env: true, expert: true, help: "show limits and the policy without letting them be changed"},
	{name: "at", variant: "view", value: "TIME", group: groupDashboard,
		help: "open at this time after the start, for example 2.5s or 1m; by default at the end"},
	{name: "film", value: "FILE", group: groupOutput,
		help: "write fifteen seconds of the dashboard as a moving picture (SVG), from --at or the start on, and show nothing; - is " +
			"standard output"},
	{name: "refresh", value: "TIME", group: groupDashboard, env: true, expert: true, help: "time between two frames, 20ms to 10s; by default what + and - in the dashboard chose last, else 250ms, over SSH 500ms"},
	{name: "ascii", group: groupDashboard, env: true, expert: true, help: "draw with ASCII characters only, as in locales without UTF-8"},
	{name: "charts", value: "NAME", group: groupDashboard, env: true, expert: true,
		help: "characters of charts: " + strings.Join(watch.Charts, ", ") + "; auto goes by TERM, locale and, on a Linux console, its font; ascii is --ascii"},
	{name: "theme", value: "NAME", group: groupDashboard, env: true,
		help: "colours: " + strings.Join(watch.Themes, ", ") + ", or FILE.toml; auto asks the terminal whether it is dark or light, else goes " +
			"by COLORFGBG, else dark"},
	{name: "mouse", group: groupDashboard, env: true, expert: true,
		help: "the mouse acts in the dashboard, as by default, but never in GNU Screen; --mouse=off leaves it to the terminal, which selects text with shift otherwise"},
	{name: "no-color", group: groupDashboard, env: true, expert: true, help: "no colours; NO_COLOR does the same"},
	{name: "listen", value: "ADDR", group: groupMonitoring, env: true,
		help: "answer Prometheus (/metrics), pprof (/debug/pprof/opencl) and scripts (/summary.json) while the program runs: PORT " +
			"or HOST:PORT, by default on the loopback interface, or unix:PATH; nothing can be changed over it"},
	{name: "textfile", value: "DIR", group: groupMonitoring, env: true, expert: true,
		help: "at the end, write the metrics into a folder of Prometheus' node_exporter"},
	{name: "push", value: "URL", group: groupMonitoring, env: true, expert: true, help: "at the end, send the metrics to Prometheus' Pushgateway"},
	{name: "otlp", value: "URL", group: groupMonitoring, env: true, expert: true,
		help: "send the metrics to an OpenTelemetry collector over HTTP, each minute and at the end, for example " +
			"http://127.0.0.1:4318; env: where OTEL_EXPORTER_OTLP_ENDPOINT says; headers, interval and attributes are those of " +
			"the OTEL_ variables"},
	{name: "config", value: "FILE", group: groupSettings, env: true,
		help: "read settings that neither a flag nor a variable sets from a file in TOML; its keys are the names of flags that " +
			"have a variable; by default ~/.config/gpumemtop/config.toml, '' is none"},
	{name: "print-config", group: groupSettings, expert: true,
		help: "write the settings in effect and where each comes from, in a form that --config reads, and do nothing else"},
	{name: "output", variant: "reduce", short: "o", value: "FILE", group: groupOutput, help: "write the table as Parquet, too; - is standard output"},
	{name: "output", variant: "library", short: "o", value: "FILE", group: groupOutput, help: "library to write, on a disk that all nodes read"},
	{name: "json", variant: "reduce", group: groupOutput, help: "write JSON instead of text"},
	{name: "json", variant: "version", group: groupOutput, help: "write it as JSON"},
	{name: "edit", group: groupSettings, help: "edit the settings file"},
	{name: "pid", short: "p", value: "PID", group: groupPrograms, help: "a running process; may be given several times, or with commas between"},
	{name: "session", value: "NAME", group: groupPrograms,
		help: "show the dashboard of a session that runs elsewhere, by the name of its program or a process id; without a name, " +
			"the only one. Several may look at one, and tune it unless it is --read-only"},
	{name: "comm", value: "NAME", group: groupPrograms,
		help: "every process of this name, as ps -o comm shows it, now and later; may be given several times"},
	{name: "cgroup", value: "PATH", group: groupPrograms,
		help: "every process in this control group and those below it, such as a service's or a container's, now and later; may be " +
			"given several times"},
	{name: "all", group: groupPrograms, help: "every process that uses OpenCL, now and later"},
	{name: "follow", group: groupPrograms, help: "the children of watched processes, too"},
	{name: "duration", value: "TIME", group: groupPrograms,
		help: "detach after this time, for example 30s or 10m; 0s: on request, or when nothing is left to watch"},
}

// tableKey names a setting in the table: "output:record", or its flag if that has no variants.
func (s *setting) tableKey() string {
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

// mayBeInFile reports whether a settings file may have the setting.
func (s *setting) mayBeInFile() bool { return s.env && s.name != "config" }

// fields are the settings of a command: by key, pointers to the variables of their values, which hold the defaults. They are
// *string, *bool, *int, *time.Duration or *[]string.
type fields map[string]any

func (f fields) addFields(more fields) fields {
	maps.Copy(f, more)
	return f
}

// bindFlags makes the flags of a command. A command with settings that have a variable gets --config and --print-config, too.
func bindFlags(flags *pflag.FlagSet, fields fields) {
	flags.SortFlags = false
	for i := range settings {
		if s := &settings[i]; s.env && fields[s.tableKey()] != nil {
			fields["config"], fields["print-config"] = new(string), new(bool)
			break
		}
	}
	bound := 0
	for i := range settings {
		s := &settings[i]
		if field := fields[s.tableKey()]; field != nil {
			s.bindFlag(flags, field)
			bound++
		}
	}
	if bound != len(fields) {
		panic(fmt.Sprintf("of the settings %v only %d are in the table", fields, bound))
	}
}

// keyAnnotation is the annotation of a flag that holds its setting's key.
const keyAnnotation = "setting"

// toggle is a flag that needs no value but accepts on and off.
type toggle bool

// Set implements pflag.Value.
func (t *toggle) Set(text string) error {
	on, err := strconv.ParseBool(text)
	*t = toggle(on || text == "on")
	if text == "on" || text == "off" {
		return nil
	}
	return err
}

// String implements pflag.Value.
func (t *toggle) String() string { return strconv.FormatBool(bool(*t)) }

// Type implements pflag.Value.
func (t *toggle) Type() string { return "bool" }

func (s *setting) bindFlag(flags *pflag.FlagSet, field any) {
	switch field := field.(type) {
	case *string:
		flags.StringVarP(field, s.name, s.short, *field, s.help)
	case *bool:
		flags.VarPF((*toggle)(field), s.name, s.short, s.help).NoOptDefVal = "true"
	case *int:
		flags.IntVarP(field, s.name, s.short, *field, s.help)
	case *time.Duration:
		flags.DurationVarP(field, s.name, s.short, *field, s.help)
	case *[]string:
		flags.StringArrayVarP(field, s.name, s.short, *field, s.help)
	}
	_ = flags.SetAnnotation(s.name, keyAnnotation, []string{s.tableKey()}) // fails only for flags that do not exist
}

// settingsOf returns the settings of a command, in the order of the table.
func settingsOf(flags *pflag.FlagSet) []*setting {
	var list []*setting
	for i := range settings {
		s := &settings[i]
		if flag := flags.Lookup(s.name); flag != nil && flag.Annotations[keyAnnotation] != nil && flag.Annotations[keyAnnotation][0] == s.tableKey() {
			list = append(list, s)
		}
	}
	return list
}
