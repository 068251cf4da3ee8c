// Package report writes the findings of package analysis.
package report

import "codeberg.org/gpumemtop/gpumemtop/internal/whatif/curve"

// Options choose how much is written, and add results that were measured separately.
type Options struct {
	Top   int  // rows in each table; 0: all
	Width int  // the most columns of a text; 0: 100
	All   bool // a text has all sections, not only findings, key figures and call sites; a page always has all
	// Sections names the sections of a text; empty: see All.
	Sections []string
	Limits   *curve.Measurement // the hit rate by limit; nil: not shown
	// Unplanned has the memory that other policies would have reserved, for a run under a policy that takes plans.
	Unplanned []Unplanned
}

// Unplanned is the most that a policy would have reserved for poolable memory, in bytes.
type Unplanned struct {
	Policy   string
	Reserved uint64
}
