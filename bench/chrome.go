package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// countedBytes is a writer that only counts.
type countedBytes int64

// Write implements io.Writer.
func (c *countedBytes) Write(b []byte) (int, error) {
	*c += countedBytes(len(b))
	return len(b), nil
}

// measureChromeExport shows how fast recordings become traces, and how large these are.
func (b *bench) measureChromeExport() error {
	b.printRow("program", "written as", "events", "s", "MB", "MB/s", "MB/processor s", "bytes/life", "bytes on disk/life", "peak MiB")
	for _, args := range [][]string{
		{b.examplePath("train"), "1000"}, {b.examplePath("churn"), "1000000", "4K", "2"},
	} {
		recorded, err := b.runOnce(futhark, args...)
		if err != nil {
			return err
		}
		events := b.countEvents(recorded.file)
		name := filepath.Base(args[0]) + " " + args[1]
		for _, way := range []struct {
			name  string
			flags []string
			file  string // "": standard output, which is counted
		}{
			{"JSON", nil, ""},
			{"JSON with arrows", []string{"--flows"}, ""},
			{"JSON, 100000 lines at most", []string{"--max-events", "100000"}, ""},
			{"compact JSON", []string{"--compact"}, ""},
			{"Perfetto", []string{"--format", "perfetto"}, ""},
			{"packed JSON", nil, filepath.Join(b.temp, "bench.json.gz")},
		} {
			r, written, err := b.exportChrome(recorded.file, way.file, way.flags)
			if err != nil {
				return err
			}
			lives := recorded.sum.Hits + recorded.sum.Misses
			disk := "-"
			if way.file != "" {
				disk, written = formatFixed(written/lives, 1), 0
			}
			mb := written / 1e6
			b.printRow(name, way.name, formatIfCounted(events), formatFixed(r.wall.Seconds(), 2), formatIfCounted(mb), formatIfCounted(mb/r.wall.Seconds()),
				formatIfCounted(mb/r.cpu.Seconds()), formatIfCounted(written/lives), disk, formatFixed(float64(r.peak)/1024, 1))
		}
	}
	b.flushTable()
	return nil
}

// exportChrome exports a recording and returns how many bytes came out.
func (b *bench) exportChrome(recording, file string, flags []string) (result, float64, error) {
	args := append([]string{"export", "--format", "chrome", "-f", recording, "-o"}, "-")
	if file != "" {
		args[len(args)-1] = file
	}
	cmd := exec.Command(b.gpumemtopPath(), append(args, flags...)...)
	var written countedBytes
	cmd.Stdout = &written
	var r result
	if err := r.runAndMeasure(cmd); err != nil || file == "" {
		return r, float64(written), err
	}
	info, err := os.Stat(file)
	if err != nil {
		return r, 0, fmt.Errorf("no trace: %w", err)
	}
	return r, float64(info.Size()), nil
}
