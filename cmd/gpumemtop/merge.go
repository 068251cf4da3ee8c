package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/splice"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/unfinished"
)

func newMerge() *cobra.Command {
	return command(onMerge, &cobra.Command{
		Use:   "merge [flags] FILE FILE...",
		Short: "Make one recording of several",
		Long: "Writes one recording of several, such as those of the ranks of an MPI program. Processes get new numbers.\n" +
			"Recordings of one host since one boot share a clock and keep their times to each other to the nanosecond; those\n" +
			"of other hosts are put where the wall clock said that they began, so that they are as far off as the hosts'\n" +
			"clocks. The exit status is the worst of all.",
		Annotations: map[string]string{usageKey: "gpumemtop merge -o OUT [-f] FILE FILE..."},
		Example:     "  mpirun -n 4 gpumemtop record -o rank-%h-%p.gmt ./app\n  gpumemtop merge rank-*.gmt -o all.gmt",
		Args:        severalFiles,
	}, func(_ *cobra.Command, c *config, args []string) error {
		if err := checkOutput(c.output, args...); err != nil {
			return err
		}
		if err := checkDifferent(args); err != nil {
			return err
		}
		return mergeFiles(args, c, fanIn())
	})
}

// severalFiles is the Args of commands that read several recordings.
func severalFiles(cmd *cobra.Command, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("%s takes two recordings or more, not %d: see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
	}
	return nil
}

// checkDifferent refuses one file that is given twice.
func checkDifferent(paths []string) error {
	type file struct{ device, inode uint64 }
	seen := map[file]bool{}
	for _, path := range paths {
		var info unix.Stat_t
		if unix.Stat(path, &info) != nil {
			continue // opening it says why
		}
		this := file{uint64(info.Dev), info.Ino} //nolint:unconvert // narrower on some machines
		if seen[this] {
			return fmt.Errorf("%s is given twice: each recording counts once", path)
		}
		seen[this] = true
	}
	return nil
}

// fanInMax bounds the recordings that are open at a time: each keeps an unpacked frame of up to a few MiB.
const fanInMax = 64

// fanIn is how many recordings are open at a time: at most half of the files that may be.
func fanIn() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return fanInMax
	}
	return int(max(2, min(limit.Cur/2, fanInMax)))
}

// mergeFiles merges recordings. More than most are merged in groups first.
func mergeFiles(paths []string, c *config, most int) error {
	plan, err := planMerge(paths)
	if err != nil {
		return err
	}
	return writeRecording(c.output, c.force, plan.Header(), func(w splice.Sink) (footer trace.Footer, err error) {
		sources := make([]opened, len(paths))
		for i := range paths {
			sources[i] = func(r *trace.Reader) trace.Source { return plan.Renumbered(i, r) }
		}
		if len(paths) <= most {
			return plan.Footer(), mergeGroup(plan, w, paths, sources)
		}
		folder, err := os.MkdirTemp(filepath.Dir(c.output), ".gpumemtop-merge-")
		if err != nil {
			return footer, fmt.Errorf("merge %d recordings: %w", len(paths), err)
		}
		unfinished.Begin(folder)
		err = mergeInSteps(plan, w, folder, most, paths, sources)
		return plan.Footer(), errors.Join(err, unfinished.Finish(folder, func() error { return os.RemoveAll(folder) }))
	})
}

// planMerge looks through all recordings, one after the other.
func planMerge(paths []string) (*splice.Plan, error) {
	parts := make([]splice.Part, 0, len(paths))
	hurt := 0
	for _, path := range paths {
		reader, err := trace.Open(path)
		if err != nil {
			return nil, err
		}
		part, err := splice.Survey(survey(reader, path))
		if reader.Damage() != "" {
			if hurt++; hurt <= warningsMax {
				warnDamage(path, reader)
			}
		}
		if err = errors.Join(err, reader.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		parts = append(parts, part)
	}
	if hurt > warningsMax {
		say(os.Stderr, strconv.Itoa(hurt-warningsMax)+" more recordings are not whole")
	}
	return splice.NewPlan(parts)
}

// warningsMax bounds the lines about recordings that are not whole.
const warningsMax = 5

// opened makes a source of a recording that was opened to be merged.
type opened func(*trace.Reader) trace.Source

// mergeInSteps merges more recordings than may be open at a time: groups of them into files of a folder, then these.
func mergeInSteps(plan *splice.Plan, w splice.Sink, folder string, most int, paths []string, as []opened) error {
	for level := 0; len(paths) > most; level++ {
		var groups []string
		var plain []opened
		for from := 0; from < len(paths); from += most {
			to := min(from+most, len(paths))
			path := filepath.Join(folder, fmt.Sprintf("%d-%d", level, from))
			if err := mergeInto(plan, path, paths[from:to], as[from:to]); err != nil {
				return err
			}
			groups = append(groups, path)
			plain = append(plain, func(r *trace.Reader) trace.Source { return r })
		}
		if level > 0 {
			for _, path := range paths {
				if err := os.Remove(path); err != nil {
					return fmt.Errorf("merge: %w", err)
				}
			}
		}
		paths, as = groups, plain
	}
	return mergeGroup(plan, w, paths, as)
}

func mergeInto(plan *splice.Plan, path string, paths []string, as []opened) error {
	w, err := trace.Create(path, trace.Header{}, false)
	if err != nil {
		return err
	}
	return errors.Join(mergeGroup(plan, w, paths, as), w.Close(trace.Footer{}))
}

// mergeGroup merges recordings that may all be open.
func mergeGroup(plan *splice.Plan, w splice.Sink, paths []string, as []opened) (err error) {
	sources, all := make([]trace.Source, len(paths)), &together{}
	defer meter().Clear()
	for i, path := range paths {
		reader, openErr := trace.Open(path)
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, reader.Close()) }()
		sources[i] = all.watch(reader, as[i](reader))
	}
	return plan.Merge(w, sources)
}
