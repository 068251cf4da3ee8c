package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/csv"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/tune"
	"codeberg.org/gpumemtop/gpumemtop/internal/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/merging/advice"
)

//go:generate go test -run TestManualHasTheSettings -manual .

// config is everything that can be set.
type config struct {
	pids     []string
	comms    []string
	cgroups  []string
	all      bool
	follow   bool
	duration time.Duration

	policy    string
	limits    []string
	maxCached string
	tags      string
	depth     int

	output  string
	force   bool
	summary string

	headless    bool
	ascii       bool
	noColor     bool
	refresh     time.Duration
	readOnly    bool
	exitWithApp bool
	noReplay    bool
	ungated     bool

	scrub        string
	deviceMemory string

	since, until time.Duration
	process      string
	tag          string
	at           string
	top          int
	curve        bool

	minSize       string
	maxEvents     int
	countersEvery time.Duration
	noLifetimes   bool
	lifetimes     int
	flows         bool
	json          string

	ghosts       string
	capacity     string
	deviceCost   string
	replayFormat string
	exportFormat string
	importFormat string
	table        string
	reportFormat string
	infoFormat   string
	fitFormat    string
	diffFormat   string
	checkFormat  string
	rules        string
	doctorFormat string
	viewAt       string
	resolution   string
	timeout      time.Duration

	device      string
	platform    string
	max         string
	budget      time.Duration
	probeFormat string
	planTimeout time.Duration
	alignment   string

	configPath  string
	printConfig bool
	file        *configFile       // nil: there is none
	origins     map[string]string // by flag, where values are from that are neither flags nor defaults

	tuneBudget     time.Duration
	configurations int
	maxMemory      string
	write          string
	tuneFormat     string

	form         string
	sizes        string
	adviceMost   int
	steps        int
	adviceFormat string
}

// scope says which commands have a setting.
type scope uint32

const (
	onRun scope = 1 << iota // the command without a subcommand
	onRecord
	onExport
	onReport
	onFit
	onReplay
	onView
	onTrim
	onMerge
	onImport
	onDiff
	onCheck
	onDoctor
	onInfo
	onAttach
	onProbe
	onPlan
	onTune
	onAdvise
)

// onAny are the commands that run a program.
const onAny = onRun | onRecord | onFit

// onWatch are the commands that watch programs.
const onWatch = onAny | onAttach

// onSignal are the commands that think of signals themselves: they have programs and terminals to think of, or stop at what
// they have.
const onSignal = onWatch | onView | onProbe | onPlan | onTune

// onConfig are the commands with settings that a variable or a file can set.
const onConfig = onWatch | onReplay | onView | onTune

// onPart are the commands that may read a part of a recording.
const onPart = onReport | onExport | onTrim

// Groups of settings, in the order that help shows them.
const (
	groupPool      = "Allocator"
	groupWatched   = "Programs"
	groupFit       = "Search"
	groupProbe     = "Measuring"
	groupPlace     = "Placement"
	groupAdvice    = "Advice"
	groupPart      = "Part of the recording"
	groupChrome    = "Chrome trace"
	groupTags      = "Call sites"
	groupOutput    = "Output"
	groupDashboard = "Dashboard"
	groupFile      = "Settings"
)

var groups = []string{groupWatched, groupFit, groupPlace, groupAdvice, groupProbe, groupPart, groupChrome, groupPool, groupTags, groupOutput, groupDashboard, groupFile}

// setting is one thing that can be set: this is all there is to say about it. Flags, environment variables, help and
// the manual's table come from here.
type setting struct {
	name  string // of the flag
	short string // one letter, or empty
	value string // what help calls the value; empty for switches
	group string
	scope scope
	env   bool // GPUMEMTOP_NAME sets it, too, and a file of settings unless it says which file
	help  string
	field func(*config) any // *string, *bool, *int, *time.Duration or *[]string, holding the default
}

