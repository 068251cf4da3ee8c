// Command gpumemtop-fleet plays thousands of recordings through hundreds of configurations, or does for all of them what gpumemtop
// advise and gpumemtop report do for one. It merges the results of each program. It is an Apache Beam pipeline, which runs in this
// process or on a cluster.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/harness"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx" // all runners and file systems

	"codeberg.org/gpumemtop/gpumemtop/internal/tune"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// commands are the commands of gpumemtop-fleet, by name.
var commands = map[string]struct {
	build func(beam.Scope, work, beam.PCollection)
	write func(io.Writer, []byte) error // one program's result as text
}{
	"tune":   {buildTunePipeline, writeTunedText},
	"advise": {buildAdvisePipeline, writeAdvisedText},
	"report": {buildReportPipeline, writeReportedText},
}

const usage = `Usage: gpumemtop-fleet tune|advise|report [FLAGS] RECORDING|FOLDER|PATTERN...
       gpumemtop-fleet compact|files LAKE
       gpumemtop-fleet expire --older-than 30d LAKE
       gpumemtop-fleet compare [--base BUILD] [--head BUILD] [--format text|json|junit] LAKE

Plays recordings (*.gmt) of many runs, and puts together what they show of each program.
  tune     the policy and limits that suit a program, cross-validated over its jobs
  advise   buffers that could share memory, copies that could go
  report   memory, hit rate, leaks and mistakes
Keeps a lake (gpumemtop export --lake) in order:
  compact  put all commits into one, also those of an earlier form
  expire   the same, without the runs that started longer ago
  files    the files of its tables, for engines that read no commits
Says what a build changed:
  compare  what is more than in another build (a revision or build id), beyond chance, in all and by call site: of the latest build
           and the 20 before, unless named. Status 1 if something is.

`

// inside is the runner that works in this process.
const inside = "prism"

// runnerNames are the runners of package beamx that gpumemtop-fleet supports.
var runnerNames = []string{inside, "direct", "universal", "flink", "spark", "dataflow"}

func main() {
	beamlog.LogLevel = "warn"
	debug.SetGCPercent(50) // report keeps 0.47 KB a recording then, and 0.58 by default
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-") && os.Args[1] != "-h" && os.Args[1] != "--help" {
		if err := runWorker(); err != nil {
			exitWithError(err)
		}
		return
	}
	status, err := runCommand(os.Args[1:])
	if err != nil {
		exitWithError(err)
	}
	os.Exit(status)
}

// runWorker works for a runner, which gives its settings as flags, until the job ends. Beam's own worker would then wait for a signal,
// which a pool of workers sends to the worker's parent alone.
func runWorker() error {
	flag.Parse()
	value := func(name string) string { return flag.Lookup(name).Value.String() }
	if value("worker") != "true" {
		return errors.New("no command: want tune, advise or report")
	}
	text, err := []byte(value("options")), error(nil)
	if file := os.Getenv("PIPELINE_OPTIONS_FILE"); file != "" {
		text, err = os.ReadFile(file)
	}
	var options runtime.RawOptionsWrapper
	if err = errors.Join(err, json.Unmarshal(text, &options), flag.Set("worker", "false")); err != nil {
		return err
	}
	runtime.GlobalOptions.Import(options.Options)
	beam.Init()
	return harness.MainWithOptions(grpcx.WriteWorkerID(context.Background(), value("id")), value("logging_endpoint"), value("control_endpoint"), harness.Options{
		StatusEndpoint: os.Getenv("STATUS_ENDPOINT"), RunnerCapabilities: strings.Fields(os.Getenv("RUNNER_CAPABILITIES")),
	})
}

func exitWithError(err error) {
	fmt.Fprintln(os.Stderr, "gpumemtop-fleet:", units.Clean(err.Error()))
	os.Exit(125)
}

// Flags beside Beam's own.
var (
	format         = flag.String("format", "text", "text or json")
	state          = flag.String("state", "", "folder that all workers see, in which results are kept for the next run; with prism a temporary one by default")
	configurations = flag.Int("configurations", tune.Usual, "tune: how many to try")
	maxMemory      = flag.String("max-memory", "", "tune: a size that nothing recommended may exceed")
	scouts         = flag.Int("scouts", 8, "tune: how many recordings of a program stand for all while configurations are looked for")
	workers        = flag.Int("workers", 0, "goroutines of a worker; 0: one for each core")
)

// runCommand obeys a command line. The status is 1 where recordings were skipped.
func runCommand(arguments []string) (status int, err error) {
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	if len(arguments) == 0 || arguments[0] == "-h" || arguments[0] == "--help" {
		flag.Usage()
		return 0, nil
	}
	if arguments[0] == "compare" {
		return compareBuilds(os.Stdout, arguments[1:])
	}
	if slices.Contains(upkeepCommands, arguments[0]) {
		return 0, maintainLake(os.Stdout, arguments[0], arguments[1:])
	}
	w := work{Command: arguments[0]}
	if _, ok := commands[w.Command]; !ok {
		return 0, fmt.Errorf("unknown command %s: want tune, advise, report, compact, expire, files or compare", w.Command)
	}
	paths, err := parseInterspersedFlags(flag.CommandLine, arguments[1:])
	if err != nil {
		return 0, err
	}
	return w.buildAndRunCommand(context.Background(), os.Stdout, paths)
}

