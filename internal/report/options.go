// Package report writes what package analysis found.
package report

import "codeberg.org/gpumemtop/gpumemtop/internal/lab/curve"

// Options say how much of it is written, and what was worked out besides.
type Options struct {
	Top    int                // rows in each table; 0: all
	Limits *curve.Measurement // the hit rate by limit; nil: nothing is said of it
}
