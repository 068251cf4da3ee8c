package watch

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/monitor"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// writePrivateFile writes a new file that only its owner can read.
func writePrivateFile(path string, content []byte) error {
	return createPrivateFile(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

func createPrivateFile(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: type another name", path)
	}
	if err != nil {
		return err
	}
	if err = errors.Join(write(file), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// exportSnapshot writes a snapshot to a new file, in the form that its name ends with.
func exportSnapshot(path string, s *stats.Snapshot, attached bool) error {
	switch {
	case strings.HasSuffix(path, ".pb.gz"), strings.HasSuffix(path, ".pprof"):
		return createPrivateFile(path, func(w io.Writer) error { return monitor.WriteProfile(w, s) })
	case strings.HasSuffix(path, ".json"):
		return createPrivateFile(path, func(w io.Writer) error {
			summary := report.NewSummary(s)
			if attached {
				summary = report.NewWatchSummary(s, 0)
			}
			return summary.WriteJSON(w)
		})
	case strings.HasSuffix(path, ".csv"):
		return createPrivateFile(path, func(w io.Writer) error { return writeSitesCSV(w, s) })
	}
	return fmt.Errorf("%s: want a name that ends in .pb.gz or .pprof (go tool pprof), .json (summary) or .csv (call sites)", path)
}

// writeSitesCSV writes a line per call site.
func writeSitesCSV(w io.Writer, s *stats.Snapshot) error {
	table := csv.NewWriter(w)
	rows := [][]string{{"call_site", "live", "in_use", "requested", "peak_in_use", "cached", "cooling", "creates", "hits", "misses", "stack"}}
	for i := range s.Tags {
		t := &s.Tags[i]
		row := []string{t.Name}
		for _, v := range []uint64{t.Live, t.InUse, t.Requested, t.PeakInUse, t.Cached, t.Cooling, t.Creates, t.Hits, t.Misses} {
			row = append(row, strconv.FormatUint(v, 10))
		}
		rows = append(rows, append(row, strings.Join(t.Stack, " < ")))
	}
	return table.WriteAll(rows)
}
