package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

// fitResult is what fit found. Its JSON keys are what scripts rely on.
type fitResult struct {
	Command    []string  `json:"command"`
	Peak       uint64    `json:"peak"`       // bytes that the program takes when it may
	Resolution uint64    `json:"resolution"` // bytes
	Results    []fitLine `json:"results"`    // without the pool, with it
}

// fitLine is what was found for one policy.
type fitLine struct {
	Policy string  `json:"policy"`
	Least  *uint64 `json:"least"` // bytes, the least tried that survived; null: not even eight times the peak did
	Runs   int     `json:"runs"`
}

func (r *fitResult) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

func (r *fitResult) writeText(w io.Writer) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POLICY\tLEAST DEVICE MEMORY\tOF THE PEAK\tRUNS")
	for i := range r.Results {
		line := &r.Results[i]
		least, part := "none that was tried", "-"
		if line.Least != nil {
			least = size.FormatLong(*line.Least)
			part = fmt.Sprintf("%.0f %%", 100*float64(*line.Least)/float64(r.Peak))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\n", line.Policy, least, part, line.Runs)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	fmt.Fprintf(&b, "Without a limit the program takes %s. These are the least tried that survived, to within %s.\n",
		size.FormatLong(r.Peak), size.FormatLong(r.Resolution))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}
