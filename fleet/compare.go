package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/diff"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/parquet"
)

// compareBuilds compares the runs of two builds in a lake. The status is 1 if a figure is more than before.
func compareBuilds(out io.Writer, arguments []string) (status int, err error) {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	base, head, form := flags.String("base", "", ""), flags.String("head", "", ""), flags.String("format", "text", "")
	lakes, err := parseInterspersedFlags(flags, arguments)
	switch {
	case err != nil:
		return 0, fmt.Errorf("compare: %w", err)
	case len(lakes) != 1:
		return 0, fmt.Errorf("compare: want one lake, not %d", len(lakes))
	}
	write, known := map[string]func(*diff.Builds, io.Writer) error{
		"text": (*diff.Builds).WriteText, "json": (*diff.Builds).WriteJSON, "junit": (*diff.Builds).WriteJUnit,
	}[*form]
	if !known {
		return 0, fmt.Errorf("compare: unknown format %q: want text, json or junit", *form)
	}
	lake, err := parquet.OpenLakeRows(lakes[0])
	if err != nil {
		return 0, err
	}
	defer func() { _ = lake.Close() }()
	b, err := diff.CompareBuilds(func(take func(*diff.BuildRun, string)) error {
		return parquet.EachRow(lake, parquet.Runs, func(r *diff.BuildRun) string { return r.Run }, take)
	}, func(take func(*diff.BuildSite, string)) error {
		return parquet.EachRow(lake, parquet.Sites, func(s *diff.BuildSite) string { return s.Run }, take)
	}, *base, *head)
	switch {
	case err != nil:
		return 0, fmt.Errorf("compare: %w", err)
	case len(b.Programs) == 0:
		return 0, errors.New("compare: no program has runs of two builds: runs know the revision (GIT_COMMIT and others) and the program's build id")
	case b.CountIncreases() > 0:
		status = 1
	}
	return status, write(b, out)
}

// parseInterspersedFlags parses flags that may come last, and returns the other arguments.
func parseInterspersedFlags(flags *flag.FlagSet, arguments []string) (others []string, err error) {
	for rest := arguments; len(rest) > 0; {
		if err := flags.Parse(rest); err != nil {
			return nil, err
		}
		if rest = flags.Args(); len(rest) > 0 {
			others, rest = append(others, rest[0]), rest[1:]
		}
	}
	return others, nil
}
