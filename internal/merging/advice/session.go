package advice

import (
	"fmt"
	"slices"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/merging/recorded"
)

// session is what recorded: all that was cut out of its recording, or copied from it, shows the same runs.
type session struct {
	number int    // from 1
	name   string // of the first recording of it
}

// sessionOf returns the session of a recording, and whether another recording of it was there before.
func (r *Reader) sessionOf(from *Recording, runs []recorded.Run) (of session, again bool) {
	var keys []string
	for i := range runs {
		keys = append(keys, from.keys(&runs[i])...)
	}
	i := slices.IndexFunc(keys, func(key string) bool { return r.sessions[key].number > 0 })
	if again = i >= 0; again {
		of = r.sessions[keys[i]]
	} else {
		r.number++
		of = session{r.number, from.Name}
	}
	for _, key := range keys {
		if r.sessions[key].number == 0 {
			r.sessions[key] = of
		}
	}
	return of, again
}

// keys returns what tells a run of a recording from others: its process, on which host, and when the recording began, which a
// merged one has of each that it was made of. That of a part is later, but the two clocks are as far from each other as they
// were, to the nanosecond.
func (from *Recording) keys(run *recorded.Run) []string {
	h := &from.Header
	if h.Created.IsZero() {
		return nil
	}
	key := func(host, what string, at time.Time) string {
		return fmt.Sprintf("%s %s %d %s", host, what, run.PID, at.UTC().Format(time.RFC3339Nano))
	}
	for i := range h.Merged {
		if o := &h.Merged[i]; run.Process >= o.First && run.Process <= o.Last {
			return []string{key(o.Host, "created", o.Created)}
		}
	}
	return []string{key(h.Host, "created", h.Created), key(h.Host, "booted", h.Created.Add(-time.Duration(h.ClockNS)))}
}
