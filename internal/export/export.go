// Package export writes recordings in other tools' formats: Chrome trace JSON here, the others in its packages. It also
// writes files so that they appear whole or not at all. It reads no clock.
//
// A trace must open wherever it was cut off, even after SIGKILL. Chrome's array form allows that if the last event is
// whole; gzip does not. A fatal signal can end a write between pages, so spaces keep events off page borders, 2 % of the
// file. Perfetto keeps a track's first name, so records wait for names, at most a second or 65536 of them, and searches
// lanes linearly, so lifetimes beyond 4096 at once are omitted.
package export

import (
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
)

// Facts describe what was recorded. Unknown ones are empty.
type Facts struct {
	Program   string
	Arguments []string
	Policy    string
	Limits    recording.Limits // as the allocator takes them
	Tags      string           // what tags are made of: stack, caller...
	Host      string
	Created   time.Time
	ClockNS   uint64 // CLOCK_MONOTONIC at the start; 0: the time of the first record
	// Attached says that the programs were only watched: no pool served them, and memory from before the attach is carried
	// over when it is first seen.
	Attached bool
	// Since and Until bound the part of the run to export, after its start; Until 0: to the end.
	Since, Until time.Duration
}

// FactsOfHeader returns the facts in the header of a recording.
func FactsOfHeader(h recording.Header) Facts {
	return Facts{
		Program: h.Program, Arguments: h.Arguments, Policy: h.Policy, Limits: h.Limits,
		Tags: h.Tags, Host: h.Host, Created: h.Created, ClockNS: h.ClockNS, Attached: h.Attached,
	}
}
