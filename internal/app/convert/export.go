// Package convert turns recordings into other formats and other recordings: export, import, trim and merge.
package convert

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/csv"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/memviz"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/minimalloc"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/parquet"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/pprof"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/rmm"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/edit"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/ndjson"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// ExportOptions say what is exported.
type ExportOptions struct {
	Format    string
	Output    files.Output
	Part      files.Part
	Tag       string // a regular expression for names of call sites; empty: all
	Table     string // csv: empty for the first of csv.Tables
	At        string // pprof: peak, end, or a time after the start
	MaxEvents int    // chrome, perfetto, memviz; 0: the format's own bound
	Compact   bool   // chrome
	Flows     bool   // chrome

	// chrome, perfetto
	MinSize       string
	CountersEvery time.Duration
	NoLifetimes   bool
	Lifetimes     int
}

// exportJob is one export in progress, with checked options.
type exportJob struct {
	*ExportOptions
	in     *files.Input // nil while options are checked
	tag    *regexp.Regexp
	moment pprof.Moment
	trace  export.TraceOptions
}

// format is one format that a recording can be written in.
type format struct {
	name, help string
	// write writes a file. Nothing is kept of it when it fails.
	write func(*exportJob, io.Writer) error
	// check checks the format's own options before anything is read; nil: it has none.
	check func(*exportJob) error
	// fill writes into the folder Output.Path, or nothing when it fails; nil for formats that are files.
	fill func(*exportJob) error
}

// formats is the table; the first is the default.
var formats = []format{
	{name: "chrome", help: "Chrome trace JSON, for Perfetto", write: (*exportJob).writeTrace, check: (*exportJob).checkTraceOptions},
	{name: "perfetto", help: "Perfetto's own format, a twentieth of that", write: (*exportJob).writeTrace, check: (*exportJob).checkTraceOptions},
	{name: "parquet", help: "a folder of Apache Parquet tables, for DuckDB, Spark and pandas; many recordings may share it", fill: (*exportJob).writeParquet},
	{name: "csv", help: "comma-separated values, for spreadsheets and pandas: the table that --table names", write: (*exportJob).writeCSV},
	{name: "pprof", help: "a profile, for go tool pprof", write: (*exportJob).writePprof, check: (*exportJob).checkPprofOptions},
	{name: "memviz", help: "a snapshot, for PyTorch's memory_viz", write: (*exportJob).writeMemviz, check: (*exportJob).checkMemvizOptions},
	{name: "rmm", help: "a log of RMM, for its replay", write: func(j *exportJob, w io.Writer) error {
		return rmm.WriteLog(w, j.in.Source, rmm.Options{Header: j.in.Reader.Header(), Tag: j.tag})
	}},
	{name: "minimalloc", help: "lifetimes, for MiniMalloc", write: func(j *exportJob, w io.Writer) error {
		return minimalloc.Write(w, j.in.Source, minimalloc.Options{Tag: j.tag})
	}},
	{name: "ndjson", help: "one line of JSON for each record, which import reads again", write: (*exportJob).writeNDJSON},
}

// extensions are the formats that extensions of files stand for.
var extensions = map[string][]string{
	".json": {"chrome", "ndjson"}, ".parquet": {"parquet"}, ".csv": {"csv", "rmm", "minimalloc"}, ".pickle": {"memviz"}, ".ndjson": {"ndjson"}, ".jsonl": {"ndjson"},
	".pb": {"pprof", "perfetto"}, ".pprof": {"pprof"}, ".pftrace": {"perfetto"}, ".perfetto-trace": {"perfetto"},
}

// formatsOf are the flags of export that only some formats use.
var formatsOf = map[string][]string{
	"at": {"pprof"}, "table": {"csv"}, "max-events": {"chrome", "perfetto", "memviz"}, "compact": {"chrome"}, "flows": {"chrome"},
	"min-size": {"chrome", "perfetto"}, "counters-every": {"chrome", "perfetto"}, "lifetimes": {"chrome", "perfetto"},
	"no-lifetimes": {"chrome", "perfetto"},
}

