package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

func newInfo() *cobra.Command {
	return command(0, &cobra.Command{
		Use:         "info FILE",
		Short:       "Show what a recording is of",
		Annotations: map[string]string{usageKey: "gpumemtop info FILE"},
		Args:        oneFile,
	}, func(cmd *cobra.Command, _ *config, args []string) error {
		reader, err := trace.Open(args[0])
		if err != nil {
			return err
		}
		return errors.Join(writeInfo(cmd.OutOrStdout(), reader), reader.Close())
	})
}

func writeInfo(w io.Writer, reader *trace.Reader) error {
	header := reader.Header()
	rows := [][2]string{
		{"command", strings.Join(append([]string{header.Program}, header.Arguments...), " ")},
		{"recorded", header.Created.Format(time.RFC3339) + on(header.Host)},
		{"policy", strings.TrimSpace(header.Policy + " " + limitText(header.Limits))},
		{"tags", header.Tags},
	}
	if header.Scrub != "" {
		rows = append(rows, [2]string{"scrub", header.Scrub})
	}
	if header.DeviceMemory > 0 {
		rows = append(rows, [2]string{"memory", size.FormatLong(header.DeviceMemory) + " of device memory allowed to each process"})
	}
	rows = append(rows, [2]string{"size", size.FormatLong(uint64(reader.Size()))})
	if footer, whole := reader.Footer(); whole {
		rows = append(rows,
			[2]string{"events", fmt.Sprintf("%d, %d lost", footer.Events, footer.Lost)},
			[2]string{"duration", time.Duration(footer.EndedNS - header.ClockNS).Round(time.Millisecond).String()},
			[2]string{"ended", endText(footer)})
		if footer.Message != "" {
			rows = append(rows, [2]string{"note", footer.Message})
		}
	} else {
		rows = append(rows, [2]string{"ended", "cut off: the program or gpumemtop was killed; everything before is whole"})
	}
	var b strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&b, "%-10s%s\n", row[0], row[1])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// endText says how the program ended, where that is known.
func endText(footer trace.Footer) string {
	if footer.Status < 0 && footer.Signal == 0 {
		return "unknown"
	}
	return session.Status{Code: footer.Status, Signal: footer.Signal}.String()
}

func on(host string) string {
	if host == "" {
		return ""
	}
	return " on " + host
}

func limitText(limits trace.Limits) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		texts = append(texts, name+"="+limits[name])
	}
	return strings.Join(texts, " ")
}
