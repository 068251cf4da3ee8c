package watch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// OutputOptions name the files that are written about programs. Empty names write none.
type OutputOptions struct {
	Recording string // a template, see files.ExpandFileName
	Trace     string // a template without %p: a Chrome trace
	Perfetto  string // likewise, in Perfetto's own format
	Summary   string
	Force     bool     // overwrite files
	Labels    []string // see ParseLabels
	App       string   // name of the program; empty: of its file
}

// Subject is what is watched.
type Subject struct {
	Command  []string // of the program; empty when no single one is meant
	Name     string   // %n in the names of files
	Attached bool     // to programs that are already running
	Setup    *Setup
	App      string            // that the user chose
	Labels   map[string]string // likewise; NewOutputs reads them
	Greeting string            // what the user reads at the start without a dashboard; empty: nothing
}

func (s *Subject) programPath() string {
	if len(s.Command) == 0 {
		return ""
	}
	return s.Command[0]
}

func (s *Subject) programArguments() []string {
	if len(s.Command) == 0 {
		return nil
	}
	return s.Command[1:]
}

// ModelOptions returns what a model knows of the subject before the first event.
func (s *Subject) ModelOptions() stats.Options {
	return stats.Options{
		Program: s.programPath(), Arguments: s.programArguments(), Policy: s.Setup.Policy.PolicyName(), Started: session.MonotonicNow(),
		App: s.App, Labels: s.Labels, DeviceMemory: s.Setup.Memory, EntriesMax: s.Setup.maxHeapEntries(),
		Nameless: s.Setup.nameless.Load,
	}
}

// Outputs are the files about a subject.
type Outputs struct {
	// Recorder writes the files while the subject runs; nil when there are none.
	Recorder session.Recorder
	// Partial reports that a file is missing or incomplete, and that a message has said so.
	Partial bool
	Notes   *console.Notes

	subject   *Subject
	options   OutputOptions
	recording files.Name // nil when there is no recording
	trace     string     // path, empty when there is no Chrome trace
	perfetto  string     // likewise
	files     tee
	processes *perProcess // among files; nil unless each process has a file
}

// NewOutputs checks the names, and that the files can be written.
func NewOutputs(options OutputOptions, subject *Subject, notes *console.Notes) (*Outputs, error) {
	o := &Outputs{options: options, subject: subject, Notes: notes}
	var err error
	if subject.Labels, err = ParseLabels(options.Labels); err != nil { // no reason not to start the program
		notes.Add(err.Error())
	}
	if subject.App = units.Clean(options.App); subject.App != "" {
		_ = os.Setenv(wire.AppEnv, subject.App) // for the program: no value that a setting can have is refused
	}
	if err := o.summaryOutput().CheckWritable("summary"); err != nil {
		return nil, err
	}
	if err := o.checkFileNames(); err != nil {
		return nil, err
	}
	return o, o.checkDistinctFiles()
}

// summaryOutput is where the final figures go, also in place of earlier ones.
func (o *Outputs) summaryOutput() files.Output {
	return files.Output{Path: o.options.Summary, Force: o.options.Force, Again: report.IsSummary}
}

func (o *Outputs) checkFileNames() error {
	now := time.Now()
	for flag, path := range map[string]string{"-o": o.options.Recording, "--json": o.options.Trace, "--perfetto": o.options.Perfetto} {
		if path == "-" {
			return fmt.Errorf("%s - would mix with the program's own output: name a file", flag)
		}
	}
	if o.options.Recording != "" {
		var err error
		if o.recording, err = files.ExpandFileName(o.options.Recording, o.subject.Name, now); err != nil {
			return err
		}
		if err := o.recording.CheckFolder(); err != nil {
			return err
		}
	}
	var err error
	if o.trace, err = o.tracePath("json", o.options.Trace, now); err != nil {
		return err
	}
	o.perfetto, err = o.tracePath("perfetto", o.options.Perfetto, now)
	return err
}

// tracePath returns the path of a trace, empty without a template.
func (o *Outputs) tracePath(flag, template string, now time.Time) (string, error) {
	if template == "" {
		return "", nil
	}
	name, err := files.ExpandFileName(template, o.subject.Name, now)
	if err != nil {
		return "", err
	}
	path := name.String()
	switch {
	case !name.IsSingle():
		return "", fmt.Errorf("--%s writes one trace for all processes: leave %%p out of its name", flag)
	case strings.HasSuffix(path, ".gz"):
		return "", fmt.Errorf("%s: a compressed trace that is cut off loses its end: leave .gz out and compress it afterwards", path)
	}
	return path, files.Output{Path: path, Force: o.options.Force}.CheckWritable(flag)
}

