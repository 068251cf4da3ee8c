package measure

// Why nothing is measured.

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// crowded says why a process has too little memory for two arms; empty: it has enough. Beside what it uses, another arm may use as
// much again.
func (d *Director) crowded(process uint32) string {
	free, used := d.options.Session.Room(process)
	if free >= used {
		return ""
	}
	return fmt.Sprintf("the device may lack the memory for it: the program uses up to %s, and %s more are surely free", units.FormatLong(used), units.FormatLong(free))
}

// refuse ends the attempt to measure.
func (d *Director) refuse(process uint32, why string) {
	d.not(process, why)
	d.stage = idle
	d.wanted.Store(false)
}

// not says why nothing is measured.
func (d *Director) not(process uint32, why string) {
	if !d.quiet.Load() {
		d.options.Session.Say(process, d.now, notWord+why)
	}
}

// short says why a process that has ended was not measured.
func (d *Director) short(c *candidate) string {
	if d.stage == looking && c.why != "" {
		return c.why
	}
	if d.late > 0 && d.follower.result.Answer.Blocks == 0 {
		return fmt.Sprintf("%s reached the library in the program too late", units.Plural(d.late, "change of the configuration", "changes of the configuration"))
	}
	return fmt.Sprintf("too short: the program made %s, and an answer takes longer", units.Count(c.requests, "request"))
}
