package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/splice"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

func newTrim() *cobra.Command {
	return command(onTrim, &cobra.Command{
		Use:   "trim [flags] FILE",
		Short: "Cut a part out of a recording",
		Long: "Writes a recording of a part of another one. What was there when the part begins is carried over: memory in use\n" +
			"and in the pool counts, and the calls that it comes from do not. The exit status is kept if the end is. Without\n" +
			"--since, --until and --process it makes a recording that was cut off whole again, as far as it goes.",
		Annotations: map[string]string{usageKey: "gpumemtop trim [--since TIME] [--until TIME] [--process PID] -o OUT [-f] FILE"},
		Example:     "  gpumemtop trim run.gmt --since 10s --until 20s -o ten.gmt\n  gpumemtop trim torn.gmt -o whole.gmt",
		Args:        oneFile,
	}, func(_ *cobra.Command, c *config, args []string) error {
		if err := checkOutput(c.output, args[0]); err != nil {
			return err
		}
		in, err := openInput(args[0], c)
		if err != nil {
			return err
		}
		return errors.Join(trim(in, c), in.close())
	})
}

func trim(in *input, c *config) error {
	header := splice.TrimHeader(in.reader.Header(), in.part)
	err := writeRecording(c.output, c.force, header, func(w splice.Sink) (trace.Footer, error) {
		return splice.Trim(w, in.reader, in.Source, in.part, c.partText())
	})
	if err == nil {
		warnDamage(in.path, in.reader)
	}
	return err
}

// partText says which part was asked for, empty: all.
func (c *config) partText() string {
	var texts []string
	if c.since > 0 {
		texts = append(texts, "from "+c.since.String())
	}
	if c.until > 0 {
		texts = append(texts, "to "+c.until.String())
	}
	if c.process != "" {
		texts = append(texts, "of process "+c.process)
	}
	return strings.Join(texts, " ")
}
