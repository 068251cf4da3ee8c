package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/check"
)

// errBroken says that a run does not keep to the rules: exit status 1.
var errBroken = errors.New("the run does not keep to the rules")

// rulesMax bounds a file of rules, bytes.
const rulesMax = 1 << 20

func newCheck() *cobra.Command {
	return command(onCheck, &cobra.Command{
		Use:   "check [flags] FILE",
		Short: "Hold a recording against rules, for continuous integration",
		Long: "Exits with status 0 when a recording keeps to all rules and 1 when it does not; 125 means that it\n" +
			"could not be judged. The rules are TOML: keys with their bounds, for the whole run, and in [[tag]]\n" +
			"sections for each call site whose name matches a regular expression:\n\n" +
			"  max_peak_in_use = \"512MiB\"\n  max_leaked_bytes = 0\n  min_hit_rate = 0.95\n\n" +
			"  [[tag]]\n  match = \"^blur\\\\.c:\"\n  max_peak_in_use = \"64MiB\"\n\n" +
			"What there is nothing to judge of fails, and so does a recording that is not whole.\n\nRules:\n" + check.Help(),
		Annotations: map[string]string{usageKey: "gpumemtop check FILE --rules RULES.toml"},
		Example:     "  gpumemtop record -o ci.gmt -- ./blur && gpumemtop check ci.gmt --rules memory.toml",
		Args:        oneFile,
	}, func(cmd *cobra.Command, c *config, args []string) error {
		if err := checkFormat(c.checkFormat, textFormats); err != nil {
			return err
		}
		rules, err := readRules(c.rules)
		if err != nil {
			return err
		}
		a, err := analyseFile(args[0], c)
		if err != nil {
			return err
		}
		result := rules.Judge(a)
		if c.checkFormat == "json" {
			err = result.WriteJSON(cmd.OutOrStdout())
		} else {
			err = result.WriteText(cmd.OutOrStdout())
		}
		if err == nil && !result.Passed {
			return errBroken
		}
		return err
	})
}

func readRules(path string) (*check.Rules, error) {
	if path == "" {
		return nil, errors.New("no rules: name their file with --rules; gpumemtop check --help lists what they can say")
	}
	text, err := readBounded(path, rulesMax)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	rules, err := check.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("rules %s: %w", path, err)
	}
	return rules, nil
}

// readBounded reads a file that says nothing of its size beforehand, such as a pipe, too.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, errors.Join(err, f.Close())
}