// settings is the table.
var settings = []setting{
	{"policy", "", "NAME", groupPool, onAny | onReplay | onTune, true, "how buffers are served: " + strings.Join(allocator.Names(), ", ") + ", or " + allocator.Auto + " for programs that are run; 'gpumemtop policies' tells of them", func(c *config) any { return &c.policy }},
	{"set", "", "LIMIT=VALUE", groupPool, onAny | onReplay | onTune, true, "set a limit of the policy, for example max_cached_bytes=512MiB, max_age=30s or drain_order=all; may be given several times, each limit once", func(c *config) any { return &c.limits }},
	{"max-cached", "", "SIZE", groupPool, onAny | onReplay | onTune, true, "short for --set max_cached_bytes=SIZE, for example 512MiB", func(c *config) any { return &c.maxCached }},
	{"unsafe-no-gating", "", "", groupPool, onRun | onRecord, false, "hand blocks out while queued commands still use them, which CORRUPTS results: shows what the other pools risk", func(c *config) any { return &c.ungated }},
	{"scrub", "", "KIND", groupPool, onRun | onRecord, true, "fill recycled blocks before the program gets them: none, zero or poison (bytes of 0xa5)", func(c *config) any { return &c.scrub }},
	{"device-memory", "", "SIZE", groupPool, onRun | onRecord, true, "creates fail as on a card with that much memory; each process has a card of its own", func(c *config) any { return &c.deviceMemory }},
	{"ghosts", "", "LIST", groupPool, onRun | onRecord | onAttach, true, "policies that are simulated beside the run to see how they would do: " + ghostsUsual + ", " + ghostsOff + ", or names with commas between; by default usual where there is a dashboard", func(c *config) any { return &c.ghosts }},
	{"capacity", "", "SIZE", groupPool, onReplay, false, "memory that each process may have from the driver; by default any", func(c *config) any { return &c.capacity }},
	{"device-cost", "", "FILE", groupPool, onReplay | onTune, false, "what the driver takes, as 'gpumemtop probe --format json' measured it; by default what it took in the recording", func(c *config) any { return &c.deviceCost }},
	{"device", "", "DEVICE", groupPool, onReplay | onTune, false, "of several devices in that file the one with this number, or with this in its name, in any case", func(c *config) any { return &c.device }},
	{"capacity", "", "SIZE", groupPlace, onPlan, false, "bytes of the arena: the first placement that fits will do; by default the smallest is looked for", func(c *config) any { return &c.capacity }},
	{"alignment", "", "SIZE", groupPlace, onPlan, false, "offsets are multiples of this where the file names no alignment: base address alignment of the device", func(c *config) any { return &c.alignment }},
	{"timeout", "", "TIME", groupPlace, onPlan, false, "look for so long; 0s: no limit", func(c *config) any { return &c.planTimeout }},
	{"form", "", "NAME", groupAdvice, onAdvise, false, "when memory counts as in use: api, from create to release; uses, from first to last use in the order of the calls; completion, from first use until the last is known to have completed", func(c *config) any { return &c.form }},
	{"sizes", "", "NAME", groupAdvice, onAdvise, false, "which buffers may share a block: those of equal sizes, or of any, in a block as large as the largest", func(c *config) any { return &c.sizes }},
	{"steps", "", "N", groupAdvice, onAdvise, false, "creates, releases, commands and waits to look at in each recording, from its start", func(c *config) any { return &c.steps }},
	{"resolution", "", "SIZE", groupFit, onFit, false, "how closely to look; by default 1 % of what the program needs, at least 64KiB", func(c *config) any { return &c.resolution }},
	{"timeout", "", "TIME", groupFit, onFit, false, "a run that takes longer does not survive; 0s: no limit", func(c *config) any { return &c.timeout }},
	{"budget", "", "TIME", groupFit, onTune, false, "how long to search at most, 100ms to 24h; reading recordings and running a program come on top", func(c *config) any { return &c.tuneBudget }},
	{"configurations", "", "N", groupFit, onTune, false, "how many configurations to try at most; every policy as it is is always tried", func(c *config) any { return &c.configurations }},
	{"max-memory", "", "SIZE", groupFit, onTune, false, "the most that may be reserved at a time of what policies manage; by default any", func(c *config) any { return &c.maxMemory }},
	{"device", "", "DEVICE", groupProbe, onProbe, false, "one device, by its number from 0 on, or those with this in their name, in any case; by default all", func(c *config) any { return &c.device }},
	{"platform", "", "NAME", groupProbe, onProbe, false, "only platforms with this in their name, in any case", func(c *config) any { return &c.platform }},
	{"max", "", "SIZE", groupProbe, onProbe, false, "the largest buffer; never more than a quarter of what the device allows at a time", func(c *config) any { return &c.max }},
	{"budget", "", "TIME", groupProbe, onProbe, false, "how long to measure all devices together, 100ms to 1h; loading drivers comes on top", func(c *config) any { return &c.budget }},
	{"since", "", "TIME", groupPart, onPart, false, "from so long after the start, for example 2.5s or 1m; what was there before is carried over", func(c *config) any { return &c.since }},
	{"until", "", "TIME", groupPart, onPart, false, "up to so long after the start; 0s: to the end", func(c *config) any { return &c.until }},
	{"process", "", "PID", groupPart, onPart, false, "one process: its process id, its number in the recording with a # before it, or all that run the program of that name", func(c *config) any { return &c.process }},
	{"tag", "", "REGEXP", groupPart, onReport | onExport, false, "only call sites whose name matches", func(c *config) any { return &c.tag }},
	{"at", "", "MOMENT", groupPart, onExport, false, "when to count what is in use: peak, end, or so long after the start, for example 2.5s (pprof)", func(c *config) any { return &c.at }},
	{"max-events", "", "N", groupPart, onExport, false, "chrome: no call or lifetime begins after so many lines, and counters thin out to match; memviz: the last so many events; 0: no bound, and as many as the viewer draws", func(c *config) any { return &c.maxEvents }},
	{"curve", "", "", groupOutput, onReport, false, "the hit rate at other limits of cached bytes, too, of the whole recording, which is played for that", func(c *config) any { return &c.curve }},
	{"top", "", "N", groupPart, onReport | onDiff, false, "rows in each table; 0: all", func(c *config) any { return &c.top }},
	{"min-size", "", "SIZE", groupChrome, onExport, false, "no calls on, and no lifetimes of, memory that is smaller; counters stay complete", func(c *config) any { return &c.minSize }},
	{"counters-every", "", "TIME", groupChrome, onExport, false, "at most one value of each counter in this time", func(c *config) any { return &c.countersEvery }},
	{"lifetimes", "", "N", groupChrome, onExport, false, "lifetimes of the N call sites with the most bytes only; 0: all", func(c *config) any { return &c.lifetimes }},
	{"no-lifetimes", "", "", groupChrome, onExport, false, "no lifetimes: only calls and counters", func(c *config) any { return &c.noLifetimes }},
	{"flows", "", "", groupChrome, onExport, false, "arrows from each create to the lifetime and to the release", func(c *config) any { return &c.flows }},
	{"tags", "", "KIND", groupTags, onWatch, true, "what tells allocation sites apart: stack, caller, size, thread or none", func(c *config) any { return &c.tags }},
	{"stack-depth", "", "N", groupTags, onWatch, true, "frames of a call stack to keep, 1 to 32", func(c *config) any { return &c.depth }},
	{"json", "", "FILE", groupOutput, onRun | onRecord | onAttach, true, "write a Chrome trace while the program runs; without -o nothing else is recorded; % as for -o", func(c *config) any { return &c.json }},
	{"output", "o", "FILE", groupOutput, onRun | onRecord | onAttach, true, "record into a file; in its name %n is the program, %s the process id of this gpumemtop, %h the host, %t the time; with %p each process gets a file, and %p is its process id", func(c *config) any { return &c.output }},
	{"output", "o", "FILE", groupOutput, onExport, false, "file to write, or folder; - is standard output", func(c *config) any { return &c.output }},
	{"output", "o", "FILE", groupOutput, onPlan, false, "file to write: the CSV with a column offset; - is standard output", func(c *config) any { return &c.output }},
	{"output", "o", "FILE", groupOutput, onTrim | onMerge | onImport, false, "recording to write", func(c *config) any { return &c.output }},
	{"write", "", "FILE", groupOutput, onTune, false, "write what is recommended as a configuration, in TOML", func(c *config) any { return &c.write }},
	{"summary", "", "FILE", groupOutput, onRun | onRecord | onAttach, true, "write the final figures as JSON", func(c *config) any { return &c.summary }},
	{"format", "", "NAME", groupOutput, onExport, false, "what to write: " + exporterHelp(), func(c *config) any { return &c.exportFormat }},
	{"format", "", "NAME", groupOutput, onDoctor, false, "text or json", func(c *config) any { return &c.doctorFormat }},
	{"format", "", "NAME", groupOutput, onInfo, false, "text or json", func(c *config) any { return &c.infoFormat }},
	{"table", "", "NAME", groupOutput, onExport, false, "the table that csv is of: " + strings.Join(csv.Tables, ", ") + "; by default " + csv.Tables[0], func(c *config) any { return &c.table }},
	{"format", "", "NAME", groupOutput, onImport, false, "what to read: " + importerHelp() + "; by default what it looks like", func(c *config) any { return &c.importFormat }},
	{"output", "o", "FILE", groupOutput, onReport | onProbe, false, "file to write instead of standard output", func(c *config) any { return &c.output }},
	{"force", "f", "", groupOutput, onRun | onRecord | onAttach | onExport | onReport | onProbe | onTrim | onMerge | onImport | onPlan | onTune, false, "overwrite files that exist", func(c *config) any { return &c.force }},
	{"format", "", "NAME", groupOutput, onReport, false, "text, json, md (Markdown) or html (one file for a browser)", func(c *config) any { return &c.reportFormat }},
	{"rules", "", "FILE", groupOutput, onCheck, false, "the rules, in TOML", func(c *config) any { return &c.rules }},
	{"format", "", "NAME", groupOutput, onDiff, false, "text or json", func(c *config) any { return &c.diffFormat }},
	{"format", "", "NAME", groupOutput, onCheck, false, "text or json", func(c *config) any { return &c.checkFormat }},
	{"format", "", "NAME", groupOutput, onFit, false, "text or json", func(c *config) any { return &c.fitFormat }},
	{"format", "", "NAME", groupOutput, onReplay, false, "text or json", func(c *config) any { return &c.replayFormat }},
	{"format", "", "NAME", groupOutput, onProbe, false, "text or json", func(c *config) any { return &c.probeFormat }},
	{"format", "", "NAME", groupOutput, onTune, false, "text or json", func(c *config) any { return &c.tuneFormat }},
	{"format", "", "NAME", groupOutput, onAdvise, false, "text or json", func(c *config) any { return &c.adviceFormat }},
	{"max", "", "N", groupOutput, onAdvise, false, "pieces of advice in the text for each program; 0: all, and all runs", func(c *config) any { return &c.adviceMost }},
	{"headless", "", "", groupDashboard, onRun | onAttach, true, "no dashboard: only the figures at the end", func(c *config) any { return &c.headless }},
	{"exit-with-app", "", "", groupDashboard, onRun, true, "close the dashboard when the program ends", func(c *config) any { return &c.exitWithApp }},
	{"no-replay", "", "", groupDashboard, onRun, true, "do not repeat the program's output after the dashboard closes", func(c *config) any { return &c.noReplay }},
	{"read-only", "", "", groupDashboard, onRun, true, "limits and the policy can be seen but not changed", func(c *config) any { return &c.readOnly }},
	{"at", "", "TIME", groupDashboard, onView, false, "open so long after the start, for example 2.5s or 1m; by default at the end", func(c *config) any { return &c.viewAt }},
	{"refresh", "", "TIME", groupDashboard, onRun | onAttach, true, "time between two frames, 20ms to 10s", func(c *config) any { return &c.refresh }},
	{"ascii", "", "", groupDashboard, onRun | onAttach | onView, true, "draw with ASCII characters only", func(c *config) any { return &c.ascii }},
	{"no-color", "", "", groupDashboard, onRun | onAttach | onView, true, "no colours; NO_COLOR does the same", func(c *config) any { return &c.noColor }},
	{"config", "", "FILE", groupFile, onConfig, true, "take what neither a flag nor a variable sets from a file in TOML; its keys are the names of flags that have a variable", func(c *config) any { return &c.configPath }},
	{"print-config", "", "", groupFile, onConfig, false, "write the settings that hold, and where each comes from, as --config reads them, and do nothing else", func(c *config) any { return &c.printConfig }},
	{"pid", "p", "PID", groupWatched, onAttach, false, "a process that runs; may be given several times, or with commas between", func(c *config) any { return &c.pids }},
	{"comm", "", "NAME", groupWatched, onAttach, false, "every process of this name, as ps -o comm shows it, now and later; may be given several times", func(c *config) any { return &c.comms }},
	{"cgroup", "", "PATH", groupWatched, onAttach, false, "every process in this control group and those below it, such as a service's or a container's, now and later; may be given several times", func(c *config) any { return &c.cgroups }},
	{"all", "", "", groupWatched, onAttach, false, "every process that uses OpenCL, now and later", func(c *config) any { return &c.all }},
	{"follow", "", "", groupWatched, onAttach, false, "the children of watched processes, too", func(c *config) any { return &c.follow }},
	{"duration", "", "TIME", groupWatched, onAttach, false, "detach after so long, for example 30s or 10m; 0s: when told to, or when nothing is left to watch", func(c *config) any { return &c.duration }},
}

