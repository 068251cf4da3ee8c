package export

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
)

// defaultCountersEvery keeps counters below what a screen can show anyway.
const defaultCountersEvery = time.Millisecond

// ChromeOptions choose what goes into a trace. The zero value takes everything.
type ChromeOptions struct {
	CountersEvery time.Duration  // at most one value of each counter in this time; 0: 1 ms
	MaxEvents     uint64         // lines after which no slice or lifetime begins; counters thin out to match; 0: no bound
	NoLifetimes   bool           // leave out lifetimes of buffers and stays in the pool
	Lifetimes     int            // number of tags with lifetimes, those with the most bytes in creates; 0: all
	MinSize       uint64         // no slices and lifetimes of what was granted fewer bytes; counters stay complete
	Tag           *regexp.Regexp // only slices and lifetimes of tags whose name matches; counters stay complete
	Flows         bool           // arrows from creates to lifetimes and releases
}

// drops reports whether the options can leave something out, which the first line must then report.
func (o *ChromeOptions) drops() bool {
	return o.MaxEvents > 0 || o.Lifetimes > 0 || o.MinSize > 0 || o.Tag != nil
}

// ChromeReport counts what a trace holds and what was left out of it.
type ChromeReport struct {
	Events           uint64 // lines written
	Slices           uint64 // calls
	Lifetimes        uint64 // of buffers, sub-buffers and blocks in the pool
	Leaks            uint64 // objects never released
	Lost             uint64 // events that are not in the recording
	DroppedSlices    uint64 // for the options
	DroppedLifetimes uint64 // for the options
	Damage           string // of the recording, "" when it is whole
}

// Dropped describes what the options left out, "" if nothing.
func (r *ChromeReport) Dropped() string {
	var parts []string
	if r.DroppedSlices > 0 {
		parts = append(parts, count(r.DroppedSlices, "call"))
	}
	if r.DroppedLifetimes > 0 {
		parts = append(parts, count(r.DroppedLifetimes, "lifetime"))
	}
	return strings.Join(parts, ", ")
}

// Chrome writes a run as Chrome trace JSON, in the array form that Perfetto and chrome://tracing open. It reads src
// two times, or three when something may be left out; memory grows with live objects and tags, not with records.
// Times are relative to the start. Counters are per process: memory by state, fragmentation, and the hit rate so far.
func Chrome(w io.Writer, src recording.Source, facts Facts, opts ChromeOptions) (ChromeReport, error) {
	opts.complete()
	seen, err := look(src, &facts)
	if err != nil {
		return ChromeReport{}, err
	}
	report := ChromeReport{Lost: seen.lost, Damage: recording.DamageOf(src)}
	if opts.drops() || seen.most > aliveMax && !opts.NoLifetimes {
		// The first line says what was left out: write once to nowhere to know.
		if report, err = newChrome(io.Discard, seen, &opts, report).write(src, &facts); err != nil {
			return report, err
		}
	}
	return newChrome(w, seen, &opts, report).write(src, &facts)
}

func (o *ChromeOptions) complete() {
	if o.CountersEvery <= 0 {
		o.CountersEvery = defaultCountersEvery
	}
}

// write goes once through the source. What x.report says was dropped goes into the first line.
func (x *chrome) write(src recording.Source, facts *Facts) (ChromeReport, error) {
	processes := x.seen.sorted()
	if len(processes) > 0 {
		x.home = placeOf(processes[0].pid, processes[0].pid)
	} else {
		x.home = placeOf(firstFreePID, firstFreePID)
	}
	if err := x.head(facts); err != nil {
		return ChromeReport{}, err
	}
	x.names(processes)
	x.report = ChromeReport{Lost: x.report.Lost, Damage: x.report.Damage}
	for r, err := range recording.Records(src) {
		if err != nil {
			return x.report, err
		}
		if x.step(r); x.out.err != nil {
			break
		}
	}
	x.whole = x.report.Damage == "" && !recording.GoesOn(src)
	x.end()
	if err := x.out.finish(); err != nil {
		return x.report, fmt.Errorf("write the trace: %w", err)
	}
	x.report.Events = x.out.events
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

// head writes the facts of the run.
func (x *chrome) head(f *Facts) error {
	facts := runFacts{
		Program: clean(f.Program), Policy: clean(f.Policy), Limits: f.Limits, Tags: clean(f.Tags), Host: clean(f.Host),
		Since: uint64(f.Since), Until: uint64(f.Until), MinSize: x.opts.MinSize, Largest: x.opts.Lifetimes,
		Lifetimes: !x.opts.NoLifetimes, Live: x.live,
		Slices: x.report.DroppedSlices, Dropped: x.report.DroppedLifetimes, Lost: x.report.Lost,
		Damage: clean(x.report.Damage),
	}
	for _, argument := range f.Arguments {
		facts.Arguments = append(facts.Arguments, clean(argument))
	}
	if !f.Created.IsZero() {
		facts.Created = f.Created.UTC().Format(time.RFC3339Nano)
	}
	if x.opts.Tag != nil {
		facts.Tag = clean(x.opts.Tag.String())
	}
	text, err := json.Marshal(facts)
	if err != nil {
		return fmt.Errorf("write the facts of the run: %w", err)
	}
	x.out.event(`{"ph":"i","cat":"run","name":`, `"gpumemtop"`, x.home, 0)
	x.out.raw(`,"s":"g","args":`)
	// A limit's name is the one text here that may hold DEL, which is legal JSON but not for Perfetto.
	x.out.raw(strings.ReplaceAll(strings.TrimSuffix(string(text), "}"), "\x7f", " "))
	x.out.close()
	return nil
}