// checkDistinctFiles refuses one file under two flags, however its name is written: one would replace the other.
func (o *Outputs) checkDistinctFiles() error {
	list := []struct{ flag, path string }{{"--json", o.trace}, {"--perfetto", o.perfetto}, {"--summary", o.options.Summary}}
	if o.recording.IsSingle() {
		list = append(list, struct{ flag, path string }{"-o", o.recording.String()})
	}
	for i, file := range list {
		for _, other := range list[i+1:] {
			if file.path != "" && other.path != "" && files.LeadToSameFile(file.path, other.path) {
				return fmt.Errorf("%s and %s name the same file %s: name another", file.flag, other.flag, file.path)
			}
		}
	}
	return nil
}

// IsRecording reports whether events are recorded.
func (o *Outputs) IsRecording() bool { return o.recording != nil || o.trace != "" || o.perfetto != "" }

// RecordingName is the name of the recording, with %p where each process has a file; empty when there is none.
func (o *Outputs) RecordingName() string { return o.recording.String() }

// CreateFiles creates the files. The model follows the same events as Recorder, before it.
func (o *Outputs) CreateFiles(model *stats.Model) error {
	if !o.IsRecording() {
		return nil
	}
	header := o.recordingHeader(model.Snapshot().Started) // so that a recording takes as long as its summary says
	switch {
	case o.recording == nil:
	case o.recording.IsSingle():
		path := o.recording.String()
		writer, err := recording.Create(path, header, o.options.Force)
		if err != nil {
			return err
		}
		writer.SetSummarizer(model.SummarizeSinceLastCall)
		o.files = append(o.files, &outputFile{output: writer, path: path, what: "recording"})
	default:
		o.processes = newPerProcess(o.recording, header, model, o.options.Force, o.Notes.Add)
		o.files = append(o.files, &outputFile{output: o.processes})
	}
	if err := errors.Join(o.createTrace(o.trace, export.CreateLive, header), o.createTrace(o.perfetto, export.CreateLivePerfetto, header)); err != nil {
		o.DiscardFiles()
		return err
	}
	o.Recorder = o.files
	return nil
}

// createTrace creates a trace, if it has a path.
func (o *Outputs) createTrace(path string, create func(string, export.Facts, bool) (*export.Live, error), header recording.Header) error {
	if path == "" {
		return nil
	}
	live, err := create(path, export.FactsOfHeader(header), o.options.Force)
	if err != nil {
		return err
	}
	o.files = append(o.files, &outputFile{output: liveTrace{live}, path: path, what: "trace"})
	return nil
}

// recordingHeader returns the header of a recording that begins at a time in ns.
func (o *Outputs) recordingHeader(begins uint64) recording.Header {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	setup := o.subject.Setup
	values := recording.Limits{}
	for _, l := range setup.Policy.Limits() {
		values[l.Name] = l.Text
	}
	var environment map[string]string
	if !o.subject.Attached { // our environment is not theirs
		environment = variablesToRecord(os.Environ())
	}
	scrub := ""
	if setup.Scrub != wire.ScrubNone {
		scrub = setup.Scrub.String()
	}
	return recording.Header{
		Created: time.Now().Add(-time.Duration(session.MonotonicNow() - begins)), ClockNS: begins, Host: host,
		Program: o.subject.programPath(), Arguments: o.subject.programArguments(),
		Policy: setup.Policy.PolicyName(), Limits: values, Auto: setup.Auto, Tags: setup.Tags.String(),
		Scrub: scrub, DeviceMemory: setup.Memory, Environment: environment, Attached: o.subject.Attached,
		Identity: o.subject.identityForFleet(),
	}
}

// DiscardFiles removes the files of a program that did not start.
func (o *Outputs) DiscardFiles() {
	_ = o.closeFiles(recording.Footer{Status: -1})
	for _, file := range o.files {
		if file.path != "" {
			_ = os.Remove(file.path)
		}
	}
}

// CompleteFiles completes the files. Programs that were watched go on where cut is set. It returns messages about the files of
// processes, and about incomplete files.
func (o *Outputs) CompleteFiles(last *stats.Snapshot, exit report.Exit, cut bool) []string {
	return o.closeFiles(recording.Footer{Lost: last.Lost, EndedNS: last.EndTime(), Asked: last.Asked, Status: exit.Status, Signal: exit.Signal, Cut: cut})
}

