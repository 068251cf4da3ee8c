package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/importer"
	"codeberg.org/gpumemtop/gpumemtop/internal/splice"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func importerHelp() string {
	texts := make([]string, len(importer.Formats))
	for i, f := range importer.Formats {
		texts[i] = f.Name + " (" + f.Help + ")"
	}
	return strings.Join(texts, ", ")
}

func newImport() *cobra.Command {
	return command(onImport, &cobra.Command{
		Use:   "import [flags] FILE",
		Short: "Make a recording of what another tool wrote",
		Long: "Reads the log of another allocator, or what export wrote, and writes a recording that report, replay and export\n" +
			"take. What came from elsewhere looks like a run under --policy none: replay tells what a pool would have done.",
		Annotations: map[string]string{usageKey: "gpumemtop import [--format NAME] -o OUT [-f] FILE"},
		Example:     "  gpumemtop import rmm_log.csv -o run.gmt && gpumemtop replay --policy slab run.gmt",
		Args:        oneFile,
	}, func(_ *cobra.Command, c *config, args []string) error {
		if c.importFormat != "" {
			if err := checkFormat(c.importFormat, importer.Names()); err != nil {
				return err
			}
		}
		if err := checkOutput(c.output, args[0]); err != nil {
			return err
		}
		return importFile(args[0], c)
	})
}

func importFile(path string, c *config) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a folder: name a file in it", path)
	}
	source, err := importer.Open(c.importFormat, watchFile(file, info), importer.Facts{Name: filepath.Base(path), Modified: info.ModTime()})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return writeRecording(c.output, c.force, source.Header(), func(w splice.Sink) (trace.Footer, error) {
		var r wire.Record
		for {
			err := source.Next(&r)
			if errors.Is(err, io.EOF) {
				return source.Footer(), nil
			}
			if err != nil {
				return trace.Footer{}, fmt.Errorf("%s: %w", path, err)
			}
			if err := w.Append(&r); err != nil {
				return trace.Footer{}, err
			}
		}
	})
}
