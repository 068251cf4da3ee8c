package tables

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options choose which rows are made.
type Options struct {
	Header  recording.Header
	Since   uint64         // CLOCK_MONOTONIC ns where the part begins: no samples before; 0: at the start
	Tag     *regexp.Regexp // call sites whose buffers, stays and tags get rows; nil: all
	Samples uint64         // of a process at most; 0: samplesMax
}

// Run has the facts about a recording that rows need.
type Run struct {
	options   Options
	names     *callsite.Names
	processes map[uint32]*Facts
	first     uint64 // time that counts as 0
	last      uint64
	step      uint64 // of samples
	lost      uint64
	wall      int64 // ns since 1970 at first
}

// Facts are the facts about a process that its rows need.
type Facts struct {
	Number    uint32 // in the source
	Recording string // same for all copies of a recording, on its own or merged
	Original  uint32 // number in that recording
	Host      string
	PID       int // 0 when unknown
	Records   uint64

	started, last uint64
	ended         uint64 // when it ended; 0: unknown
	exited        bool
	status        *int64
}

// endTime returns when the process ended; if unknown, when the recording did.
func (p *Facts) endTime(r *Run) uint64 { return cmp.Or(p.ended, r.last) }

// samplesMax is how many samples a process has at most.
const samplesMax = 1000

// SurveySource goes through a source once for its names and sizes, and leaves it rewound.
func SurveySource(src recording.Source, o Options) (*Run, error) {
	r := &Run{options: o, names: callsite.NewNames(), processes: map[uint32]*Facts{}, first: o.Header.ClockNS}
	for record, err := range recording.Records(src) {
		if err != nil {
			return nil, err
		}
		r.noteRecord(record)
	}
	if err := src.Rewind(); err != nil {
		return nil, fmt.Errorf("go to the start of the recording: %w", err)
	}
	r.finishSurvey()
	return r, nil
}

func (r *Run) noteRecord(record *wire.Record) {
	if r.first == 0 {
		r.first = record.Time
	}
	r.last = max(r.last, record.Time)
	if record.Kind == wire.KindLost {
		r.lost += record.AsLost().Events()
	}
	r.names.AddRecord(record)
	p := r.processes[record.Process]
	if p == nil {
		p = &Facts{Number: record.Process, started: record.Time}
		r.processes[record.Process] = p
	}
	p.Records++
	p.last = max(p.last, record.Time)
	switch record.Kind {
	case wire.KindProcess:
		p.started = record.Time
	case wire.KindExit:
		p.exited = true
		if record.Thread == 0 {
			p.ended = record.Time
		}
		if status := int64(record.AsExit().Status()); status >= 0 { // the last one is the parent's report, if there is one
			p.status = &status
		}
	default:
	}
}

func (r *Run) finishSurvey() {
	start := max(r.first, r.options.Since)
	r.step = roundUpTo125((max(r.last, start)-start)/cmp.Or(r.options.Samples, samplesMax) + 1)
	created := r.options.Header.Created
	if year := created.Year(); year >= 1970 && year < 2262 {
		r.wall = created.UnixNano()
	}
	for number, p := range r.processes {
		p.Host = r.options.Header.HostOf(number)
		p.PID = r.names.Process(number).PID
		p.Recording, p.Original = r.options.Header.RecordingIDOf(number)
	}
}

// roundUpTo125 rounds up to the next of 1, 2, 5, 10, 20, 50…
func roundUpTo125(n uint64) uint64 {
	for unit := uint64(1); unit < math.MaxUint64/10; unit *= 10 {
		for _, factor := range []uint64{1, 2, 5} {
			if unit*factor >= n {
				return unit * factor
			}
		}
	}
	return n
}

// Processes returns the facts of all processes, by their numbers.
func (r *Run) Processes() []*Facts {
	return slices.SortedFunc(maps.Values(r.processes), func(a, b *Facts) int { return cmp.Compare(a.Number, b.Number) })
}

// Names returns the names in the recording.
func (r *Run) Names() *callsite.Names { return r.names }

// siteIfWanted returns a call site, nil if it is not wanted.
func (r *Run) siteIfWanted(process, tag uint32) *callsite.Site {
	s := r.names.Process(process).Site(tag)
	if r.options.Tag != nil && !r.options.Tag.MatchString(s.Name) {
		return nil
	}
	return s
}

// sinceStart returns ns since the start; times before it are negative.
func (r *Run) sinceStart(time uint64) int64 {
	if time >= r.first {
		return clampToSigned(time - r.first)
	}
	return -clampToSigned(r.first - time)
}

// sinceEpoch converts ns since the start to ns since 1970, or to the nearest time that can be represented.
func (r *Run) sinceEpoch(since int64) int64 {
	sum := r.wall + since
	if since > 0 && sum < r.wall {
		return math.MaxInt64
	}
	return sum
}

// clampToSigned returns a number, at most the largest signed one, which databases need for subtraction.
func clampToSigned(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

func pointerTo(n int64) *int64 { return &n }
