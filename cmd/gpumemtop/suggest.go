package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/doctor"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// suggestCommand adds to an error about a missing program the command that the user may have meant.
func suggestCommand(root *cobra.Command, name string, err error) error {
	if !errors.Is(err, session.ErrNotFound) {
		return err
	}
	names := commandNames(root)
	meant := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return len(name) < beginLeast || !strings.HasPrefix(n, name) })
	if near := doctor.NearestWord(name, names); near != "" {
		meant = []string{near}
	}
	if len(meant) == 0 {
		return err
	}
	return fmt.Errorf("%w: or did you mean gpumemtop %s?", err, strings.Join(meant, ", "))
}

// beginLeast is the least number of letters that count as the beginning of a command.
const beginLeast = 3

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range makeAllCommands(cmd).Commands() {
		names = append(names, sub.Name())
	}
	return names
}

// unknownTopicError is the error of help and completion about a word that they do not know.
func unknownTopicError(cmd *cobra.Command, word string) error {
	hint := "see " + cmd.CommandPath() + " --help"
	if near := doctor.NearestWord(word, commandNames(cmd)); near != "" {
		hint = "did you mean " + near + "?"
	}
	return console.NewExit(console.StatusUnmet, fmt.Errorf("%s has no command %q: %s", cmd.CommandPath(), word, hint))
}

// suggestFlag names the flag that the user may have meant, "" if none is near.
func suggestFlag(flags *pflag.FlagSet, name string) string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := doctor.NearestWord(name, names); near != "" {
		return "did you mean --" + near + "? "
	}
	return ""
}

// suggestDuration says how to write a number as a time, "" if the flag takes none.
func suggestDuration(flag *pflag.Flag, value string) string {
	if _, err := strconv.ParseFloat(value, 64); err == nil && flag.Value.Type() == "duration" {
		return "did you mean " + value + "s? "
	}
	return ""
}

// checkPolicyName refuses an unknown policy, and suggests a policy with a similar name.
func checkPolicyName(name string) error {
	known := append(allocator.PolicyNames(), allocator.Auto)
	if slices.Contains(known, name) {
		return nil
	}
	if near := doctor.NearestWord(name, known); near != "" {
		return fmt.Errorf("unknown policy %q: did you mean %s?", name, near)
	}
	return fmt.Errorf("unknown policy %q: want one of %s", name, strings.Join(known, ", "))
}

// warnOfUnusedVariables names the variables that look like settings and set nothing.
func warnOfUnusedVariables(environment []string) {
	known := []string{wire.SessionEnv, wire.ProbeEnv, wire.LogEnv, wire.LabelEnv, wire.USDTEnv}
	for i := range settings {
		if name := settings[i].envName(); name != "" {
			known = append(known, name)
		}
	}
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "GPUMEMTOP_") || slices.Contains(known, name) {
			continue
		}
		if near := doctor.NearestWord(name, known); near != "" {
			console.SayLine("%s sets nothing: did you mean %s?", name, near)
		}
	}
}
