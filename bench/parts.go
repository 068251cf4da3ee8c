package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// parts are the Go benchmarks of one section.
type parts struct {
	pattern   string   // of go test -bench
	duration  string   // of go test -benchtime
	columns   string   // of benchstat -col; "": one column, or one for each program
	units     []string // that benchstat shows; nil: all
	programs  []string // that are recorded for the benchmarks
	packages  []string
	footnotes string
}

// goBenchmarkSection returns a function that runs Go benchmarks several times, in turns, and prints the medians.
func goBenchmarkSection(p parts) func(*bench) error {
	return func(b *bench) error {
		var results []string
		if len(p.programs) == 0 {
			file := filepath.Join(b.temp, "benchmarks")
			if err := b.runGoBenchmarks(p, file, ""); err != nil {
				return err
			}
			results = append(results, "median="+file)
		}
		for i, program := range p.programs {
			words := strings.Fields(program)
			recorded, err := b.runOnce(none, append([]string{b.examplePath(words[0])}, words[1:]...)...)
			if err != nil {
				return err
			}
			file := filepath.Join(b.temp, fmt.Sprint("benchmarks", i))
			if err := b.runGoBenchmarks(p, file, recorded.file); err != nil {
				return err
			}
			results = append(results, words[0]+"="+file)
		}
		args := []string{}
		if p.columns != "" {
			args = append(args, "-col", p.columns)
		}
		if len(p.units) > 0 {
			args = append(args, "-filter", `.unit:("`+strings.Join(p.units, `" OR "`)+`")`)
		}
		stat := exec.Command(filepath.Join(b.root, ".tools", "benchstat"), append(args, results...)...)
		stat.Stdout = os.Stdout
		if err := stat.Run(); err != nil {
			return fmt.Errorf("benchstat: %w", err)
		}
		if p.footnotes != "" {
			fmt.Println("\n" + p.footnotes)
		}
		return nil
	}
}

// runGoBenchmarks writes the results of benchmarks to a file. recording is the path of one to replay, or "".
func (b *bench) runGoBenchmarks(p parts, file, recording string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("collect results: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for range b.runs {
		args := append([]string{"test", "-run", "^$", "-timeout", "1h", "-bench", p.pattern, "-benchtime", p.duration}, p.packages...)
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = b.root, append(os.Environ(), "GPUMEMTOP_RECORDING="+recording)
		var failure strings.Builder
		cmd.Stdout, cmd.Stderr = io.MultiWriter(out, &failure), &failure
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go test -bench: %w\n%s", err, &failure)
		}
	}
	return nil
}
