package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
)

// defaultCountersEvery is the least time between values of a counter: screens cannot show more.
const defaultCountersEvery = time.Millisecond

// compactCountersEvery is the same for compact JSON, where a value takes as many bytes as a lifetime.
const compactCountersEvery = 50 * time.Millisecond

// TraceOptions choose what goes into a trace. The zero value takes everything.
type TraceOptions struct {
	CountersEvery time.Duration  // at most one value of each counter in this time; 0: 1 ms
	MaxEvents     uint64         // lines after which no slice or lifetime begins; counters thin out to match; 0: no bound
	NoLifetimes   bool           // leave out lifetimes of buffers and stays in the pool
	Lifetimes     int            // number of tags with lifetimes, those with the most bytes in creates; 0: all
	MinSize       uint64         // no slices and lifetimes of memory with fewer granted bytes; counters stay complete
	Tag           *regexp.Regexp // only slices and lifetimes of tags whose name matches; counters stay complete
	Flows         bool           // arrows from creates to lifetimes and releases
	Compact       bool           // lifetimes stand for the calls that began and ended them, and have few arguments
}

// mayDropEvents reports whether the options can leave something out, which the first line must then report.
func (o *TraceOptions) mayDropEvents() bool {
	return o.MaxEvents > 0 || o.Lifetimes > 0 || o.MinSize > 0 || o.Tag != nil
}

// TraceReport counts what a trace holds and what was left out of it.
type TraceReport struct {
	Events           uint64 // lines written
	Slices           uint64 // calls
	Lifetimes        uint64 // of buffers, sub-buffers and blocks in the pool
	Leaks            uint64 // objects never released
	Lost             uint64 // events that are not in the recording
	DroppedSlices    uint64 // left out by the options
	DroppedLifetimes uint64 // left out by the options
	Damage           string // of the recording, "" when it is whole
}

// DroppedText describes what the options left out, "" if nothing.
func (r *TraceReport) DroppedText() string {
	var parts []string
	if r.DroppedSlices > 0 {
		parts = append(parts, countText(r.DroppedSlices, "call"))
	}
	if r.DroppedLifetimes > 0 {
		parts = append(parts, countText(r.DroppedLifetimes, "lifetime"))
	}
	return strings.Join(parts, ", ")
}

// WriteChrome writes a run as Chrome trace JSON, in the array form that Perfetto and chrome://tracing open. It reads src
// twice, or three times if the options may leave something out; memory grows with live objects and tags, not with records.
// Times are relative to the start. Counters are per process: memory by state, fragmentation, and the hit rate so far.
func WriteChrome(w io.Writer, src recording.Source, facts Facts, opts TraceOptions) (TraceReport, error) {
	style := full
	if opts.Compact {
		style = compact
	}
	return writeTrace(w, src, &facts, &opts, style)
}

// writeTrace writes a run in one format.
func writeTrace(w io.Writer, src recording.Source, facts *Facts, opts *TraceOptions, style style) (TraceReport, error) {
	opts.setDefaults()
	seen, err := surveyRecording(src, facts)
	if err != nil {
		return TraceReport{}, err
	}
	report := TraceReport{Lost: seen.lost, Damage: recording.DamageOf(src)}
	if opts.mayDropEvents() || seen.most > aliveMax && !opts.NoLifetimes {
		// The first line says what was left out, so write once to nowhere to count it.
		if report, err = newTrace(io.Discard, seen, opts, report, style).writeEvents(src, facts); err != nil {
			return report, err
		}
	}
	return newTrace(w, seen, opts, report, style).writeEvents(src, facts)
}

func (o *TraceOptions) setDefaults() {
	if o.CountersEvery <= 0 {
		o.CountersEvery = defaultCountersEvery
	}
	if o.Compact {
		o.CountersEvery = max(o.CountersEvery, compactCountersEvery)
	}
}

// writeEvents reads the source once. The first line has the counts of dropped events that x.report has at the start.
func (x *trace) writeEvents(src recording.Source, facts *Facts) (TraceReport, error) {
	processes := x.seen.sortedProcesses()
	if len(processes) > 0 {
		x.home = placeOfProcess(processes[0].pid)
	} else {
		x.home = placeOfProcess(firstFreePID)
	}
	if err := x.writeFacts(facts); err != nil {
		return TraceReport{}, err
	}
	x.writeNames(processes)
	x.report = TraceReport{Lost: x.report.Lost, Damage: x.report.Damage}
	for r, err := range recording.Records(src) {
		if err != nil {
			return x.report, err
		}
		if x.takeRecord(r); x.out.firstError() != nil {
			break
		}
	}
	x.whole = x.report.Damage == "" && !recording.RunGoesOn(src)
	x.endLifetimes()
	if err := x.out.finish(); err != nil {
		return x.report, fmt.Errorf("write the trace: %w", err)
	}
	x.report.Events = x.out.eventCount()
	return x.report, nil
}

// runFacts are the arguments of the first event.
type runFacts struct {
	Program   string           `json:"program"`
	Arguments []string         `json:"arguments,omitempty"`
	Policy    string           `json:"policy,omitempty"`
	Limits    recording.Limits `json:"limits,omitempty"`
	Tags      string           `json:"tags,omitempty"`
	Host      string           `json:"host,omitempty"`
	Created   string           `json:"created,omitempty"`
	Since     uint64           `json:"since_ns,omitempty"`
	Until     uint64           `json:"until_ns,omitempty"`
	Tag       string           `json:"only_tag,omitempty"`
	MinSize   uint64           `json:"min_size,omitempty"`
	Largest   int              `json:"lifetimes_of_tags,omitempty"`
	Lifetimes bool             `json:"lifetimes"`
	Live      bool             `json:"live,omitempty"`
	Slices    uint64           `json:"dropped_calls"`
	Dropped   uint64           `json:"dropped_lifetimes"`
	Lost      uint64           `json:"lost_events"`
	Damage    string           `json:"damage,omitempty"`
}

func (x *trace) writeFacts(f *Facts) error {
	facts := runFacts{
		Program: cleanText(f.Program), Policy: cleanText(f.Policy), Limits: f.Limits, Tags: cleanText(f.Tags), Host: cleanText(f.Host),
		Since: uint64(f.Since), Until: uint64(f.Until), MinSize: x.opts.MinSize, Largest: x.opts.Lifetimes,
		Lifetimes: !x.opts.NoLifetimes, Live: x.live,
		Slices: x.report.DroppedSlices, Dropped: x.report.DroppedLifetimes, Lost: x.report.Lost,
		Damage: cleanText(x.report.Damage),
	}
	for _, argument := range f.Arguments {
		facts.Arguments = append(facts.Arguments, cleanText(argument))
	}
	if !f.Created.IsZero() {
		facts.Created = f.Created.UTC().Format(time.RFC3339Nano)
	}
	if x.opts.Tag != nil {
		facts.Tag = cleanText(x.opts.Tag.String())
	}
	text, err := json.Marshal(facts)
	if err != nil {
		return fmt.Errorf("write the facts of the run: %w", err)
	}
	x.out.beginInstant("run", `"gpumemtop"`, "g", x.home, 0)
	// Only a limit's name may contain DEL, which JSON permits but Perfetto refuses.
	x.out.addFactsObject(bytes.ReplaceAll(text, []byte{'\x7f'}, []byte{' '}))
	x.out.endEvent()
	return nil
}