// defaults returns the settings before anybody set anything.
func defaults() *config {
	return &config{
		policy: allocator.Default, scrub: "none", tags: "stack", depth: 8, top: 20, at: "peak", refresh: 100 * time.Millisecond, noColor: os.Getenv("NO_COLOR") != "", exportFormat: "chrome", reportFormat: "text", fitFormat: "text", replayFormat: "text", infoFormat: "text", diffFormat: "text", checkFormat: "text", countersEvery: time.Millisecond, doctorFormat: "text", probeFormat: "text", budget: 10 * time.Second,
		planTimeout: 30 * time.Second, tuneFormat: "text", tuneBudget: 30 * time.Second, configurations: tune.Usual,
		form: merging.Completion.String(), sizes: "any", steps: advice.MostSteps, adviceMost: 20, adviceFormat: "text",
	}
}

// envName is the environment variable that mirrors a flag, empty if none does.
func (s *setting) envName() string {
	if !s.env {
		return ""
	}
	return "GPUMEMTOP_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// inFile reports whether a file of settings can have it.
func (s *setting) inFile() bool { return s.env && s.name != "config" }

// bind makes the flags of a command.
func bind(flags *pflag.FlagSet, c *config, where scope) {
	flags.SortFlags = false
	for i := range settings {
		if s := &settings[i]; s.scope&where != 0 {
			s.bind(flags, c)
		}
	}
}

func (s *setting) bind(flags *pflag.FlagSet, c *config) {
	switch field := s.field(c).(type) {
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
}

// fromEnvironment gives the flags that were not on the command line the values of their variables.
func fromEnvironment(flags *pflag.FlagSet, c *config, where scope, lookup func(string) (string, bool)) error {
	for i := range settings {
		s := &settings[i]
		if s.scope&where == 0 || !s.env || flags.Changed(s.name) {
			continue
		}
		value, ok := lookup(s.envName())
		if !ok || value == "" {
			continue
		}
		if err := flags.Set(s.name, value); err != nil {
			return fmt.Errorf("bad value %q in %s: want what --%s takes", value, s.envName(), s.name)
		}
		c.origins[s.name] = s.envName()
	}
	return nil
}