func (o *Outputs) closeFiles(footer recording.Footer) []string {
	var failures []string
	for _, file := range o.files {
		if err := file.Close(footer); err != nil {
			o.Partial = true
			failures = append(failures, err.Error())
		}
	}
	return append(o.processes.writtenFilesMessages(), failures...)
}

// WriteSummary writes the final figures to stderr, and as JSON where that is wanted. about makes them from the last snapshot.
func (o *Outputs) WriteSummary(last *stats.Snapshot, about func(*stats.Snapshot) report.Summary) {
	snapshot := *last
	if !o.recording.IsSingle() {
		snapshot.Recording.Path = "" // no file has that name
	}
	summary := about(&snapshot)
	var text bytes.Buffer
	_ = summary.WriteText(&text)
	_, _ = os.Stderr.WriteString(console.WrapForTerminal(os.Stderr, text.String())) // stderr may be closed; the file is written all the same
	if o.options.Summary == "" {
		return
	}
	if err := o.summaryOutput().Write(os.Stdout, summary.WriteJSON); err != nil {
		o.Partial = true
		o.Notes.Add("--summary: " + err.Error())
	}
}

// SayResultsAndMessages says where there was no pool, what the simulations found, where the trace is, and what Complete returned.
func (o *Outputs) SayResultsAndMessages(last *stats.Snapshot, messages []string) {
	if u := last.Unpooled; u.Times > 0 {
		o.Notes.Add(fmt.Sprintf("no pool in %s: %s", units.Plural(u.Times, "process", "processes"), u.Why))
	}
	if last.Eager != "" {
		o.Notes.Add("--eager: " + last.Eager)
	}
	if last.SpillFailed != "" {
		o.Notes.Add("--spill: " + last.SpillFailed)
	}
	for _, text := range last.Exceeded {
		o.Notes.Add(text)
	}
	if text := betterConfigurationNote(last.Ghosts, last.WallNS()); text != "" {
		o.Notes.Add(text)
	}
	for _, path := range []string{o.trace, o.perfetto} {
		if path != "" {
			o.Notes.Add("the trace is in " + path + ": open it at https://ui.perfetto.dev")
		}
	}
	for _, text := range messages {
		o.Notes.Add(text)
	}
}

// ReportedExit returns a status as summaries and recordings write it.
func ReportedExit(status session.Status) report.Exit {
	if status.Signal != 0 {
		return report.Exit{Status: -1, Signal: status.Signal}
	}
	return report.Exit{Status: status.Code}
}

// output is what a run is recorded into.
type output interface {
	session.Recorder
	// Close completes it. The error says what is missing.
	Close(footer recording.Footer) error
}

// liveTrace is the output of --json and --perfetto. It has no footer.
type liveTrace struct{ *export.Live }

// Close implements output.
func (t liveTrace) Close(recording.Footer) error { return t.Live.Close() }

// outputFile is an output and what messages call it.
type outputFile struct {
	output
	path string // empty where it has no file, or several
	what string
	err  error // that ended it early
}

// Close implements output.
func (o *outputFile) Close(footer recording.Footer) error {
	err := o.output.Close(footer)
	if err != nil && o.path != "" {
		err = fmt.Errorf("%w: the %s ends there, what is in %s is complete", err, o.what, o.path)
	}
	return err
}

// noteError notes an error, if it is one.
func (o *outputFile) noteError(err error) {
	if err != nil {
		o.err = err
	}
}

// tee records into several files. A file that fails does not end the others.
type tee []*outputFile

// Append implements session.Recorder. It fails when all files have failed.
func (t tee) Append(r *wire.Record) error {
	for _, o := range t {
		if o.err == nil {
			o.noteError(o.Append(r))
		}
	}
	return t.errorIfAllFailed()
}

// Flush implements session.Recorder.
func (t tee) Flush() error {
	for _, o := range t {
		if o.err == nil {
			o.noteError(o.Flush())
		}
	}
	return t.errorIfAllFailed()
}

// Bytes implements session.Recorder: those of the first file.
func (t tee) Bytes() uint64 { return t[0].Bytes() }

// errorIfAllFailed returns an error once all files have failed.
func (t tee) errorIfAllFailed() error {
	var last error
	for _, o := range t {
		if last = o.err; last == nil {
			return nil
		}
	}
	return last
}

// Ended implements session.Keeper.
func (t tee) Ended(process uint32, status session.Status) {
	for _, o := range t {
		if keeper, ok := o.output.(session.Keeper); ok {
			keeper.Ended(process, status)
		}
	}
}
