package pprof

import (
	"fmt"
	"time"
)

// Moment is the time at which memory in use is counted. The zero value is the peak.
type Moment struct {
	end   bool
	timed bool
	after time.Duration // since the start
}

// ParseMoment reads "peak", "end", or how long after the start, such as 2.5s.
func ParseMoment(text string) (Moment, error) {
	switch text {
	case "peak":
		return Moment{}, nil
	case "end":
		return Moment{end: true}, nil
	}
	after, err := time.ParseDuration(text)
	if err != nil || after < 0 {
		return Moment{}, fmt.Errorf("bad moment %q: want peak, end, or a time after the start such as 2.5s", text)
	}
	return Moment{timed: true, after: after}, nil
}

// AfterStart returns how long after the start the moment is; false for the peak and the end.
func (m Moment) AfterStart() (time.Duration, bool) { return m.after, m.timed }

// String describes the moment, for the profile's comment.
func (m Moment) String() string {
	switch {
	case m.timed:
		return "at the time asked for"
	case m.end:
		return "at the end: what each process had left"
	}
	return "at the peak of bytes in use"
}
