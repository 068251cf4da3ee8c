// Package report writes what package analysis found.
package report

import "codeberg.org/gpumemtop/gpumemtop/internal/whatif/curve"

// Options choose how much is written, and add what was measured separately.
type Options struct {
	Top int  // rows in each table; 0: all
	All bool // each section of a text, not only findings, key figures and call sites; a page has all
	// Sections are the names of those that a text has; none: as All says.
	Sections []string
	Limits   *curve.Measurement // the hit rate by limit; nil: not shown
	// Unplanned is what other policies would have reserved, for a run under one that takes plans.
	Unplanned []Unplanned
}

// Unplanned is the most that a policy would have reserved for poolable memory, in bytes.
type Unplanned struct {
	Policy   string
	Reserved uint64
}
