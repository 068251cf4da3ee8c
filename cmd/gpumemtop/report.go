package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// textFormats are the formats of what people read, or scripts.
var textFormats = []string{"text", "json"}

func newReport() *cobra.Command {
	return command(onReport, &cobra.Command{
		Use:         "report [flags] FILE",
		Short:       "Show the figures of a recording",
		Annotations: map[string]string{usageKey: "gpumemtop report [--format text|json] FILE"},
		Example:     "  gpumemtop report blur.gmt\n  gpumemtop report --format json blur.gmt | jq .hit_rate",
		Args:        oneFile,
	}, func(cmd *cobra.Command, c *config, args []string) error {
		if err := checkFormat(c.reportFormat, textFormats); err != nil {
			return err
		}
		reader, err := trace.Open(args[0])
		if err != nil {
			return err
		}
		snapshot, err := fold(reader, watch(reader, args[0]))
		if err == nil {
			warnDamage(args[0], reader)
			err = writeReport(cmd.OutOrStdout(), snapshot, reader, c.reportFormat)
		}
		return errors.Join(err, reader.Close())
	})
}

func writeReport(w io.Writer, snapshot *model.Snapshot, reader *trace.Reader, format string) error {
	if format == "json" {
		summary := export.NewSummary(snapshot)
		if footer, whole := reader.Footer(); whole {
			summary.Exit = export.Exit{Status: footer.Status, Signal: footer.Signal}
		}
		return summary.WriteJSON(w)
	}
	return export.Report(w, snapshot, export.ReportOptions{})
}

// fold puts a source, all of a recording, through the model.
func fold(reader *trace.Reader, source trace.Source) (*model.Snapshot, error) {
	m := model.New(modelOptions(reader.Header()))
	var record wire.Record
	for {
		err := source.Next(&record)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		m.Apply(&record)
	}
	if footer, whole := reader.Footer(); whole {
		m.Tick(footer.EndedNS)
	}
	return m.Publish(), nil
}

// modelOptions returns what a model of a recording knows before the first event.
func modelOptions(header trace.Header) model.Options {
	var followed []model.Limit
	if policy, err := allocator.New(header.Policy, nil); err == nil { // a later version's policy has no limits here
		followed = limits(policy)
	}
	for i := range followed {
		if value, ok := header.Limits[followed[i].Name]; ok {
			followed[i].Set(value)
		}
	}
	return model.Options{
		Program: header.Program, Arguments: header.Arguments, Policy: header.Policy, Limits: followed, Started: header.ClockNS,
	}
}