// Tables are the tables of the csv format; the first is the default.
var Tables = csv.Tables

// ExportFormats are the names of the formats.
func ExportFormats() []string {
	names := make([]string, len(formats))
	for i := range formats {
		names[i] = formats[i].name
	}
	return names
}

// ExportHelp describes the formats.
func ExportHelp() string {
	texts := make([]string, len(formats))
	for i := range formats {
		texts[i] = formats[i].name + " (" + formats[i].help + ")"
	}
	return strings.Join(texts, ", ")
}

// Export writes a recording in another format. given reports whether the user gave a flag: one that the format ignores is
// an error.
func Export(stdout io.Writer, path string, o *ExportOptions, given func(flag string) bool) error {
	var err error
	if slices.Contains(ExportFormats(), o.Format) { // else it is refused below
		if o.Format, err = files.FormatOfFile(strings.TrimSuffix(o.Output.Path, ".gz"), o.Format, given("format"), extensions); err != nil {
			return err
		}
	}
	at := slices.IndexFunc(formats, func(f format) bool { return f.name == o.Format })
	if at < 0 {
		return read.CheckFormat(o.Format, ExportFormats())
	}
	f, j := &formats[at], &exportJob{ExportOptions: o}
	if err := j.checkOptions(f, path, given); err != nil {
		return err
	}
	if console.IsTerminal(o.Output.Path) {
		console.Meter().HideForGood()
	}
	return files.ReadRecordingPart(path, o.Part, func(in *files.Input) error {
		j.in = in
		if err := read.WarnIfNoSiteMatches(in, j.tag); err != nil {
			return err
		}
		if f.fill != nil {
			return f.fill(j)
		}
		return o.Output.Write(stdout, func(w io.Writer) error { return f.write(j, w) })
	})
}

// checkOptions checks the options before anything is read.
func (j *exportJob) checkOptions(f *format, path string, given func(flag string) bool) error {
	switch output := j.Output.Path; {
	case output == "" && f.fill != nil:
		return fmt.Errorf("no folder to write into: name one with -o for --format %s", f.name)
	case output == "":
		return errors.New("no file to write: name one with -o, or - for standard output")
	case output == "-" && f.fill != nil:
		return fmt.Errorf("--format %s writes a folder, not standard output: name one with -o", f.name)
	}
	if err := j.Output.RefuseInputs(path); err != nil {
		return err
	}
	if f.name == "ndjson" && given("tag") {
		return errors.New("--tag is not for --format ndjson: leave it out")
	}
	for _, name := range slices.Sorted(maps.Keys(formatsOf)) {
		if only := formatsOf[name]; given(name) && !slices.Contains(only, f.name) {
			return fmt.Errorf("--%s is for --format %s, not %s: leave it out", name, strings.Join(only, " or "), f.name)
		}
	}
	var err error
	if j.tag, err = read.ParsePattern("tag", j.Tag); err != nil || f.check == nil {
		return err
	}
	return f.check(j)
}

func (j *exportJob) checkTraceOptions() error {
	o := &j.trace
	*o = export.TraceOptions{
		CountersEvery: j.CountersEvery, NoLifetimes: j.NoLifetimes, Lifetimes: j.Lifetimes, Flows: j.Flows, Compact: j.Compact,
		MaxEvents: uint64(max(j.MaxEvents, 0)), Tag: j.tag,
	}
	switch {
	case j.CountersEvery <= 0:
		return fmt.Errorf("bad value %v for --counters-every: want a time above 0, for example 10ms", j.CountersEvery)
	case j.MaxEvents < 0:
		return fmt.Errorf("bad value %d for --max-events: want a number of lines, or 0 for no bound", j.MaxEvents)
	case j.Lifetimes < 0:
		return fmt.Errorf("bad value %d for --lifetimes: want a number of call sites, or 0 for all", j.Lifetimes)
	case j.Lifetimes > 0 && j.NoLifetimes:
		return errors.New("--lifetimes and --no-lifetimes contradict each other: leave one out")
	case j.Compact && j.Flows:
		return errors.New("--compact has no calls for the arrows of --flows: leave one out")
	case j.MinSize == "":
		return nil
	}
	var err error
	if o.MinSize, err = units.ParseSize(j.MinSize); err != nil {
		return fmt.Errorf("--min-size: %w", err)
	}
	return nil
}

