// Package export turns recordings and snapshots into what leaves gpumemtop: Chrome trace JSON, summaries, reports, and
// the files that hold them. It computes nothing that the events or the snapshot do not already say, and reads no clock.
package export

import (
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// Facts say what was recorded. Whatever is not known stays empty.
type Facts struct {
	Program   string
	Arguments []string
	Policy    string
	Limits    trace.Limits // as the allocator takes them
	Tags      string       // what tags are made of: stack, caller...
	Host      string
	Created   time.Time
	ClockNS   uint64 // CLOCK_MONOTONIC at the start; 0: the time of the first record
	// Attached says that the programs were only watched: no pool served them, and memory from before is carried when it is
	// first seen.
	Attached bool
	// Since and Until are the part that was asked for, after the start; Until 0: to the end.
	Since, Until time.Duration
}

// FactsOf returns what the header of a recording says.
func FactsOf(h trace.Header) Facts {
	return Facts{
		Program: h.Program, Arguments: h.Arguments, Policy: h.Policy, Limits: h.Limits,
		Tags: h.Tags, Host: h.Host, Created: h.Created, ClockNS: h.ClockNS, Attached: h.Attached,
	}
}
