package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/csv"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/parquet"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
)

func exportParquet(in *input, c *config) error {
	options, err := tableOptions(in, c)
	if err != nil {
		return err
	}
	return parquet.Write(c.output, c.force, in.Source, options)
}

func exportCSV(w io.Writer, in *input, c *config) error {
	table := cmp.Or(c.table, csv.Tables[0])
	options, err := tableOptions(in, c)
	if err != nil {
		return err
	}
	return csv.Write(w, table, in.Source, options)
}

// tableOptions are the options of exports that are tables.
func tableOptions(in *input, c *config) (tables.Options, error) {
	options := tables.Options{Header: in.reader.Header()}
	if c.since > 0 {
		options.Since = options.Header.ClockNS + uint64(c.since)
	}
	if c.tag != "" {
		var err error
		if options.Tag, err = regexp.Compile(c.tag); err != nil {
			return options, fmt.Errorf("bad value %q for --tag: %w", c.tag, err)
		}
	}
	return options, nil
}