// readFlags reads the flags.
func (w *work) readFlags() (err error) {
	w.Configurations, w.Scouts, w.Workers = *configurations, *scouts, *workers
	if *runners.Runner == "" {
		*runners.Runner = inside
	}
	switch {
	case *format != "text" && *format != "json":
		return fmt.Errorf("unknown format %q: want text or json", *format)
	case w.Configurations < 1 || w.Configurations > 1e6:
		return fmt.Errorf("bad value %d for --configurations: want 1 to 1000000", w.Configurations)
	case w.Scouts < 1 || w.Scouts > 1000:
		return fmt.Errorf("bad value %d for --scouts: want 1 to 1000", w.Scouts)
	case w.Workers < 0 || w.Workers > 4096:
		return fmt.Errorf("bad value %d for --workers: want 0 to 4096", w.Workers)
	case !slices.Contains(runnerNames, *runners.Runner):
		return fmt.Errorf("unknown runner %q: want one of %s", *runners.Runner, strings.Join(runnerNames, ", "))
	case *state == "" && *runners.Runner != inside:
		return fmt.Errorf("--runner %s needs --state: a folder that all workers see", *runners.Runner)
	}
	if *jobopts.WorkerBinary == "" { // otherwise the runner would compile our source, which needs the source and Go
		if *jobopts.WorkerBinary, err = os.Executable(); err != nil {
			return fmt.Errorf("find what workers are to run: %w: name it by --worker_binary", err)
		}
	}
	if *maxMemory != "" {
		if w.MaxMemory, err = units.ParseSize(*maxMemory); err != nil {
			return fmt.Errorf("--max-memory: %w", err)
		}
	}
	return nil
}

func (w *work) buildAndRunCommand(ctx context.Context, out io.Writer, arguments []string) (status int, err error) {
	if err := w.readFlags(); err != nil {
		return 0, err
	}
	if len(arguments) == 0 {
		return 0, errors.New("no recordings: name files, folders or patterns")
	}
	paths, err := expandArguments(ctx, arguments)
	if err != nil {
		return 0, err
	}
	w.State = store(*state)
	if *state == "" {
		folder, err := os.MkdirTemp("", "gpumemtop-fleet-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(folder)
		w.State = store(folder)
	}
	if !isRemote(string(w.State)) {
		w.State.removeOldFiles()
	}
	w.Run = "runs/" + digestOf(arguments, os.Getpid(), time.Now().UnixNano())
	beam.Init()
	p, err := buildPipeline(ctx, *w, paths)
	if err != nil {
		return 0, err
	}
	if err := checkJobServer(ctx); err != nil {
		return 0, err
	}
	end := showProgress(os.Stderr, w, len(paths))
	_, err = beam.Run(ctx, *runners.Runner, p)
	end()
	if err != nil && *state != "" {
		return 0, fmt.Errorf("--runner %s: %w. What is done is kept in --state: the same command goes on from there", *runners.Runner, err)
	} else if err != nil {
		return 0, fmt.Errorf("--runner %s: %w", *runners.Runner, err)
	}
	if status, err = w.writeResults(ctx, out); err == nil {
		err = w.State.removeFolderAndFiles(ctx, w.Run, "batches", "skipped", "part", "jobs", "found")
	}
	return status, err
}

// checkJobServer returns an error if the job server of a runner does not answer: Beam would wait two minutes without a message.
func checkJobServer(ctx context.Context) error {
	if *jobopts.Endpoint == "" || *runners.Runner == inside || *runners.Runner == "direct" {
		return nil
	}
	c, err := grpcx.Dial(ctx, *jobopts.Endpoint, 5*time.Second)
	if err != nil {
		return fmt.Errorf("--runner %s: no job server answered at --endpoint %s in 5 s", *runners.Runner, *jobopts.Endpoint)
	}
	return c.Close()
}

// writeResults writes the results, and names the skipped recordings.
func (w *work) writeResults(ctx context.Context, out io.Writer) (status int, err error) {
	found, err := w.readResults(ctx)
	if err != nil {
		return 0, err
	}
	skips, err := w.skippedRecordings(ctx)
	if err != nil {
		return 0, err
	}
	for _, s := range skips {
		if !s.Part {
			status = 1
		}
	}
	if *format == "json" {
		return status, writeJSON(out, found, skips)
	}
	for _, text := range found {
		if err := commands[w.Command].write(out, text); err != nil {
			return 0, err
		}
	}
	for _, s := range skips {
		verb := "skipped"
		switch {
		case s.Copy:
			verb = "a copy"
		case s.Part:
			verb = "not whole"
		}
		fmt.Fprintf(os.Stderr, "%s: %s: %s\n", verb, s.Path, s.Why)
	}
	return status, nil
}

// skippedRecordings returns the skipped recordings, by path.
func (w *work) skippedRecordings(ctx context.Context) ([]skip, error) {
	names, err := w.State.listFiles(ctx, w.Run+"/skipped")
	list := []skip{}
	for _, name := range names {
		var s skip
		if w.State.readJSON(ctx, name, &s) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b skip) int { return strings.Compare(a.Path, b.Path) })
	return list, err
}
