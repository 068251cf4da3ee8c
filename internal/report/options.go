// Package report writes what package analysis found.
package report

// Options say how much of it is written.
type Options struct {
	Top int // rows in each table; 0: all
}
