package study

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/spill"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Spilled says what --spill would do for recordings, as far as they tell. Scripts rely on its JSON keys.
type Spilled struct {
	Recordings []SpilledOne `json:"recordings"`
}

// SpilledOne is the result for one recording.
type SpilledOne struct {
	File string `json:"file"`
	*spill.Result
}

// FitWithSpill writes what --spill would do for recordings. bandwidth is a size per second, or empty.
func FitWithSpill(w io.Writer, bandwidth, format string, paths []string) error {
	if format != "text" && format != "json" {
		return fmt.Errorf("unknown format %q: want text or json", format)
	}
	stated := uint64(0)
	if bandwidth != "" {
		var err error
		if stated, err = units.ParseSize(bandwidth); err != nil {
			return fmt.Errorf("--bandwidth: %w", err)
		}
		if stated == 0 {
			return fmt.Errorf("bad value %q for --bandwidth: want more than nothing", bandwidth)
		}
	}
	if len(paths) == 0 {
		return errors.New("no recording: gpumemtop fit --spill FILE")
	}
	all := Spilled{}
	for _, path := range paths {
		err := files.ReadRecording(path, func(t *files.Tracked) error {
			result, err := spill.SimulateSpill(t, stated)
			all.Recordings = append(all.Recordings, SpilledOne{path, result})
			return err
		})
		if err != nil {
			return err
		}
	}
	if format == "json" {
		return console.WriteJSON(w, &all)
	}
	var b strings.Builder
	for i := range all.Recordings {
		fmt.Fprintf(&b, "%s: %s", units.Clean(all.Recordings[i].File), all.Recordings[i].Text(console.WidthWithin(w, 0)))
	}
	return console.WriteText(w, b.String())
}
