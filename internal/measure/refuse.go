package measure

// Why nothing is measured.

import (
	"fmt"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// whyTooLittleMemory says why a process has too little memory for two arms; empty: it has enough. Beside what it uses, another arm may
// use as much again.
func (d *Director) whyTooLittleMemory(process uint32) string {
	free, used := d.options.Session.RoomBytes(process)
	if free >= used {
		return ""
	}
	return fmt.Sprintf("the device may lack the memory for it: the program uses up to %s, and %s more are surely free", units.FormatLong(used), units.FormatLong(free))
}

// sayNothingMeasured says why nothing is measured: of the alternative whose turn it is, and of those after it.
func (d *Director) sayNothingMeasured(process uint32, why, whyLater string) {
	for i, alternative := range d.task.alternatives[d.turn:] {
		if i > 0 {
			why = whyLater
		}
		d.sayNotMeasured(process, alternative, why)
	}
}

// sayNotMeasured says why one alternative is not measured.
func (d *Director) sayNotMeasured(process uint32, alternative, why string) {
	if d.task.quiet {
		return
	}
	word := notWord
	if p := d.task.proposal; p != nil {
		word, why = autoNotWord, staysWord+p.Present+": nothing could be measured: "+why
	}
	d.options.Session.RecordText(process, d.now, word+strings.Replace(alternative, " ", ",", 1)+": "+why)
}

// whyRunTooShort says why a process that has ended was not measured.
func (d *Director) whyRunTooShort(c *candidate) string {
	switch {
	case c.requests >= lookAgain && d.lag.wait > d.lag.last-d.lag.first || d.follower.result.Answer.Blocks == 0 && d.follower.behind+uint64(len(d.follower.ended)) > 0:
		return "the program makes many requests without waiting for the device, so that their times do not show what the pool gains"
	case d.stage == looking && c.why != "":
		return c.why
	case d.turn > 0:
		return "too short: the program ended before an answer was known"
	}
	if d.late > 0 && d.follower.result.Answer.Blocks == 0 {
		return fmt.Sprintf("%s reached the library in the program too late", units.Plural(d.late, "change of the configuration", "changes of the configuration"))
	}
	return fmt.Sprintf("too short: an answer takes longer than %s", units.Count(c.requests, "request"))
}