// writeTrace writes a Chrome or Perfetto trace, and says what the options left out.
func (j *exportJob) writeTrace(w io.Writer) error {
	facts := export.FactsOfHeader(j.in.Reader.Header())
	facts.Since, facts.Until = j.Part.Since, j.Part.Until
	write := export.WriteChrome
	if j.Format == "perfetto" {
		write = export.WritePerfetto
	}
	report, err := write(w, j.in.Source, facts, j.trace)
	if dropped := report.DroppedText(); err == nil && dropped != "" {
		console.SayLine("left out of the trace, whose counters are complete: %s", dropped)
	}
	return err
}

// checkPprofOptions reads --at, which must lie in the part.
func (j *exportJob) checkPprofOptions() error {
	var err error
	if j.moment, err = pprof.ParseMoment(j.At); err != nil {
		return fmt.Errorf("bad value %q for --at: want peak, end, or a time after the start such as 2.5s", j.At)
	}
	after, timed := j.moment.AfterStart()
	switch {
	case timed && after < j.Part.Since:
		return fmt.Errorf("--at %v is before --since %v: nothing is known of it", after, j.Part.Since)
	case timed && j.Part.Until > 0 && after > j.Part.Until:
		return fmt.Errorf("--at %v is after --until %v: nothing is known of it", after, j.Part.Until)
	}
	return nil
}

func (j *exportJob) writePprof(w io.Writer) error {
	start := j.in.Reader.Header().ClockNS
	if after, timed := j.moment.AfterStart(); timed {
		if footer, whole := j.in.Reader.Footer(); whole && footer.EndedNS > start && after > time.Duration(footer.EndedNS-start) {
			lasts := time.Duration(footer.EndedNS - start).Round(time.Millisecond)
			return fmt.Errorf("--at %v is after the end: the recording lasts %v", after, lasts)
		}
	}
	return pprof.WriteProfile(w, j.in.Source, pprof.Options{Header: j.in.Reader.Header(), At: j.moment, Tag: j.tag})
}

func (j *exportJob) checkMemvizOptions() error {
	if j.MaxEvents < 0 {
		return fmt.Errorf("bad value %d for --max-events: want a number of events, or 0 for %d", j.MaxEvents, memviz.DefaultMaxEvents)
	}
	return nil
}

func (j *exportJob) writeMemviz(w io.Writer) error {
	report, err := memviz.WriteSnapshot(w, j.in.Source, memviz.Options{Header: j.in.Reader.Header(), MaxEvents: uint64(j.MaxEvents), Tag: j.tag})
	if err == nil && report.Dropped > 0 {
		console.SayLine("kept the last %d of %d events; --max-events N keeps more", report.Events-report.Dropped, report.Events)
	}
	return err
}

func (j *exportJob) writeParquet() error {
	return parquet.WriteTables(j.Output.Path, j.Output.Force, j.in.Source, j.tableOptions())
}

func (j *exportJob) writeCSV(w io.Writer) error {
	return csv.WriteTable(w, cmp.Or(j.Table, csv.Tables[0]), j.in.Source, j.tableOptions())
}

func (j *exportJob) tableOptions() tables.Options {
	return tables.Options{Header: j.in.Reader.Header(), Since: j.in.Extract.Since, Tag: j.tag}
}

func (j *exportJob) writeNDJSON(w io.Writer) error {
	lines := ndjson.NewWriter(w)
	if err := lines.WriteHeader(edit.TrimHeader(j.in.Reader.Header(), j.in.Extract)); err != nil {
		return err
	}
	footer, err := edit.WritePart(lines, j.in.Reader, j.in.Source, j.in.Extract, j.Part.String())
	if err != nil {
		return err
	}
	return lines.WriteFooter(footer)
}
