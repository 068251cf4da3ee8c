package read

import (
	"errors"
	"fmt"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/check"
	"codeberg.org/gpumemtop/gpumemtop/internal/diff"
)

// DiffRecordings compares two recordings. top bounds the rows of each table, 0 does not.
func DiffRecordings(w io.Writer, before, after, format string, top int) error {
	if err := CheckFormat(format, TextFormats); err != nil {
		return err
	}
	if top < 0 {
		return fmt.Errorf("bad value %d for --top: want a number of rows, or 0 for all", top)
	}
	a, err := analyseFile(before)
	if err != nil {
		return err
	}
	b, err := analyseFile(after)
	if err != nil {
		return err
	}
	d := diff.CompareRuns(a, b)
	if format == "json" {
		return d.WriteJSON(w, before, after)
	}
	return d.WriteText(console.Paged{Writer: w}, before, after, top, console.WidthWithin(w, 0))
}

// rulesMax bounds a file of rules, bytes.
const rulesMax = 1 << 20

// RulesHelp describes the rules.
func RulesHelp() string { return check.HelpText() }

// CheckRecording checks a recording against a file of rules. The error carries console.StatusUnmet if it breaks one.
func CheckRecording(w io.Writer, path, rulesPath, format string) error {
	if err := CheckFormat(format, TextFormats); err != nil {
		return err
	}
	rules, err := readRules(rulesPath)
	if err != nil {
		return err
	}
	a, err := analyseFile(path)
	if err != nil {
		return err
	}
	result := rules.JudgeRun(a)
	write, to := result.WriteText, io.Writer(console.Paged{Writer: w})
	if format == "json" {
		write, to = result.WriteJSON, w
	}
	if err := write(to); err != nil {
		return err
	}
	if !result.Passed {
		return console.NewExit(console.StatusUnmet, nil)
	}
	return nil
}

func readRules(path string) (*check.Rules, error) {
	if path == "" {
		return nil, errors.New("no rules: name a file with --rules; gpumemtop check --help lists the rules")
	}
	text, err := files.ReadBoundedFile(path, rulesMax)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	rules, err := check.ParseRules(string(text))
	if err != nil {
		return nil, fmt.Errorf("rules %s: %w", path, err)
	}
	return rules, nil
}
