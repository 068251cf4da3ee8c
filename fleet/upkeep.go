package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/parquet"
)

// upkeepCommands maintain a lake.
var upkeepCommands = []string{"compact", "expire", "files"}

func maintainLake(out io.Writer, command string, arguments []string) error {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	age := ""
	if command == "expire" {
		flags.StringVar(&age, "older-than", "", "")
	}
	lakes, err := parseInterspersedFlags(flags, arguments)
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	oldest, err := earliestStartToKeep(command, age)
	switch {
	case err != nil:
		return err
	case len(lakes) != 1:
		return fmt.Errorf("%s: want one lake, not %d", command, len(lakes))
	case command == "files":
		files, err := parquet.ListLakeFiles(lakes[0])
		for _, file := range files {
			fmt.Fprintln(out, file)
		}
		return err
	}
	kept, err := parquet.CompactLake(lakes[0], oldest, time.Now)
	if err == nil {
		_, err = fmt.Fprintf(out, "%s: %d of %d runs in %d files, %d before\n", lakes[0], kept.Runs, kept.RunsBefore, kept.Files, kept.FilesBefore)
	}
	return err
}

// earliestStartToKeep returns the earliest start of a run that stays in the lake.
func earliestStartToKeep(command, age string) (oldest time.Time, err error) {
	if command != "expire" {
		return oldest, nil
	}
	if age == "" {
		return oldest, errors.New("expire: how old? --older-than 30d or 12h")
	}
	if days, ok := strings.CutSuffix(age, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err == nil {
			return time.Now().AddDate(0, 0, -int(n)), nil
		}
	} else if d, err := time.ParseDuration(age); err == nil && d >= 0 && d < math.MaxInt64 {
		return time.Now().Add(-d), nil
	}
	return oldest, fmt.Errorf("expire: bad value %q for --older-than: want 30d or 12h", age)
}
